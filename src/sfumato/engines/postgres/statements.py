"""From a statement over attached tables to the text that the server reads."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from sqlglot import exp

from sfumato.engines.postgres.dialect import POSTGRES
from sfumato.engines.postgres.relations import Table
from sfumato.engines.templates import doubles_among
from sfumato.engines.trees import copied, nodes_of

__all__ = ["named_in", "text_of"]

_LONGEST = 63  # bytes of a name; PostgreSQL cuts off the rest, and two names would be one


def named_in(statement: exp.Expr, tables: Mapping[str, Table]) -> dict[int, str] | None:
    """The attached table that each node of a statement names, by the node's id; None if one names another."""
    found: dict[int, str] = {}
    for node in nodes_of(statement):
        if isinstance(node, exp.TableSample):
            return None
        if not isinstance(node, exp.Table):
            continue
        name = node.name.lower()
        other = [part for part, value in node.args.items() if value and part not in ("this", "alias")]
        if other or not isinstance(node.this, exp.Identifier):
            return None
        if not _is_given(node, node.name):
            if name not in tables:
                return None
            found[id(node)] = name
    return found


def _is_given(node: exp.Expr, name: str) -> bool:
    """Whether a name means a part of the statement (WITH) there: not inside that part itself."""
    inside = node.parent
    while inside is not None:
        holder = inside.args.get("with_") or inside.args.get("with")
        if holder is not None and any(part.alias_or_name == name for part in holder.expressions):
            own = node.find_ancestor(exp.CTE)
            return own is None or own.alias_or_name != name
        inside = inside.parent
    return False


def text_of(statement: exp.Expr, tables: Mapping[str, Table], named: Mapping[int, str]) -> str:
    """The text, in which the SELECT of each table stands in its place, with the columns that are named.

    A subquery that computes something is fenced off by `OFFSET 0`, as tables are: otherwise the planner would
    put what it computes into each place that names it.
    """
    nodes = nodes_of(statement)
    instead = doubles_among(nodes)
    names = {node.name for node in nodes if isinstance(node, exp.Identifier)}
    for node in nodes:
        if id(node) in named:
            alias = node.args.get("alias")
            short = (
                copied(alias)
                if alias is not None
                else exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
            )
            view = tables[named[id(node)]].view
            instead[id(node)] = exp.Subquery(
                this=copied(view) if _takes_all(node) else _only(view, names), alias=short
            )
    tree = copied(statement, instead)
    for node in nodes_of(tree):
        if isinstance(node, exp.Identifier) and not node.args.get("quoted"):
            node.set("this", node.name.lower())
            node.set("quoted", True)
        if isinstance(node, exp.Identifier) and len(node.name.encode()) > _LONGEST:
            node.set("this", f"sfumato {hashlib.sha256(node.name.encode()).hexdigest()[:40]}")
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select) and _computes(node.this):
            node.this.offset(0, copy=False)
    return POSTGRES.text(tree)


def _takes_all(table: exp.Expr) -> bool:
    """Whether the SELECT that a table stands in shows all of its columns."""
    select = table.parent_select
    return select is None or any(part.is_star for part in select.expressions)


def _only(view: exp.Select, names: Collection[str]) -> exp.Select:
    """A SELECT with those of its columns that have one of the names, or one of them if none has."""
    kept = [part for part in view.expressions if part.alias in names] or view.expressions[:1]
    few = exp.Select()
    few.set("expressions", [copied(part) for part in kept])
    for name, value in view.args.items():
        if isinstance(value, exp.Expr):
            few.set(name, copied(value))
    return few


def _computes(select: exp.Select) -> bool:
    plain = not any(select.args.get(part) for part in ("group", "distinct", "limit", "offset", "having"))
    return plain and any(part.find(exp.Case, exp.Subquery) is not None for part in select.expressions)
