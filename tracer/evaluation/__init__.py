"""Predictions, scores and tables of a model on test sets."""
