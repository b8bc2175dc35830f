"""What is asked: sources of rows, aggregates over them, and how far one unit can move a measurement."""
