"""What a query finds in FROM: names, each with the expression over a source's columns that it stands for."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.errors import QueryRefused
from sfumato.plan.expressions import Column, Expression
from sfumato.plan.facts import Facts, column_facts
from sfumato.plan.names import in_sql
from sfumato.plan.normal import conjunction
from sfumato.plan.relations import block_facts
from sfumato.plan.sources import Block, PerUnit, Public, Scan, Source, tables_of
from sfumato.schema import PrivateTable, PublicTable

__all__ = ["Named", "Origin", "Relation", "both", "called_after", "facts_within", "fresh", "table_relation"]


@dataclass(frozen=True, slots=True)
class Named:
    """A name that a query may use.

    Attributes:
        name: As it was declared or given.
        table: What FROM calls the table or subquery that it comes from.
        meaning: The expression over the source's columns; None: it has no value to compute with.
        is_unit: Whether it says whose the rows are.
        hidden: Whether it is found only with its table's name, since another column stands for both (USING).
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
class Origin:
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
    origins: Mapping[str, Origin] = field(default_factory=dict)
    distinct: bool = False

    @property
    def is_public(self) -> bool:
        """Whether the rows are about no one."""
        return isinstance(self.source, Public)

    @property
    def private(self) -> PrivateTable:
        """The first private table that is read."""
        return next(each for each in self._tables() if isinstance(each, PrivateTable))

    @property
    def size(self) -> int:
        """How many times tables are read."""
        return _leaves(self.source)

    @property
    def units(self) -> tuple[Named, ...]:
        """The columns that say whose the rows are."""
        return tuple(each for each in self.columns if each.is_unit)

    @property
    def unit_name(self) -> str:
        """How a query would write the unit."""
        own = self.units
        return (
            own[0].written if len(own) > 1 else in_sql(own[0].name if own else str(self.private.unit.column))
        )

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
        columns = tuple(replace(each, table=alias) for each in self.columns if not each.hidden)
        aliases = {each.lower(): alias for each in (*others, alias)}
        return replace(self, columns=columns, aliases=aliases)

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Have refusals speak of columns as the query calls them."""
        try:
            yield
        except QueryRefused as refusal:
            reason, fix = self._told(refusal.reason), self._told(refusal.fix)
            if (reason, fix) == (refusal.reason, refusal.fix):
                raise
            raise QueryRefused(reason, fix) from None

    def _told(self, text: str) -> str:
        counts: dict[str, int] = {}
        for each in self.columns:
            counts[each.name.lower()] = counts.get(each.name.lower(), 0) + 1
        for each in self.columns:
            if isinstance(each.meaning, Column) and each.meaning.name != each.name:
                spelt = each.written if counts[each.name.lower()] > 1 else in_sql(each.name)
                inner = re.escape(each.meaning.name)
                pattern = rf'"{inner}"|\'{inner}\'' + ("" if " " in inner else rf"|\b{inner}\b")
                text = re.sub(pattern, lambda _, spelt=spelt: spelt, text)  # type: ignore[misc]
        return text

    def _tables(self) -> Iterator[PrivateTable | PublicTable]:
        return (self.known[name] for name in tables_of(self.source))


def table_relation(
    table: PrivateTable | PublicTable, known: Mapping[str, PrivateTable | PublicTable], alias: str
) -> Relation:
    """The rows of one table, with its declared columns and its unit's."""
    private = isinstance(table, PrivateTable)
    unit = table.unit.column if isinstance(table, PrivateTable) else None
    folded = None if unit is None else unit.lower()
    columns = [Named(name, alias, Column(name), name.lower() == folded) for name in table.schema]
    if unit is not None and not any(each.is_unit for each in columns):
        columns.insert(0, Named(unit, alias, None, is_unit=True))
    made = Relation(
        source=Scan(table.name) if private else Public(table.name),
        predicate=None,
        columns=tuple(columns),
        facts={name: column_facts(kind) for name, kind in table.schema.items()},
        known=known,
        origins={name: Origin(0, table.name, name) for name in table.schema},
    )
    return made.called(alias, table.name)


def facts_within(source: Source | Public, names: Iterable[str], known: Mapping[str, Any]) -> dict[str, Facts]:
    """What is known about these columns of a source."""
    return block_facts(Block(source, None, tuple((name, Column(name)) for name in names)), known)


def both(first: Expression | None, second: Expression | None) -> Expression | None:
    """The condition that both hold, where None is none."""
    given = [each for each in (first, second) if each is not None]
    return conjunction(given) if given else None


def called_after(word: str, content: Any) -> str:
    """A name for a column that follows from what it holds: the same whatever stands beside it."""
    return f"{word} {hashlib.sha256(json.dumps(content).encode()).hexdigest()[:10]}"


def fresh(name: str, taken: Collection[str]) -> str:
    """The name, or with the first number that makes it a new one: engines do not tell cases apart."""
    folded = {each.lower() for each in taken}
    candidate, number = name, 2
    while candidate.lower() in folded:
        candidate, number = f"{name} {number}", number + 1
    return candidate


def _leaves(source: Any) -> int:
    if isinstance(source, Scan | Public):
        return 1
    parts = getattr(source, "parts", None) or (
        (source.left, source.right) if hasattr(source, "left") else (source,)
    )
    return sum(_leaves(part.source) for part in parts)
