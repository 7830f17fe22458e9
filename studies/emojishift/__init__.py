"""EmojiShift: the paper's claims tested on emoji of twelve artists, and the build of that data set."""
