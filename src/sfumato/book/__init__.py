"""The textbook's own functions, safe and vectorised."""
