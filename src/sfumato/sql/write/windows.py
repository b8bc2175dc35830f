"""Columns that look at the other rows of a unit, as a statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.dialect import Dialect
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import Expression
from sfumato.plan.questions.relations import argument_facts
from sfumato.plan.questions.sources import AggregateCall, AggregateName, WindowCall, Windowed
from sfumato.sql.write.exact_sums import recipe
from sfumato.sql.write.per_unit import refined, where
from sfumato.sql.write.pieces import check_names, column, has_id, select, subquery
from sfumato.sql.write.typed import Typed, as_typed, select_plain

__all__ = ["select_windowed"]

_RANKS = {"row_number": "ROW_NUMBER", "rank": "RANK", "dense_rank": "DENSE_RANK"}
_SHIFTS = {"lag": "LAG", "lead": "LEAD"}
_AGGREGATES: dict[str, AggregateName] = {
    "count": "count",
    "sum": "sum",
    "mean": "mean",
    "min": "min",
    "max": "max",
}
_NUMBERED = {"row_number", *_SHIFTS}
_FAR = 2**31
_COPY = "copy"


def select_windowed(
    source: Windowed, inner: exp.Expr, tables: Mapping[str, Any], dialect: Dialect
) -> exp.Select:
    """The SELECT, given what FROM holds for the rows that see one another.

    Privacy:
        Every window is partitioned by the unit first, and rows without one are left out: a row sees rows of
        its own unit only. The result is a function of their multiset. Aggregates are so by
        `sql.write.exact_sums`; ranks with ties by definition; row numbers, `lag` and `lead` since rows that
        tie in the order are told apart by all their columns, and rows that agree in all of these are the
        same row: equal values have one form (`engines.forms`). Where several windows number rows, the copies
        of a row are numbered first, and all of them keep to that: whichever copy has number 1, the rows that
        come out are the same.
    """
    before, columns = refined(source.source, source.predicate, tables)
    check_names([*columns, *(name for name, _ in source.columns)])
    rows = _Rows(columns, dialect)
    windows = [_Window(i, call, rows) for i, (_, call) in enumerate(source.columns)]
    level = select_plain(rows.read, inner, dialect, where(source.predicate, before, dialect), has_id())
    if sum(call.function in _NUMBERED for _, call in source.columns) > 1:
        level = select(rows.numbered(), subquery(level, "s"))

    parts: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, column(UNIT_COLUMN))]
    parts += [(f"c{i}", column(f"c{i}")) for i in range(len(columns))]
    result: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, column(UNIT_COLUMN))]
    result += [(name, column(f"c{i}")) for i, name in enumerate(columns)]
    for (name, _), window in zip(source.columns, windows, strict=True):
        own, value = window.parts_and_value()
        parts += own
        result.append((name, value))
    return select(result, subquery(select(parts, subquery(level, "s")), "w"))


class _Rows:
    """The columns that windows read, under short names: the source's are `c0`, …, others `e0`, …."""

    def __init__(self, columns: Mapping[str, Facts], dialect: Dialect) -> None:
        self.columns, self.dialect, self._copies = columns, dialect, False
        self.read: list[tuple[str, Typed]] = [(UNIT_COLUMN, Typed(column(UNIT_COLUMN), None))]
        self.read += [
            (f"c{i}", Typed(column(name), facts.kind)) for i, (name, facts) in enumerate(columns.items())
        ]

    def add(self, expression: Expression) -> Typed:
        """A column for an expression."""
        value = as_typed(expression, self.columns, self.dialect)
        name = f"e{len(self.read)}"
        self.read.append((name, value))
        return Typed(column(name), value.kind)

    @property
    def ties(self) -> list[exp.Expr]:
        """What tells rows apart: all columns of the source, and which copy of a row it is."""
        return [*self._own(), *([column(_COPY)] if self._copies else [])]

    def numbered(self) -> list[tuple[str, exp.Expr]]:
        """The columns, and the number of each row among its copies, which breaks ties from now on."""
        self._copies = True
        same = [column(UNIT_COLUMN), *self._own()]
        order = exp.Order(expressions=[exp.Ordered(this=column(UNIT_COLUMN))])  # none, but Spark asks for one
        number = exp.Window(this=exp.RowNumber(), partition_by=same, order=order)
        return [*((name, column(name)) for name, _ in self.read), (_COPY, number)]

    def _own(self) -> list[exp.Expr]:
        return [column(f"c{i}") for i in range(len(self.columns))]


class _Window:
    """One window function: the columns it needs are added to the rows when it is made."""

    def __init__(self, position: int, call: WindowCall, rows: _Rows) -> None:
        _check(call)
        self._position, self._call, self._rows = position, call, rows
        self._argument = None if call.argument is None else rows.add(call.argument)
        self._partition = [rows.add(expression).sql for expression in call.partition]
        self._order = [(rows.add(expression).sql, descending) for expression, descending in call.order]

    def parts_and_value(self) -> tuple[list[tuple[str, exp.Expr]], exp.Expr]:
        """The window functions under names, and the value over these names."""
        call, name = self._call, f"p{self._position}"
        if call.function in _RANKS:
            function = exp.Anonymous(this=_RANKS[call.function], expressions=[])
            ordered = self._ordered(ties=call.function == "row_number")
            return [(name, self._over(function, ordered))], column(name)
        if call.function in _SHIFTS:
            assert self._argument is not None
            far = exp.Literal.number(call.offset)
            function = exp.Anonymous(this=_SHIFTS[call.function], expressions=[self._argument.sql, far])
            return [(name, self._over(function, self._ordered(ties=True)))], column(name)
        facts = None
        if call.argument is not None:
            same = AggregateCall(_AGGREGATES[call.function], call.argument)
            facts = argument_facts(same, self._rows.columns)
        steps = recipe(call.function, self._argument, facts, self._rows.dialect)
        parts: list[tuple[str, exp.Expr]] = []
        for j, part in enumerate(steps.parts):
            parts.append((f"{name}_{j}", self._over(part)))
        return parts, steps.finish([column(part_name) for part_name, _ in parts])

    def _ordered(self, *, ties: bool) -> exp.Order:
        items = [*self._order, *((tie, False) for tie in (self._rows.ties if ties else ()))]
        return exp.Order(
            expressions=[
                exp.Ordered(this=node.copy(), desc=descending, nulls_first=False)
                for node, descending in items
            ]
        )

    def _over(self, function: exp.Expr, order: exp.Order | None = None) -> exp.Window:
        by = [column(UNIT_COLUMN), *(node.copy() for node in self._partition)]
        return exp.Window(this=function, partition_by=by, order=order)


def _check(call: WindowCall) -> None:
    if call.function in _RANKS or call.function in _SHIFTS:
        if not call.order:
            raise InvalidParameter(f"{call.function.upper()} needs an order.")
        if (call.argument is None) != (call.function in _RANKS) or not 0 <= call.offset < _FAR:
            raise InvalidParameter(f"{call.function.upper()} has an argument or offset that does not fit.")
    elif call.order:
        raise InvalidParameter("An aggregate over a window is over the whole partition and has no order.")
    elif call.argument is None and call.function != "count":
        raise InvalidParameter(f"{call.function.upper()} needs an argument.")
