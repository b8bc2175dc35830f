"""What a query finds in FROM: names, each with the expression over a source's columns that it means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.normal import conjunction
from sfumato.plan.expressions.tree import Column, Expression
from sfumato.plan.questions.relations import block_facts, declared_facts
from sfumato.plan.questions.sources import Block, Joined, PerUnit, Public, Scan, Source, United, tables_of
from sfumato.schema import PrivateTable, PublicTable
from sfumato.sql.refusals import refused

__all__ = [
    "ColumnOrigin",
    "Named",
    "Relation",
    "both",
    "called_after",
    "check_size",
    "facts_within",
    "fresh",
    "table_relation",
]

_MOST = 64


@dataclass(frozen=True, slots=True)
class Named:
    """A name that a query may use.

    Attributes:
        name: As it was declared or given.
        table: What FROM calls the table or subquery that it comes from.
        meaning: The expression over the source's columns; None: it has no value to compute with.
        is_unit: Whether it says whose the rows are.
        hidden: Whether it is found only with its table's name, since one column serves for both (USING).
    """

    name: str
    table: str
    meaning: Expression | None
    is_unit: bool = False
    hidden: bool = False

    @property
    def written(self) -> str:
        """As a query writes it, with its table."""
        return f"{in_sql(self.table)}.{in_sql(self.name)}" if self.table.strip() else in_sql(self.name)


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """Where a source's column comes from: the how many-th use of which table, and the column there."""

    use: int
    table: str
    column: str


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """The rows of a source that satisfy a condition, under the names that a query gives to their columns.

    Conditions and definitions are kept apart from the source as long as that changes nothing, so that a
    question is the same however it is divided into subqueries.

    Attributes:
        source: Where the rows come from.
        predicate: What they satisfy, over the source's columns; None: nothing.
        columns: The names, in order.
        facts: What is known about each column of the source.
        known: All declared tables, private and public, by name.
        aliases: What table names in front of a column mean, in small letters.
        origins: Where the source's columns come from, as far as they are columns of tables.
        distinct: Whether equal rows are one. Only of public rows.
    """

    source: Source | Public
    predicate: Expression | None
    columns: tuple[Named, ...]
    facts: Mapping[str, Facts]
    known: Mapping[str, PrivateTable | PublicTable]
    aliases: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, ColumnOrigin] = field(default_factory=dict)
    distinct: bool = False

    @property
    def is_public(self) -> bool:
        """Whether the rows are about no one."""
        return isinstance(self.source, Public)

    @property
    def private(self) -> PrivateTable:
        """The first private table that is read."""
        return next(table for table in self._tables() if isinstance(table, PrivateTable))

    @property
    def units(self) -> tuple[Named, ...]:
        """The columns that say whose the rows are."""
        return tuple(column for column in self.columns if column.is_unit)

    @property
    def unit_name(self) -> str:
        """How a query would write the unit: its column, or that by which rows point to their owner."""
        if own := self.own_units:
            return own[0].written if len(own) > 1 else in_sql(own[0].name)
        pointing, unit = self._pointing(), self.private.unit
        if not pointing:
            return ", ".join(in_sql(here) for here, _ in unit.on) or in_sql(str(unit.column))
        bare = len({column.name.lower() for column in self.columns}) == len(self.columns)
        return ", ".join(in_sql(column.name) if bare else column.written for column in pointing)

    @property
    def own_units(self) -> tuple[Named, ...]:
        """Those of them that tables have: the words for an owner elsewhere are not a column."""
        tables = (table.unit for table in self.known.values() if isinstance(table, PrivateTable))
        words = {unit.column for unit in tables if unit.is_via}
        return tuple(column for column in self.units if column.name not in words)

    def _pointing(self) -> list[Named]:
        """The columns by which the rows of a table point to their owner, as far as they are selected."""
        pointing = []
        for column in self.columns:
            origin = self.origins.get(column.meaning.name) if isinstance(column.meaning, Column) else None
            table = None if origin is None else self.known[origin.table]
            if origin is None or not isinstance(table, PrivateTable) or not table.unit.is_via:
                continue
            if origin.column in {here for here, _ in table.unit.on}:
                pointing.append((origin.use, column))
        return [column for use, column in pointing if use == pointing[0][0]]

    def where(self, condition: Expression | None) -> Relation:
        """Those of the rows that satisfy one more condition.

        A condition on units' own results is part of them, whether it was written as HAVING or outside.
        """
        if condition is None:
            return self
        if isinstance(self.source, PerUnit):
            source = replace(self.source, having=both(self.source.having, condition))
            return replace(self, source=source, facts=facts_within(source, self.facts, self.known))
        return replace(self, predicate=both(self.predicate, condition))

    def called(self, alias: str, *others: str) -> Relation:
        """The same under one table name; what it was hidden behind before is gone."""
        columns = tuple(replace(column, table=alias) for column in self.columns if not column.hidden)
        aliases = {name.lower(): alias for name in (*others, alias)}
        return replace(self, columns=columns, aliases=aliases)

    def tells_unit(self, expressions: Iterable[Expression]) -> bool:
        """Whether rows that agree in these belong to one unit: a pointer on the way to owners is among them.

        That rests on pointers that fit one row, as declared. Where one fits several, the owners are told
        apart all the same: nothing about privacy follows from this.
        """
        columns: dict[tuple[int, str], set[str]] = {}
        for expression in expressions:
            origin = self.origins.get(expression.name) if isinstance(expression, Column) else None
            if origin is not None:
                columns.setdefault((origin.use, origin.table), set()).add(origin.column)
        return any(
            pointer <= selected
            for (_, table), selected in columns.items()
            for pointer in _pointers(table, self.known)
        )

    def refused(self, sentences: tuple[str, str]) -> QueryRefused:
        """A refusal, with this unit's name in the examples."""
        return refused(sentences, self.unit_name)

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Have refusals speak of columns as the query calls them."""
        try:
            yield
        except QueryRefused as refusal:
            for slot, value in refusal.slots.items():
                refusal.slots[slot] = self._spelt(value) if isinstance(value, Column) else value
            raise

    def _spelt(self, column: Column) -> str:
        """A column of the source as the query calls it."""
        named = next((other for other in self.columns if other.meaning == column), None)
        if named is None:
            return str(column)
        twice = sum(other.name.lower() == named.name.lower() for other in self.columns) > 1
        return named.written if twice else in_sql(named.name)

    def _tables(self) -> Iterator[PrivateTable | PublicTable]:
        return (self.known[name] for name in tables_of(self.source))


def table_relation(
    table: PrivateTable | PublicTable, known: Mapping[str, PrivateTable | PublicTable], alias: str
) -> Relation:
    """The rows of one table, with its declared columns and its unit's."""
    private = isinstance(table, PrivateTable)
    unit = table.unit.column if isinstance(table, PrivateTable) else None
    ids = _ids(table, known) if isinstance(table, PrivateTable) else set()
    columns = [Named(name, alias, Column(name), name.lower() in ids) for name in table.schema]
    if unit is not None and not any(column.name.lower() == unit.lower() for column in columns):
        columns.insert(0, Named(unit, alias, None, is_unit=True))
    relation = Relation(
        source=Scan(table.name) if private else Public(table.name),
        predicate=None,
        columns=tuple(columns),
        facts=declared_facts(table),
        known=known,
        origins={name: ColumnOrigin(0, table.name, name) for name in table.schema},
    )
    return relation.called(alias, table.name)


