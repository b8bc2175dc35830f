"""Functions of any number of arguments as trees: as their templates, of which there is one a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from sqlglot import exp

__all__ = ["MANY"]


def _in(parts: Sequence[exp.Expr]) -> exp.Expr:
    return exp.In(this=parts[0], expressions=list(parts[1:]))


def _chain(connector: type[exp.Expr]) -> Callable[[Sequence[exp.Expr]], exp.Expr]:
    def tree(parts: Sequence[exp.Expr]) -> exp.Expr:
        return reduce(lambda left, right: connector(this=left, expression=right), parts)

    return tree


def _case(parts: Sequence[exp.Expr]) -> exp.Expr:
    pairs = zip(parts[:-1:2], parts[1::2], strict=True)
    return exp.Case(ifs=[exp.If(this=holds, true=value) for holds, value in pairs], default=parts[-1])


MANY: dict[str, Callable[[Sequence[exp.Expr]], exp.Expr]] = {
    "in": _in,
    "and": _chain(exp.And),
    "or": _chain(exp.Or),
    "case": _case,
}
"""By the name of the function: operands to the tree of its common template."""
