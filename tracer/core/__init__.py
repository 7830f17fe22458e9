"""Mathematics on tensors and floats: kernels, teachers, loss terms, regularizers, metrics."""
