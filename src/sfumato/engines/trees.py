"""Copies and walks of trees, at a fraction of what the parser's own cost."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlglot import exp

__all__ = ["copied", "nodes_of"]

_NONE: Mapping[int, exp.Expr] = MappingProxyType({})


def nodes_of(tree: exp.Expr) -> list[exp.Expr]:
    """The nodes of a tree, level by level."""
    nodes = [tree]
    for node in nodes:  # to which its children are added
        if node.is_primitive:
            continue
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                nodes.append(value)
            elif isinstance(value, list):
                nodes += [part for part in value if isinstance(part, exp.Expr)]
    return nodes


def copied(tree: exp.Expr, instead: Mapping[int, exp.Expr] = _NONE) -> exp.Expr:
    """A copy of a tree, other nodes in the place of some.

    Args:
        tree: What is copied; what is noted of a node (`meta`) holds no trees and is not copied deeply.
        instead: What to put in a node's place, by the node's id; each is used once, as it is.
    """
    if id(tree) in instead:
        return instead[id(tree)]
    root = type(tree)()
    waiting = [(tree, root)]

    def child(node: exp.Expr, twin: exp.Expr, name: str, index: int | None) -> exp.Expr:
        other = instead.get(id(node))
        if other is None:
            other = type(node)()
            waiting.append((node, other))
        other.parent, other.arg_key, other.index = twin, name, index
        return other

    while waiting:
        node, twin = waiting.pop()
        args: dict[str, Any] = {}
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                args[name] = child(value, twin, name, None)
            elif isinstance(value, list):
                args[name] = [
                    child(part, twin, name, index) if isinstance(part, exp.Expr) else part
                    for index, part in enumerate(value)
                ]
            else:
                args[name] = value
        twin.args = args
        twin.comments = None if node.comments is None else list(node.comments)
        twin._type = node._type
        twin._meta = None if node._meta is None else dict(node._meta)
    return root
