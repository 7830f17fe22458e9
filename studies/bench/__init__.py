"""What things cost, as ratios: every pair is measured in one run, in turns, against a plain reference."""
