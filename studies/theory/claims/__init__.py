"""The claims of the theory: each function draws a random instance and returns the violation of the claim on it.

Claims about inputs also take the function that draws the instance: a space of `studies.theory.spaces`.
"""
