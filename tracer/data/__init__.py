"""Everybody's data, as one record: `Examples`."""
