"""Counts on levels of places: what is measured of them, and whole counts that agree out of the noisy ones."""
