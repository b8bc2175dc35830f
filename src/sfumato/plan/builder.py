"""Questions written in Python: the same plans as SQL gives, from columns, aggregates and keys."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.assemble import Assembly, settled
from sfumato.plan.expressions.deduce import domain_of
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, literal
from sfumato.plan.questions.aggregates import functions
from sfumato.plan.questions.nodes import AggregateCall, Output, Report
from sfumato.plan.questions.relations import Rows, as_rows
from sfumato.plan.questions.terms import Agg, Col, col
from sfumato.schema import Keys, PrivateTable

__all__ = ["Agg", "Col", "Selection", "col"]

_SHOWN = 10  # values in a message

Q = TypeVar("Q")


def __getattr__(name: str) -> Callable[..., Agg]:
    """The aggregates: each is written where what it measures is."""
    if name not in functions():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return functions()[name]


@dataclass(frozen=True, slots=True)
class Selection(Generic[Q]):
    """Rows of one table on their way to an aggregate: `s.table("visits").filter(…).group_by(…).agg(…)`.

    Attributes:
        table: The private table.
        make: What turns a finished plan into a query.
        predicates: What rows must satisfy.
        groupings: What they are grouped by, under which names.
        keys: The public values of some of them, where the question lists them.
    """

    table: PrivateTable
    make: Callable[[Report], Q]
    predicates: tuple[Expression, ...] = ()
    groupings: tuple[tuple[str, Expression], ...] = ()
    keys: tuple[Keys, ...] = ()

    def filter(self, *predicates: Col) -> Selection[Q]:
        """Only the rows for which all of these hold."""
        if not all(isinstance(predicate, Col) for predicate in predicates):
            raise InvalidParameter('filter takes conditions such as col("age") >= 18.')
        return replace(
            self, predicates=self.predicates + tuple(predicate.expression for predicate in predicates)
        )

    def group_by(self, *columns: str | Keys, **expressions: Col) -> Selection[Q]:
        """One result row for each public key: columns, `Keys` with their values, or named expressions."""
        added: list[tuple[str, Expression]] = []
        for column in columns:
            names = column.columns if isinstance(column, Keys) else (column,)
            added += [(name, Column(name)) for name in names]
        added += [(name, term.expression) for name, term in expressions.items()]
        listed = tuple(column for column in columns if isinstance(column, Keys))
        return replace(self, groupings=self.groupings + tuple(added), keys=self.keys + listed)

    def agg(self, *unnamed: Agg, **aggregates: Agg) -> Q:
        """The question: one named aggregate for each column of the result."""
        if (
            unnamed
            or not aggregates
            or not all(isinstance(aggregate, Agg) for aggregate in aggregates.values())
        ):
            raise InvalidParameter('agg takes named aggregates: agg(n=sf.count(), spend=sf.mean("amount")).')
        rows = as_rows(self.table)
        listed = [
            settled(Call("in", (Column(name), *(literal(row[place]) for row in key_list.rows))), rows)
            for key_list in self.keys
            for place, name in enumerate(key_list.columns)
        ]
        for condition in listed:
            _check_declared(condition, rows)
        keys = [settled(expression, rows) for _, expression in self.groupings]
        assembly = Assembly(rows, [*self.predicates, *listed], keys)
        outputs = [Output(name, Column(f"k{i}")) for i, (name, _) in enumerate(self.groupings)]
        for name, aggregate in aggregates.items():
            called = {
                f"a{i}": assembly.aggregate(self._known(call, rows)) for i, call in enumerate(aggregate.calls)
            }
            outputs.append(Output(name, assembly.over_results(_renamed(aggregate.expression, called))))
        plan = assembly.plan(tuple(outputs), combinations=self._combinations(assembly, len(keys)))
        plan.check()
        return self.make(plan.report)

    def _known(self, asked: AggregateCall, rows: Rows) -> AggregateCall:
        """The aggregate as plans have it: a count of units has no argument, that of other values has."""
        unit = self.table.unit.column
        if asked.function == "count_distinct":
            if unit is not None and asked.argument == Column(unit):
                return AggregateCall("count_distinct")
            asked = replace(asked, function="count_values")
        argument, other = (
            None if expression is None else settled(expression, rows)
            for expression in (asked.argument, asked.other)
        )
        return replace(asked, argument=argument, other=other)

    def _combinations(self, assembly: Assembly, count: int) -> tuple[tuple[Any, ...], ...] | None:
        """Only the combinations that `Keys.of` lists; None where all are meant."""
        names = [name for name, _ in self.groupings]
        allowed = [
            (tuple(names.index(name) for name in key_list.columns), set(key_list.rows))
            for key_list in self.keys
            if len(key_list.rows) < math.prod(len(set(values)) for values in zip(*key_list.rows, strict=True))
        ]
        if not allowed:
            return None
        return tuple(
            row
            for row in itertools.product(*(assembly.values(f"k{i}") for i in range(count)))
            if all(tuple(row[place] for place in places) in rows for places, rows in allowed)
        )


def _check_declared(listed: Expression, rows: Rows) -> None:
    """Refuse a list with a value that its column is declared never to have."""
    if not isinstance(listed, Call) or not isinstance(listed.arguments[0], Column):
        return
    name = listed.arguments[0].name
    known = domain_of(rows.columns[name])
    if known is None:
        return
    declared = frozenset(known)
    for constant in listed.arguments[1:]:
        value = constant.value if isinstance(constant, Literal) else None
        if value is not None and value not in declared:
            shown = ", ".join(map(str, known[:_SHOWN])) + (", …" if len(known) > _SHOWN else "")
            raise QueryRefused(
                f"{name} is declared without the value {str(value)[:60]!r}.", f"Values: {shown}."
            )


def _renamed(expression: Expression, names: dict[str, str]) -> Expression:
    if isinstance(expression, Column):
        return Column(names[expression.name])
    if isinstance(expression, Literal):
        return expression
    return Call(expression.function, tuple(_renamed(argument, names) for argument in expression.arguments))
