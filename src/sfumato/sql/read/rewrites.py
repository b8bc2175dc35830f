"""What to write instead of a subquery in a condition: the join that says the same, in the query's own names.

A rewrite is advice, made from the text alone: it goes through the parser like any other query when it is
asked.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.names import in_sql
from sfumato.sql.refusals import refuse, refused
from sfumato.sql.shape_refusals import SUBQUERIES
from sfumato.sql.text.statement import LANGUAGE

__all__ = ["inside"]

_LONGEST = 240


def inside(node: exp.Expr) -> QueryRefused | None:
    """The refusal of a subquery in an expression; None for any other node.

    Args:
        node: EXISTS, IN, or a query, in its place in the tree.
    """
    if isinstance(node, exp.Exists):
        word = "exists"
    elif isinstance(node, exp.In) and node.args.get("query") is not None:
        word = "in"
    elif isinstance(node, exp.Query):
        word = "scalar"
    else:
        return None
    negated = word != "scalar" and _is_negated(node)
    sentences = SUBQUERIES[f"not {word}" if negated else word]
    try:
        fix = _figure(node) if word == "scalar" else _membership(node, negated)
    except Exception:  # odd trees have odd parts, and advice is not worth a failure
        fix = ""
    return refuse(sentences[0], fix) if 0 < len(fix) <= _LONGEST else refused(sentences)


@dataclass(frozen=True, slots=True)
class _Link:
    """How the rows of a subquery belong to those outside.

    Attributes:
        outer: The column outside, as the query writes it.
        column: The column that it equals.
        select: The subquery without that equality.
        alias: What the joined subquery may be called.
    """

    outer: str
    column: exp.Column
    select: exp.Select
    alias: str

    def joined(self, inner: exp.Select) -> str:
        """The clause that joins a subquery by this link."""
        return f"JOIN ({_text(inner)}) AS {self.alias} ON {self.outer} = {self.alias}.{_text(self.column)}"


def _membership(node: exp.Expr, negated: bool) -> str:
    """The join that keeps the rows with a partner, or those without."""
    link = _listed(node) if isinstance(node, exp.In) else _linked(node.this, node)
    if link is None:
        return ""
    inner = link.select.copy()
    mark = [exp.alias_(exp.Literal.number(1), "found")] if negated else []
    inner.set("expressions", [link.column.copy(), *mark])
    if not inner.args.get("group"):
        inner.set("distinct", exp.Distinct())
    joined = link.joined(inner)
    return f"Write LEFT {joined}, and WHERE {link.alias}.found IS NULL." if negated else f"Write {joined}."


def _figure(node: exp.Expr) -> str:
    """The join with a figure of each unit."""
    link = _linked(node, node)
    if link is None or len(link.select.expressions) != 1:
        return ""
    inner, shown = link.select.copy(), link.select.expressions[0]
    inner.set("expressions", [link.column.copy(), exp.alias_(shown.unalias().copy(), "n")])
    inner.set("group", exp.Group(expressions=[link.column.copy()]))
    return f"Write {link.joined(inner)}, and use {link.alias}.n."


def _is_negated(node: exp.Expr) -> bool:
    above, negated = node.parent, False
    while isinstance(above, exp.Paren | exp.Not):
        negated ^= isinstance(above, exp.Not)
        above = above.parent
    return negated


def _listed(node: exp.In) -> _Link | None:
    """The link of `x IN (SELECT y FROM …)`."""
    select = _plain(node.args["query"])
    if select is None or len(select.expressions) != 1:
        return None
    shown = select.expressions[0].unalias()
    if not isinstance(shown, exp.Column) or not isinstance(node.this, exp.Column):
        return None
    return _named(node.this, shown, select, node)


def _linked(query: exp.Expr, node: exp.Expr) -> _Link | None:
    """The link that a correlated subquery has in its WHERE: an equality with a column from outside."""
    select = _plain(query)
    where = None if select is None else select.args.get("where")
    if select is None or where is None:
        return None
    own = select.args["from_"].this.alias_or_name.lower()
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    for part in parts:
        pair = _sides(part, own)
        if pair is None:
            continue
        rest = [other.copy() for other in parts if other is not part]
        bare = select.copy()
        bare.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
        if any(column.table and column.table.lower() != own for column in bare.find_all(exp.Column)):
            return None
        return _named(*pair, bare, node)
    return None


def _sides(part: exp.Expr, own: str) -> tuple[exp.Column, exp.Column] | None:
    """The column outside and the one inside that an equality compares."""
    if not isinstance(part, exp.EQ):
        return None
    for outer, column in ((part.this, part.expression), (part.expression, part.this)):
        if isinstance(outer, exp.Column) and isinstance(column, exp.Column):
            is_outer = bool(outer.table) and outer.table.lower() != own
            if is_outer and column.table.lower() in ("", own):
                return outer, column
    return None


def _plain(query: exp.Expr | None) -> exp.Select | None:
    """The SELECT from one table that a subquery is."""
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    if not isinstance(query, exp.Select) or query.args.get("joins") or query.args.get("limit"):
        return None
    source = query.args.get("from_")
    return query if source is not None and isinstance(source.this, exp.Table) else None


def _named(outer: exp.Column, column: exp.Column, select: exp.Select, node: exp.Expr) -> _Link | None:
    around = node.parent.find_ancestor(exp.Select) if node.parent is not None else None
    source = None if around is None else around.args.get("from_")
    if around is None or source is None:
        return None
    tables = [source.this, *(join.this for join in around.args.get("joins") or ())]
    taken = [item.alias_or_name for item in tables]
    inner = select.args["from_"].this.alias_or_name
    alias = inner if inner.lower() not in {name.lower() for name in taken} else "others"
    bare = select.copy()
    for named in bare.find_all(exp.Column):
        named.set("table", None)
    bare.args["from_"].this.set("alias", None)
    table = outer.args.get("table") or exp.to_identifier(taken[0])
    written = exp.Column(this=outer.this.copy(), table=table.copy())
    return _Link(_text(written), exp.Column(this=column.this.copy()), bare, in_sql(alias))


def _text(tree: exp.Expr) -> str:
    return tree.sql(LANGUAGE, comments=False)
