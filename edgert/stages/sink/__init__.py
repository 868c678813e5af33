"""Stages without outputs: where results leave the pipeline."""
