"""One row for each unit, or for each unit and key, as a statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.dialect import Dialect
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.facts import Facts, refine
from sfumato.plan.expressions.tree import Expression
from sfumato.plan.questions.relations import argument_facts, source_facts
from sfumato.plan.questions.sources import AggregateCall, PerUnit
from sfumato.sql.write.exact_sums import ExactSum, recipe
from sfumato.sql.write.pieces import check_names, column, has_id, select, subquery
from sfumato.sql.write.typed import Typed, as_typed, select_plain, typed

__all__ = ["refined", "select_per_unit", "where"]

_FUNCTIONS = ("count", "count_values", "sum", "mean", "min", "max")


def refined(
    source: Any, predicate: Expression | None, tables: Mapping[str, Any]
) -> tuple[dict[str, Facts], dict[str, Facts]]:
    """What is known about the columns of a source, and of those rows of it that satisfy a condition."""
    before = source_facts(source, tables)
    return before, before if predicate is None else refine(predicate, before)


def where(predicate: Expression | None, columns: Mapping[str, Facts], dialect: Dialect) -> exp.Expr | None:
    """The condition in the engine's language, as one operand."""
    return None if predicate is None else exp.Paren(this=typed(predicate, columns, dialect).sql)


def select_per_unit(
    source: PerUnit, inner: exp.Expr, tables: Mapping[str, Any], dialect: Dialect
) -> exp.Select:
    """The SELECT, given what FROM holds for the rows that are aggregated.

    Privacy:
        A group holds rows of one unit only, since the unit is what is grouped by first; rows without one are
        left out. Its row is a function of their multiset (`sql.write.exact_sums`), and keys that are equal
        look the same, so which of them the engine keeps cannot show.
    """
    check_names([*(name for name, _ in source.keys), *(name for name, _ in source.aggregates)])
    before, columns = refined(source.source, source.predicate, tables)
    keys = [as_typed(expression, columns, dialect) for _, expression in source.keys]
    calls = [_value(call, columns, dialect) for _, call in source.aggregates]
    rows: list[tuple[str, Typed]] = [(UNIT_COLUMN, Typed(column(UNIT_COLUMN), None))]
    rows += [(f"k{i}", key) for i, key in enumerate(keys)]
    rows += [(f"v{i}", value) for i, value in enumerate(calls) if value is not None]
    level = select_plain(rows, inner, dialect, where(source.predicate, before, dialect), has_id())

    groups: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, column(UNIT_COLUMN, "r"))]
    groups += [(f"k{i}", column(f"k{i}", "r")) for i in range(len(keys))]
    result: list[tuple[str, exp.Expr]] = [(UNIT_COLUMN, column(UNIT_COLUMN))]
    result += [(name, column(f"k{i}")) for i, (name, _) in enumerate(source.keys)]
    by = [node.copy() for _, node in groups]
    for i, ((name, call), value) in enumerate(zip(source.aggregates, calls, strict=True)):
        held = None if value is None else Typed(column(f"v{i}", "r"), value.kind)
        steps = _recipe(call, held, columns, dialect)
        groups += [(f"p{i}_{j}", part) for j, part in enumerate(steps.parts)]
        result.append((name, steps.finish([column(f"p{i}_{j}") for j in range(len(steps.parts))])))
    level = select(groups, subquery(level, "r")).group_by(*by, copy=False)
    level = select(result, subquery(level, "g"))
    if source.having is None:
        return level
    facts = source_facts(_without_having(source), tables)
    names = [UNIT_COLUMN, *facts]
    kept = where(source.having, facts, dialect)
    return select([(name, column(name)) for name in names], subquery(level, "h"), kept)


def _without_having(source: PerUnit) -> PerUnit:
    return PerUnit(source.source, source.predicate, source.keys, source.aggregates)


def _value(call: AggregateCall, columns: Mapping[str, Facts], dialect: Dialect) -> Typed | None:
    if call.function not in _FUNCTIONS or (call.argument is None and call.function != "count"):
        raise InvalidParameter(
            f"{call.function.upper()} is not an aggregate within a unit, or lacks an argument."
        )
    return None if call.argument is None else as_typed(call.argument, columns, dialect)


def _recipe(
    call: AggregateCall, value: Typed | None, columns: Mapping[str, Facts], dialect: Dialect
) -> ExactSum:
    facts = None if call.argument is None else argument_facts(call, columns)
    return recipe(call.function, value, facts, dialect, bounded=call.bounds is not None)
