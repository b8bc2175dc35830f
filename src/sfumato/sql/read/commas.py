"""FROM a, b WHERE a.x = b.x: the older spelling of a join, written out as one before it is read."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sfumato.sql.read.relation import Relation

__all__ = ["factored", "with_joins"]


def with_joins(select: exp.Select, item: Callable[[exp.Expr], Relation]) -> exp.Select:
    """The query with conditions of WHERE that compare two tables in the ON of the join that they belong to.

    Tables between commas are taken in an order in which each is compared with one before it. A table that is
    compared with none keeps its comma, and is refused where it is read.

    Args:
        select: The query.
        item: Reads one table or subquery of FROM.
    """
    where, joins = select.args.get("where"), select.args.get("joins") or []
    if where is None or not any(map(_is_comma, joins)):
        return select
    select = select.copy()
    clause, where, joins = select.args["from_"], select.args["where"], select.args["joins"]
    conditions = [
        part
        for term in (where.this.flatten() if isinstance(where.this, exp.And) else [where.this])
        for part in factored(term)
    ]
    nodes = [clause.this, *(join.this for join in joins)]
    names = [_names(item(node)) for node in nodes]
    done, ready = {0}, []
    waiting = list(range(1, len(nodes)))
    while waiting:
        place = next(
            (candidate for candidate in waiting if _fits(candidate, joins, names, done, conditions)),
            waiting[0],
        )
        waiting.remove(place)
        join = joins[place - 1]
        if _is_comma(join):
            own = [condition for condition in conditions if _belongs(condition, place, names, done)]
            if own:
                join.set("on", exp.and_(*(condition.copy() for condition in own), copy=False))
                conditions = [condition for condition in conditions if condition not in own]
        done.add(place)
        ready.append(join)
    select.set("joins", ready)
    left = exp.and_(*(condition.copy() for condition in conditions), copy=False) if conditions else None
    select.set("where", None if left is None else exp.Where(this=left))
    return select


def factored(condition: exp.Expr) -> list[exp.Expr]:
    """What an OR repeats in each of its branches, and what is left of it; the condition itself if nothing is.

    (a AND x) OR (a AND y) is a AND (x OR y) on every row, NULL included. Only comparisons of two columns are
    taken out, which is what joins are made of.
    """
    inner = condition.unnest()
    if not isinstance(inner, exp.Or):
        return [condition]
    branches = [_conjuncts(branch) for branch in inner.flatten()]
    shared = [
        term
        for term in branches[0]
        if _is_link(term) and all(any(term == other for other in branch) for branch in branches[1:])
    ]
    if not shared:
        return [condition]
    rest = [[term for term in branch if term not in shared] for branch in branches]
    if not all(rest):  # one branch asks for nothing else, so that the others are in it
        return [term.copy() for term in shared]
    left = exp.or_(*(exp.and_(*branch) for branch in rest))
    return [*(term.copy() for term in shared), exp.Paren(this=left)]


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    inner = tree.unnest()
    return [part.unnest() for part in inner.flatten()] if isinstance(inner, exp.And) else [inner]


def _is_link(term: exp.Expr) -> bool:
    return (
        isinstance(term, exp.EQ)
        and isinstance(term.this, exp.Column)
        and isinstance(term.expression, exp.Column)
    )


def _is_comma(join: exp.Join) -> bool:
    parts = ("on", "using", "side", "kind", "method")
    return not any(join.args.get(name) for name in parts)


def _names(relation: Relation) -> tuple[set[str], set[str]]:
    """What a table is called, and its columns."""
    return {alias.lower() for alias in relation.aliases}, {column.name.lower() for column in relation.columns}


def _fits(
    place: int,
    joins: list[exp.Join],
    names: list[tuple[set[str], set[str]]],
    done: set[int],
    conditions: list[exp.Expr],
) -> bool:
    if not _is_comma(joins[place - 1]):
        return True
    return any(_belongs(condition, place, names, done) for condition in conditions)


def _belongs(condition: exp.Expr, place: int, names: list[tuple[set[str], set[str]]], done: set[int]) -> bool:
    """Whether an equality compares a table with those before it."""
    if not isinstance(condition.unnest(), exp.EQ):
        return False
    places = [_place(column, names) for column in condition.find_all(exp.Column)]
    return place in places and len(set(places)) > 1 and set(places) <= done | {place}


def _place(column: exp.Column, names: list[tuple[set[str], set[str]]]) -> int | None:
    """Which table a column comes from; None where that is not clear."""
    if column.table:
        places = [i for i, (aliases, _) in enumerate(names) if column.table.lower() in aliases]
    else:
        places = [i for i, (_, columns) in enumerate(names) if column.name.lower() in columns]
    return places[0] if len(places) == 1 else None
