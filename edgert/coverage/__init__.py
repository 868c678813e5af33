"""Operator coverage: what a device really runs of operators and models, and with what numbers.

Two axes for every cell, never one "pass": where it ran, and how near the numbers were; and beside
each answer what it rests on.
"""
