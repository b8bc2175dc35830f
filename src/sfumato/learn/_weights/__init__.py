"""Weights of regressions: standardised rows, noisy descent over them, and how far to trust the weights."""
