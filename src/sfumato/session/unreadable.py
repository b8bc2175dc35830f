"""Cells that could not be read as declared: their number is bought, and intervals allow for it.

Text that is no date, or no number, where one is declared is NULL, and a row that has it there is left out of
whatever is asked about that column. Their number is a question of its own, about the column that an engine
shows for it (`engines.base.unread_column`), kept and free afterwards like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.engines.base import unread_column
from sfumato.errors import QueryRefused
from sfumato.numeric.exact import Rational
from sfumato.plan.expressions.names import nearest
from sfumato.plan.expressions.tree import Call, Expression, columns_of
from sfumato.plan.prices.estimands import estimands
from sfumato.plan.prices.plan import Plan
from sfumato.plan.questions.aggregates.count import count
from sfumato.plan.questions.declared import Declared
from sfumato.plan.questions.nodes import Scan
from sfumato.plan.questions.reads import columns_read
from sfumato.plan.questions.sources import Source, tables_of
from sfumato.plan.questions.terms import col
from sfumato.schema import Bool, PrivateTable
from sfumato.session.payload import Answer
from sfumato.session.profile import known_profile

if TYPE_CHECKING:
    from sfumato.plan.prices.quoting import Quote
    from sfumato.session.intervals import Known
    from sfumato.session.query import Query
    from sfumato.session.release import Release
    from sfumato.session.session import Session

__all__ = ["SEES_NULL", "Unread", "buy_unread", "known_unread"]

SEES_NULL = frozenset(
    {"case", "coalesce", "concat", "greatest", "is_distinct", "is_not_distinct", "is_null", "least", "nullif"}
)
"""Functions whose result may change from one value to another where an argument is no longer NULL."""

_CELLS = "cells"


@dataclass(frozen=True, slots=True, eq=False)
class Unread:
    """What is known about cells that could not be read, for one question.

    Attributes:
        counts: By column, the release that counts them.
        by: By aggregate (`a0`, …), the columns of these whose cells may have left rows out of it.
        others: The other columns of the question that may have such cells.
    """

    counts: Mapping[str, Release]
    by: Mapping[str, frozenset[str]]
    others: tuple[str, ...] = ()

    def most(self, name: str, risk: float) -> float:
        """More rows than such cells left out of an aggregate; `risk` is for all aggregates at once.

        A row that was left out has such a cell in one of the columns, and each column has its part of the
        risk for the upper end of its own count.
        """
        return sum(self._most(column, risk / len(self.counts)) for column in self.by[name])

    def _most(self, column: str, risk: float) -> float:
        high = self.counts[column]._estimates.covering(_CELLS, 1 - Fraction(risk))[1]
        return max(0.0, float(high[0]))

    @property
    def notes(self) -> tuple[str, ...]:
        """What intervals allow for, and what not, in words."""
        known, others = ", ".join(sorted(self.counts)), ", ".join(sorted(self.others))
        told = f"Intervals over all rows allow for cells of {known} that could not be read."
        silent = f"Cells of {others} that cannot be read are NULL; intervals do not allow for them."
        return (*([told] if known else []), *([silent] if others else []))


def buy_unread(session: Session, table: str, column: str, epsilon: Rational) -> Release:
    """How many cells of a column are neither NULL nor blank in the source, and could not be read as declared.

    Privacy:
        Claim: the loss of its quote, as of any count of rows with a condition. Whether a cell could be read
        is decided by that row and the declared kind alone (`engines.base.Engine`).

    Raises:
        QueryRefused: if there is no such column of a private table, or all of its cells can be read.
    """
    found = session.tables.get(table)
    if not isinstance(found, PrivateTable):
        private = [name for name, other in session.tables.items() if isinstance(other, PrivateTable)]
        raise QueryRefused(
            f"There is no private table {str(table)[:60]!r}.",
            nearest(str(table), private, "Private tables") or "Name a private table.",
        )
    if column not in found.schema:
        raise QueryRefused(
            f"{table} has no column {str(column)[:60]!r}.",
            nearest(str(column), found.schema, "Columns") or "No column is declared.",
        )
    if column not in session.unread(table):
        raise QueryRefused(
            f"Every cell of {column} can be read: the source has it in a type that always fits.",
            "There is nothing to count.",
        )
    bought = _asking(session, found, column)[0].release(epsilon, profile=False)
    return _said(bought, column).with_profile(_profile(session, found))


def _said(bought: Release, column: str) -> Release:
    """The same with a head that says what was counted."""
    (cells,), (counted,) = estimands(bought.quote.plan), bought.quote.columns
    assert cells is not None
    what = f"cells of {column} that could not be read"
    head = replace(counted, estimand=str(replace(cells, what=what)))
    return bought.with_quote(replace(bought.quote, columns=(head,)))


def known_unread(session: Session, plan: Plan) -> Unread | None:
    """What was bought before of the columns that a question is about; None: all of their cells can be read.

    Only where a cell that could not be read can leave its row out and do nothing else: a condition, a key or
    an argument made of functions that are NULL or as they were whatever stands there (`SEES_NULL` lists the
    others), no group of NULL is reported, and no column puts an aggregate that lacks the row together with
    one that has it. Then "all rows" has rows added to it and none taken away.

    Rows that are made of others (joins, unions, lines of units, windows) are not allowed for: a row that is
    missing below may change another's value there, and only the columns are named.
    """
    source = plan.rows.source
    used = {name for expression in _expressions(plan) for name in columns_of(expression)}
    if not isinstance(source, Scan):
        return _not_allowed_for(session, source, used)
    table = session.tables[source.table]
    counts: dict[str, Release] = {}
    by: dict[str, set[str]] = {}
    columns = sorted(session.unread(source.table) & used)
    for column in columns:
        names = _leaves_out(plan, column)
        if names and (release := _known(session, table, column)) is not None:
            counts[column] = release
            for name in names:
                by.setdefault(name, set()).add(column)
    others = tuple(column for column in columns if column not in counts)
    left_out = {name: frozenset(whose) for name, whose in by.items()}
    return Unread(counts, left_out, others) if columns else None


def _not_allowed_for(session: Session, source: Source, used: Iterable[str]) -> Unread | None:
    """The columns below that may have such cells."""
    several = len(tables_of(source)) > 1
    found = sorted(
        f"{table}.{column}" if several else column
        for table, column in columns_read(source, used)
        if column in session.unread(table)
    )
    return Unread({}, {}, tuple(found)) if found else None


def _rows(plan: Plan) -> list[Expression]:
    """What decides whether a row is there: the condition and the keys."""
    node = plan.report.child
    return [*([] if node.predicate is None else [node.predicate]), *(key.expression for key in node.keys)]


def _arguments(plan: Plan) -> dict[str, list[Expression]]:
    """What each aggregate is over."""
    return {
        f"a{place}": [one for one in (call.argument, call.other) if one is not None]
        for place, call in enumerate(plan.report.child.aggregates)
    }


def _expressions(plan: Plan) -> list[Expression]:
    return [*_rows(plan), *(argument for each in _arguments(plan).values() for argument in each)]


def _leaves_out(plan: Plan, column: str) -> frozenset[str]:
    """The aggregates that rows with an unreadable cell may be missing from; none if it can do more."""
    node, rows, arguments = plan.report.child, _rows(plan), _arguments(plan)
    if not all(_only_hides(expression, column) for expression in _expressions(plan)):
        return frozenset()
    for key in node.keys:
        if column in columns_of(key.expression) and (key.values is None or None in key.values):
            return frozenset()  # a group of NULL has them, and should not
    if any(column in columns_of(expression) for expression in rows):
        return frozenset(arguments)
    # The row of such a cell is there and counts in other aggregates: a share of both is another matter.
    names = frozenset(
        name for name, each in arguments.items() if any(column in columns_of(one) for one in each)
    )
    shown = [output.expression for output in plan.report.columns]
    together = [{name for name in columns_of(one) if name in arguments} for one in shown]
    together += [{*arguments} for _ in plan.report.windows]
    return frozenset() if any(names & used and len(used) > 1 for used in together) else names


def _only_hides(expression: Expression, column: str) -> bool:
    """Whether a NULL there makes the result NULL or leaves it as it is, whatever the cell should have been.

    Comparisons, arithmetic and functions of text and dates are NULL where an argument is; AND and OR are true
    or false only where they would be so for any value.
    """
    if not isinstance(expression, Call) or column not in columns_of(expression):
        return True
    return expression.function not in SEES_NULL and all(
        _only_hides(argument, column) for argument in expression.arguments
    )


def _asking(session: Session, table: PrivateTable, column: str) -> tuple[Query, Quote]:
    """The question how many cells could not be read, and a quote of it; made once for a session."""
    place = (table.name, column)
    if place not in session.asked_unread:
        schema = {**table.schema, unread_column(column): Bool(nullable=False)}
        shown = session.showing(replace(table, schema=schema))
        unread = col(unread_column(column))
        query = shown.table(table.name).filter(unread).agg(**{_CELLS: count()})
        session.asked_unread[place] = query, query.quote(1, profile=False)
    return session.asked_unread[place]


def _known(session: Session, table: PrivateTable, column: str) -> Release | None:
    """The least noisy count on record that this session may read."""
    from sfumato.session.release import Release

    paying = session.dataset_with(table)
    dataset = paying.name
    if not session.ledger.is_open(dataset) or paying.budget.each is not None:
        return None  # who may no longer ask sees nothing; nobody buys one of all windows
    quote = _asking(session, table, column)[1]
    kept = [
        (receipt, Answer.from_bytes(payload))
        for receipt, payload in session.ledger.recall(dataset, quote.fingerprint)
    ]
    if not kept:
        return None
    receipt, answer = max(kept, key=lambda pair: pair[1].epsilon)
    return Release(quote, answer, receipt, free=True, profile=_profile(session, table))


def _profile(session: Session, table: PrivateTable) -> Known | None:
    if table.unit.column is None:
        return None
    return Declared.of(dict(table.profile)) if table.profile else known_profile(session, table)
