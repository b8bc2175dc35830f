"""From a report to the integers that are read for it, and back: what is measured, and how each aggregate
is estimated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from sfumato.plan.nodes import Measured, Report
from sfumato.schema import PrivateTable

__all__ = ["Estimator", "EstimatorKind", "Recipe", "measured_of", "recipe"]

EstimatorKind: TypeAlias = Literal["count", "sum", "mean", "var", "std"]


@dataclass(frozen=True, slots=True)
class Estimator:
    """How one aggregate is computed from the noisy measurements, in natural units (not in fixed point).

    With θ = S/n, for the parts S (sum of x − center), Q (sum of (x − center)² − shift) and n (count):
    count is n; sum is S, or S + center·n where it has two parts; mean is center + θ; var is Q/n + shift − θ², times n/(n − 1) for a sample; std is
    its square root.

    Attributes:
        kind: Which formula.
        parts: Indices into `Measured.measurements`: count (n,), sum (S,) or (S, n), mean (S, n), var and std
            (S, Q, n).
        center: What was taken off every value before summing; 0 for a count and for a sum of one part.
        half: Half the width of the argument's range; 0 for counts.
        shift: What was taken off every square before summing.
        sample: Whether a variance divides by n − 1.
        lower: The least value that the aggregate can have by declaration; None for count and sum.
        upper: The greatest one.
        whole: Whether the true value is a whole number, so that the released one is rounded.
    """

    kind: EstimatorKind
    parts: tuple[int, ...]
    center: Fraction = Fraction(0)
    half: Fraction = Fraction(0)
    shift: Fraction = Fraction(0)
    sample: bool = False
    lower: Fraction | None = None
    upper: Fraction | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is measured for a report and how its aggregates follow.

    Attributes:
        measured: The question: keys, combinations and measurements in canonical order.
        aggregates: One estimator for each aggregate of the report (`a0`, …), in its order.
        key_order: The report's key `k{i}` is the question's key `key_order[i]`.
        row_order: The report's row r (before HAVING, ORDER BY and LIMIT) is the question's combination
            `row_order[r]`.
    """

    measured: Measured
    aggregates: tuple[Estimator, ...]
    key_order: tuple[int, ...]
    row_order: tuple[int, ...]


def recipe(report: Report, table: PrivateTable) -> Recipe:
    """The measurements of a report and the way back from them."""
    raise NotImplementedError


def measured_of(report: Report, table: PrivateTable) -> Measured:
    """The part of a report that reads data."""
    return recipe(report, table).measured
