"""The law of the noise of a measurement, and the intervals that follow from it alone."""
