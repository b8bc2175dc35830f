"""Survival analysis: curves with bands, the log-rank test, hazard ratios; over a public grid of times."""
