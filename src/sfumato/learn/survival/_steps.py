"""How Cox's model is fitted: noisy counts, second moments, and a few whitened steps along cut gradients."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Meter, Total
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import BITS, UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import RESIDUAL_BITS, WEIGHT_BITS, cut, on_grid
from sfumato.learn._weights.curves import growth
from sfumato.learn._weights.descent import margins_of, what_rows_count
from sfumato.learn._weights.standard import REACH, Curvature, curvature, standard
from sfumato.learn.survival._cells import counting
from sfumato.learn.survival._curve import Curve
from sfumato.learn.survival._grid import Grid
from sfumato.learn.survival._hazard import TERMS, Hazard

__all__ = ["Fitted", "fitted"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_COUNTING, _SCALING, _BENDING = Fraction(5, 100), Fraction(8, 100), Fraction(12, 100)
_REST = 1 - _COUNTING - _SCALING - _BENDING
_STEPS = tuple(_REST * Fraction(each, 77) for each in (10, 12, 15, 20, 20))
_MORE_STEPS = tuple(_REST * Fraction(each, 77) for each in (6, 7, 8, 9, 10, 11, 13, 13))
_PLENTY = 1000.0  # events for each weight, in deviations of a count, from where more steps are taken
_AVERAGED = 3
_FEWEST = 4.5  # events, in deviations of the noise of a count
_FARTHEST = 8.0  # what the middle may move the logarithm of the baseline by
_HELD = 0.75  # rows longer than about so many usual lengths count less
_LOOSE, _LOOSEST = 8.0, 8.0  # or than more, by the root of the events for each weight, where those are many
_FLAT = 0.05  # no direction of standardised columns is taken to vary less
_SHORTEST, _LONGEST, _LONGER = 1.0, 3.0, 6.0  # what gradients are cut to, in lengths of an event's
_ENOUGH = 6.0  # events, in lengths of a gradient's noise, below which steps are shorter
_BITS = BITS + RESIDUAL_BITS - REACH.bit_length() + 1  # of what a gradient is a multiple
_MOST = 2.0**6  # no residual is taken to be more


class Fitted(NamedTuple):
    """What was learned.

    Attributes:
        weights: By what each coordinate moves the logarithm of the hazard.
        centre: Where the coordinates' middle is, at which `baseline` is meant.
        baseline: The hazard of each cell there, added up over it.
        events: About how many there were.
    """

    weights: Floats
    centre: Floats
    baseline: Floats
    events: float


def fitted(rows: Rows, meter: Meter, cells: Grid) -> Fitted:
    """Cox's model on a grid of time, total on every table.

    Privacy:
        Claim: what is given follows from noisy answers whose shares add up to 1. Proof: `Counting.total`,
        `means`, `curvature` of the rows with an event, and `cut` gradients; lengths, steps and tables are
        made of earlier answers.
    """
    curve, people, events = _counted(rows, meter, cells)
    scale = standard(rows, meter, _SCALING, people)
    near = scale.rows(rows)
    happened = _happened(near, cells)

    def weigh(place: slice, _: Floats) -> Floats:
        return happened[place].astype(np.float64)

    plenty = events / meter.sigma(1, 1) / (near.design.width + TERMS)
    held = _HELD * float(np.clip(np.sqrt(plenty) / _LOOSE, 1, _LOOSEST))
    bent = curvature(near, meter, _BENDING, events, held * scale.length, weigh=weigh)
    # Rows that are longer than usual count less in all sums alike, which moves no weight on average.
    counts = what_rows_count(near, near.squares(), bent.longest)
    white = _whitening(bent)
    hazard = Hazard(cells, curve)
    weights, terms = _descended(_whitened(near, white), meter, hazard, events, happened, counts)
    slopes = white @ weights
    baseline = hazard.bent(terms) * np.exp(np.clip(slopes[-1], -_FARTHEST, _FARTHEST))
    return Fitted(slopes[:-1] * scale.rate, scale.centre, baseline, events)


def _counted(rows: Rows, meter: Meter, cells: Grid) -> tuple[Curve, float, float]:
    """The survival of everybody, and about how many people and events there are."""
    how = counting(len(cells))
    assert rows.target is not None
    total = how.total(cells.cells(rows.target), np.zeros(len(rows), np.int64), rows.units, 1)
    counts = how.counts(meter.noisy(total, _COUNTING), 1)[0]
    noise = meter.sigma(total.sensitivity * total.step, _COUNTING)
    events = float(max(counts[: len(cells)].sum(), _FEWEST * meter.sigma(1, _COUNTING), 1.0))
    return Curve(counts, noise * how.spread, discrete=False), float(max(counts.sum(), events)), events


def _happened(rows: Rows, cells: Grid) -> NDArray[np.bool_]:
    assert rows.target is not None
    return cells.cells(rows.target) < len(cells)


def _whitening(bent: Curvature) -> Floats:
    """From standardised coordinates to ones that vary by 1 over events, each by itself; intercept last."""
    whole = (bent.directions * (bent.values - bent.ridge)) @ bent.directions.T
    mean = np.clip(whole[:-1, -1], -2, 2)
    values, directions = np.linalg.eigh(whole[:-1, :-1] - np.outer(mean, mean))
    root = (directions / np.sqrt(np.maximum(values, _FLAT) + bent.ridge)) @ directions.T
    return np.vstack([root, -mean @ root])


def _whitened(rows: Rows, white: Floats) -> Rows:
    """Standardised rows in those coordinates.

    Privacy:
        Claim: each row follows from that row and public numbers, and no coordinate is beyond ±1. Proof: the
        product is one of integers and exact, in blocks (`Rows.blocks`); each number is rounded and cut.
    """
    size = white.shape[1]
    integers = np.zeros((len(rows), size), np.int16)
    steps = on_grid(white)
    for place, block in rows.blocks():
        integers[place] = np.clip(np.rint((block @ steps) * 2.0**-WEIGHT_BITS), -UNIT, UNIT)
    columns = [Number(f"w{place}", Fraction(-1), Fraction(1)) for place in range(size)]
    design = Design(columns, intercept=False, signed=True)
    return Rows(design, integers, rows.target, rows.units, exchange=rows.exchange)


def _descended(
    rows: Rows,
    meter: Meter,
    hazard: Hazard,
    events: float,
    happened: NDArray[np.bool_],
    counts: Floats | None,
) -> tuple[Floats, Floats]:
    """The weights of whitened coordinates, and of the hazard's terms."""
    width = rows.design.width + TERMS
    plenty = events / meter.sigma(1, 1) / width
    shares, longest = (_STEPS, _LONGEST) if plenty < _PLENTY else (_MORE_STEPS, _LONGER)
    bound = Fraction(float(np.clip(np.sqrt(plenty) / 5, _SHORTEST, longest) * np.sqrt(width)))
    rate = min(1.0, events / (meter.sigma(bound, 1) * np.sqrt(width)) / _ENOUGH)
    found, later = np.zeros(width), np.zeros(width)
    for step, share in enumerate(shares):
        total = _gradient(rows, hazard, found, happened, counts, bound)
        found = found + rate * meter.noisy(total, share) / events
        if step >= len(shares) - _AVERAGED:
            later += found * float(share / sum(shares[-_AVERAGED:]))
    best = later if rate == 1 else found
    return best[:-TERMS], best[-TERMS:]


