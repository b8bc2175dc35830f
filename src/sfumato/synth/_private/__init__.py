"""The private side: rows as cells of a public grid, and exact counts of them, which only a meter shows."""
