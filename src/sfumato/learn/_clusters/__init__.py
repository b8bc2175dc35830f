"""Clusters: exact sums of rows by their nearest centre, and centres of what is public already."""
