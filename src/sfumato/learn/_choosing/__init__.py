"""Choosing between models: trials on parts of the rows, their scores, and what all of it costs."""
