"""Window functions over the rows of one unit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from sfumato.engines.trees import copied
from sfumato.plan.expressions.tree import Column, Expression
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sources import Public, WindowCall, Windowed, WindowName, source_to_wire
from sfumato.sql.read.expressions import constant_of
from sfumato.sql.read.relation import Named, called_after, facts_within, fresh
from sfumato.sql.read.scope import Scope
from sfumato.sql.read.unit_results import unit_aggregate
from sfumato.sql.refusals import refuse
from sfumato.sql.shape_refusals import WINDOWS

__all__ = ["with_windows"]

_RANKS: dict[str, WindowName] = {"rownumber": "row_number", "rank": "rank", "denserank": "dense_rank"}
_SHIFTS: dict[str, WindowName] = {"lag": "lag", "lead": "lead"}
_OVER: dict[str, WindowName] = {"count": "count", "sum": "sum", "mean": "mean", "min": "min", "max": "max"}
_FURTHEST = 1000


def with_windows(scope: Scope, trees: Sequence[exp.Expr]) -> tuple[Scope, list[exp.Expr]]:
    """A relation with a column for each window function in the trees, and the trees with these columns.

    Args:
        scope: What is read; its condition is judged before the windows are made.
        trees: Resolved.

    Raises:
        QueryRefused: unless every window is partitioned by the privacy unit, and in a form that is supported.
    """
    relation = scope.relation
    if relation.is_public:
        raise scope.relation.refused(WINDOWS["public"])
    calls = {_call(node, scope) for tree in trees for node in tree.find_all(exp.Window)}
    assert not isinstance(relation.source, Public)
    names: dict[WindowCall, str] = {}
    for call in sorted(calls, key=_written):
        named = called_after(call.function.replace("_", " "), source_to_wire(call))
        names[call] = fresh(named, [*relation.facts, *names.values()])
    columns = tuple((name, call) for call, name in names.items())
    source = Windowed(relation.source, relation.predicate, columns)
    added = {name: Named(name, "", Column(name), hidden=True) for name in names.values()}
    outside = Scope(
        replace(
            relation,
            source=source,
            predicate=None,
            columns=relation.columns + tuple(added.values()),
            facts=facts_within(source, [*relation.facts, *names.values()], relation.known),
        )
    )

    holders = [exp.Paren(this=copied(tree)) for tree in trees]
    for holder in holders:
        for node in list(holder.find_all(exp.Window)):
            node.replace(outside.node(added[names[_call(node, scope)]]))
    return outside, [holder.this for holder in holders]


def _written(part: Any) -> str:
    return json.dumps(source_to_wire(part))


def _call(node: exp.Window, scope: Scope) -> WindowCall:
    if node.args.get("alias") is not None:
        raise scope.relation.refused(WINDOWS["named"])
    if any(child.find(exp.Window) for child in node.iter_expressions()):
        raise scope.relation.refused(WINDOWS["nested"])
    partition = _partition(node.args.get("partition_by") or (), scope)
    order = _order(node.args.get("order"), scope)
    whole = _is_whole(node.args.get("spec"))
    name = type(node.this).__name__.lower()
    if name in _RANKS or name in _SHIFTS:
        if node.args.get("spec") is not None:
            raise scope.relation.refused(WINDOWS["frame"])
        if not order:
            raise scope.relation.refused(WINDOWS["order"])
        if name in _RANKS:
            if node.this.expressions:
                raise scope.relation.refused(WINDOWS["form"])
            return WindowCall(_RANKS[name], None, partition, order)
        return _shift(_SHIFTS[name], node.this, scope, partition, order)
    call = _aggregate(node.this, scope)
    if order and not whole:
        raise scope.relation.refused(WINDOWS["running"])
    if node.args.get("spec") is not None and not whole:
        raise scope.relation.refused(WINDOWS["frame"])
    return WindowCall(_OVER[call.function], call.argument, partition)


def _aggregate(node: exp.Expr, scope: Scope) -> AggregateCall:
    if isinstance(node, exp.FirstValue | exp.LastValue | exp.NthValue):
        raise scope.relation.refused(WINDOWS["first"])
    inner = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(inner, exp.Count | exp.CountIf | exp.Sum | exp.Avg | exp.Min | exp.Max | exp.Anonymous):
        raise scope.relation.refused(WINDOWS["form"])
    call = unit_aggregate(node, scope)
    if call.function not in _OVER:
        raise scope.relation.refused(WINDOWS["form"])
    return call


def _partition(listed: Iterable[exp.Expr], scope: Scope) -> tuple[Expression, ...]:
    trees = list(listed)
    keys = {scope.scalar(tree) for tree in trees if not scope.is_unit(tree)}
    if not any(map(scope.is_unit, trees)) and not scope.relation.tells_unit(keys):
        unit = scope.relation.unit_name
        if scope.table.unit.is_row:
            raise scope.relation.refused(WINDOWS["rows"])
        raise refuse(
            "A window that is not PARTITION BY the privacy unit looks at the rows of others.",
            f"Write OVER (PARTITION BY {unit} …).",
        )
    return tuple(sorted(keys, key=_written))


def _order(order: exp.Expr | None, scope: Scope) -> tuple[tuple[Expression, bool], ...]:
    directions: dict[Expression, bool] = {}
    for item in () if order is None else order.expressions:
        if not isinstance(item, exp.Ordered) or item.args.get("with_fill") or item.args.get("nulls_first"):
            raise scope.relation.refused(WINDOWS["nulls"])
        if scope.is_unit(item.this):
            continue  # the same for all rows of a window
        directions.setdefault(scope.scalar(item.this), bool(item.args.get("desc")))
    return tuple(directions.items())


def _shift(
    function: WindowName,
    node: exp.Expr,
    scope: Scope,
    partition: tuple[Expression, ...],
    order: tuple[tuple[Expression, bool], ...],
) -> WindowCall:
    offset = node.args.get("offset")
    if node.args.get("default") is not None:
        raise scope.relation.refused(WINDOWS["default"])
    steps = 1
    if offset is not None:
        given = constant_of(offset)
        if given is None or given.kind != "integer" or not isinstance(given.value, int):
            raise scope.relation.refused(WINDOWS["offset"])
        steps = given.value
        if not 0 <= steps <= _FURTHEST:
            raise scope.relation.refused(WINDOWS["offset"])
    return WindowCall(function, scope.scalar(node.this), partition, order, steps)


def _is_whole(spec: exp.Expr | None) -> bool:
    """Whether a frame is all of the partition."""
    if spec is None:
        return False
    parts = [str(spec.args.get(name) or "").upper() for name in ("start", "start_side", "end", "end_side")]
    return parts == ["UNBOUNDED", "PRECEDING", "UNBOUNDED", "FOLLOWING"] and not spec.args.get("exclude")
