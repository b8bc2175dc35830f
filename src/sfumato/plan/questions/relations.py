"""What is known about the rows that a source gives: whose they are, and what its columns hold.

Facts are about expressions: a column that a subquery redefines has those of its definition, and nothing of
what was declared for a column of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.expressions.facts import Facts, column_facts, facts_of, refine
from sfumato.plan.expressions.ranges import EXACT, hull, number
from sfumato.plan.expressions.tree import Call, Column, Expression, columns_of
from sfumato.plan.expressions.tree import Literal as Constant
from sfumato.plan.questions.sources import (
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
from sfumato.schema import Kind, PrivacyUnit, PrivateTable, PublicTable, dataset_of, owners

__all__ = [
    "Readable",
    "Rows",
    "argument_facts",
    "as_rows",
    "block_facts",
    "declared_facts",
    "is_single",
    "looks_up",
    "rows_of",
    "source_facts",
    "substituted",
]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of a source, as a question sees them.

    Attributes:
        source: Where they come from.
        name: What messages call them.
        columns: What is known about each column.
        unit: Whose they are, with the largest limits of the tables that are read. A row unit where each unit
            has at most one row, by declaration or by proof.
        declared: The unit of the tables. Of a unit that is no row, the one row that it has here follows from
            all of its rows, and is another one once these change.
        owner: What a unit is called, where units are not the rows themselves.
        version: The declared versions of the data, or the states with what they hold, as one text.
        size: About how many units there are, where that is public and all of them are read.
        count: Exactly how many rows there are, where that is public and these are all of them.
        tables: The tables that are read, private and public, by name, and those that name their owners.
    """

    source: Source
    name: str
    columns: Mapping[str, Facts]
    unit: PrivacyUnit
    declared: PrivacyUnit
    owner: str | None
    version: str
    size: int | None
    tables: Mapping[str, Any]
    count: int | None = None
    _held: dict[int, tuple[Expression, Mapping[str, Facts]]] = field(
        default_factory=dict, init=False, repr=False
    )

    def where(self, predicate: Expression | None) -> Mapping[str, Facts]:
        """What is known about each column in the rows that satisfy this; worked out once for a predicate."""
        if predicate is None:
            return self.columns
        if id(predicate) not in self._held:  # it is held too: its id is its own as long as this lives
            self._held[id(predicate)] = predicate, refine(predicate, self.columns)
        return self._held[id(predicate)][1]

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

    Privacy:
        The rows of `plan.questions.sources` belong to units as long as one id is one unit in all tables: so
        all of them must draw on one budget and have one adjacency. Where each row is a unit, no row may meet
        another or appear twice, and nothing but looking it up in public tables is left.

    Raises:
        QueryRefused: if tables of different units are put together, or an expression is ill-typed.
    """
    named = tables_of(source)
    private = [tables[name] for name in named if isinstance(tables[name], PrivateTable)]
    _check_units(source, private, tables)
    first = private[0]
    read = {name: tables[name] for name in named} | _owners(private, tables)
    declared = unit = _widest(private)
    if _is_single(source):
        unit = PrivacyUnit.row(adjacency=unit.adjacency)
    versions = {name: table.identity for name, table in read.items()}
    plain = isinstance(source, Scan)
    return Rows(
        source=source,
        name=first.name,
        columns=source_facts(source, tables),
        unit=unit,
        declared=declared,
        owner=_owner(first, read),
        version=first.identity if len(read) == 1 and plain else json.dumps(versions, sort_keys=True),
        size=first.size if plain or (_is_single(source) and _reads_all(source)) else None,
        tables=read,
        count=first.rows if plain else None,
    )


def _owner(table: PrivateTable, read: Mapping[str, Any]) -> str | None:
    """What a unit is called: the column that names it, in this table or in the one that others point to."""
    while table.unit.is_via and isinstance(above := read.get(str(table.unit.table)), PrivateTable):
        table = above
    return table.unit.column


def _widest(private: list[PrivateTable]) -> PrivacyUnit:
    """The unit with the largest limits of the tables: where lines are joined to a person, lines are counted.

    Any limits are private: they decide the noise.
    """
    first = private[0].unit
    if len(private) == 1:
        return first
    return first.limited(
        max(table.unit.max_groups for table in private), max(table.unit.max_rows for table in private)
    )


def _owners(private: list[PrivateTable], tables: Mapping[str, Any]) -> dict[str, PrivateTable]:
    """The tables that lead to the owners of rows, where they are given: facts do without them."""
    reached = [owners(table, tables) for table in private if table.unit.table in tables]
    return {table.name: table for chain in reached for table in chain}


def _check_units(source: Source, private: list[PrivateTable], tables: Mapping[str, Any]) -> None:
    first = private[0]
    for table in private:
        if table.unit.is_row and not looks_up(source):
            raise QueryRefused(
                f"Each row of {table.name} is protected by itself, so its rows cannot be put together.",
                'Declare the column that names its units, such as PrivacyUnit("user_id").',
            )
        if table is first:
            continue
        if table.unit.adjacency != first.unit.adjacency or dataset_of(table, tables) != dataset_of(
            first, tables
        ):
            raise QueryRefused(
                f"{first.name} and {table.name} are not declared to be about the same units.",
                "Give them the same dataset and adjacency, or make one the owner of the other.",
            )


def looks_up(source: Source | Public) -> bool:
    """Whether each row of a table gives at most one row, by itself."""
    if isinstance(source, Joined):
        return source.is_public and looks_up(source.left.source)
    return isinstance(source, Scan)


def _is_single(source: Source) -> bool:
    """Whether a unit has at most one row, by construction."""
    if isinstance(source, PerUnit):
        return not source.keys
    if isinstance(source, Joined):
        return is_single(source.left) and (source.is_public or is_single(source.right))
    return isinstance(source, Windowed) and _is_single(source.source)


def is_single(block: Block) -> bool:
    """Whether a unit has at most one row in a block, by construction."""
    return not isinstance(block.source, Public) and _is_single(block.source)


def _reads_all(source: Source) -> bool:
    """Whether every unit has a row: nothing is left out by a condition."""
    if isinstance(source, PerUnit):
        return source.predicate is None and source.having is None and isinstance(source.source, Scan)
    return False


def substituted(expression: Expression, definitions: Mapping[str, Expression]) -> Expression:
    """The expression with each column replaced by what defines it."""
    if isinstance(expression, Column):
        return definitions.get(expression.name, expression)
    if isinstance(expression, Call):
        return Call(
            expression.function,
            tuple(substituted(argument, definitions) for argument in expression.arguments),
        )
    return expression


# ── what is known about columns, node by node ──

_DECLARED: WeakKeyDictionary[PrivateTable | PublicTable, dict[str, Facts]] = WeakKeyDictionary()


def declared_facts(table: PrivateTable | PublicTable) -> dict[str, Facts]:
    """What the declared types of a table's columns say; worked out once for a table."""
    known = _DECLARED.get(table)
    if known is None:
        known = {name: column_facts(kind) for name, kind in table.schema.items()}
        _DECLARED[table] = known
    return dict(known)


