"""From the tree of a query to a plan: what has a proven rule is read, everything else is refused."""
