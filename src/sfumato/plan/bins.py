"""Bins of a histogram: whole numbers that count them, from public edges alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import Column, Expression, Literal, call, literal

__all__ = ["Bins"]

_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Bins:
    """Which bin a value is in, and where each begins and ends.

    Attributes:
        place: The number of a value's bin, from 0.
        start: Where a bin begins, over its number.
        end: Where it ends: the last value of it for whole numbers, else where the next begins.
    """

    place: Expression
    start: Expression
    end: Expression

    @classmethod
    def of(
        cls, name: str, value: Expression, facts: Facts, bins: int | Sequence[float], number: Column
    ) -> Bins:
        """The bins of an expression.

        Args:
            name: What the analyst calls it.
            value: The expression.
            facts: What is known about it.
            bins: How many, of one width between its bounds; or their edges.
            number: What the number of a bin is called in results.

        Raises:
            QueryRefused: if it is no number, or has no bounds and no edges are given.
            InvalidParameter: if the bins are none.
        """
        if facts.kind not in ("integer", "float"):
            raise _no_number(name, facts)
        if not isinstance(bins, int):
            return _listed(value, bins, number)
        if isinstance(bins, bool) or not 1 <= bins <= _MOST:
            raise InvalidParameter(f"bins must be a whole number from 1 to {_MOST:,}, or a list of edges.")
        if facts.lower is None or facts.upper is None:
            raise QueryRefused(
                f"{name} has no declared bounds, and bins must not follow from the data.",
                f'Give the edges, bins=[0, 10, 100], or bounds: .with_columns({name}=sf.col("{name}")'
                f'.clip(0, 100)).histogram("{name}", bins={bins}).',
            )
        return _equal(value, facts.lower, facts.upper, bins, number, whole=facts.kind == "integer")


def _equal(
    value: Expression, lower: Fraction, upper: Fraction, bins: int, number: Column, *, whole: bool
) -> Bins:
    """Bins of one width. What lies outside the bounds counts in the first and in the last, as clamps do."""
    lower, upper = (Fraction(float(end)).limit_denominator(10**9) for end in (lower, upper))
    step = Fraction(1) if whole else Fraction(0)
    width = max((upper - lower + step) / bins, step) or Fraction(1)
    if whole:
        width = Fraction(math.ceil(width))
        bins = math.ceil((upper - lower + 1) / width)
    above = value if lower == 0 else call("subtract", value, _constant(lower))
    place = call("floor", call("divide", above, _constant(width)))
    held = call("least", call("greatest", place, literal(0)), literal(bins - 1))
    start: Expression = call("multiply", number, _constant(width))
    if lower:
        start = call("add", start, _constant(lower))
    return Bins(held, start, call("add", start, _constant(width - step)))


def _listed(value: Expression, edges: Sequence[float], number: Column) -> Bins:
    """Bins between edges; what lies outside counts nowhere, and the last edge belongs to the last bin."""
    good = [isinstance(edge, int | float) and math.isfinite(edge) for edge in edges]
    if len(good) < 2 or len(good) > _MOST or not all(good) or any(a >= b for a, b in pairwise(edges)):
        raise InvalidParameter("bins takes a whole number, or two or more edges in ascending order.")
    nothing = Literal(None, None)
    cases: list[Expression] = [call("less", value, literal(edges[0])), nothing]
    for place, edge in enumerate(edges[1:]):
        last = place == len(edges) - 2
        cases += [call("less_equal" if last else "less", value, literal(edge)), literal(place)]
    starts, ends = (
        call("case", *(part for i, edge in enumerate(sides) for part in _when(number, i, edge)), nothing)
        for sides in (edges[:-1], edges[1:])
    )
    return Bins(call("case", *cases, nothing), starts, ends)


def _when(number: Column, place: int, edge: float) -> tuple[Expression, Expression]:
    return call("equal", number, literal(place)), literal(edge)


def _constant(number: Fraction) -> Literal:
    return literal(int(number) if number.denominator == 1 else float(number))


def _no_number(name: str, facts: Facts) -> QueryRefused:
    if facts.kind == "date":
        return QueryRefused(
            f"{name} is a date, and histogram takes numbers.",
            f'Group by months: .group_by(month=sf.col("{name}").dt.truncate("month")).agg(n=sf.count()).',
        )
    return QueryRefused(
        f"{name} is no number, so it has no bins.", f'Count its values: .value_counts("{name}").'
    )
