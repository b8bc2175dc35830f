"""Conditions as Spark takes them: truth values by their type, also where they are nothing but NULL."""

from __future__ import annotations

from sqlglot import exp

from sfumato.engines.trees import nodes_of

__all__ = ["with_typed_conditions"]

_TYPED = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)


def with_typed_conditions(tree: exp.Expression) -> exp.Expression:
    """The same statement, in place: a condition that may have no type is cast to one, which changes no value.

    Spark refuses `WHERE NULL` and `CASE WHEN NULL`, and what is made of NULL alone, such as `COALESCE(NULL)`;
    and it compares several values at once with constants of their very types alone.
    """
    for node in list(nodes_of(tree)):
        if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple):
            _widen(node)
        slot = _slot(node)
        condition = None if slot is None else node.args.get(slot)
        if slot is not None and condition is not None and not isinstance(condition.unnest(), _TYPED):
            node.set(slot, exp.TryCast(this=condition, to=exp.DataType.build("BOOLEAN")))
    return tree


def _widen(listed: exp.In) -> None:
    """Whole numbers in rows of constants, as wide as columns of them are."""
    for row in listed.expressions:
        for value in row.expressions:
            bare = value.unnest()
            bare = bare.this if isinstance(bare, exp.Neg) else bare
            if isinstance(bare, exp.Literal) and bare.is_int:
                value.replace(exp.Cast(this=value.copy(), to=exp.DataType.build("BIGINT")))


def _slot(node: exp.Expr) -> str | None:
    """Where a node has a condition; after `CASE value` come values."""
    if isinstance(node, exp.If):
        return None if isinstance(node.parent, exp.Case) and node.parent.this is not None else "this"
    return (
        "this" if isinstance(node, exp.Where | exp.Having) else "on" if isinstance(node, exp.Join) else None
    )
