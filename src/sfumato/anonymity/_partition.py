"""Mondrian on integer codes: all boxes of one depth are cut at once, so that no Python runs for each box."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.anonymity._guard import Guard
from sfumato.anonymity.codes import Coded, Codes, classes_of

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
    kinds = _kinds(columns, guard)
    lines = [column.line for column in columns]
    boxes = _Boxes(np.arange(len(kinds.weights)), np.array([len(kinds.weights)]))
    parts, done = np.empty(len(kinds.weights), dtype=np.int64), 0
    while len(boxes.lengths):
        cut, left, boxes = _cut_each(lines, kinds, boxes, guard)
        # Boxes that nothing can cut are classes; the halves of the others go on.
        whole = np.repeat(~cut, boxes.lengths)
        parts[boxes.order[whole]] = np.repeat(done + np.arange(int((~cut).sum())), boxes.lengths[~cut])
        done += int((~cut).sum())
        halves = np.column_stack([left[cut], boxes.lengths[cut] - left[cut]]).ravel()
        boxes = _Boxes(boxes.order[~whole], halves)
    return parts[kinds.of_row]


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """The different rows: what cannot be told apart, nor matters apart, is cut as one.

    Attributes:
        codes: The codes of each kind of row, a line for each column.
        weights: How many rows are of that kind.
        example: One of those.
        of_row: The kind of each row.
    """

    codes: Codes
    weights: Codes
    example: Codes
    of_row: Codes


def _kinds(columns: Sequence[Coded], guard: Guard) -> _Kinds:
    rows = len(columns[0].codes)
    matter = [*columns] if guard.only_counts else [*columns, *guard.sensitive]
    of_row, count = classes_of([column.codes for column in matter], rows)
    example = np.empty(count, dtype=np.int64)
    example[of_row] = np.arange(rows)
    codes = np.stack([column.codes[example] for column in columns])
    return _Kinds(codes, np.bincount(of_row, minlength=count), example, of_row)


@dataclass(frozen=True, slots=True, eq=False)
class _Boxes:
    """Kinds of rows, box after box, and how many are in each box."""

    order: Codes
    lengths: Codes

    @property
    def begins(self) -> Codes:
        return np.cumsum(self.lengths) - self.lengths

    def places(self, some: Codes) -> Codes:
        """Where the members of some of the boxes are, box after box."""
        own = self.lengths[some]
        return np.repeat(self.begins[some] - (np.cumsum(own) - own), own) + np.arange(int(own.sum()))


def _cut_each(
    lines: Sequence[Floats], kinds: _Kinds, boxes: _Boxes, guard: Guard
) -> tuple[Flags, Codes, _Boxes]:
    """Which boxes could be cut, how many kinds went left in each, and the boxes with left before right."""
    count = len(boxes.lengths)
    cut, left = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64)
    sizes = np.add.reduceat(kinds.weights[boxes.order], boxes.begins)
    undecided = np.flatnonzero((sizes >= 2 * guard.k) & (boxes.lengths > 1))
    if not len(undecided):
        return cut, left, boxes
    order = boxes.order.copy()
    widths = _widths(lines, kinds.codes, order[boxes.places(undecided)], boxes.lengths[undecided])
    preferred = np.argsort(-widths, axis=1, kind="stable")
    for attempt in range(len(lines)):
        dimension = preferred[:, attempt]
        wide = widths[np.arange(len(undecided)), dimension] > 0
        undecided, dimension = undecided[wide], dimension[wide]
        preferred, widths = preferred[wide], widths[wide]
        if not len(undecided):
            break
        places, lengths = boxes.places(undecided), boxes.lengths[undecided]
        members = order[places]
        values = kinds.codes[np.repeat(dimension, lengths), members]
        good, went, order[places] = _cut_along(values, members, _Boxes(members, lengths), kinds, guard)
        cut[undecided], left[undecided] = good, went
        undecided, preferred, widths = undecided[~good], preferred[~good], widths[~good]
    return cut, left, _Boxes(order, boxes.lengths)


def _widths(lines: Sequence[Floats], codes: Codes, members: Codes, lengths: Codes) -> Floats:
    """How wide each box is in each column, 0 … 1; where missing and present values mix it is 1."""
    begins = np.cumsum(lengths) - lengths
    widths = np.zeros((len(lengths), len(lines)))
    for place, line in enumerate(lines):
        held = codes[place, members]
        low, high = np.minimum.reduceat(held, begins), np.maximum.reduceat(held, begins)
        widths[high > low, place] = 1.0
        inside = (high > low) & (high < len(line))
        width = (line[high[inside]] - line[low[inside]]) / (line[-1] - line[0] if len(line) > 1 else 1.0)
        # Two numbers may lie closer than a float can tell; different they are all the same.
        widths[inside, place] = np.maximum(width, 1e-300)
    return widths


def _cut_along(
    values: Codes, members: Codes, boxes: _Boxes, kinds: _Kinds, guard: Guard
) -> tuple[Flags, Codes, Codes]:
    """Cut each box at its median value: below it or just above it, whichever is more even and admitted."""
    begins, count = boxes.begins, len(boxes.lengths)
    box = np.repeat(np.arange(count), boxes.lengths)
    wide = int(values.max()) + 1
    key = box * wide + values
    by = np.argsort(key, kind="stable")
    key, running = key[by], np.append(0, np.cumsum(kinds.weights[members[by]]))
    before = running[begins]
    sizes = running[begins + boxes.lengths] - before
    at = np.arange(count) * wide
    middle = key[np.searchsorted(running, before + sizes // 2, side="right") - 1] - at
    below, through = np.searchsorted(key, at + middle), np.searchsorted(key, at + middle + 1)
    uneven = np.abs(2 * (running[through] - before) - sizes) < np.abs(2 * (running[below] - before) - sizes)
    good, end = np.zeros(count, dtype=bool), begins
    for edge in (np.where(uneven, through, below), np.where(uneven, below, through)):
        went = running[edge] - before
        allowed = ~good & (went >= guard.k) & (sizes - went >= guard.k)
        if not guard.only_counts and allowed.any():
            right = np.arange(len(by)) >= edge[box]
            allowed &= _admitted(right, members[by], box, allowed, kinds, guard)
        good, end = good | allowed, np.where(allowed, edge, end)
    return good, end - begins, members[by]


def _admitted(right: Flags, members: Codes, box: Codes, asked: Flags, kinds: _Kinds, guard: Guard) -> Flags:
    """For which boxes both halves have sensitive values that are diverse and close enough."""
    number = np.cumsum(asked) - 1
    inside = asked[box]
    half = 2 * number[box[inside]] + right[inside]
    count = 2 * int(asked.sum())
    rows, weights = kinds.example[members[inside]], kinds.weights[members[inside]]
    passed = guard.diverse(rows, half, count) & guard.close(rows, half, count, weights=weights)
    admitted = np.zeros(len(asked), dtype=bool)
    admitted[asked] = passed[0::2] & passed[1::2]
    return admitted
