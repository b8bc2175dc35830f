"""`UNNEST([…])`, GoogleSQL's way to list public groups: as the condition that a column is among them."""

from __future__ import annotations

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.refusals import refuse

__all__ = ["listed_groups", "listed_values"]


def listed_values(node: exp.In) -> exp.Expr | None:
    """`x IN UNNEST(['a', 'b'])` as `x IN ('a', 'b')`; None for any other IN."""
    unnest = node.args.get("unnest")
    if unnest is None:
        return None
    values = _values(unnest)
    return exp.In(this=node.this.copy(), expressions=values)


def listed_groups(select: exp.Select) -> None:
    """Change `FROM UNNEST([…]) AS g LEFT JOIN t ON g = t.x` into `FROM t WHERE t.x IN (…)`, with x for g.

    Raises:
        QueryRefused: if it is joined in another way.
    """
    clause, joins = select.args.get("from_"), list(select.args.get("joins") or ())
    if clause is None:
        return
    items = [clause.this, *(join.this for join in joins)]
    places = [place for place, item in enumerate(items) if isinstance(item, exp.Unnest)]
    if not places:
        return
    if len(places) > 1 or len(items) < 2 or places[0] > 1:
        raise _shape()
    place, join = places[0], joins[0]
    unnest = items[place]
    alias = unnest.args.get("alias")
    names = [] if alias is None else [column.name for column in alias.args.get("columns") or ()]
    table = "" if alias is None else alias.name
    name = names[0] if names else table
    side = str(join.args.get("side") or "").upper()
    kept = {"", "LEFT"} if place == 0 else {"", "RIGHT"}  # the groups stay, or only those with rows
    if not name or len(names) > 1 or side not in kept or join.args.get("method"):
        raise _shape()
    column = _compared(join, name, table)
    values = _values(unnest)
    for node in list(select.find_all(exp.Column)):
        means = node.name.lower() == name.lower() and node.table.lower() in ("", table.lower())
        own = node.find_ancestor(exp.Select) is select and node.find_ancestor(exp.Join) is not join
        if means and own and node is not column:
            node.replace(_shown(column, node, name))
    if place == 0:
        clause.set("this", join.this)
    select.set("joins", joins[1:])
    among = exp.In(this=column.copy(), expressions=values)
    where = select.args.get("where")
    select.set("where", exp.Where(this=among if where is None else exp.and_(where.this, among)))


def _shown(column: exp.Column, node: exp.Column, name: str) -> exp.Expr:
    """The column in the place of the list's name, under that name where it is shown."""
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        return exp.alias_(column.copy(), name)
    return column.copy()


def _compared(join: exp.Join, name: str, table: str) -> exp.Column:
    """The column that the list is compared with."""
    using = list(join.args.get("using") or [])
    if len(using) == 1 and using[0].name.lower() == name.lower():
        return exp.column(using[0].name)
    equality = join.args.get("on")
    equality = equality.unnest() if equality is not None else None
    if isinstance(equality, exp.EQ):
        for here, there in ((equality.this, equality.expression), (equality.expression, equality.this)):
            own = isinstance(here, exp.Column) and here.name.lower() == name.lower()
            if own and here.table.lower() in ("", table.lower()) and isinstance(there, exp.Column):
                return there
    raise _shape()


def _values(unnest: exp.Expr) -> list[exp.Expr]:
    inner = unnest.expressions[0] if len(unnest.expressions) == 1 else None
    if not isinstance(inner, exp.Array) or not inner.expressions:
        raise refuse("UNNEST takes a list of constants.", "Write UNNEST(['Lyon', 'Nice']).")
    return [value.copy() for value in inner.expressions]


def _shape() -> QueryRefused:
    return refuse(
        "UNNEST lists public groups, and is joined with one table by one equality.",
        "Write FROM UNNEST(['Lyon', 'Nice']) AS g LEFT JOIN t ON g = t.city GROUP BY g, or WHERE city IN "
        "('Lyon', 'Nice').",
    )
