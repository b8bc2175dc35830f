"""Queries in FROM and WITH: each gives a relation, whose names mean expressions over a source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from sfumato.plan.expressions.facts import refine
from sfumato.plan.expressions.tree import Column, Expression, to_wire
from sfumato.plan.questions.sources import Block, United
from sfumato.sql.read.clauses import check, condition, has_aggregate, key_trees, selected
from sfumato.sql.read.from_clause import Known, Names, read_from
from sfumato.sql.read.joins import check_same_units
from sfumato.sql.read.relation import Named, Relation, called_after, check_size, facts_within
from sfumato.sql.read.scope import Scope
from sfumato.sql.read.unit_results import UnitResults
from sfumato.sql.read.windows import with_windows
from sfumato.sql.refusals import refused
from sfumato.sql.shape_refusals import SUBQUERIES, UNIONS

__all__ = ["names_of", "read_query", "with_views"]

_READ = {
    *("expressions", "from_", "joins", "where", "group", "having", "distinct", "qualify", "with_", "order"),
    "hint",
}
_UNION = {"this", "expression", "distinct", "with_"}


def names_of(tables: Known) -> Names:
    """What a query's FROM may name at first: the declared tables."""
    return Names(tables, {}, read_query)


def with_views(query: exp.Expr, names: Names) -> Names:
    """The names with those that WITH adds; each view sees the ones before it, and is read when it is used."""
    clause = query.args.get("with_")
    if clause is None:
        return names
    if clause.args.get("recursive"):
        raise refused(SUBQUERIES["recursive"])
    own: set[str] = set()
    for view in clause.expressions:
        alias = view.args["alias"]
        if alias.args.get("columns"):
            raise refused(SUBQUERIES["columns"])
        if alias.name.lower() in own:
            raise refused(SUBQUERIES["twice"])
        own.add(alias.name.lower())
        names = replace(names, views={**names.views, alias.name.lower(): _view(view.this, names)})
    return names


def _view(query: exp.Expr, names: Names) -> Callable[[], Relation]:
    relations: list[Relation] = []

    def read() -> Relation:
        if not relations:
            relations.append(read_query(query, names))
        return relations[0]

    return read


def read_query(query: exp.Expr, names: Names) -> Relation:
    """The relation of a SELECT, or of UNION ALL of several.

    Raises:
        QueryRefused: for everything else, and where its rows could not belong to one unit each.
    """
    while isinstance(query, exp.Subquery | exp.Paren) and _present(query) == {"this"}:
        query = query.this
    if isinstance(query, exp.SetOperation):
        return _united(query, names)
    if not isinstance(query, exp.Select):
        raise refused(SUBQUERIES["kind"])
    if query.args.get("limit") or query.args.get("offset"):
        raise refused(SUBQUERIES["limit"])
    check(query, _READ, windows=True)
    names = with_views(query, names)
    query, relation = read_from(query, names)
    scope = Scope(relation)
    with scope.relation.in_words():
        result = _selected(query, scope)
    check_size(result)
    return result


