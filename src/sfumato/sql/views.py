"""Joins that are asked for in Python: what FROM would read, under the names that the builder gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import domain_of, facts_of, refine
from sfumato.plan.expressions.names import nearest
from sfumato.plan.expressions.tree import Expression
from sfumato.plan.prices.plan import Plan
from sfumato.plan.questions.relations import Rows, rows_of
from sfumato.plan.questions.sources import Public
from sfumato.plan.views import Join, one_unit_each
from sfumato.sql.read.from_clause import Known, read_from
from sfumato.sql.read.parse import only_used
from sfumato.sql.read.relation import Named, Relation
from sfumato.sql.read.settle import pushed
from sfumato.sql.read.subqueries import names_of

__all__ = ["RelationView", "joined_view"]


@dataclass(frozen=True)
class RelationView:
    """The rows of joined tables.

    Attributes:
        relation: What FROM gives.
        columns: The names that the builder gives to its columns.
    """

    relation: Relation
    columns: Mapping[str, Named]

    @cached_property
    def names(self) -> Mapping[str, Expression]:
        """What each name means, over the columns of the source."""
        return {name: column.meaning for name, column in self.columns.items() if column.meaning is not None}

    @cached_property
    def units(self) -> frozenset[str]:
        """The names that say whose the rows are."""
        return frozenset(name for name, column in self.columns.items() if column.is_unit)

    def rows(
        self, predicate: Expression | None, keys: Sequence[Expression]
    ) -> tuple[Rows, Expression | None]:
        """The rows that satisfy a condition, and what of it is left to judge."""
        relation = self.relation.where(predicate)
        assert not isinstance(relation.source, Public)
        known = relation.facts if relation.predicate is None else refine(relation.predicate, relation.facts)
        units = [column.meaning for column in relation.columns if column.is_unit]
        telling = any(key in units for key in keys) or relation.tells_unit(keys)
        if telling and any(domain_of(facts_of(key, known)) is None for key in keys):
            raise one_unit_each(relation.unit_name)
        source, left = pushed(relation.source, relation.predicate)
        return rows_of(source, relation.known), left

    def finished(self, plan: Plan) -> Plan:
        """The plan with only those columns of the source that the question looks at."""
        return only_used(plan, self.relation.known)


def joined_view(tables: Known, first: str, joins: Sequence[Join]) -> RelationView:
    """What `FROM first JOIN …` reads. Columns of the right have `_right` after names that are taken.

    Raises:
        QueryRefused: as in SQL, if units would meet others' rows or rows could be multiplied.
    """
    select = exp.Select().from_(_table(first, "t0"))
    relation = read_from(select, names_of(tables))[1]
    shown = {column.name: column for column in relation.columns}
    names = {name: ("t0", name) for name in shown}
    for number, join in enumerate(joins, start=1):
        alias = f"t{number}"
        right = read_from(exp.Select().from_(_table(join.table, alias)), names_of(tables))[1]
        theirs = {column.name for column in right.columns}
        pairs = [
            exp.EQ(this=_column(*_found(here, names)), expression=_column(alias, _own(there, theirs)))
            for here, there in join.on
        ]
        select = select.join(
            _table(join.table, alias),
            on=exp.and_(*pairs),
            join_type="left" if join.outer else "inner",
        )
        same = {there for here, there in join.on if here == there}
        for name in (column.name for column in right.columns):
            if name not in same:
                names[_free(name, names)] = (alias, name)
    relation = read_from(select, names_of(tables))[1]
    by_place = {(column.table, column.name): column for column in relation.columns}
    return RelationView(relation, {name: by_place[place] for name, place in names.items()})


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _table(name: str, alias: str) -> exp.Table:
    return exp.Table(this=_quoted(name), alias=exp.TableAlias(this=_quoted(alias)))


def _column(table: str, name: str) -> exp.Column:
    return exp.column(_quoted(name), table=_quoted(table))


def _found(name: str, names: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    if name not in names:
        reason = f"There is no column {name[:60]!r} to join on."
        raise QueryRefused(reason, nearest(name, names, "Columns")).about("column")
    return names[name]


def _own(name: str, theirs: set[str]) -> str:
    _found(name, {one: ("", one) for one in theirs})
    return name


def _free(name: str, names: Mapping[str, tuple[str, str]]) -> str:
    while name in names:
        name += "_right"
    return name
