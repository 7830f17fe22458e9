"""What a model was asked, what it answered, and where answers are kept."""
