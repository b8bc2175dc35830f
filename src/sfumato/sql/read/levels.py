"""ROLLUP, CUBE and GROUPING SETS: several groupings in one query, taken out before it is read further."""

from __future__ import annotations

import itertools

from sqlglot import exp

from sfumato.sql.refusals import refuse

__all__ = ["Levels", "take_levels"]

_MOST = 64

Levels = list[tuple[int, ...]]
"""For each grouping set, which of the listed expressions it has."""


def take_levels(select: exp.Select) -> tuple[Levels, exp.Select]:
    """The grouping sets of a query, and the query grouped by all that they name; none: it has no such clause.

    Several clauses side by side are combined, each set of one with each of the other, as SQL has it.

    Raises:
        QueryRefused: for more grouping sets than anyone reads, or a form that is not supported.
    """
    group = select.args.get("group")
    if group is None or not any(isinstance(clause, _SETS) for clause in _clauses(group)):
        return [], select
    nodes: list[exp.Expr] = []
    sets: list[list[tuple[int, ...]]] = []
    plain = not any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets"))
    if not plain:  # GROUP BY a, b WITH ROLLUP: the clause is about all that is listed before it
        kinds = [
            clause for name in ("rollup", "cube", "grouping_sets") for clause in group.args.get(name) or ()
        ]
        if len(kinds) > 1 or kinds[0].expressions or isinstance(kinds[0], exp.GroupingSets):
            raise refuse("This form of GROUP BY is not supported.", "Write GROUP BY ROLLUP (a, b).")
        whole = type(kinds[0])(expressions=[item.copy() for item in group.expressions])
        sets.append(_sets(whole, nodes))
    else:
        sets = [_sets(item, nodes) for item in group.expressions]
    combined = [tuple(dict.fromkeys(itertools.chain(*picked))) for picked in itertools.product(*sets)]
    levels = list(dict.fromkeys(tuple(sorted(level)) for level in combined))
    if len(levels) > _MOST:
        raise refuse(
            f"The query has {len(levels):,} grouping sets, more than {_MOST}.", "Ask for fewer of them."
        )
    if not nodes:
        raise refuse("The grouping sets name nothing.", "Write GROUP BY ROLLUP (a, b).")
    select = select.copy()
    select.set("group", exp.Group(expressions=[node.copy() for node in nodes]))
    return levels, select


_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def _clauses(group: exp.Expr) -> list[exp.Expr]:
    named = [clause for name in ("rollup", "cube", "grouping_sets") for clause in group.args.get(name) or ()]
    return [*group.expressions, *named]


def _sets(node: exp.Expr, nodes: list[exp.Expr]) -> list[tuple[int, ...]]:
    """The sets of one item of GROUP BY; `nodes` learns what it names."""
    if isinstance(node, exp.GroupingSets):
        return [part for item in node.expressions for part in _sets(item, nodes)]
    if isinstance(node, exp.Rollup | exp.Cube):
        parts = [_named(item, nodes) for item in node.expressions]
        if len(parts) > 12:
            raise refuse("ROLLUP and CUBE take at most 12 items.", "Group by fewer things.")
        if isinstance(node, exp.Rollup):
            chosen = [parts[:count] for count in range(len(parts), -1, -1)]
        else:
            sizes = range(len(parts), -1, -1)
            chosen = [list(some) for size in sizes for some in itertools.combinations(parts, size)]
        return [tuple(itertools.chain(*some)) for some in chosen]
    return [_named(node, nodes)]


def _named(node: exp.Expr, nodes: list[exp.Expr]) -> tuple[int, ...]:
    """Which expressions an item is, one or several in parentheses."""
    if isinstance(node, _SETS):
        raise refuse("ROLLUP and CUBE cannot be nested.", "Write GROUPING SETS ((a, b), (a)).")
    parts = list(node.expressions) if isinstance(node, exp.Tuple) else [node]
    places = []
    for part in parts:
        inner = part.unnest() if isinstance(part, exp.Paren) else part
        if inner not in nodes:
            nodes.append(inner)
        places.append(nodes.index(inner))
    return tuple(places)
