"""One integer that is read for each group: what leaves an engine, and nothing else does."""

from __future__ import annotations

from typing import Any, Literal

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.tree import Expression, to_wire

__all__ = ["Measurement"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One integer that is read for each group: the only thing that leaves the engine.

    Attributes:
        kind: `rows` (rows of the group), `present` (rows where the argument is neither NULL nor NaN), `sum`
            (of the argument in fixed point), `units` (distinct privacy units), `values` (distinct values of
            the argument), `cells` (rows in each cell of a public grid, of which the argument is the number).
        argument: What is summed, counted or must be present.
        lower: The least value of one row in units of 2**-bits, enforced by a clamp; 0 for counts.
        upper: The greatest one; 1 for counts, the last cell for `cells`.
        bits: A unit is 2**-bits.
        whole: Whether the argument is a whole number, so that the answer is rounded to one.
        per: What the clamp is for: each row, or a unit's total or average in each group that it counts in.
        marks: What else makes this another question: what is made of the cells.
    """

    kind: Literal["rows", "present", "sum", "units", "values", "cells"]
    argument: Expression | None = None
    lower: int = 0
    upper: int = 1
    bits: int = 0
    whole: bool = True
    per: Literal["row", "total", "average"] = "row"
    marks: tuple[str, ...] = ()

    @property
    def magnitude(self) -> int:
        """The most that one row of full weight moves it, in units."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def ends(self) -> tuple[int, int]:
        """How far up and down one row of full weight moves it, in units; a row is in one cell."""
        return (1, 0) if self.kind == "cells" else (max(self.upper, 0), max(-self.lower, 0))

    def to_wire(self) -> list[Any]:
        """Plain data, the same for equal measurements."""
        argument = None if self.argument is None else to_wire(self.argument)
        parts = [self.kind, argument, self.lower, self.upper, self.bits, self.whole]
        parts += [] if self.per == "row" else [self.per]
        return [*parts, list(self.marks)] if self.marks else parts
