"""Evidence: every claim of the paper tried on EmojiShift, each number traceable to its run."""
