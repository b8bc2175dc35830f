"""From noisy measurements to the values that are shown, with their intervals."""
