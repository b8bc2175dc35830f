"""Learning the event that tells two sets of outputs apart best: features, cells, and unions of cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.audit.bounds import Direction, epsilon_floor
from sfumato.audit.outputs import Outputs, is_numeric, listed

__all__ = ["Event", "Feature", "Learned", "best_events", "features_of"]

Codes: TypeAlias = NDArray[np.int64]

_CELLS = 1024  # more distinct values than this are cut into bins
_BINS = 256
_COLUMNS = 32  # coordinates looked at one by one


class Feature(NamedTuple):
    """A number or category computed from each output, with names for reports."""

    name: str
    of: Callable[[Outputs], Outputs]
    show: Callable[[Any], str] | None = None


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
                (get(value, rest) for value in (listed(outputs) if is_numeric(outputs) else outputs)),
                dtype=np.int64,
                count=len(outputs),
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


def _cells_of(sample: Outputs, *, bins: int = _BINS) -> Cells:
    """A partition fitted to a sample: single values where they are few, else quantile bins and atoms."""
    if not is_numeric(sample):
        ranked = Counter(sample.tolist()).most_common(4 * _CELLS)
        return Cells(None, None, {value: i for i, (value, _) in enumerate(ranked)}, len(ranked) + 1)
    values, counts = np.unique(sample, return_counts=True)
    repeated = np.count_nonzero(counts > 1) >= len(values) / 2  # otherwise new samples bring new values
    if repeated and len(values) <= min(_CELLS, 4 * bins):
        return Cells(None, values, None, len(values) + 1)
    common = counts > max(1.0, len(sample) / (2 * bins))
    atoms, spread = values[common], np.repeat(values[~common], counts[~common])
    deep = 0.5 ** np.arange(9, 24)
    levels = np.concatenate([np.arange(1, bins) / bins, deep, 1 - deep])
    edges = np.quantile(spread, levels, method="inverted_cdf") if len(spread) else atoms
    after = np.nextafter(atoms, np.inf) if atoms.dtype.kind == "f" else atoms + 1
    edges = np.unique(np.concatenate([edges, atoms, after]))
    edges = edges[~np.isnan(edges)] if edges.dtype.kind == "f" else edges
    return Cells(edges, None, None, len(edges) + 1)


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
    yield from _rows(left, right)
    gap = np.abs(left.mean(axis=0, dtype=float) - right.mean(axis=0, dtype=float))
    for column in np.sort(np.argsort(-gap, kind="stable")[:_COLUMNS]):
        yield Feature(f"coordinate {column}", _column(int(column)))
    yield Feature("sum", lambda outputs: outputs.sum(axis=1))
    yield Feature("largest", lambda outputs: outputs.max(axis=1))
    yield Feature("smallest", lambda outputs: outputs.min(axis=1))
    yield Feature("place of the largest", lambda outputs: outputs.argmax(axis=1))
    yield _direction(left, right)
    yield _likelihood(left, right)


def _rows(left: Outputs, right: Outputs) -> Iterator[Feature]:
    """The whole row, where rows repeat: as a 64-bit fingerprint, so that a million are counted quickly."""
    sample = np.concatenate([left, right])
    prints, first = np.unique(_fingerprint(sample), return_index=True)
    if len(prints) <= _CELLS:
        names = {
            print_: str(tuple(sample[at].tolist())) for print_, at in zip(prints.tolist(), first, strict=True)
        }
        yield Feature("row", _fingerprint, lambda value: names.get(int(value), "a new row"))


def _fingerprint(rows: Outputs) -> NDArray[np.uint64]:
    """A hash of each row, equal for equal rows (and for others by a chance of 2**-64, which does no harm)."""
    whole = rows.astype(np.float64) + 0.0 if rows.dtype.kind == "f" else rows.astype(np.int64)
    total = np.zeros(len(rows), dtype=np.uint64)
    for column in np.ascontiguousarray(whole.T).view(np.uint64):
        total = (total ^ column) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing, wrapping
        total ^= total >> np.uint64(29)
    return total


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
        cells = _cells_of(np.concatenate([left[:, column], right[:, column]]), bins=64)
        ratio = _log_ratio(*(_histogram(cells.code(side[:, column]), cells.size) for side in (left, right)))
        tables.append((cells, ratio))

    def score(outputs: Outputs) -> Outputs:
        total = np.zeros(len(outputs))
        for column, (cells, ratio) in enumerate(tables):
            total += ratio[cells.code(outputs[:, column])]
        return total

    return Feature("learned log-likelihood ratio", score)


def best_events(
    fit: tuple[Outputs, Outputs],
    choose: tuple[Outputs, Outputs],
    *,
    features: list[Feature],
    deltas: Sequence[float],
    alpha: float,
) -> list[Learned]:
    """For each delta the event that promises the largest epsilon, of all features, cells and both directions.

    Cells and their order come from the samples in `fit`, how many of them to take from those in `choose`:
    were it one set, cells that look one-sided by chance alone would win.

    Args:
        fit: left and right samples to learn cells from.
        choose: other left and right samples to choose the union of cells by.
        features: what to look at.
        deltas: the deltas of the claim.
        alpha: the error rate the choice is judged at.
    """
    best: list[Learned | None] = [None] * len(deltas)
    for feature in features:
        fitted = [feature.of(side) for side in fit]
        cells = _cells_of(np.concatenate(fitted))
        ratio = _log_ratio(*(_histogram(cells.code(side), cells.size) for side in fitted))
        counts = [_histogram(cells.code(feature.of(side)), cells.size) for side in choose]
        for direction, kind, order in _orders(ratio, ordered=is_numeric(fitted[0])):
            over, under = counts if direction == "left over right" else counts[::-1]
            inside, other = np.cumsum(over[order]), np.cumsum(under[order])
            for at, hopes in enumerate(_hopes(inside, other, deltas, alpha)):
                take = int(np.argmax(hopes)) + 1
                known = best[at]
                if known is None or hopes[take - 1] > known.hope:
                    chosen = np.zeros(cells.size, dtype=bool)
                    chosen[order[:take]] = True
                    event = Event(_words(feature, cells, kind, order[:take]), feature, cells, chosen)
                    best[at] = Learned(event, direction, float(hopes[take - 1]))
    return [learned for learned in best if learned is not None]


def _hopes(
    inside: NDArray[np.float64], other: NDArray[np.float64], deltas: Sequence[float], alpha: float
) -> Iterator[NDArray[np.float64]]:
    """What each event proves by the samples it is chosen with: cautious about rare ones, which are lucky.

    Where that is nothing for all of them, they are ranked by what they prove at an error rate of 5 %, below
    any that proves something: there are three times as many held-out samples.
    """

    def floors(rate: float) -> NDArray[np.float64]:
        return epsilon_floor(inside, inside[-1], other, other[-1], delta=deltas, alpha=rate)

    strict = floors(alpha)
    proves = (strict.max(axis=1) > 0) | (alpha >= 0.05)
    mild = strict if proves.all() else floors(0.05) - 1e6
    yield from np.where(proves[:, None], strict, mild)


def _orders(
    ratio: NDArray[np.float64], *, ordered: bool
) -> Iterator[tuple[Direction, str, NDArray[np.intp]]]:
    """Ways to line cells up so that a good event is the beginning of the line."""
    likeliest = np.argsort(-ratio, kind="stable")
    yield "left over right", "cells", likeliest
    yield "right over left", "cells", likeliest[::-1]
    if ordered:
        by_value = np.arange(len(ratio))
        directions: tuple[Direction, ...] = ("left over right", "right over left")
        for direction in directions:
            yield direction, "lower", by_value
            yield direction, "upper", by_value[::-1]


def _words(feature: Feature, cells: Cells, kind: str, taken: NDArray[np.intp]) -> str:
    """What an event says, short enough to read."""
    names = [_cell_name(feature, cells, int(cell)) for cell in (*taken[:3], taken[-1])]
    if kind == "lower":
        return f"{feature.name} up to {names[-1]}"
    if kind == "upper":
        return f"{feature.name} from {names[-1]} on"
    more = f" or {len(taken) - 3} more cells" if len(taken) > 3 else ""
    return f"{feature.name} in {' or '.join(names[: min(3, len(taken))])}{more}"


def _cell_name(feature: Feature, cells: Cells, cell: int) -> str:
    if feature.show is not None and cells.values is not None and cell < len(cells.values):
        return feature.show(cells.values[cell])
    return cells.name(cell)
