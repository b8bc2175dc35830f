"""Window functions over released groups: RANK() OVER (ORDER BY COUNT(*) DESC), x / SUM(x) OVER ()."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sfumato.plan.expressions.tree import Expression, columns_of
from sfumato.plan.questions.over import Over
from sfumato.sql.read.expressions import constant_of
from sfumato.sql.refusals import refuse

__all__ = ["is_over_groups", "read_over"]

_RANKS = {exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.RowNumber: "row_number", exp.Ntile: "ntile"}
_READ = {"this", "partition_by", "order", "over"}
_MOST = 100_000


def is_over_groups(node: exp.Window) -> bool:
    """Whether this is a window function that released groups have."""
    return isinstance(node.this, (*_RANKS, exp.Sum))


def read_over(node: exp.Window, expression: Callable[[exp.Expr], Expression]) -> Over:
    """The window function of a plan that this node asks for.

    Args:
        node: The window.
        expression: Gives a tree as an expression over keys and aggregates.

    Raises:
        QueryRefused: if it has a frame, several orders or none where it needs one, or parts by aggregates.
    """
    extra = [name for name, value in node.args.items() if value and name not in _READ]
    items = node.args["order"].expressions if node.args.get("order") is not None else []
    partition = tuple(expression(tree) for tree in node.args.get("partition_by") or ())
    if any(name[0] not in "kg" for one in partition for name in columns_of(one)):
        raise refuse(
            "Released groups are parted by keys: noise would decide which groups an aggregate puts together.",
            "Name in PARTITION BY only what GROUP BY names.",
        )
    if isinstance(node.this, exp.Sum):
        if extra or items or isinstance(node.this.this, exp.Distinct):
            raise refuse(
                "A sum over released groups takes no order and no frame.", "Write SUM(COUNT(*)) OVER ()."
            )
        return Over("sum", expression(node.this.this), partition)
    name = _RANKS[type(node.this)]
    if extra or len(items) != 1 or not isinstance(items[0], exp.Ordered):
        raise refuse(
            "A rank of released groups takes one order and no frame.",
            f"Write {name.upper()}({'4' if name == 'ntile' else ''}) OVER (ORDER BY COUNT(*) DESC).",
        )
    parts = 1
    if name == "ntile":
        given = constant_of(node.this.this)
        parts = given.value if given is not None and type(given.value) is int else 0
        if not 1 <= parts <= _MOST:
            raise refuse("NTILE takes a whole number of parts.", "Write NTILE(4) OVER (ORDER BY COUNT(*)).")
    value = expression(items[0].this)
    return Over(name, value, partition, bool(items[0].args.get("desc")), parts)  # type: ignore[arg-type]
