"""Data sets in many formats, each read into one record: `Examples`."""