def _present(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _selected(query: exp.Select, scope: Scope) -> Relation:
    columns = selected(query, scope, star=True)
    trees = [tree for _, tree in columns]
    relation = scope.relation.where(condition(query.args.get("where"), scope))
    scope = _again(scope, relation)
    having, qualify = (
        None if (clause := query.args.get(name)) is None else scope.resolved(clause.this)
        for name in ("having", "qualify")
    )
    for column in () if (order := query.args.get("order")) is None else order.find_all(exp.Column):
        scope.resolved(column, alias_first=True)  # an order of rows means nothing further on
    group = query.args.get("group")
    windows = any(tree.find(exp.Window) for tree in (*trees, *([qualify] if qualify else [])))
    aggregated = group is not None or any(map(has_aggregate, trees))
    if having is not None and not aggregated:
        raise refused(SUBQUERIES["having"])
    if qualify is not None and not windows:
        raise refused(SUBQUERIES["qualify"])
    if aggregated and windows:
        raise refused(SUBQUERIES["windows"])
    if aggregated:
        return _aggregated(query, scope, columns, having)
    if windows:
        scope, trees = with_windows(scope, [*trees, *([qualify] if qualify else [])])
        if qualify is not None:
            kept = scope.scalar(trees.pop())
            refine(kept, scope.relation.facts)
            scope = _again(scope, scope.relation.where(kept))
        columns = [(name, tree) for (name, _), tree in zip(columns, trees, strict=True)]
    if query.args.get("distinct"):
        return _distinct(query, scope, columns)
    return _named(scope, columns)


def _again(scope: Scope, relation: Relation) -> Scope:
    """The same names over a relation with the same columns."""
    same = Scope(relation, dict(scope.named))
    same._sizes.update(scope._sizes)
    return same


def _named(scope: Scope, columns: list[tuple[str, exp.Expr]]) -> Relation:
    """The rows with these columns alone."""
    named: list[Named] = []
    for name, tree in columns:
        column = scope.column(tree)
        if column is not None and column.is_unit:
            named.append(Named(name, "", column.meaning, is_unit=True))
        else:
            named.append(Named(name, "", scope.scalar(tree)))
    return replace(scope.relation, columns=tuple(named), aliases={})


def _aggregated(
    query: exp.Select, scope: Scope, columns: list[tuple[str, exp.Expr]], having: exp.Expr | None
) -> Relation:
    trees = [tree for _, tree in columns]
    keys = key_trees(query.args.get("group"), trees, scope)
    results = UnitResults(scope, keys, [*trees, *([having] if having is not None else [])])
    relation = _per_unit(scope, columns, results)
    if having is not None:
        kept = results.expression(having)
        refine(kept, results.relation.facts)
        relation = relation.where(kept)
    if (distinct := query.args.get("distinct")) is not None:
        shown = {column.meaning for column in relation.columns}
        plain = set(map(Column, results.keys))
        if distinct.args.get("on") or not relation.units or not plain <= shown:
            raise scope.relation.refused(SUBQUERIES["distinct"])
    return relation


def _per_unit(scope: Scope, columns: list[tuple[str, exp.Expr]], results: UnitResults) -> Relation:
    named = tuple(
        Named(name, "", None, is_unit=True)
        if scope.is_unit(tree)
        else Named(name, "", results.expression(tree))
        for name, tree in columns
    )
    return replace(results.relation, columns=named)


def _distinct(query: exp.Select, scope: Scope, columns: list[tuple[str, exp.Expr]]) -> Relation:
    if query.args["distinct"].args.get("on"):
        raise refused(SUBQUERIES["on"])
    if scope.relation.is_public:
        return replace(_named(scope, columns), distinct=True)
    keyed = [tree for _, tree in columns if tree.find(exp.Column)]
    others = [scope.scalar(tree) for tree in keyed if not scope.is_unit(tree)]
    if len(others) == len(keyed) and not scope.relation.tells_unit(others):
        raise scope.relation.refused(SUBQUERIES["distinct"])
    return _per_unit(scope, columns, UnitResults(scope, keyed, []))


# ── UNION ALL ──


def _united(query: exp.SetOperation, names: Names) -> Relation:
    names = with_views(query, names)
    parts = [read_query(part, names) for part in _parts(query)]
    first = parts[0]
    for part in parts:
        if part.is_public:
            raise refused(UNIONS["public"])
        check_same_units(first, part, "put together")
        if len(part.columns) != len(first.columns):
            raise refused(UNIONS["width"])
    rows = list(zip(*(part.columns for part in parts), strict=True))
    for row in rows:
        if len({column.is_unit for column in row}) > 1:
            raise refused(UNIONS["unit"])
    named = [_united_name([column.meaning for column in row]) for row in rows]
    source = United(tuple(_block(part, named) for part in parts))
    columns = tuple(
        Named(row[0].name, "", None if name is None else Column(name), is_unit=row[0].is_unit)
        for row, name in zip(rows, named, strict=True)
    )
    united = Relation(source, None, columns, {}, first.known)
    check_size(united)
    with united.in_words():
        present = [name for name in dict.fromkeys(named) if name is not None]
        return replace(united, facts=facts_within(source, present, first.known))


def _united_name(meanings: Sequence[Expression | None]) -> str | None:
    """What a column of UNION ALL is called; None: it has no value in one of the parts."""
    present = [meaning for meaning in meanings if meaning is not None]
    if len(present) < len(meanings):
        return None
    if isinstance(present[0], Column) and len(set(present)) == 1:
        return present[0].name
    return called_after("column", [to_wire(meaning) for meaning in present])


def _parts(query: exp.Expr) -> list[exp.Expr]:
    """The queries that UNION ALL puts together."""
    if isinstance(query, exp.Subquery | exp.Paren) and _present(query) == {"this"}:
        return _parts(query.this)
    if not isinstance(query, exp.SetOperation):
        return [query]
    kind = type(query).__name__.lower()
    if kind != "union" or query.args.get("distinct"):
        raise refused(UNIONS.get(kind, UNIONS["union"]))
    if query.args.get("by_name"):
        raise refused(UNIONS["name"])
    if _present(query) - _UNION:
        raise refused(UNIONS["clause"])
    parts: list[exp.Expr] = []
    for side in (query.this, query.expression):
        nested = isinstance(side, exp.SetOperation) and not side.args.get("with_")
        parts += _parts(side) if nested or isinstance(side, exp.Subquery | exp.Paren) else [side]
    return parts


def _block(part: Relation, names: Sequence[str | None]) -> Block:
    columns = {
        name: column.meaning
        for name, column in zip(names, part.columns, strict=True)
        if name is not None and column.meaning is not None
    }
    return Block(part.source, part.predicate, tuple(columns.items()))
