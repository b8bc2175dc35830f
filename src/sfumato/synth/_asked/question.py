"""A question to a synthetic table, read as a session reads it: one dialect, one parser. All public."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.ranges import value_at
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal, names_of
from sfumato.plan.prices.estimands import estimands
from sfumato.plan.prices.plan import Plan
from sfumato.plan.questions.nodes import AggregateCall, Report, Scan
from sfumato.schema import (
    Bool,
    ColumnType,
    Date,
    Enum,
    Float,
    Int,
    PrivacyUnit,
    PrivateTable,
    Time,
    Timestamp,
)
from sfumato.sql.asking import Asking, ask
from sfumato.sql.text.dialects import understand
from sfumato.sql.text.parameters import Values
from sfumato.sql.text.quiet import quiet
from sfumato.synth.columns.fine import Fine

__all__ = ["Group", "Question", "connected", "read"]

_FORM = "Ask for COUNT, SUM and AVG: SELECT sex, AVG(age) AS age FROM people WHERE age < 30 GROUP BY sex."
_DRAW = "For anything else draw rows, sample(), and compute it from them."
_FUNCTIONS = ("count", "sum", "mean")
_MOST_GROUPS = 10_000
_SHAPED = {
    "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET", "distinct": "DISTINCT",
}  # fmt: skip


class Group(NamedTuple):
    """A row of the answer.

    Attributes:
        values: Of the keys.
        conditions: What makes a row of the table one of it.
    """

    values: tuple[Any, ...]
    conditions: tuple[Expression, ...]


class Question(NamedTuple):
    """What is asked.

    Attributes:
        keys: The names of the columns that show keys, with the place of each among the values of a group.
        aggregates: The names of the others, with what each is.
        names: All of them, in their order.
        conditions: What a row of the table must satisfy.
        groups: The rows of the answer.
        estimands: What each aggregate estimates, in words.
    """

    keys: dict[str, int]
    aggregates: dict[str, AggregateCall]
    names: tuple[str, ...]
    conditions: tuple[Expression, ...]
    groups: tuple[Group, ...]
    estimands: dict[str, str]


def read(sql: str, table: str, columns: Sequence[Fine], parameters: Values = None) -> Question:
    """What a text asks of a synthetic table; nothing is computed.

    Args:
        sql: A SELECT of COUNT, SUM and AVG, with WHERE and GROUP BY.
        table: What the table is called.
        columns: Those of it.
        parameters: Values for `?`, `$1` and `$name`.

    Raises:
        QueryRefused: for anything else, with what would work.
    """
    _check_shape(sql, parameters)
    schema = {column.name: _declared(column) for column in columns}
    asked = ask(
        sql, {table: PrivateTable(table, schema=schema, unit=PrivacyUnit.row(), source=None)}, parameters
    )
    _check(asked)
    report = asked.report
    keys, aggregates = dict[str, int](), dict[str, AggregateCall]()
    for column in report.columns:
        place = _place(column.expression, report)
        if place is None:
            raise QueryRefused(f"{column.name[:60]} is computed from several results.", _FORM)
        if place[0] == "k":
            keys[column.name] = int(place[1:])
        else:
            aggregates[column.name] = _aggregate(report.child.aggregates[int(place[1:])], column.name)
    predicate = report.child.predicate
    return Question(
        keys,
        aggregates,
        tuple(column.name for column in report.columns),
        () if predicate is None else tuple(_parts(predicate)),
        _groups(report),
        _said(asked.plan),
    )


def _check_shape(sql: str, parameters: Values) -> None:
    """Refuse in words of its own what sessions do with several tables or with released groups."""
    with quiet():
        select = understand(sql, parameters).select
    if select.args.get("joins") or len(list(select.find_all(exp.Table))) > 1:
        raise QueryRefused("A synthetic table answers by itself, without JOIN or UNION.", _FORM)
    for clause, word in _SHAPED.items():
        if select.args.get(clause):
            raise QueryRefused(
                f"estimate takes no {word}.", "Leave it out, and sort or filter the table that comes back."
            )


def _check(asked: Asking) -> None:
    node = asked.report.child
    if asked.epsilon is not None or asked.delta is not None or asked.explain:
        raise QueryRefused("An estimate is free and names no price.", _FORM)
    if not isinstance(node.source, Scan):
        raise QueryRefused(
            "A synthetic table is asked for its own rows, without windows or groups below.", _FORM
        )
    if node.levels:
        raise QueryRefused(
            "ROLLUP, CUBE and GROUPING SETS are not estimated.", "Ask for each level by itself."
        )
    if asked.report.bars:
        raise QueryRefused(
            "Ends of intervals are in the answer.", "Leave DP_INTERVAL out, and read interval()."
        )
    if asked.report.windows:
        raise QueryRefused("Window functions are not estimated.", _DRAW)
    if any(key.values is None for key in node.keys):
        raise QueryRefused("Groups need declared values.", "Group by a column with listed values or bounds.")


def _place(expression: Expression, report: Report) -> str | None:
    """The key or aggregate that an output is; None: it is computed from them."""
    if not isinstance(expression, Column):
        return None
    every = {f"k{at}" for at in range(len(report.child.keys))}
    every |= {f"a{at}" for at in range(len(report.child.aggregates))}
    return expression.name if expression.name in every else None


def _aggregate(found: AggregateCall, name: str) -> AggregateCall:
    if found.function not in _FUNCTIONS or found.other is not None:
        raise QueryRefused(f"{name[:60]} is no count, sum or average.", f"{_FORM} {_DRAW}")
    if found.bounds is not None:
        raise QueryRefused(
            "Bounds of an aggregate are those that the columns have.", "Leave CLAMPED BETWEEN out."
        )
    return found


def _parts(expression: Expression) -> list[Expression]:
    """What AND joins."""
    if isinstance(expression, Call) and expression.function == "and":
        return [part for argument in expression.arguments for part in _parts(argument)]
    return [expression]


def _groups(report: Report) -> tuple[Group, ...]:
    keys = report.child.keys
    many = 1
    for key in keys:
        many *= len(key.values or ())
    if many > _MOST_GROUPS:
        raise QueryRefused(
            f"There are {many:,} groups; at most {_MOST_GROUPS:,} are estimated.",
            "Group by fewer columns, or WHERE.",
        )
    combinations = report.child.combinations or itertools.product(*(key.values or () for key in keys))
    return tuple(
        Group(
            tuple(values),
            tuple(_equal(key.expression, value) for key, value in zip(keys, values, strict=True)),
        )
        for values in combinations
    )


def _equal(expression: Expression, value: Any) -> Expression:
    return call("is_null", expression) if value is None else call("equal", expression, literal(value))


def _said(plan: Plan) -> dict[str, str]:
    phrases = zip(plan.report.columns, estimands(plan), strict=True)
    return {column.name: phrase.what for column, phrase in phrases if phrase is not None}


_TIMES: dict[str, Callable[..., ColumnType]] = {"date": Date, "timestamp": Timestamp, "time": Time}


def _declared(column: Fine) -> ColumnType:
    """A column's type as a table declares it."""
    kind, nullable, values = column.kind, column.nullable, column.values
    if kind == "boolean":
        return Bool(nullable=nullable)
    if values is not None and kind in ("text", "integer"):
        return Enum(*values, nullable=nullable)
    ends: tuple[Any, Any] = (column.lower, column.upper) if values is None else (min(values), max(values))
    if kind in _TIMES:
        shown = [value_at(end, kind) if isinstance(end, Fraction) else end for end in ends]
        return _TIMES[kind](*shown, nullable=nullable)
    return Int(*map(int, ends), nullable=nullable) if kind == "integer" else Float(*ends, nullable=nullable)


def connected(conditions: Sequence[Expression], last: Expression | None) -> list[tuple[Expression, ...]]:
    """Conditions by the columns that they share, directly or through others; those of `last` come last."""
    groups = list[tuple[set[str], tuple[Expression, ...]]](
        [(set(names_of(last)) if last is not None else set(), ())]
    )
    for condition in conditions:
        names = set(names_of(condition))
        touched = [group for group in groups if group[0] & names]
        joined = (
            names.union(*(group[0] for group in touched)),
            (*(c for g in touched for c in g[1]), condition),
        )
        if groups[-1] in touched:
            groups = [*(group for group in groups if group not in touched), joined]
        else:
            groups = [joined, *(group for group in groups if group not in touched)]
    return [held for _, held in groups]
