"""Stages that make a model's input."""
