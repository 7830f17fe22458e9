"""How far the numbers that train, eval and merge print can be trusted, on small real data sets."""
