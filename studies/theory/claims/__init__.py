"""What the theory claims, each claim as a function from a random generator to the violation it found.

Claims about inputs also take what draws them: a space of `studies.theory.spaces`.
"""
