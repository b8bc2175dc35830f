"""How often intervals of models' weights hold what they say; each kind of model has a file of its own."""

from __future__ import annotations

from benchmarks.learn_coverage import linear

PARTS = (linear,)
