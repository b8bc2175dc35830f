"""Aggregates over all rows of a table whose number of rows is public: no count is measured for them."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.plan.expressions.facts import Facts
from sfumato.plan.questions.aggregates import Part, statistic
from sfumato.plan.questions.nodes import AggregateCall

__all__ = ["whole_ways"]


def whole_ways(call: AggregateCall, columns: Mapping[str, Facts], rows: int) -> tuple[Part, ...] | None:
    """How an aggregate over all rows is measured if their number is public; None: as over any rows.

    COUNT is that number, and costs nothing. SUM and AVG measure one sum, of the distances from a point c of
    the range [L, U]: SUM is S + c·n and AVG is c + S/n.

    Args:
        call: The aggregate, over all rows of a table: without a condition and without groups.
        columns: What is known about them.
        rows: n, as the steward declares it.

    Privacy:
        Claim: the sum S has sensitivity U − L under exchange (lemma `anywhere` of `plan.questions.bounding`,
        one group), so that AVG has (U − L)/n; dividing by n and adding c are post-processing by public
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
    return statistic(call.function).ways_over_all(call, columns, rows)
