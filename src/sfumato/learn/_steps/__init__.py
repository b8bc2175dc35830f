"""Steps before a model: histograms and spreads that they learn from, and how a pipeline shares one price."""
