"""The groups of a question: combinations of listed keys in one order, whatever order a report has them in."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sfumato.errors import QueryRefused

__all__ = ["all_in_order", "in_order"]

Rows = tuple[tuple[Any, ...], ...]


def in_order(listed: Sequence[tuple[Any, ...]]) -> tuple[Rows, tuple[int, ...]]:
    """The rows in canonical order, each once, and where each listed one is among them.

    Raises:
        QueryRefused: for NaN, which equals nothing.
    """
    _check_numbers(value for row in listed for value in row)
    # A group that is listed twice is measured once: two draws of its noise would cost twice.
    try:
        ranked = sorted(set(listed))
    except TypeError:  # values of several types in one column
        ranked = sorted(set(listed), key=lambda row: [(type(value).__name__, str(value)) for value in row])
    places = {row: place for place, row in enumerate(ranked)}
    return tuple(ranked), tuple(places[row] for row in listed)


def all_in_order(lists: Sequence[tuple[Any, ...]], order: Sequence[int]) -> tuple[Rows, tuple[int, ...]]:
    """`in_order` of all combinations of the lists, which come in the report's order and go in another.

    Each list is sorted by itself: the combinations of sorted lists are sorted.

    Args:
        lists: The values of each key of the report.
        order: The places of the report's keys in the question.

    Raises:
        QueryRefused: for NaN, which equals nothing.
    """
    for values in lists:
        _check_numbers(values)
    try:
        ranked = [sorted(dict.fromkeys(lists[index])) for index in order]
    except TypeError:  # values of several types in one column: all columns are sorted by another key
        rows = itertools.product(*lists)
        return in_order([tuple(row[index] for index in order) for row in rows])
    places = np.zeros((1,) * len(lists), dtype=np.int64)
    stride = 1
    for index, values in zip(reversed(order), reversed(ranked), strict=True):
        rank = {value: place for place, value in enumerate(values)}
        along = np.array([rank[value] * stride for value in lists[index]], dtype=np.int64)
        shape = [1] * len(lists)
        shape[index] = len(along)
        places = places + along.reshape(shape)
        stride *= len(values)
    return tuple(itertools.product(*ranked)), tuple(places.reshape(-1).tolist())


def _check_numbers(values: Iterable[Any]) -> None:
    if any(value != value for value in values):
        raise QueryRefused("NaN cannot be a key.", "Leave it out of the list.")
