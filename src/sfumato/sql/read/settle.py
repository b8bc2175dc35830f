"""One form for sources that give the same rows: conditions as far inside as they go, unused columns left out.

What is left out or moved changes no row that is counted: a condition on columns of one side of an inner join
holds before it exactly if it holds after, and a column that nothing looks at cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sfumato.plan.expressions.normal import conjunction, normal
from sfumato.plan.expressions.tree import Call, Expression, columns_of
from sfumato.plan.questions.relations import substituted
from sfumato.plan.questions.sources import (
    Block,
    Joined,
    PerUnit,
    Public,
    Scan,
    Source,
    United,
    WindowCall,
    Windowed,
)
from sfumato.sql.read.relation import both

__all__ = ["pruned", "pushed", "terms"]


def terms(predicate: Expression | None) -> tuple[Expression, ...]:
    """The conditions of which all must hold."""
    if predicate is None:
        return ()
    if isinstance(predicate, Call) and predicate.function == "and":
        return predicate.arguments
    return (predicate,)


def pushed(source: Source, predicate: Expression | None) -> tuple[Source, Expression | None]:
    """The source with those conditions inside that can be judged there, and the rest of them."""
    if isinstance(source, PerUnit | Windowed):
        inner, kept = pushed(source.source, source.predicate)
        return replace(source, source=inner, predicate=kept), predicate
    if isinstance(source, Scan):
        return source, predicate
    if isinstance(source, United):
        return United(tuple(_with(part, ()) for part in source.parts)), predicate
    left = {name for name, _ in source.left.columns}
    right = set() if source.outer else {name for name, _ in source.right.columns}
    before: list[Expression] = []
    after: list[Expression] = []
    rest: list[Expression] = []
    for term in terms(predicate):
        used = set(columns_of(term))
        chosen = before if used and used <= left else after if used and used <= right else rest
        chosen.append(term)
    joined = replace(source, left=_with(source.left, before), right=_with(source.right, after))
    return joined, conjunction(rest) if rest else None


def _with(block: Block, conditions: Iterable[Expression]) -> Block:
    """The block with further conditions over its columns."""
    definitions = dict(block.columns)
    predicate = block.predicate
    for condition in conditions:
        predicate = both(predicate, normal(substituted(condition, definitions)))
    if isinstance(block.source, Public):
        return replace(block, predicate=predicate)
    if isinstance(block.source, PerUnit):
        block = replace(block, source=replace(block.source, having=both(block.source.having, predicate)))
        predicate = None
    assert not isinstance(block.source, Public)
    source, kept = pushed(block.source, predicate)
    return replace(block, source=source, predicate=kept)


def pruned(source: Source, needed: Iterable[str]) -> Source:
    """The source with only those columns that are looked at."""
    wanted = set(needed)
    if isinstance(source, Joined):
        on = [set(side) for side in zip(*source.on, strict=True)] or [set(), set()]
        return replace(
            source,
            left=_pruned_block(source.left, wanted | on[0]),
            right=_pruned_block(source.right, wanted | on[1]),
        )
    if isinstance(source, United):
        return United(tuple(_pruned_block(part, wanted) for part in source.parts))
    if isinstance(source, PerUnit):
        wanted |= set(_used(source.having))
        kept = tuple((name, call) for name, call in source.aggregates if name in wanted)
        arguments = [part for _, call in kept for part in (call.argument, call.other)]
        inner = _used(source.predicate, *(key for _, key in source.keys), *arguments)
        return replace(source, source=pruned(source.source, inner), aggregates=kept)
    if isinstance(source, Windowed):
        calls = tuple((name, call) for name, call in source.columns if name in wanted)
        inner = _used(source.predicate, *(part for _, call in calls for part in _parts(call)))
        own = {name for name, _ in source.columns}
        return replace(source, source=pruned(source.source, (wanted - own) | inner), columns=calls)
    return source


def _parts(call: WindowCall) -> list[Expression | None]:
    return [call.argument, *call.partition, *(expression for expression, _ in call.order)]


def _used(*expressions: Expression | None) -> set[str]:
    return {name for expression in expressions if expression is not None for name in columns_of(expression)}


def _pruned_block(block: Block, wanted: set[str]) -> Block:
    kept = tuple((name, expression) for name, expression in block.columns if name in wanted)
    if isinstance(block.source, Public):
        return replace(block, columns=kept)
    inner = _used(block.predicate, *(expression for _, expression in kept))
    return replace(block, source=pruned(block.source, inner), columns=kept)
