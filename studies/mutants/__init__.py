"""Deliberate breakages of the package, each of which the tests must catch."""
