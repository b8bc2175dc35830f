"""Boosted shapes: bins of columns, sums of residuals by bin, and scores fitted to them."""
