"""Ways to choose what is measured: one file each."""
