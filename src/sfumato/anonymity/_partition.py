"""Mondrian on integer codes: all boxes of one depth are cut at once, so that no Python runs for each box."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato.anonymity._codes import Coded, Codes
from sfumato.anonymity._guard import Guard

__all__ = ["partition"]

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def partition(columns: Sequence[Coded], guard: Guard) -> Codes:
    """For each row the number of its class, from 0 on.

    Strict multidimensional partitioning (LeFevre, DeWitt and Ramakrishnan, ICDE 2006): a box is cut at the
    median of its widest column, width being relative to the whole column, and where no such cut leaves two
    boxes that the guard admits, of the next widest. Rows with the same values always stay together. A box
    that no column can cut is a class.
    """
    rows = len(columns[0].codes)
    matrix = np.stack([column.codes for column in columns])
    lines = [column.line for column in columns]
    order = np.arange(rows)
    starts = np.array([0])
    found, done = np.empty(rows, dtype=np.int64), 0
    while len(starts):
        sizes = np.diff(starts, append=len(order))
        cut, left, order = _cut_each(lines, matrix, order, starts, sizes, guard)
        # Boxes that nothing can cut are classes; the halves of the others go on.
        whole = np.repeat(~cut, sizes)
        numbers = done + np.cumsum(~cut) - 1
        found[order[whole]] = np.repeat(numbers[~cut], sizes[~cut])
        done += int((~cut).sum())
        order = order[~whole]
        halves = np.column_stack([left[cut], sizes[cut] - left[cut]]).ravel()
        starts = np.cumsum(halves) - halves
    return found


def _cut_each(
    lines: Sequence[Floats], matrix: Codes, order: Codes, starts: Codes, sizes: Codes, guard: Guard
) -> tuple[Flags, Codes, Codes]:
    """Which boxes could be cut, how many rows went left in each, and the rows with left before right."""
    cut, left = np.zeros(len(starts), dtype=bool), np.zeros(len(starts), dtype=np.int64)
    open_boxes = np.flatnonzero(sizes >= 2 * guard.k)
    if not len(open_boxes):
        return cut, left, order
    order = order.copy()
    members = _members(open_boxes, starts, sizes)
    widths = _widths(lines, matrix, order[members], sizes[open_boxes])
    preferred = np.argsort(-widths, axis=1, kind="stable")
    for attempt in range(len(lines)):
        dimension = preferred[np.arange(len(open_boxes)), attempt]
        wide = widths[np.arange(len(open_boxes)), dimension] > 0
        open_boxes, preferred, widths, dimension = (
            each[wide] for each in (open_boxes, preferred, widths, dimension)
        )
        if not len(open_boxes):
            break
        members, own = _members(open_boxes, starts, sizes), sizes[open_boxes]
        rows = order[members]
        values = matrix[np.repeat(dimension, own), rows]
        good, went, arranged = _cut_along(values, rows, own, guard)
        cut[open_boxes], left[open_boxes] = good, went
        order[members] = arranged
        open_boxes, preferred, widths = (each[~good] for each in (open_boxes, preferred, widths))
    return cut, left, order


def _members(boxes: Codes, starts: Codes, sizes: Codes) -> Codes:
    """The places of the rows of some boxes, box after box."""
    own = sizes[boxes]
    begins = np.cumsum(own) - own
    return np.repeat(starts[boxes] - begins, own) + np.arange(int(own.sum()))


def _widths(lines: Sequence[Floats], matrix: Codes, rows: Codes, sizes: Codes) -> Floats:
    """How wide each box is in each column, 0 … 1; where missing and present values mix it is 1."""
    begins = np.cumsum(sizes) - sizes
    widths = np.zeros((len(sizes), len(lines)))
    for place, line in enumerate(lines):
        codes = matrix[place, rows]
        low, high = np.minimum.reduceat(codes, begins), np.maximum.reduceat(codes, begins)
        widths[high > low, place] = 1.0
        inside = (high > low) & (high < len(line))
        width = (line[high[inside]] - line[low[inside]]) / (line[-1] - line[0] if len(line) > 1 else 1.0)
        # Two numbers may lie closer than a float can tell; different they are all the same.
        widths[inside, place] = np.maximum(width, 1e-300)
    return widths


def _cut_along(values: Codes, rows: Codes, sizes: Codes, guard: Guard) -> tuple[Flags, Codes, Codes]:
    """Cut each box at its median value: below it or just above it, whichever is more even and admitted."""
    begins = np.cumsum(sizes) - sizes
    box = np.repeat(np.arange(len(sizes)), sizes)
    wide = int(values.max()) + 1
    key = np.sort(box * wide + values)
    at = np.arange(len(sizes)) * wide
    middle = key[begins + sizes // 2] - at
    below = np.searchsorted(key, at + middle) - begins
    through = np.searchsorted(key, at + middle + 1) - begins
    uneven = np.abs(2 * through - sizes) < np.abs(2 * below - sizes)
    first = np.where(uneven, through, below), middle + uneven
    second = np.where(uneven, below, through), middle + ~uneven
    good, left, edge = np.zeros(len(sizes), dtype=bool), np.zeros(len(sizes), dtype=np.int64), middle
    for went, start in (first, second):
        allowed = ~good & (went >= guard.k) & (sizes - went >= guard.k)
        if not guard.only_counts and allowed.any():
            allowed &= _admitted(values >= start[box], rows, box, allowed, guard)
        good, left, edge = good | allowed, np.where(allowed, went, left), np.where(allowed, start, edge)
    right = (values >= edge[box]) & good[box]
    return good, left, rows[np.argsort(2 * box + right, kind="stable")]


def _admitted(right: Flags, rows: Codes, box: Codes, asked: Flags, guard: Guard) -> Flags:
    """For which of the boxes asked about both halves have secrets that are diverse and close enough."""
    number = np.cumsum(asked) - 1
    inside = asked[box]
    half = 2 * number[box[inside]] + right[inside]
    count = 2 * int(asked.sum())
    passed = guard.diverse(rows[inside], half, count) & guard.close(rows[inside], half, count)
    found = np.zeros(len(asked), dtype=bool)
    found[asked] = passed[0::2] & passed[1::2]
    return found
