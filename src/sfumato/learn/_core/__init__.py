"""What all models stand on: declared columns, rows as integers, exact sums, noise out of what was paid."""
