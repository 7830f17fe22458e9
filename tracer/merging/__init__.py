"""Merging weights after training: interpolation, soups, Model Stock, Fisher merging, TPGM, DaWin."""
