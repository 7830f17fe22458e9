"""Recipes: Python functions that return an experiment or a sweep, for the paper's tables and for studies."""
