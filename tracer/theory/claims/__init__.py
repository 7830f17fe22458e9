"""What the theory claims, each claim as a function from a random generator to the violation it found."""
