"""Synthetic tables: rows of the same shape as a private table's, which anyone may have."""
