"""The statement that adds up products of rows' coordinates: second moments, and no row leaves the engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlglot import exp

from sfumato.engines.dialect import Dialect
from sfumato.errors import InvalidParameter
from sfumato.plan.questions.nodes import Measured
from sfumato.sql.write.parts import UNIT
from sfumato.sql.write.pieces import bigint, column, count, named, number, picked, quoted, share, total
from sfumato.sql.write.rows import complete_lines

__all__ = ["LARGEST", "Term", "lower_moments", "pairs_of"]

LARGEST = 2**14
"""The most that a coordinate may be: products of two with a weight of 2**30 have 64 bits."""


class Term(NamedTuple):
    """One coordinate of a row.

    Attributes:
        place: The measurement that it is of; None: it is the same for all rows.
        code: It is `size` where the measurement is this, and else 0; None: it is the measurement itself.
        size: What it is there.
        less: What is taken off the measurement.
    """

    place: int | None
    code: int | None = None
    size: int = 0
    less: int = 0


def pairs_of(terms: Sequence[Term]) -> Iterator[tuple[int, int] | None]:
    """The pairs of an upper triangle, row by row; None: their product is 0 in every row."""
    for at, one in enumerate(terms):
        for other_at, other in enumerate(terms[at:], start=at):
            apart = one.place is not None and one.place == other.place and one.code != other.code
            yield None if apart and None not in (one.code, other.code) else (at, other_at)


def lower_moments(
    measured: Measured,
    terms: Sequence[Term],
    tables: Mapping[str, Any],
    dialect: Dialect,
    *,
    complete: Sequence[int] = (),
) -> exp.Select:
    """One SELECT with the columns `s0`, …: Σ a·b for each pair of coordinates whose product is not always 0.

    Args:
        measured: The question whose clamped values the coordinates are of, without groups.
        terms: The coordinates.
        tables: The tables by name.
        dialect: The engine's.
        complete: The measurements without which a row does not count, by their places.

    Privacy:
        Claim: each row's part is a product of two integers of at most `LARGEST`, times its weight: 1 where
        each row is a unit; else 2**30·max_rows divided by the number of the unit's rows, or by max_rows if
        that is more, and rounded down. So a unit weighs at most max_rows rows, and a row's part follows from
        its own unit's rows. Sums are exact (`Dialect.sum`).

    Raises:
        InvalidParameter: for coordinates that may be larger.
    """
    if any(_reach(term, measured) > LARGEST for term in terms):
        raise InvalidParameter("A coordinate may be too large to be multiplied in the engine.")
    units = measured.unit.column is not None
    lines = complete_lines(measured, tables, dialect, complete)
    coordinates = [named(_coordinate(term), f"c{at}") for at, term in enumerate(terms)]
    pairs = [pair for pair in pairs_of(terms) if pair is not None]
    products: list[exp.Expr] = [
        exp.Mul(this=column(f"c{one}"), expression=column(f"c{other}")) for one, other in pairs
    ]
    if units:
        coordinates = [named(column(UNIT), UNIT), *coordinates]
        products = [exp.Mul(this=product, expression=column("w")) for product in products]
    sums = [named(total(product, dialect), f"s{at}") for at, product in enumerate(products)]
    if not units:
        return picked(sums, picked(coordinates, lines, "l"), "r")
    weight = named(share(measured.unit.max_rows, count(), dialect), "w")
    kept = exp.Table(this=quoted("p"))
    weights = exp.Select().select(column(UNIT), weight, copy=False).from_(kept.copy(), copy=False)
    weights = weights.group_by(column(UNIT), copy=False)
    select = exp.Select().select(*sums, copy=False).from_(kept, copy=False)
    select = select.join(weights.subquery(quoted("t"), copy=False), using=[column(UNIT)], copy=False)
    return select.with_(
        quoted("p"),
        as_=picked(coordinates, lines, "l"),
        materialized=dialect.materialised or None,
        copy=False,
    )


def _reach(term: Term, measured: Measured) -> float:
    """The most that a coordinate can be, of either sign."""
    if term.place is None or term.code is not None:
        return abs(term.size)
    measurement = measured.measurements[term.place]
    if measurement.marks:  # numbers as they are
        return math.inf
    return max(abs(end - term.less) for end in (measurement.lower, measurement.upper))


def _coordinate(term: Term) -> exp.Expr:
    if term.place is None:
        return bigint(term.size)
    value = column(f"m{term.place}")
    if term.code is None:
        return exp.Sub(this=bigint(value), expression=bigint(term.less)) if term.less else bigint(value)
    here = exp.EQ(this=value, expression=number(term.code))
    return exp.Case(ifs=[exp.If(this=here, true=bigint(term.size))], default=bigint(0))
