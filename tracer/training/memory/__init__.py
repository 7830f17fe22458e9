"""Memory estimate of a training step, without running it."""
