"""Stages that make results of a model's outputs."""
