"""Recipes: functions that return experiments or a sweep, for the paper's tables and ablations and for your data."""
