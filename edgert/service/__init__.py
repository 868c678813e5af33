"""Pipelines as services of systemd: what is written where, by whom it was changed, how it does."""
