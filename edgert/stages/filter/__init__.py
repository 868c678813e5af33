"""Stages that let results through, or not."""
