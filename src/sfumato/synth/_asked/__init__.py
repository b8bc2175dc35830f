"""Questions to a synthetic table: as they are read, as weights of cells, and as figures with intervals."""
