"""One run: its settings, its plan, its folder and its log."""
