"""Columns as cells: fine ones that are declared, coarse ones that noisy counts choose, and back."""
