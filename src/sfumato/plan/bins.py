"""Bins of a histogram: whole numbers that count them, from public edges alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.names import in_sql
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
            return _listed(value, facts, bins, number)
        if isinstance(bins, bool) or not 1 <= bins <= _MOST:
            raise InvalidParameter(f"bins must be a whole number from 1 to {_MOST:,}, or a list of edges.")
        if facts.lower is None or facts.upper is None:
            raise QueryRefused(
                f"{name} has no declared bounds, and bins must not follow from the data.",
                f'Give the edges, bins=[0, 10, 100], or bounds: .with_columns({name}=sf.col("{name}")'
                f'.clip(0, 100)).histogram("{name}", bins={bins}).',
            ).in_shell(
                f"{name} has no declared bounds, and bins must not follow from the data. Give the edges: "
                "--bins 0,10,100."
            )
        return _equal(value, facts, bins, number)


def _equal(value: Expression, facts: Facts, bins: int, number: Column) -> Bins:
    """Bins of one width between the bounds, within which values are held: so none lies outside all bins."""
    lower, upper = _declared(facts.lower or Fraction(0)), _declared(facts.upper or Fraction(0))
    whole = facts.kind == "integer"
    step = Fraction(1) if whole else Fraction(0)
    width = max((upper - lower + step) / bins, step) or Fraction(1)
    if whole:
        width = Fraction(math.ceil(width))
        bins = math.ceil((upper - lower + 1) / width)
    above = value if lower == 0 else call("subtract", value, _constant(lower))
    place = call("floor", call("divide", above, _constant(width)))
    held = call("least", call("greatest", place, literal(0)), literal(bins - 1))
    if facts.nullable:  # what holds a value within bounds makes a bound of a missing one
        held = call("case", call("is_null", value), Literal(None, None), held)
    start: Expression = call("multiply", number, _constant(width))
    if lower:
        start = call("add", start, _constant(lower))
    # Whole widths may make the last bin a narrower one, and fractions are rounded.
    end = call("least", call("add", start, _constant(width - step)), _constant(upper))
    return Bins(held, start, end)


def _listed(value: Expression, facts: Facts, edges: Sequence[float], number: Column) -> Bins:
    """Bins between edges; values are held within the declared bounds, and what is in no bin counts nowhere.

    The last edge belongs to the last bin. Whole numbers are told by the first and the last of a bin.
    """
    good = [isinstance(edge, int | float) and math.isfinite(edge) for edge in edges]
    if len(good) < 2 or len(good) > _MOST or not all(good) or any(a >= b for a, b in pairwise(edges)):
        raise InvalidParameter("bins takes a whole number, or two or more edges in ascending order.")
    held = value
    if facts.lower is not None and edges[0] <= (lower := _declared(facts.lower)):
        held = call("greatest", held, _constant(lower))
    if facts.upper is not None and edges[-1] >= (upper := _declared(facts.upper)):
        held = call("least", held, _constant(upper))
    nothing = Literal(None, None)
    missing: list[Expression] = [call("is_null", value), nothing] if facts.nullable and held != value else []
    cases: list[Expression] = [*missing, call("less", held, literal(edges[0])), nothing]
    for place, edge in enumerate(edges[1:]):
        last = place == len(edges) - 2
        cases += [call("less_equal" if last else "less", held, literal(edge)), literal(place)]
    starts, ends = (
        call("case", *(part for i, edge in enumerate(sides) for part in _when(number, i, edge)), nothing)
        for sides in _sides(edges, whole=facts.kind == "integer")
    )
    return Bins(call("case", *cases, nothing), starts, ends)


def _sides(edges: Sequence[float], *, whole: bool) -> tuple[list[float], list[float]]:
    """Where each bin begins and ends."""
    if not whole:
        return list(edges[:-1]), list(edges[1:])
    starts: list[float] = [math.ceil(edge) for edge in edges[:-1]]
    return starts, [*(math.ceil(edge) - 1 for edge in edges[1:-1]), math.floor(edges[-1])]


def _when(number: Column, place: int, edge: float) -> tuple[Expression, Expression]:
    return call("equal", number, literal(place)), literal(edge)


def _declared(bound: Fraction) -> Fraction:
    """A bound as it was declared: what is known of a fraction is the next double outside."""
    return Fraction(float(bound)).limit_denominator(10**9)


def _constant(number: Fraction) -> Literal:
    return literal(int(number) if number.denominator == 1 else float(number))


def _no_number(name: str, facts: Facts) -> QueryRefused:
    if facts.kind == "time":
        reason = f"{name} is a time of day, and histogram takes numbers."
        fix = f'Group by hours: .group_by(hour=sf.col("{name}").dt.hour()).agg(n=sf.count()).'
        hour = f"HOUR({in_sql(name)})"
        shell = f'Group by hours: sfumato query "SELECT {hour} AS hour, COUNT(*) AS n FROM … GROUP BY 1".'
        return QueryRefused(reason, fix).in_shell(f"{reason} {shell}")
    if facts.kind in ("date", "timestamp"):
        reason = f"{name} is a {facts.kind}, and histogram takes numbers."
        fix = f'Group by months: .group_by(month=sf.col("{name}").dt.truncate("month")).agg(n=sf.count()).'
        month = f"DATE_TRUNC('month', {in_sql(name)})"
        shell = f'Group by months: sfumato query "SELECT {month} AS month, COUNT(*) AS n FROM … GROUP BY 1".'
        return QueryRefused(reason, fix).in_shell(f"{reason} {shell}")
    reason = f"{name} is no number, so it has no bins."
    column = in_sql(name)
    shell = f'Count its values: sfumato query "SELECT {column}, COUNT(*) AS n FROM … GROUP BY {column}".'
    return QueryRefused(reason, f'Count its values: .value_counts("{name}").').in_shell(f"{reason} {shell}")