def _gradient(
    rows: Rows,
    hazard: Hazard,
    found: Floats,
    happened: NDArray[np.bool_],
    counts: Floats | None,
    bound: Fraction,
) -> Total:
    """The gradient of the likelihood, where a unit's part is cut to a length.

    Privacy:
        Claim: that of `cut`. Proof: the margin of a row is exact, its growth and both of its lines are looked
        up in public tables, and what follows is one product, rounding and cut at a time.
    """
    target = rows.target
    assert target is not None
    ticks = np.minimum(np.asarray(target, np.int64) // 2, hazard.last)
    at_event, before = hazard.tables(found[-TERMS:])
    weights, most = found[:-TERMS, None], _MOST * 2.0**RESIDUAL_BITS

    def lines(place: slice, block: Floats) -> Integers:
        times = growth(margins_of(block, weights)) * 2.0**-RESIDUAL_BITS
        residuals = happened[place, None] * at_event[ticks[place]] - np.rint(times * before[ticks[place]])
        residuals = np.clip(residuals, -most, most)
        if counts is not None:
            residuals = np.trunc(residuals * counts[place, None])
        return np.hstack([block * residuals[:, :1], residuals * (UNIT // REACH)]).astype(np.int64)

    return cut(rows, lines, len(found), bound, _BITS)
