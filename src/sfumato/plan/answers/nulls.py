"""Where an expression over results is NULL before noise: by keys, which are known, or by what noise hides.

A total leaves NULL out and a rank puts it last, so both must know of each group whether it could be one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.plan.answers.boxes import TOTAL, Box, Solver
from sfumato.plan.expressions.functions import evaluate
from sfumato.plan.expressions.tree import Call, Expression, Literal

__all__ = ["Nulls", "Rows", "guards", "nulls"]

Rows: TypeAlias = NDArray[np.bool_]
Nulls: TypeAlias = tuple[Rows, Rows]
"""Where a value is surely NULL, and where it may be."""

_DIVIDES = frozenset({"divide", "int_divide", "modulo"})
_ABOVE, _BELOW = frozenset({"greater", "greater_equal"}), frozenset({"less", "less_equal"})
_COMPARES = _ABOVE | _BELOW | {"equal", "not_equal"}
_STRICT = TOTAL | {"sqrt", "ln", "log10", "log2", "power", "to_integer"}


def guards(solver: Solver, expression: Expression) -> tuple[Expression, ...]:
    """The numbers with noise whose sign says what is NULL: divisors, and differences of what is compared."""
    return tuple(dict.fromkeys(one for one in _guards(expression) if solver.noisy_in(one)))


def nulls(solver: Solver, expression: Expression, risk: float) -> Nulls:
    """Where the value before noise is NULL; wrong with probability at most risk, a row.

    The risk is that of the intervals of the guards, in equal parts (Bonferroni); without guards nothing can
    be wrong. What is not understood may be NULL.
    """
    needed = guards(solver, expression)
    return _walk(solver, expression, {one: solver.interval(one, risk / len(needed)) for one in needed})


def _guards(expression: Expression) -> Iterator[Expression]:
    if not isinstance(expression, Call):
        return
    guard = _guard(expression)
    if guard is not None:
        yield guard
    for argument in expression.arguments:
        yield from _guards(argument)


def _guard(call: Call) -> Expression | None:
    if call.function in _DIVIDES:
        return call.arguments[1]
    if call.function in _COMPARES or call.function == "nullif":
        first, second = call.arguments
        zero = isinstance(second, Literal) and second.value == 0
        return first if zero else Call("subtract", (first, second))
    return None


def _walk(solver: Solver, expression: Expression, boxes: Mapping[Expression, Box]) -> Nulls:
    never = np.zeros(solver.rows, dtype=bool)
    if not solver.noisy_in(expression):
        gone = _mask(solver, expression)
        return gone, gone
    if not isinstance(expression, Call):
        return never, never  # aggregates are never NULL
    if expression.function == "case":
        return _case(solver, expression, boxes)
    sure, perhaps = zip(*(_walk(solver, one, boxes) for one in expression.arguments), strict=True)
    if expression.function in ("coalesce", "greatest", "least"):
        return np.logical_and.reduce(sure), np.logical_and.reduce(perhaps)
    if expression.function == "nullif":
        return sure[0], perhaps[0] | ~_apart(_sign(solver, expression, boxes))
    if expression.function in _DIVIDES:
        divisor = expression.arguments[1]
        if solver.noisy_in(divisor):
            return sure[0] | sure[1], perhaps[0] | perhaps[1] | ~_apart(_sign(solver, expression, boxes))
        gone = _mask(solver, Call("nullif", (divisor, Literal(0, "integer"))))
        return sure[0] | gone, perhaps[0] | gone
    if expression.function in _STRICT:
        total = expression.function in TOTAL
        return np.logical_or.reduce(sure), np.logical_or.reduce(perhaps) if total else ~never
    return never, ~never


def _case(solver: Solver, expression: Call, boxes: Mapping[Expression, Box]) -> Nulls:
    """NULL where all branches that could be taken are, perhaps NULL where one of them is."""
    sure, perhaps = np.ones(solver.rows, dtype=bool), np.zeros(solver.rows, dtype=bool)
    open_ = np.ones(solver.rows, dtype=bool)
    *pairs, default = expression.arguments
    for condition, result in zip(pairs[::2], pairs[1::2], strict=True):
        holds, fails = _decided(solver, condition, boxes)
        branch, taken = _walk(solver, result, boxes), open_ & ~fails
        sure, perhaps = sure & (branch[0] | ~taken), perhaps | (branch[1] & taken)
        open_ = open_ & ~holds
    branch = _walk(solver, default, boxes)
    return sure & (branch[0] | ~open_), perhaps | (branch[1] & open_)


def _decided(solver: Solver, condition: Expression, boxes: Mapping[Expression, Box]) -> tuple[Rows, Rows]:
    """Where a condition surely holds, and where it surely does not."""
    if not solver.noisy_in(condition):
        values = evaluate(condition, solver.keys or {"": np.zeros(solver.rows)})
        holds = np.broadcast_to(np.asarray(values.filled(False), dtype=bool), (solver.rows,))
        return holds, ~holds
    never = np.zeros(solver.rows, dtype=bool)
    if not isinstance(condition, Call) or condition.function not in _COMPARES:
        return never, never
    above, below = _sign(solver, condition, boxes)
    if condition.function in _BELOW:
        above, below = below, above
    if condition.function in ("equal", "not_equal"):
        apart = above | below
        above, below = (never, apart) if condition.function == "equal" else (apart, never)
    missing = np.logical_or.reduce([_walk(solver, one, boxes)[1] for one in condition.arguments])
    return above & ~missing, below  # with NULL it does not hold


def _sign(solver: Solver, call: Call, boxes: Mapping[Expression, Box]) -> tuple[Rows, Rows]:
    """Where the guard of a call is surely above 0, and where surely below."""
    guard = _guard(call)
    assert guard is not None  # only asked of calls that have one
    low, high = boxes[guard]
    return np.broadcast_to(low > 0, (solver.rows,)), np.broadcast_to(high < 0, (solver.rows,))


def _apart(sign: tuple[Rows, Rows]) -> Rows:
    return sign[0] | sign[1]


def _mask(solver: Solver, expression: Expression) -> Rows:
    values = evaluate(expression, solver.keys or {"": np.zeros(solver.rows)})
    return np.broadcast_to(np.ma.getmaskarray(values), (solver.rows,))
