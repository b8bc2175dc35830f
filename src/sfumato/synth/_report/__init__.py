"""How true a synthetic table is and what it gives away, figure by figure; reads the truth, steward-only."""
