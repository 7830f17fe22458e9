"""Recipes: functions that return a sweep, for the paper's tables and ablations."""
