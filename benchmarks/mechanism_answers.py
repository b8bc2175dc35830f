"""The public mechanisms as they are used: for each what is made ready before, and the call for one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

import sfumato as sf
from sfumato import continual
from sfumato.mechanisms import AdaptiveSelection, GaussianSelection, NestedQuantiles, Quantiles, median_of

Answer: TypeAlias = Callable[[], object]

DELTA = "1e-6"
MOST = 1_000_000  # the bound of incomes
NEAR = 2_000  # the sensitivity of a median that is proposed
STEPS = 500  # of a counter, in one call
GROUPS = 1_000  # of a stream

ADDITIVE: dict[str, Callable[[Fraction], Any]] = {
    "Laplace": lambda scale: sf.Laplace(1 / scale, 1),
    "Geometric": lambda scale: sf.Geometric(1 / scale, sensitivity=1),
    "Gaussian": lambda scale: sf.Gaussian(sigma=scale, sensitivity=1),
    "DiscreteGaussian": lambda scale: sf.DiscreteGaussian(sigma=scale, sensitivity=1),
    "Staircase": lambda scale: sf.Staircase(1 / scale, 1, coordinates=1),
    "TruncatedLaplace": lambda scale: sf.TruncatedLaplace(1 / scale, DELTA, sensitivity=1, coordinates=1),
    "BoundedLaplace": lambda scale: sf.BoundedLaplace(1 / scale, 1, lower=0, upper=100, coordinates=1),
}
"""Mechanisms that add noise to numbers, by the scale of the noise."""

WHOLE = {"Geometric", "DiscreteGaussian"}

CHOICES: dict[str, Callable[[Fraction], Any]] = {
    "Exponential": lambda scale: sf.Exponential(1 / scale, 1),
    "PermuteAndFlip": lambda scale: sf.PermuteAndFlip(1 / scale, 1),
    "NoisyMax": lambda scale: sf.NoisyMax(1 / scale, 1),
    "TopK": lambda scale: sf.TopK(1 / scale, 1, count=10),
}
"""Mechanisms that choose among candidates, by 1/ε."""

THRESHOLDS: dict[str, Callable[[Fraction], Callable[[Any], object]]] = {
    "AboveThreshold": lambda scale: sf.AboveThreshold(1 / scale, 0, sensitivity=1).first,
    "SparseVector": lambda scale: sf.SparseVector(1 / scale, 0, count=5, sensitivity=1).above,
    "NumericSparseVector": lambda scale: sf.NumericSparseVector(1 / scale, 0, count=5, sensitivity=1).above,
}
"""Mechanisms that look for values above a threshold, by 1/ε, as the call on the values."""


def _both_rounds(mechanism: AdaptiveSelection) -> Callable[[Any], object]:
    def call(counts: Any) -> object:
        sums = counts * mechanism.weight(1)
        found, before = mechanism.first_round(sums)
        return mechanism.second_round(before[~found], sums[~found])

    return call


SELECTIONS: dict[str, Callable[[Fraction], Callable[[Any], object]]] = {
    "PartitionSelection": lambda scale: sf.PartitionSelection(1 / scale, DELTA).release,
    "GaussianSelection": lambda scale: GaussianSelection(1 / scale, DELTA, groups=4).release,
    "AdaptiveSelection": lambda scale: _both_rounds(AdaptiveSelection(1 / scale, DELTA, groups=4)),
}
"""Mechanisms that find groups, by 1/ε, as the call on how many units are in each."""

ONE = Fraction(1)


def incomes(rows: int) -> Any:
    """A number of each of so many people."""
    return np.random.default_rng(1).lognormal(10.0, 0.5, rows)


def levels(count: int) -> list[Fraction]:
    """So many levels between 0 and 1."""
    return [Fraction(i, count + 1) for i in range(1, count + 1)]


def added(name: str, size: int, value: float = 0.0, *, scale: Fraction = ONE) -> Answer:
    """One release of so many numbers; of a plain number where it is one."""
    mechanism, plain = ADDITIVE[name](scale), int(value) if name in WHOLE else value
    given: Any = plain if size == 1 else np.full(size, plain)
    return lambda: mechanism.release(given)


def chosen(name: str, size: int, spread: float = 10.0, *, scale: Fraction = ONE) -> Answer:
    """One choice; at a spread of 10 and ε = 1, a few candidates are close to the best."""
    mechanism, scores = CHOICES[name](scale), np.random.default_rng(1).normal(0.0, spread, size)
    return lambda: mechanism.select(scores)


def top(count: int, size: int) -> Answer:
    """The best few of so many candidates."""
    mechanism = sf.TopK(1, 1, count=count)
    scores = np.random.default_rng(1).normal(0.0, 10.0, size)
    return lambda: mechanism.select(scores)


def searched(
    name: str, size: int, value: float = -1e6, *, lazily: bool = False, scale: Fraction = ONE
) -> Answer:
    """A search for values above a threshold of 0; all are far below, so that all are read."""
    call, given = THRESHOLDS[name](scale), np.full(size, value)
    if not lazily:
        return lambda: call(given)
    listed = given.tolist()
    return lambda: call(iter(listed))


def responded(size: int, value: int = 0, *, scale: Fraction = ONE) -> Answer:
    """The answers of so many people."""
    mechanism, given = sf.RandomizedResponse(1 / scale), np.full(size, bool(value))
    return lambda: mechanism.release(given)


def counted(horizon: int, value: int = 1) -> Answer:
    """The first `STEPS` steps of a counter."""
    counter, given = sf.TreeCounter(horizon, 1, sensitivity=1), [value] * STEPS
    return lambda: counter.fresh().release(given)


def streamed(horizon: int, groups: int = GROUPS, value: int = 1, *, scale: Fraction = ONE) -> Answer:
    """One step of a stream, the next one each time; another stream begins when one is over."""
    plan = continual.Factorisation(horizon, continual.Buffered.square_root(horizon), True)
    stream = continual.Continual(plan, 1 / scale, DELTA, sensitivity=1, groups=groups)
    given = np.full(groups, value)

    def courses() -> Iterator[continual.Course]:
        while True:
            course = stream.start(stream.secret())
            for _ in range(horizon):
                yield course

    going = courses()
    return lambda: next(going).release(given)


def planned(horizon: int) -> Answer:
    """The choice of a plan for a stream."""
    return lambda: continual.choose(horizon)


def proposed(value: float, distance: int, *, scale: Fraction = ONE) -> Answer:
    """An answer, or none, where the distance is known."""
    mechanism = sf.ProposeTestRelease(1 / scale, DELTA, bound=NEAR)
    return lambda: mechanism.release(value, distance)


def proposed_from(rows: int) -> Answer:
    """The same for the median of so many rows, which is worked out before."""
    median = median_of(incomes(rows), 0, upper=MOST)
    return proposed(median.value, median.distance(NEAR))


def smoothed(value: float, bound: float, *, scale: Fraction = ONE) -> Answer:
    """An answer where the bound is known."""
    mechanism = sf.SmoothSensitivity(1 / scale, MOST, delta=DELTA)
    return lambda: mechanism.release(value, bound)


def smoothed_from(rows: int) -> Answer:
    """The same for the median of so many rows, which is worked out before."""
    median = median_of(incomes(rows), 0, upper=MOST)
    return smoothed(median.value, median.smooth(_beta()))


def distance_of(rows: int) -> Answer:
    """What `ProposeTestRelease` needs of so many rows."""
    given = incomes(rows)
    return lambda: median_of(given, 0, upper=MOST).distance(NEAR)


def bound_of(rows: int) -> Answer:
    """What `SmoothSensitivity` needs of so many rows."""
    given, beta = incomes(rows), _beta()
    return lambda: median_of(given, 0, upper=MOST).smooth(beta)


def _beta() -> float:
    return sf.SmoothSensitivity(1, MOST, delta=DELTA).beta


def selected(name: str, groups: int, value: int | None = None, *, scale: Fraction = ONE) -> Answer:
    """Which of so many groups to show, of up to 200 units each or of so many."""
    call = SELECTIONS[name](scale)
    drawn = np.random.default_rng(1).integers(1, 200, groups)
    given = drawn if value is None else np.full(groups, value)
    return lambda: call(given)


def joined(units: int, groups: int = 100) -> Answer:
    """The same from which units are in which groups."""
    mechanism = AdaptiveSelection(1, DELTA, groups=10)
    members = np.random.default_rng(1).random((units, groups)) < 0.05
    return lambda: mechanism.release(members)


def weights(groups: int, cells: int) -> Any:
    """Histograms with a few rows in each cell."""
    return np.random.default_rng(1).integers(0, 10, (groups, cells))


def ranked(name: str, table: Any, count: int = 3, *, scale: Fraction = ONE) -> Answer:
    """So many quantiles of each histogram of a table."""
    kind = Quantiles if name == "Quantiles" else NestedQuantiles
    mechanism = kind(1 / scale, levels(count), sensitivity=1)
    return lambda: mechanism.select_many(table)


def _mean(part: Any) -> float:
    return float(part.mean())


def parted(rows: int, chunks: int = 100, value: float | None = None, *, scale: Fraction = ONE) -> Answer:
    """A mean on each part of so many rows."""
    mechanism = sf.SampleAndAggregate(1 / scale, 0, upper=100_000, chunks=chunks)
    given = incomes(rows) if value is None else np.full(rows, value)
    return lambda: mechanism.release(_mean, given)


def first_answers() -> dict[str, Callable[[Fraction], Answer]]:
    """For each mechanism what makes one at a scale of its own, for a small answer."""
    small = weights(1, 10)
    return {
        **{name: lambda scale, name=name: added(name, 1, scale=scale) for name in ADDITIVE},
        **{name: lambda scale, name=name: chosen(name, 10, scale=scale) for name in CHOICES},
        **{name: lambda scale, name=name: searched(name, 10, scale=scale) for name in THRESHOLDS},
        **{name: lambda scale, name=name: selected(name, 10, scale=scale) for name in SELECTIONS},
        **{
            name: lambda scale, name=name: ranked(name, small, scale=scale)
            for name in ("Quantiles", "NestedQuantiles")
        },
        "RandomizedResponse": lambda scale: responded(10, scale=scale),
        "TreeCounter": lambda scale: lambda: sf.TreeCounter(2**10, 1 / scale, sensitivity=1).add(1),
        "Continual": lambda scale: streamed(2**10, 10, scale=scale),
        "ProposeTestRelease": lambda scale: proposed(0.0, 100, scale=scale),
        "SmoothSensitivity": lambda scale: smoothed(0.0, 100.0, scale=scale),
        "SampleAndAggregate": lambda scale: parted(100, 10, scale=scale),
    }
