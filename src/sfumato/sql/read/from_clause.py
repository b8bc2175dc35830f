"""FROM: tables, subqueries under their names, and joins from left to right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.names import in_sql, nearest
from sfumato.schema import PrivateTable, PublicTable
from sfumato.sql.read.commas import factored, with_joins
from sfumato.sql.read.joins import join
from sfumato.sql.read.relation import Named, Relation, check_size, table_relation
from sfumato.sql.refusals import FORM, TABLE_PARTS, refuse, refused, shown
from sfumato.sql.shape_refusals import JOINS

__all__ = ["Known", "Names", "read_from"]

Known: TypeAlias = Mapping[str, PrivateTable | PublicTable]
"""The declared tables by name."""

_Query: TypeAlias = Callable[[exp.Expr], Relation]
"""Gives the rows of a subquery."""

_SIDES = {"", "LEFT", "RIGHT"}


@dataclass(frozen=True, slots=True)
class Names:
    """What FROM may name.

    Attributes:
        tables: The declared tables.
        views: What WITH calls its queries, in small letters; each gives its rows when it is asked for.
        subquery: Reads a query in FROM with these names.
    """

    tables: Known
    views: Mapping[str, Callable[[], Relation]]
    subquery: Callable[[exp.Expr, Names], Relation]


@dataclass(frozen=True, slots=True)
class _Public:
    """Public tables that wait for the private one, and the conditions that join them."""

    relations: tuple[Relation, ...]
    conditions: tuple[exp.Expr, ...] = ()


def read_from(select: exp.Select, names: Names) -> tuple[exp.Select, Relation]:
    """The query with tables between commas as joins, and the relation that its FROM gives.

    Each subquery is read once, though commas ask for its names before it is joined: reading it again would
    double the work with each level of nesting.

    Raises:
        QueryRefused: for what cannot be read or joined, with what would work.
    """
    relations: dict[int, Relation] = {}

    def query(node: exp.Expr) -> Relation:
        if id(node) not in relations:  # equal nodes at two places are two, as are their rows
            relations[id(node)] = names.subquery(node, names)
        return relations[id(node)]

    select = with_joins(select, lambda node: _item(node, names, set(), query))
    return select, _joined(select, names, query)


def _joined(select: exp.Select, names: Names, query: _Query) -> Relation:
    """What FROM begins with, joined to the rest from left to right."""
    clause = select.args.get("from_")
    listed = ", ".join(list(names.tables)[:12])
    if clause is None:
        raise refuse("The query reads no table.", f"Add FROM and one of: {listed}.")
    used: set[str] = set()
    joined: Relation | _Public = _started(_item(clause.this, names, used, query))
    joins = [*_inner_joins(clause.this), *(select.args.get("joins") or ())]
    for node in joins:
        joined = _with(joined, node, _item(node.this, names, used, query))
        if isinstance(joined, Relation):
            check_size(joined)
    if isinstance(joined, Relation):
        return joined
    if len(joined.relations) > 1:
        raise refuse(
            "Only public tables are read here, and nothing of them needs protection.",
            "Join them with a private table in the same FROM, or read them directly.",
        )
    return joined.relations[0]


def _started(relation: Relation) -> Relation | _Public:
    return _Public((relation,)) if relation.is_public else relation


# ── tables and subqueries ──


def _inner_joins(node: exp.Expr) -> Sequence[exp.Join]:
    """Joins in parentheses that FROM begins with."""
    inner = _bare(node)
    return inner.args.get("joins") or () if isinstance(inner, exp.Table) else ()


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery):
        if {name for name, value in node.args.items() if value} != {"this"}:
            break
        node = node.this
    return node


def _item(node: exp.Expr, names: Names, used: set[str], query: _Query) -> Relation:
    """One table or subquery of FROM under its name."""
    if not isinstance(node.parent, exp.From):
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            raise refused(JOINS["parentheses"])
    else:
        node = _bare(node)
    if isinstance(node, exp.Lateral):
        raise refused(TABLE_PARTS["laterals"])
    if not isinstance(node, exp.Subquery) and not (
        isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
    ):
        raise refuse(
            "FROM takes the name of a table, or a subquery.",
            f"Tables: {', '.join(list(names.tables)[:12])}.",
        )
    for name, value in node.args.items():
        if value and name in ("db", "catalog") and node.name.lower() in map(str.lower, names.tables):
            raise refuse(TABLE_PARTS[name][0], f"Write {in_sql(node.name)}.")
        if value and name not in ("this", "alias", "joins"):
            raise refused(TABLE_PARTS.get(name, ("This form of FROM is not supported.", FORM)))
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refuse("Columns cannot be renamed in FROM.", "Use AS in SELECT.")
    given = "" if alias is None else alias.name
    if isinstance(node, exp.Subquery):
        return query(node.this).called(_alias(given or " " * (len(used) + 1), used))
    view = names.views.get(node.name.lower())
    if view is not None:
        return view().called(_alias(given or node.name, used), node.name)
    known = {table_name.lower(): table_name for table_name in names.tables}
    if node.name.lower() not in known:
        listed = [*names.tables, *names.views]
        reason = f"There is no table {shown(node.name)}."
        raise refuse(reason, nearest(node.name, listed, "Tables")).about("table")
    table = names.tables[known[node.name.lower()]]
    return table_relation(table, names.tables, _alias(given or table.name, used))


def _alias(alias: str, used: set[str]) -> str:
    if alias.lower() in used:
        raise refuse(
            f"Two tables in FROM are called {shown(alias)}.",
            f"Give each a name of its own: {in_sql(alias)} AS a JOIN {in_sql(alias)} AS b.",
        )
    used.add(alias.lower())
    return alias


# ── joins ──


def _with(left: Relation | _Public, node: exp.Join, right: Relation) -> Relation | _Public:
    side = _side(node, left, right)
    left, right, conditions = _conditions(left, node, right, side)
    if not conditions:
        raise refused(JOINS["nothing"])
    if isinstance(left, Relation):
        if right.is_public:
            return join(left, right, conditions, outer=side == "LEFT")
        if side != "RIGHT":
            return join(left, right, conditions, outer=side == "LEFT")
        return _in_order(join(right, left, conditions, outer=True), left, right)
    if right.is_public:
        if side:
            raise refused(JOINS["public"])
        return _Public((*left.relations, right), (*left.conditions, *conditions))
    if side == "RIGHT":
        if len(left.relations) > 1:
            raise refused(JOINS["public"])
        return _in_order(join(right, left.relations[0], conditions, outer=True), *left.relations, right)
    # A group without private rows has no unit: the public side's own rows count nowhere.
    return _in_order(_gathered(left, right, conditions), *left.relations, right)


def _side(node: exp.Join, left: Relation | _Public, right: Relation) -> str:
    for name, value in node.args.items():
        if value and name not in ("this", "on", "using", "side", "kind", "method", "joins"):
            raise refused(JOINS["form"])
    kind, side, method = (str(node.args.get(name) or "").upper() for name in ("kind", "side", "method"))
    if method:
        raise refused(JOINS.get(method.lower(), JOINS["form"]))
    if kind == "CROSS" or not (kind or side or node.args.get("on") or node.args.get("using")):
        raise _crossed(left, right)
    if kind in ("SEMI", "ANTI"):
        raise refused(JOINS[kind.lower()])
    if side == "FULL":
        raise refused(JOINS["full"])
    if kind not in ("", "INNER", "OUTER") or side not in _SIDES:
        raise refused(JOINS["form"])
    return side


def _crossed(left: Relation | _Public, right: Relation) -> QueryRefused:
    units = [
        [
            column for column in side if column.is_unit and " " not in column.name
        ]  # not the word for an owner elsewhere
        for side in (_columns(left), right.units)
    ]
    if right.is_public:
        table = right.known[right.source.table]  # type: ignore[union-attr]
        key = getattr(table, "key", ()) or ("…",)
        pairs = " AND ".join(f"{in_sql(table.name)}.{column} = …" for column in key)
        return refuse(JOINS["nothing"][0], f"Write JOIN {in_sql(table.name)} ON {pairs}")
    if all(units):
        one, other = units[0][0].written, units[1][0].written
        return refuse(JOINS["cross"][0], f"Write … JOIN … ON {one} = {other}.")
    return refused(JOINS["cross"])


def _conditions(
    left: Relation | _Public, node: exp.Join, right: Relation, side: str
) -> tuple[Relation | _Public, Relation, list[exp.Expr]]:
    """What the join asks for, and both sides with the columns of USING as one."""
    conditions = [] if node.args.get("on") is None else list(_conjuncts(node.args["on"]))
    for identifier in node.args.get("using") or ():
        name = identifier.name
        here, there = _only(_columns(left), name), _only(right.columns, name)
        conditions.append(exp.EQ(this=_column(here), expression=_column(there)))
        if side == "RIGHT":
            left = _hiding(left, here)
        else:
            right = _hidden(right, there)
    return left, right, conditions


def _columns(side: Relation | _Public) -> tuple[Named, ...]:
    if isinstance(side, Relation):
        return side.columns
    return tuple(column for relation in side.relations for column in relation.columns)


def _only(columns: Sequence[Named], name: str) -> Named:
    matches = [column for column in columns if column.name.lower() == name.lower() and not column.hidden]
    if len(matches) > 1:
        raise refuse(
            f"USING {shown(name)} could be {matches[0].written} or {matches[1].written}.", "Write ON."
        )
    if not matches:
        listed = [in_sql(column.name) for column in columns]
        raise refuse(
            f"USING needs {shown(name)} on both sides.",
            nearest(name, listed, "Columns") + " Or write ON.",
        )
    return matches[0]


def _column(column: Named) -> exp.Column:
    return exp.column(exp.to_identifier(column.name), table=exp.to_identifier(column.table))


def _hiding(side: Relation | _Public, column: Named) -> Relation | _Public:
    if isinstance(side, Relation):
        return _hidden(side, column)
    return replace(side, relations=tuple(_hidden(relation, column) for relation in side.relations))


def _hidden(relation: Relation, column: Named) -> Relation:
    columns = tuple(replace(other, hidden=True) if other is column else other for other in relation.columns)
    return replace(relation, columns=columns)


def _conjuncts(tree: exp.Expr) -> Sequence[exp.Expr]:
    if isinstance(tree, exp.Paren):
        return _conjuncts(tree.this)
    if isinstance(tree, exp.And):
        return [*_conjuncts(tree.this), *_conjuncts(tree.expression)]
    return factored(tree)


def _gathered(public: _Public, private: Relation, conditions: Sequence[exp.Expr]) -> Relation:
    """Public tables that were named before the private one, joined to it one after the other."""
    waiting = list(public.relations)
    asked = [*public.conditions, *conditions]
    joined = private
    while waiting:
        tables = [*waiting, joined]
        for table in waiting:
            usable = [
                one for one in asked if not _mentions(one, [x for x in tables if x not in (table, joined)])
            ]
            equal = [one for one in usable if _mentions(one, [table])]
            if any(isinstance(one, exp.EQ) and _mentions(one, [joined]) for one in equal):
                joined = join(joined, table, usable)
                asked = [one for one in asked if one not in usable]
                waiting.remove(table)
                break
        else:
            raise refused(JOINS["public"])
    return joined


def _mentions(tree: exp.Expr, relations: Sequence[Relation]) -> bool:
    """Whether a condition names a column of one of these."""
    for column in tree.find_all(exp.Column):
        for relation in relations:
            if column.table.lower() in relation.aliases:
                return True
            if not column.table and any(one.name.lower() == column.name.lower() for one in relation.columns):
                return True
    return False


def _in_order(joined: Relation, *parts: Relation) -> Relation:
    """The columns in the order of FROM."""
    tables = [column.table for relation in parts for column in relation.columns]
    columns = sorted(joined.columns, key=lambda column: tables.index(column.table))
    return replace(joined, columns=tuple(columns))
