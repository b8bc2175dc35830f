"""Exact parameters, one-sided rounding, and certified composition of privacy-loss laws.

This layer knows laws and curves, no loss class: `sfumato.loss` builds on it.
"""
