"""Conditions that hold in every drawn row: where cells leave room for them, and rows that keep to them."""
