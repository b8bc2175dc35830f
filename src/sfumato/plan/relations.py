"""What is known about the rows that a source gives: whose they are, and what its columns hold.

Facts are about expressions: a column that a subquery defines anew has those of its definition, and nothing of
what was declared for a column of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.expressions import Call, Column, Expression
from sfumato.plan.facts import Facts, column_facts, facts_of, refine
from sfumato.plan.ranges import hull
from sfumato.plan.sources import (
    AggregateCall,
    Block,
    Joined,
    PerUnit,
    Public,
    Scan,
    Source,
    United,
    WindowCall,
    Windowed,
    tables_of,
)
from sfumato.schema import Kind, PrivacyUnit, PrivateTable

__all__ = ["Readable", "Rows", "as_rows", "block_facts", "identity", "rows_of", "substituted"]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of a source, as a question sees them.

    Attributes:
        source: Where they come from.
        name: What messages call them.
        columns: What is known about each column.
        unit: Whose they are. A row unit where each unit has at most one row, by declaration or by proof.
        owner: What a unit is called, where units are not the rows themselves.
        version: The declared versions of the data, as one text.
        size: About how many units there are, where that is public and all of them are read.
        tables: The tables that are read, private and public, by name.
    """

    source: Source
    name: str
    columns: Mapping[str, Facts]
    unit: PrivacyUnit
    owner: str | None
    version: str
    size: int | None
    tables: Mapping[str, Any]

    @property
    def is_plain(self) -> bool:
        """Whether these are the rows of one table, as they are."""
        return isinstance(self.source, Scan)


Readable: TypeAlias = PrivateTable | Rows
"""What a question can be about: a table, or the rows of a source."""


def as_rows(table: Readable) -> Rows:
    """A table as the rows that it gives."""
    return table if isinstance(table, Rows) else rows_of(Scan(table.name), {table.name: table})


def rows_of(source: Source, tables: Mapping[str, Any]) -> Rows:
    """What is known about a source's rows.

    Args:
        source: Where they come from.
        tables: The tables by name, private and public.

    Raises:
        QueryRefused: if tables of different units are put together, or an expression is ill-typed.
    """
    named = tables_of(source)
    private = [tables[name] for name in named if isinstance(tables[name], PrivateTable)]
    first = private[0]
    unit = first.unit
    owner = unit.column
    if _is_single(source):
        unit = PrivacyUnit.row(adjacency=unit.adjacency)
    versions = {name: tables[name].version for name in named if isinstance(tables[name], PrivateTable)}
    plain = isinstance(source, Scan)
    return Rows(
        source=source,
        name=first.name,
        columns=_facts(source, tables),
        unit=unit,
        owner=owner,
        version=first.version if plain else json.dumps(versions, sort_keys=True),
        size=first.size if plain or (_is_single(source) and _reads_all(source)) else None,
        tables={name: tables[name] for name in named},
    )


def _is_single(source: Source) -> bool:
    """Whether a unit has at most one row, by construction."""
    if isinstance(source, PerUnit):
        return not source.keys
    if isinstance(source, Joined):
        return _is_single_block(source.left) and (source.is_public or _is_single_block(source.right))
    return isinstance(source, Windowed) and _is_single(source.source)


def _is_single_block(block: Block) -> bool:
    return not isinstance(block.source, Public) and _is_single(block.source)


def _reads_all(source: Source) -> bool:
    """Whether every unit has a row: nothing is left out by a condition."""
    if isinstance(source, PerUnit):
        return source.predicate is None and source.having is None and isinstance(source.source, Scan)
    return False


def identity(columns: Mapping[str, Facts]) -> tuple[tuple[str, Expression], ...]:
    """All columns under their own names."""
    return tuple((name, Column(name)) for name in columns)


def substituted(expression: Expression, definitions: Mapping[str, Expression]) -> Expression:
    """The expression with each column replaced by what defines it."""
    if isinstance(expression, Column):
        return definitions.get(expression.name, expression)
    if isinstance(expression, Call):
        return Call(
            expression.function, tuple(substituted(each, definitions) for each in expression.arguments)
        )
    return expression


# ── what is known about columns, node by node ──


def block_facts(block: Block, tables: Mapping[str, Any]) -> dict[str, Facts]:
    """What is known about a block's columns."""
    inner = _facts(block.source, tables)
    if block.predicate is not None:
        inner = refine(block.predicate, inner)
    return {name: facts_of(each, inner) for name, each in block.columns}


def _facts(source: Source | Public, tables: Mapping[str, Any]) -> dict[str, Facts]:
    if isinstance(source, Scan | Public):
        return {name: column_facts(kind) for name, kind in tables[source.table].schema.items()}
    if isinstance(source, Joined):
        left, right = block_facts(source.left, tables), block_facts(source.right, tables)
        if set(left) & set(right):
            raise InvalidParameter("The columns of the two sides of a join need different names.")
        if source.outer:
            right = {name: replace(each, nullable=True) for name, each in right.items()}
        return left | right
    if isinstance(source, United):
        return _united(source, tables)
    inner = _facts(source.source, tables)
    if source.predicate is not None:
        inner = refine(source.predicate, inner)
    if isinstance(source, PerUnit):
        found = {name: facts_of(each, inner) for name, each in source.keys}
        found |= {name: _aggregate_facts(each, inner) for name, each in source.aggregates}
        return found if source.having is None else refine(source.having, found)
    return inner | {name: _window_facts(each, inner) for name, each in source.columns}


def _united(source: United, tables: Mapping[str, Any]) -> dict[str, Facts]:
    parts = [block_facts(part, tables) for part in source.parts]
    found: dict[str, Facts] = {}
    for name in parts[0]:
        each = [part[name] for part in parts]
        kinds = {one.kind for one in each} - {None}
        if len(kinds) > 1 and kinds != {"integer", "float"}:
            raise QueryRefused(
                f"The parts of UNION ALL have different types in column {name[:60]!r}.",
                "Select columns of the same type in the same order.",
            )
        kind: Kind | None = "float" if len(kinds) > 1 else next(iter(kinds), None)
        found[name] = hull(each, kind, nullable=any(one.nullable for one in each))
    return found


def _aggregate_facts(call: AggregateCall, columns: Mapping[str, Facts]) -> Facts:
    """What is known about a unit's own aggregate: of how many rows is not."""
    if call.function in ("count", "count_values"):
        return Facts("integer", False, Fraction(0), None, None)
    assert call.argument is not None
    argument = facts_of(call.argument, columns)
    if call.function == "sum":
        lower = Fraction(0) if argument.lower is not None and argument.lower >= 0 else None
        upper = Fraction(0) if argument.upper is not None and argument.upper <= 0 else None
        return Facts("integer" if argument.kind != "float" else "float", True, lower, upper, None)
    if call.function == "mean":
        return Facts("float", True, argument.lower, argument.upper, None)
    return replace(argument, nullable=True)  # min, max: one of the values


def _window_facts(call: WindowCall, columns: Mapping[str, Facts]) -> Facts:
    if call.function in ("row_number", "rank", "dense_rank"):
        return Facts("integer", False, Fraction(1), None, None)
    if call.function in ("lag", "lead"):
        assert call.argument is not None
        return replace(facts_of(call.argument, columns), nullable=True)
    functions: dict[str, Any] = {"count": "count", "sum": "sum", "mean": "mean", "min": "min", "max": "max"}
    return _aggregate_facts(AggregateCall(functions[call.function], call.argument), columns)
