"""The ablations of the paper, on embedded digits."""
