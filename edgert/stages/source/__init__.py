"""Stages without inputs: each instance is one stream of frames."""
