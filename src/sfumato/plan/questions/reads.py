"""Which columns of which tables a source reads for what is asked of it."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.plan.expressions.tree import Expression, columns_of
from sfumato.plan.questions.sources import Block, Joined, PerUnit, Public, Scan, Source, United, Windowed

__all__ = ["columns_read"]


def columns_read(source: Source | Public, wanted: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Pairs of a table and a column of it that decide the source's rows, or its columns that are wanted."""
    names = frozenset(wanted)
    match source:
        case Scan() | Public():
            return frozenset((source.table, name) for name in names)
        case Joined():
            met = names.union(*source.on)
            return _of_block(source.left, met) | _of_block(source.right, met)
        case United():
            return frozenset[tuple[str, str]]().union(*(_of_block(part, names) for part in source.parts))
        case PerUnit():
            names |= _named([source.having])
            calls = [call for name, call in source.aggregates if name in names]
            parts = [part for call in calls for part in (call.argument, call.other)]
            return columns_read(
                source.source, _named([source.predicate, *(key for _, key in source.keys), *parts])
            )
        case Windowed():
            windows = [call for name, call in source.columns if name in names]
            parts = [call.argument for call in windows]
            parts += [part for call in windows for part in call.partition]
            parts += [part for call in windows for part, _ in call.order]
            kept = names - {name for name, _ in source.columns}
            return columns_read(source.source, kept | _named([source.predicate, *parts]))


def _of_block(block: Block, names: frozenset[str]) -> frozenset[tuple[str, str]]:
    kept = [value for name, value in block.columns if name in names]
    return columns_read(block.source, _named([block.predicate, *kept]))


def _named(expressions: Iterable[Expression | None]) -> frozenset[str]:
    return frozenset(name for one in expressions if one is not None for name in columns_of(one))
