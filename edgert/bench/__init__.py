"""Measures links and pipelines: ratios taken in one run, never figures that stand alone."""
