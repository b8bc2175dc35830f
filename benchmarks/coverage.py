"""How often intervals of models' weights hold what they say; each kind of model has a file of its own."""

from __future__ import annotations

from benchmarks.learn_coverage import linear
from benchmarks.learn_coverage_logistic import coverage_of_classes

PARTS = (linear, coverage_of_classes)
