"""What a question in Python reads: rows, and what each name means in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import domain_of, facts_of, refine
from sfumato.plan.expressions.tree import Column, Expression
from sfumato.plan.prices.plan import Plan
from sfumato.plan.questions.relations import Rows, as_rows
from sfumato.schema import PrivateTable

__all__ = ["Join", "TableView", "View", "one_unit_each"]


@dataclass(frozen=True, slots=True)
class Join:
    """One table that is joined to what is read so far.

    Attributes:
        table: Its name.
        on: The pairs of a name on the left and a name on the right that are equal.
        outer: Whether rows without a partner stay.
    """

    table: str
    on: tuple[tuple[str, str], ...]
    outer: bool


class View(Protocol):
    """Rows under names."""

    @property
    def names(self) -> Mapping[str, Expression]:
        """What each name means, over the columns of the source."""

    @property
    def units(self) -> frozenset[str]:
        """The names that say whose the rows are; those without a declared type are not among `names`."""

    def rows(
        self, predicate: Expression | None, keys: Sequence[Expression]
    ) -> tuple[Rows, Expression | None]:
        """The rows that satisfy a condition, and what of it is left to judge.

        Raises:
            QueryRefused: if each group of these keys would be about one unit.
        """

    def finished(self, plan: Plan) -> Plan:
        """The plan in the form that all spellings of it share."""


@dataclass(frozen=True, slots=True)
class TableView:
    """The rows of one table, as they are."""

    table: PrivateTable

    @property
    def names(self) -> Mapping[str, Expression]:
        """The declared columns."""
        return {name: Column(name) for name in self.table.schema}

    @property
    def units(self) -> frozenset[str]:
        """The column of the unit."""
        return frozenset(() if self.table.unit.column is None else (self.table.unit.column,))

    def rows(
        self, predicate: Expression | None, keys: Sequence[Expression]
    ) -> tuple[Rows, Expression | None]:
        """The table's own."""
        rows = as_rows(self.table)
        known = rows.columns if predicate is None else refine(predicate, rows.columns)
        if any(
            isinstance(key, Column) and key.name in self.units and domain_of(facts_of(key, known)) is None
            for key in keys
        ):
            raise one_unit_each(str(self.table.unit.column))
        return rows, predicate

    def finished(self, plan: Plan) -> Plan:
        """It is, already."""
        return plan


def one_unit_each(unit: str) -> QueryRefused:
    """The refusal of groups of one unit each."""
    return QueryRefused(
        f"Each group of {unit} would be about one unit, and such groups are never shown.",
        f"Group by what many share, or count the units: sf.count_distinct({unit!r}).",
    )
