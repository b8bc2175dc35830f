"""Scalar expressions: what they are, what is known about their values, and the closed list of functions."""
