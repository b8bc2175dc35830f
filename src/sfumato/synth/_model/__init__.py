"""From noisy marginals to a model of the table and rows out of it: public, all of it post-processing."""
