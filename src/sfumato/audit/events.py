"""Learning the event that tells two sets of outputs apart best: features, cells, and unions of cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.bounds import Direction, epsilon_floor
from sfumato.audit.outputs import Outputs, is_numeric, listed

__all__ = ["Event", "Feature", "Learned", "best_event", "features_of"]

Codes: TypeAlias = NDArray[np.int64]

_CELLS = 1024  # more distinct values than this are cut into bins
_BINS = 256
_COLUMNS = 32  # coordinates looked at one by one


class Feature(NamedTuple):
    """A number or category computed from each output, with a name for reports."""

    name: str
    of: Callable[[Outputs], Outputs]


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs: those whose feature falls into one of the chosen cells."""

    words: str
    feature: Feature
    cells: Cells
    chosen: NDArray[np.bool_]

    def count(self, outputs: Outputs) -> int:
        """How many of the outputs lie in the event."""
        codes = self.cells.code(self.feature.of(outputs))
        return int(np.count_nonzero(self.chosen[codes]))


@dataclass(frozen=True, slots=True)
class Learned:
    """An event, the direction in which it tells, and what the learning samples make one hope for."""

    event: Event
    direction: Direction
    hope: float


@dataclass(frozen=True, slots=True)
class Cells:
    """A partition of a feature's values: bins of numbers, or single values, and one last cell for all others.

    Numbers are in order, so that thresholds are unions of neighbouring cells.
    """

    edges: NDArray[Any] | None
    values: NDArray[Any] | None
    categories: dict[Any, int] | None
    size: int

    def code(self, outputs: Outputs) -> Codes:
        """The cell of each output."""
        if self.categories is not None:
            rest = self.size - 1
            get = self.categories.get
            return np.fromiter(
                (get(value, rest) for value in listed(outputs)), dtype=np.int64, count=len(outputs)
            )
        if self.values is not None:
            place = np.minimum(np.searchsorted(self.values, outputs), len(self.values) - 1)
            return np.where(self.values[place] == outputs, place, self.size - 1).astype(np.int64)
        assert self.edges is not None
        return np.searchsorted(self.edges, outputs, side="right").astype(np.int64)

    def name(self, cell: int) -> str:
        """The cell in words."""
        if self.categories is not None:
            names = list(self.categories)
            return repr(names[cell])[:60] if cell < len(names) else "anything else"
        if self.values is not None:
            return f"{self.values[cell]:g}" if cell < len(self.values) else "anything else"
        assert self.edges is not None
        if cell == 0:
            return f"below {self.edges[0]:.6g}"
        if cell == len(self.edges):
            return f"from {self.edges[-1]:.6g}"
        return f"[{self.edges[cell - 1]:.6g}, {self.edges[cell]:.6g})"


def cells_of(sample: Outputs, *, bins: int = _BINS) -> Cells:
    """A partition fitted to a sample: single values where they are few, else quantile bins and atoms."""
    if not is_numeric(sample):
        common = [value for value, _ in Counter(sample.tolist()).most_common(4 * _CELLS)]
        return Cells(None, None, {value: i for i, value in enumerate(common)}, len(common) + 1)
    values, counts = np.unique(sample, return_counts=True)
    if len(values) <= min(_CELLS, 4 * bins):
        return Cells(None, values, None, len(values) + 1)
    levels = np.concatenate([np.arange(1, bins) / bins, 0.5 ** np.arange(9, 24), 1 - 0.5 ** np.arange(9, 24)])
    edges = np.quantile(sample, np.clip(levels, 0, 1), method="inverted_cdf")
    atoms = values[counts > len(sample) / (2 * bins)]
    after = np.nextafter(atoms, np.inf) if atoms.dtype.kind == "f" else atoms + 1
    edges = np.unique(np.concatenate([edges, atoms, after]))
    return Cells(edges[~np.isnan(edges)] if edges.dtype.kind == "f" else edges, None, None, len(edges) + 1)


def _histogram(codes: Codes, size: int) -> NDArray[np.float64]:
    return np.bincount(codes, minlength=size).astype(float)


