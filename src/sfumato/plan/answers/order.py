"""Which rows of an answer are shown, and in which order, by what is released alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.plan.answers.later import KeyColumn, Values
from sfumato.plan.answers.over import over_rows
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.prices.recipe import Recipe
from sfumato.plan.questions.nodes import OrderItem, Report

__all__ = ["arranged", "held_rows", "shown_rows"]


def arranged(recipe: Recipe, keys: Sequence[KeyColumn], size: int) -> NDArray[np.int64]:
    """All rows in the report's own order: by its first key, then its second; level after level.

    Found groups and levels are measured in the order of the question, which knows no first key; found groups
    of several levels are in the right order already.
    """
    measured = recipe.measured
    if recipe.lines or not (measured.is_open or measured.levels):
        return np.arange(size)
    codes = [key.ranks(measured.keys[at].values) for key, at in zip(keys, recipe.key_order, strict=True)]
    if measured.levels:
        masks = list(zip(*(np.ma.getmaskarray(key.values) for key in keys), strict=True))
        first = {mask: place for place, mask in enumerate(dict.fromkeys(masks))}
        codes.insert(0, np.array([first[mask] for mask in masks], dtype=np.float64))
    return np.lexsort(codes[::-1])


def held_rows(report: Report, results: Mapping[str, Values], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows that HAVING leaves."""
    if report.having is None:
        return rows
    holds = np.ma.filled(over_rows(report.having, results, len(rows)), False)
    kept: NDArray[np.int64] = rows[np.asarray(holds, dtype=bool)[rows]]
    return kept


def shown_rows(report: Report, results: Mapping[str, Values], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of them that are shown, in order."""
    size = len(next(iter(results.values()))) if results else len(rows)
    if report.order:
        codes = [_code(over_rows(item.expression, results, size), item)[rows] for item in report.order]
        rows = rows[np.lexsort(codes[::-1])]
    end = None if report.limit is None else report.offset + report.limit
    return rows[report.offset : end]


def _code(values: Values, item: OrderItem) -> Floats:
    """Numbers that sort like the values: their rank, with NULL at the end that was asked for."""
    mask = np.ma.getmaskarray(values)
    code = np.full(len(values), -np.inf if item.nulls_first else np.inf)
    ranks = np.unique(values.data[~mask], return_inverse=True)[1].reshape(-1).astype(np.float64)
    code[~mask] = -ranks if item.descending else ranks
    return code