def _pointers(table: str, known: Mapping[str, PrivateTable | PublicTable]) -> Iterator[set[str]]:
    """The sets of columns of a table that point to an owner, or by which others point to its rows."""
    for other in known.values():
        if isinstance(other, PrivateTable) and other.unit.is_via:
            if other.name == table:
                yield {here for here, _ in other.unit.on}
            if other.unit.table == table:
                yield {there for _, there in other.unit.on}


def _ids(table: PrivateTable, known: Mapping[str, PrivateTable | PublicTable]) -> set[str]:
    """The columns that hold the units' ids, in small letters: the unit's own, or a pointer to it."""
    unit = table.unit
    if not unit.is_via:
        return set() if unit.column is None else {unit.column.lower()}
    above = known.get(str(unit.table))
    if not isinstance(above, PrivateTable) or above.unit.is_via or len(unit.on) != 1:
        return set()
    ((here, there),) = unit.on
    return {here.lower()} if there.lower() in _ids(above, known) else set()


def facts_within(source: Source | Public, names: Iterable[str], known: Mapping[str, Any]) -> dict[str, Facts]:
    """What is known about these columns of a source."""
    return block_facts(Block(source, None, tuple((name, Column(name)) for name in names)), known)


def both(first: Expression | None, second: Expression | None) -> Expression | None:
    """The condition that both hold; None is no condition."""
    given = [condition for condition in (first, second) if condition is not None]
    return conjunction(given) if given else None


def called_after(word: str, content: Any) -> str:
    """A name for a column that follows from what it holds: the same whatever is beside it."""
    return f"{word} {hashlib.sha256(json.dumps(content).encode()).hexdigest()[:10]}"


def fresh(name: str, taken: Collection[str]) -> str:
    """The name, or with the first number that makes it a new one: engines do not tell cases apart."""
    folded = {other.lower() for other in taken}
    candidate, number = name, 2
    while candidate.lower() in folded:
        candidate, number = f"{name} {number}", number + 1
    return candidate


def check_size(relation: Relation) -> None:
    """Refuse what reads tables too often, or in too many steps.

    Raises:
        QueryRefused: if it does.
    """
    if _nodes(relation.source) > _MOST:
        raise QueryRefused(f"The query takes more than {_MOST} steps to read its rows.", "Ask it in parts.")


def _nodes(source: Source | Public) -> int:
    if isinstance(source, Scan | Public):
        return 1
    if isinstance(source, Joined):
        return 1 + _nodes(source.left.source) + _nodes(source.right.source)
    if isinstance(source, United):
        return 1 + sum(_nodes(part.source) for part in source.parts)
    return 1 + _nodes(source.source)
