"""One module for each format that data come in, and what they share: columns, splits, cells."""