def _log_ratio(over: NDArray[np.float64], under: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smoothed log-likelihood ratios of cells: rare cells are drawn towards 0, where they do no harm."""
    scale = over.sum() / max(1.0, under.sum())
    return np.asarray(np.log(over + 1) - np.log(under * scale + 1))


def features_of(left: Outputs, right: Outputs) -> Iterator[Feature]:
    """Ways to look at the outputs, the last of them fitted to the sample it is given."""
    if left.ndim == 1:
        yield Feature("output", lambda outputs: outputs)
        if not is_numeric(left):
            yield from _parts(left)
        return
    rows = np.unique(np.concatenate([left, right])[:20000], axis=0)
    if len(rows) <= _CELLS:
        yield Feature("row", listed)
    gap = np.abs(left.mean(axis=0, dtype=float) - right.mean(axis=0, dtype=float))
    for column in np.sort(np.argsort(-gap, kind="stable")[:_COLUMNS]):
        yield Feature(f"coordinate {column}", _column(int(column)))
    yield Feature("sum", lambda outputs: outputs.sum(axis=1))
    yield Feature("largest", lambda outputs: outputs.max(axis=1))
    yield Feature("smallest", lambda outputs: outputs.min(axis=1))
    yield Feature("place of the largest", lambda outputs: outputs.argmax(axis=1))
    yield _direction(left, right)
    yield _likelihood(left, right)


def _column(at: int) -> Callable[[Outputs], Outputs]:
    return lambda outputs: outputs[:, at]


def _parts(sample: Outputs) -> Iterator[Feature]:
    """Length and single places of outputs that are tuples; None where an output is not or is too short."""
    tuples = [value for value in sample[:1000] if isinstance(value, tuple)]
    if not tuples:
        return
    yield Feature("length", lambda outputs: listed(len(v) if isinstance(v, tuple) else None for v in outputs))

    def place(at: int) -> Callable[[Outputs], Outputs]:
        def part(value: Any) -> Any:
            return value[at] if isinstance(value, tuple) and -len(value) <= at < len(value) else None

        return lambda outputs: listed(part(value) for value in outputs)

    yield Feature("last part", place(-1))
    for at in range(min(8, max(len(value) for value in tuples))):
        yield Feature(f"part {at}", place(at))


def _direction(left: Outputs, right: Outputs) -> Feature:
    """The projection on the difference of the means, each coordinate in units of its own spread."""
    gap = left.mean(axis=0, dtype=float) - right.mean(axis=0, dtype=float)
    spread = np.concatenate([left, right]).var(axis=0, dtype=float)
    weights = gap / np.where(spread > 0, spread, 1.0)
    return Feature("projection on the difference of means", lambda outputs: outputs @ weights)


def _likelihood(left: Outputs, right: Outputs) -> Feature:
    """The sum of learned log-likelihood ratios: the best feature where coordinates are independent."""
    tables: list[tuple[Cells, NDArray[np.float64]]] = []
    for column in range(left.shape[1]):
        cells = cells_of(np.concatenate([left[:, column], right[:, column]]), bins=64)
        ratio = _log_ratio(*(_histogram(cells.code(side[:, column]), cells.size) for side in (left, right)))
        tables.append((cells, ratio))

    def score(outputs: Outputs) -> Outputs:
        total = np.zeros(len(outputs))
        for column, (cells, ratio) in enumerate(tables):
            total += ratio[cells.code(outputs[:, column])]
        return total

    return Feature("learned log-likelihood ratio", score)


def best_event(
    fit: tuple[Outputs, Outputs],
    choose: tuple[Outputs, Outputs],
    *,
    features: list[Feature],
    delta: float,
    alpha: float,
) -> Learned:
    """The event that promises the largest epsilon, of all features, unions of cells and both directions.

    Cells and their order come from the samples in `fit`, how many of them to take from those in `choose`:
    were it one set, cells that look one-sided by chance alone would win.

    Args:
        fit: left and right samples to learn cells from.
        choose: other left and right samples to choose the union of cells by.
        features: what to look at.
        delta: the delta of the claim.
        alpha: the error rate the choice is judged at.
    """
    best: Learned | None = None
    for feature in features:
        fitted = [feature.of(side) for side in fit]
        cells = cells_of(np.concatenate(fitted))
        first = [_histogram(cells.code(side), cells.size) for side in fitted]
        second = [_histogram(cells.code(feature.of(side)), cells.size) for side in choose]
        ratio = _log_ratio(*first)
        by_value = np.arange(cells.size)
        orders = {"cells": np.argsort(-ratio, kind="stable"), "lower": by_value, "upper": by_value[::-1]}
        if not is_numeric(fitted[0]):
            orders = {"cells": orders["cells"]}
        for over, direction in ((0, "left over right"), (1, "right over left")):
            for kind, order in orders.items():
                ranked = order[::-1] if kind == "cells" and over == 1 else order
                inside, other = np.cumsum(second[over][ranked]), np.cumsum(second[1 - over][ranked])
                hopes = epsilon_floor(inside, inside[-1], other, other[-1], delta=delta, alpha=alpha)
                take = int(np.argmax(hopes)) + 1
                if best is None or hopes[take - 1] > best.hope:
                    chosen = np.zeros(cells.size, dtype=bool)
                    chosen[ranked[:take]] = True
                    event = Event(_words(feature, cells, kind, ranked[:take]), feature, cells, chosen)
                    best = Learned(event, direction, float(hopes[take - 1]))  # type: ignore[arg-type]
    assert best is not None
    return best


def _words(feature: Feature, cells: Cells, kind: str, taken: NDArray[np.int64]) -> str:
    """What an event says, short enough to read."""
    names = [cells.name(int(cell)) for cell in taken[:3]]
    if kind == "lower":
        return f"{feature.name} up to the cell {cells.name(int(taken[-1]))}"
    if kind == "upper":
        return f"{feature.name} from the cell {cells.name(int(taken[-1]))} on"
    more = f" or {len(taken) - 3} more cells" if len(taken) > 3 else ""
    return f"{feature.name} in {' or '.join(names)}{more}"