def block_facts(block: Block, tables: Mapping[str, Any]) -> dict[str, Facts]:
    """What is known about a block's columns."""
    inner = source_facts(block.source, tables)
    if block.predicate is not None:
        inner = refine(block.predicate, inner)
    return {name: _column(expression, inner) for name, expression in block.columns}


def _column(expression: Expression, columns: Mapping[str, Facts]) -> Facts:
    """What is known about an expression as a column of its own, in the type of its kind.

    Arithmetic is in doubles; a whole number that a column of 64 bits does not hold, or a NaN, is NULL there.
    """
    facts = facts_of(expression, columns)
    if facts.kind != "integer" or isinstance(expression, Column | Constant):
        return facts
    sure = facts.low >= -EXACT and facts.high <= EXACT
    if sure and all(columns[name].kind != "float" for name in columns_of(expression)):
        return facts
    return replace(facts, nullable=True)


def source_facts(source: Source | Public, tables: Mapping[str, Any]) -> dict[str, Facts]:
    """What is known about the columns of a source.

    Raises:
        QueryRefused: if an expression is ill-typed.
    """
    if isinstance(source, Scan | Public):
        return declared_facts(tables[source.table])
    if isinstance(source, Joined):
        left, right = block_facts(source.left, tables), block_facts(source.right, tables)
        if {name.casefold() for name in left} & {name.casefold() for name in right}:
            raise InvalidParameter("The columns of the two sides of a join need different names.")
        _check_on(source, left, right)
        if source.outer:
            right = {name: replace(facts, nullable=True) for name, facts in right.items()}
        return left | right
    if isinstance(source, United):
        return _united(source, tables)
    inner = source_facts(source.source, tables)
    if source.predicate is not None:
        inner = refine(source.predicate, inner)
    if isinstance(source, PerUnit):
        columns = {name: _column(expression, inner) for name, expression in source.keys}
        columns |= {name: _aggregate_facts(call, inner) for name, call in source.aggregates}
        return columns if source.having is None else refine(source.having, columns)
    return inner | {name: _window_facts(call, inner) for name, call in source.columns}


