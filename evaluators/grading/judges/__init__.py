"""Judges: models and scripts that score an answer."""
