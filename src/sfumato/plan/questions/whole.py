"""Aggregates over all rows of a table whose number of rows is public: no count is measured for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.questions.aggregates import Estimator, Part, argument_of
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sums import Range, range_of

__all__ = ["whole_ways"]

_NAMES = {"sum": "SUM", "mean": "AVG"}


def whole_ways(each: AggregateCall, columns: Mapping[str, Facts], rows: int) -> tuple[Part, ...] | None:
    """How an aggregate over all rows is measured if their number is public; None: as over any rows.

    COUNT is that number, and costs nothing. SUM and AVG measure one sum, of the distances from a point c of
    the range [L, U]: SUM is S + c·n and AVG is c + S/n.

    Args:
        each: The aggregate, over all rows of a table: without a condition and without groups.
        columns: What is known about them.
        rows: n, as the steward declares it.

    Privacy:
        Claim: the sum S has sensitivity U − L under exchange (`plan.questions.sensitivity`, *Weights*, one
        group), so that AVG has (U − L)/n; dividing by n and adding c are post-processing by public
        constants. With c in [L, U] a row adds a number in [L − c, U − c], which holds 0: what a missing
        number adds too. So this is true whatever the data are, also where they have another number of rows
        than is declared, or NULL in a column that is declared to have none: then the answer is off, and the
        guarantee stands.

        It is not enough where a condition selects rows or a number may be missing: AVG then divides by the
        number of rows that count, which is private; exchanging one row changes both, and for few such rows
        the average by up to U − L. Both are measured there, as they are under add/remove.

        Conditions: neighbours have equally many rows, so that n tells nothing about who is in the table: each
        row is a unit and units are exchanged. `PrivateTable` refuses any other declaration.
    """
    argument = argument_of(each, columns)
    if each.function == "count":
        if argument is not None and facts_of(argument, columns).nullable:
            return None
        return (Part((), Estimator("count", (), whole=True, rows=rows)),)
    if each.function not in ("sum", "mean"):
        return None
    known = range_of(_NAMES[each.function], argument, columns)
    if known.nullable:
        return None
    # A whole number, so that sums of whole numbers stay whole: every point of the range has the same claim.
    center = Fraction(math.floor(known.middle)) if known.whole else known.middle
    if each.function == "sum":
        estimator = Estimator(
            "sum", (0,), center=center, half=known.reach(center), whole=known.whole, rows=rows
        )
        return (Part((known.total(center),), estimator),)
    # The middle itself is for reports that measure a variance as well, whose sum is around it.
    centers = dict.fromkeys((center, known.middle))
    return tuple(Part((known.total(around),), _mean(known, around, rows)) for around in centers)


def _mean(known: Range, center: Fraction, rows: int) -> Estimator:
    return Estimator(
        "mean",
        (0,),
        center=center,
        half=known.reach(center),
        lower=known.lower,
        upper=known.upper,
        rows=rows,
    )
