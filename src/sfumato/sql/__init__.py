"""SQL in and out: the analyst's text becomes a plan, and the plan a statement generated afresh."""
