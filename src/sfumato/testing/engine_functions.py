"""Scalar functions of an engine: each is declared once, and what it has gives what DuckDB gives.

The same calls are computed by both, over the rows as the engine shows them, so that what its sources cannot
hold does not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, get_args

import pyarrow as pa
from sqlglot import exp

from sfumato.engines import DuckDB, Engine
from sfumato.engines.dialect import DUCKDB, Dialect
from sfumato.errors import EngineFailed, QueryRefused
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.tree import Call, Expression
from sfumato.schema import Kind
from sfumato.sql.write.expressions import lower_expression
from sfumato.sql.write.pieces import column, select, table
from sfumato.testing.calls import FACTS, accepted, check, inside, nasty

__all__ = ["declaration_faults", "function_faults"]

Made: TypeAlias = tuple[str, Expression, Facts]

_EACH, _TOGETHER = 3, 40  # calls of each function; calls in one statement
_ID = "row id"
_ROWS = 60


def declaration_faults(dialect: Dialect) -> Iterator[str]:
    """What is declared twice, by a wrong name, or not at all."""
    if lacking := [kind for kind in (*get_args(Kind), "wide") if kind not in dialect.casts]:
        yield f"casts lack {', '.join(lacking)}"
    formed = {*dialect.forms, *(FUNCTIONS if dialect.common is None else dialect.common)}
    refused = [name for names in dialect.refused.values() for name in names]
    different = [name for names in dialect.different.values() for name in names]
    for name in sorted({*formed, *refused, *different} - set(FUNCTIONS)):
        yield f"{name} is no scalar function"
    for name in sorted(set(FUNCTIONS) - formed - set(refused)):
        yield f"{name} has neither a form nor a reason among refused"
    for name in sorted(formed & set(refused)):
        yield f"{name} has a form and is refused"
    for name in sorted(set(different) - formed):
        yield f"{name} is different and has no form"
    for name in sorted(name for names in (refused, different) for name in names if names.count(name) > 1):
        yield f"{name} has several reasons"


def function_faults(engine: Engine, given: Callable[[pa.Table], Any]) -> Iterator[str]:
    """Calls that fail, that differ from DuckDB's without being declared so, or that leave their facts."""
    kinds: dict[str, Kind] = {name: facts.kind for name, facts in FACTS.items() if facts.kind is not None}
    tables = {"odd": _holdable(nasty(_ROWS)), "ordinary": inside(_ROWS)}
    for name, rows in tables.items():  # before the first read: some engines open anew after it
        numbered = rows.append_column(_ID, pa.array(range(len(rows))))
        engine.attach(name, given(numbered), {**kinds, _ID: "integer"})
    calls = list(_calls(engine.dialect))
    for name in tables:
        shown = _sorted(engine, name, [column(each) for each in kinds])
        with DuckDB(threads=1) as ours:
            rows = pa.table(dict(zip([*kinds, _ID], [*shown, pa.array(range(_ROWS))], strict=True)))
            ours.attach(name, rows, {**kinds, _ID: "integer"})
            for part in _parts(calls):
                yield from _compared(engine, ours, name, part)


def _parts(calls: Sequence[Made]) -> Iterator[Sequence[Made]]:
    return (calls[first : first + _TOGETHER] for first in range(0, len(calls), _TOGETHER))


def _calls(dialect: Dialect) -> Iterator[Made]:
    """Some calls of each function that the dialect has, of nothing that it has not."""

    def has_forms(expression: Expression) -> bool:
        try:
            lower_expression(expression, dialect)
        except QueryRefused:
            return False
        return True

    for name, function in FUNCTIONS.items():
        if dialect.form(name, function.sql) is not None:
            for expression, facts in accepted(name, _EACH, only=has_forms):
                yield name, expression, facts


def _compared(engine: Engine, ours: DuckDB, name: str, calls: Sequence[Made]) -> Iterator[str]:
    expressions = [expression for _, expression, _ in calls]
    expected = _sorted(ours, name, [lower_expression(each, DUCKDB) for each in expressions])
    written = [lower_expression(each, engine.dialect) for each in expressions]
    try:
        found = _sorted(engine, name, written)
    except EngineFailed:
        if len(calls) == 1:
            yield f"{calls[0][0]} makes a read fail: {_text(engine.dialect, calls[0][1])}"
        for one in calls if len(calls) > 1 else ():
            yield from _compared(engine, ours, name, [one])
        return
    different = frozenset[str]().union(*engine.dialect.different.values())
    for (function, expression, facts), mine, its in zip(calls, expected, found, strict=True):
        if name == "ordinary":
            yield from _outside(function, expression, facts, its)
        if called(expression).isdisjoint(different) and not all(map(_same, _values(mine), _values(its))):
            yield f"{function} is not the same as on DuckDB: {_text(engine.dialect, expression)}"


def called(expression: Expression) -> frozenset[str]:
    """The functions that an expression calls."""
    if not isinstance(expression, Call):
        return frozenset()
    return frozenset({expression.function}).union(*map(called, expression.arguments))


def _outside(function: str, expression: Expression, facts: Facts, values: pa.ChunkedArray) -> Iterator[str]:
    try:
        check(values if not pa.types.is_decimal(values.type) else values.cast(pa.int64()), facts, expression)
    except AssertionError:
        yield f"{function} leaves what is known of it: {expression}"


def _sorted(engine: Engine, name: str, columns: Sequence[exp.Expr]) -> list[pa.ChunkedArray]:
    """Columns of a table in the order of its rows."""
    named = [(_ID, column(_ID)), *((f"c{place}", value) for place, value in enumerate(columns))]
    return list(engine.fetch(select(named, table(name))).sort_by(_ID).columns[1:])


def _holdable(rows: pa.Table) -> pa.Table:
    """Without NUL in texts and days beyond those of PostgreSQL, which no source there can have."""
    columns = {}
    for field, values in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_date32(field.type):
            days = [None if day is None or not -2_440_588 <= day <= 2_145_031_948 else day
                    for day in values.cast(pa.int32()).to_pylist()]  # fmt: skip
            columns[field.name] = pa.array(days, pa.int32()).cast(pa.date32())
        elif pa.types.is_string(field.type):
            columns[field.name] = pa.array(
                [text if text is None else text.replace("\x00", "") for text in values.to_pylist()]
            )
        else:
            columns[field.name] = values
    return pa.table(columns)


def _values(column: pa.ChunkedArray) -> list[Any]:
    values = (column.cast(pa.int32()) if pa.types.is_date32(column.type) else column).to_pylist()
    whole = pa.types.is_decimal(column.type)
    return [int(value) if whole and value is not None else value for value in values]


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, bool) or isinstance(second, bool) or None in (first, second):
        return first is second
    numbers = isinstance(first, int | float) and isinstance(second, int | float)
    return bool(first == second or (numbers and math.isnan(first) and math.isnan(second)))


def _text(dialect: Dialect, expression: Expression) -> str:
    return dialect.text(lower_expression(expression, dialect))[:300]
