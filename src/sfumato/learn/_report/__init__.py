"""What reports are made of: figures with intervals, groups of rows, and how both are told."""
