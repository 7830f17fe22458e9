"""Memory estimate of a training run, without running it."""
