"""Comparisons, three-valued logic, CASE and what chooses between values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions.base import Array, Function, Vector, aligned, need, strict, unify
from sfumato.plan.expressions.ranges import Facts, hull, truth

__all__ = ["LOGIC"]

_BINARY = ("this", "expression")


def _listed(count: int, start: int = 0) -> str:
    return ", ".join(f"{{{i}}}" for i in range(start, count))


def _compared(name: str) -> Callable[..., Facts]:
    def rule(*arguments: Facts) -> Facts:
        unify(name, *arguments)
        return truth(nullable=any(argument.nullable for argument in arguments))

    return rule


def _distinct(*arguments: Facts) -> Facts:
    unify("IS DISTINCT FROM", *arguments)
    return truth(nullable=False)


def _logical(name: str) -> Callable[..., Facts]:
    def rule(*arguments: Facts) -> Facts:
        need(name, ("boolean",), *arguments)
        return truth(nullable=any(argument.nullable for argument in arguments))

    return rule


def _case(*arguments: Facts) -> Facts:
    if len(arguments) % 2 == 0:
        raise QueryRefused("CASE takes pairs of condition and value, and a default.", "Write ELSE NULL.")
    need("CASE WHEN", ("boolean",), *arguments[:-1:2])
    results = (*arguments[1::2], arguments[-1])
    return hull(results, unify("CASE", *results), nullable=any(result.nullable for result in results))


def _coalesce(*arguments: Facts) -> Facts:
    kind = unify("COALESCE", *arguments)
    used: list[Facts] = []
    for argument in arguments:
        used.append(argument)
        if not argument.nullable:
            break
    return hull(used, kind, nullable=all(argument.nullable for argument in used))


def _nullif(first: Facts, second: Facts) -> Facts:
    unify("NULLIF", first, second)
    return replace(first, nullable=True)


def _extreme(name: str, sign: int) -> Callable[..., Facts]:
    def rule(*arguments: Facts) -> Facts:
        kind = unify(name, *arguments)
        need(name, ("integer", "float", "date", "timestamp", "time"), *arguments)
        real = [argument for argument in arguments if argument.values != ()]
        facts = hull(real, kind, nullable=all(argument.nullable for argument in arguments))
        sure = [argument for argument in real if not argument.nullable]
        if not sure:  # NULLs are skipped, so only what is never NULL holds the result
            return replace(facts, values=None)
        if sign > 0:
            low = max([facts.low, *(argument.low for argument in sure)])
            facts = replace(facts, lower=None if isinstance(low, float) else low)
        else:
            high = min([facts.high, *(argument.high for argument in sure)])
            facts = replace(facts, upper=None if isinstance(high, float) else high)
        return replace(facts, step=_regrid(facts, hull(real, kind, nullable=False).lower), values=None)

    return rule


def _regrid(facts: Facts, anchor: Fraction | None) -> Fraction | None:
    if facts.step is None or facts.lower is None or anchor is None:
        return None
    return facts.step if (facts.lower - anchor) % facts.step == 0 else None


def _is_null(facts: Facts) -> Facts:
    return truth(nullable=False, values=(False, True) if facts.nullable else (False,))


def _compute_and(*vectors: Vector) -> Vector:
    no = np.logical_or.reduce([vector.valid & ~vector.values.astype(bool) for vector in vectors])
    return Vector(~no, np.logical_and.reduce([vector.valid for vector in vectors]) | no)


def _compute_or(*vectors: Vector) -> Vector:
    yes = np.logical_or.reduce([vector.valid & vector.values.astype(bool) for vector in vectors])
    return Vector(yes, np.logical_and.reduce([vector.valid for vector in vectors]) | yes)


def _choose(masks: list[Array], results: list[Vector]) -> Vector:
    # The first mask that holds decides.
    *others, last = aligned(*results)
    values, valid = last.values, last.valid
    for mask, result in reversed(list(zip(masks, others, strict=True))):
        values = np.where(mask, result.values, values)
        valid = np.where(mask, result.valid, valid)
    return Vector(values, valid)


def _compute_case(*vectors: Vector) -> Vector:
    masks = [vector.valid & vector.values.astype(bool) for vector in vectors[:-1:2]]
    return _choose(masks, [*vectors[1::2], vectors[-1]])


def _compute_coalesce(*vectors: Vector) -> Vector:
    return _choose([vector.valid for vector in vectors[:-1]], list(vectors))


def _same(first: Vector, second: Vector) -> Array:
    first, second = aligned(first, second)
    return np.asarray(first.valid & second.valid & (first.values == second.values), dtype=bool)


def _compute_nullif(first: Vector, second: Vector) -> Vector:
    return Vector(first.values, first.valid & ~_same(first, second))


def _compute_same(first: Vector, second: Vector) -> Vector:
    same = _same(first, second) | (~first.valid & ~second.valid)
    return Vector(same, np.ones(len(same), dtype=bool))


def _compute_distinct(first: Vector, second: Vector) -> Vector:
    same = _compute_same(first, second)
    return Vector(~same.values, same.valid)


def _compute_extreme(better: Callable[[Array, Array], Array]) -> Callable[..., Vector]:
    def compute(*vectors: Vector) -> Vector:
        best, *others = aligned(*vectors)
        for other in others:
            take = other.valid & (~best.valid | better(other.values, best.values))
            best = Vector(np.where(take, other.values, best.values), best.valid | other.valid)
        return best

    return compute


def _compute_is_null(vector: Vector) -> Vector:
    return Vector(~vector.valid, np.ones(len(vector.valid), dtype=bool))


def _member(value: Vector, *options: Vector) -> Vector:
    hits = np.logical_or.reduce([_same(value, option) for option in options])
    return Vector(hits, value.valid.copy())


def _comparison(name: str, operator: str, ufunc: Any, node: str) -> Function:
    def compute(first: Vector, second: Vector) -> Vector:
        first, second = aligned(first, second)
        valid = first.valid & second.valid
        values = np.zeros(len(valid), dtype=bool)
        values[valid] = ufunc(first.values[valid], second.values[valid])
        return Vector(values, valid)

    sql = f"{{0}} {operator} {{1}}"
    return Function(name, (2, 2), _compared(operator), sql, compute, {node: _BINARY},
                    doc=f"Whether the first is {operator} the second; NULL if either is.")  # fmt: skip


def _case_sql(count: int) -> str:
    pairs = " ".join(f"WHEN {{{i}}} THEN {{{i + 1}}}" for i in range(0, count - 1, 2))
    return f"CASE {pairs} ELSE {{{count - 1}}} END"


LOGIC: tuple[Function, ...] = (
    _comparison("equal", "=", np.equal, "EQ"),
    _comparison("not_equal", "<>", np.not_equal, "NEQ"),
    _comparison("less", "<", np.less, "LT"),
    _comparison("less_equal", "<=", np.less_equal, "LTE"),
    _comparison("greater", ">", np.greater, "GT"),
    _comparison("greater_equal", ">=", np.greater_equal, "GTE"),
    Function(
        "is_distinct", (2, 2), _distinct, "{0} IS DISTINCT FROM {1}", _compute_distinct,
        {"NullSafeNEQ": _BINARY},
        doc="Whether they differ, where NULL is a value like others.",
    ),
    Function(
        "is_not_distinct", (2, 2), _distinct, "{0} IS NOT DISTINCT FROM {1}", _compute_same,
        {"NullSafeEQ": _BINARY},
        doc="Whether they are the same, where NULL is a value like others.",
    ),
    Function(
        "in", (2, None), _compared("IN"), lambda n: f"{{0}} IN ({_listed(n, 1)})", _member,
        doc="Whether the value is one of the constants.",
    ),
    Function(
        "and", (1, None), _logical("AND"), lambda n: " AND ".join(f"{{{i}}}" for i in range(n)), _compute_and,
        {"And": _BINARY}, doc="Whether all hold.",
    ),
    Function(
        "or", (1, None), _logical("OR"), lambda n: " OR ".join(f"{{{i}}}" for i in range(n)), _compute_or,
        {"Or": _BINARY}, doc="Whether any holds.",
    ),
    Function(
        "not", (1, 1), _logical("NOT"), "NOT {0}", strict(np.logical_not), {"Not": ("this",)},
        doc="Whether it does not hold.",
    ),
    Function("is_null", (1, 1), _is_null, "{0} IS NULL", _compute_is_null, doc="Whether it is missing."),
    Function(
        "case", (3, None), _case, _case_sql, _compute_case,
        doc="The value after the first condition that holds, else the last.",
    ),
    Function(
        "coalesce", (1, None), _coalesce, lambda n: f"COALESCE({_listed(n)})", _compute_coalesce,
        {"Coalesce": ("this", "*expressions")}, doc="The first that is not NULL.",
    ),
    Function(
        "nullif", (2, 2), _nullif, "CASE WHEN {0} = {1} THEN NULL ELSE {0} END", _compute_nullif,
        {"Nullif": _BINARY},
        doc="The first, or NULL if it equals the second.",
    ),
    Function(
        "greatest", (1, None), _extreme("GREATEST", 1), lambda n: f"GREATEST({_listed(n)})",
        _compute_extreme(np.greater), {"Greatest": ("this", "*expressions")},
        doc="The greatest that is not NULL.",
    ),
    Function(
        "least", (1, None), _extreme("LEAST", -1), lambda n: f"LEAST({_listed(n)})",
        _compute_extreme(np.less), {"Least": ("this", "*expressions")}, doc="The least that is not NULL.",
    ),
)  # fmt: skip