def _check_on(source: Joined, left: Mapping[str, Facts], right: Mapping[str, Facts]) -> None:
    for here, there in source.on:
        if here not in left or there not in right:
            raise InvalidParameter("A join compares columns of its two sides.")
        kinds = {left[here].kind, right[there].kind} - {None}
        if len(kinds) > 1 and kinds != {"integer", "float"}:
            raise QueryRefused(
                "The join compares columns of different types: {here} and {there}.",
                "Cast one of them in a subquery.",
                here=Column(here),
                there=Column(there),
            )


def _united(source: United, tables: Mapping[str, Any]) -> dict[str, Facts]:
    parts = [block_facts(part, tables) for part in source.parts]
    if any(set(part) != set(parts[0]) for part in parts):
        raise InvalidParameter("The parts of UNION ALL need the same column names.")
    columns: dict[str, Facts] = {}
    for name in parts[0]:
        facts = [part[name] for part in parts]
        kinds = {one.kind for one in facts} - {None}
        if len(kinds) > 1 and kinds != {"integer", "float"}:
            raise QueryRefused(
                "The parts of UNION ALL have different types in column {column}.",
                "Select columns of the same type in the same order.",
                column=Column(name),
            )
        kind: Kind | None = "float" if len(kinds) > 1 else next(iter(kinds), None)
        columns[name] = hull(facts, kind, nullable=any(one.nullable for one in facts))
    return columns


def argument_facts(call: AggregateCall, columns: Mapping[str, Facts]) -> Facts:
    """What is known about the values that a unit's own aggregate is over, once its bounds are enforced.

    Raises:
        QueryRefused: if it needs numbers and gets something else.
        InvalidParameter: for bounds of groups, which a unit's own rows have none of.
    """
    assert call.argument is not None
    facts = _column(call.argument, columns)
    if call.function in ("sum", "mean") and facts.kind not in ("integer", "float", "boolean", None):
        raise QueryRefused(
            f"{call.function.upper()} needs numbers; this is a {facts.kind}.",
            "Use COUNT, MIN or MAX, or aggregate a number.",
        )
    if call.bounds is None:
        return facts
    where, lower, upper = call.bounds
    if where != "row" or not facts.numeric or facts.kind is None or lower > upper:
        raise InvalidParameter("An aggregate within a unit takes bounds of each row, of numbers.")
    whole = facts.kind == "integer" and lower.denominator == upper.denominator == 1
    low, high = (min(max(end, lower), upper) for end in (facts.low, facts.high))
    return number("integer" if whole else "float", low, high, nullable=facts.nullable)


def _aggregate_facts(call: AggregateCall, columns: Mapping[str, Facts]) -> Facts:
    """What is known about a unit's own aggregate: of how many rows is not."""
    if call.function == "count" and call.argument is None:
        return Facts("integer", False, Fraction(0), None, Fraction(1))
    argument = argument_facts(call, columns)
    if call.function in ("count", "count_values"):
        return Facts("integer", False, Fraction(0), None, Fraction(1))
    if call.function == "sum":
        lower = Fraction(0) if argument.low >= 0 else None
        upper = Fraction(0) if argument.high <= 0 else None
        return Facts("float" if argument.kind == "float" else "integer", True, lower, upper, None)
    if call.function == "mean":
        return number("float", argument.low, argument.high, nullable=True)
    if call.function in ("min", "max"):
        return replace(argument, nullable=True)  # one of the values
    raise InvalidParameter(f"{call.function.upper()} is not an aggregate within a unit.")


def _window_facts(call: WindowCall, columns: Mapping[str, Facts]) -> Facts:
    if call.function in ("row_number", "rank", "dense_rank"):
        return Facts("integer", False, Fraction(1), None, None)
    if call.function in ("lag", "lead"):
        assert call.argument is not None
        return replace(_column(call.argument, columns), nullable=True)
    functions: dict[str, Any] = {"count": "count", "sum": "sum", "mean": "mean", "min": "min", "max": "max"}
    return _aggregate_facts(AggregateCall(functions[call.function], call.argument), columns)
