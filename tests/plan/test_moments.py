"""Covariances and correlations: values, and intervals whose coverage is measured with the real mechanisms."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from sfumato.mechanisms import Gaussian, Laplace
from sfumato.plan.expressions.tree import Column
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.columns import form_of
from sfumato.plan.prices.split import importance, shares
from sfumato.plan.questions.aggregates import Part
from sfumato.plan.questions.aggregates.correlation import Correlated
from sfumato.plan.questions.aggregates.covariance import Together
from sfumato.plan.questions.nodes import Measurement, Output
from sfumato.testing import seeded
from sfumato.testing.statistics import bernoulli_finding

LAWS: tuple[Literal["laplace", "gaussian"], ...] = ("laplace", "gaussian")
CONFIDENCES = (0.5, 0.95)
HALF, OTHER = 5.0, 40.0
SHIFT, OTHER_SHIFT = HALF**2 / 2, OTHER**2 / 2
DRAWS = 500


def covar(*, sample: bool = False, parts: tuple[int, ...] = (0, 1, 2, 3)) -> Together:
    most = Fraction(HALF * OTHER) * (2 if sample else 1)
    return Together(
        parts,
        half=Fraction(HALF),
        other_half=Fraction(OTHER),
        sample=sample,
        lower=-most,
        upper=most,
    )


def corr(parts: tuple[int, ...] = (0, 1, 2, 3, 4, 5)) -> Correlated:
    return Correlated(
        parts,
        half=Fraction(HALF),
        other_half=Fraction(OTHER),
        shift=Fraction(SHIFT),
        other_shift=Fraction(OTHER_SHIFT),
        lower=Fraction(-1),
        upper=Fraction(1),
    )


def mechanism_of(law: str, scale: int) -> Laplace | Gaussian:
    return Laplace(1, scale) if law == "laplace" else Gaussian(sigma=scale, sensitivity=1)


def scales_of(estimator: Together | Correlated) -> list[int]:
    """Of the noise of each part, as an equal split gives them."""
    sizes = [
        HALF,
        OTHER,
        HALF * OTHER,
        *([SHIFT, OTHER_SHIFT] if isinstance(estimator, Correlated) else []),
        1,
    ]
    return [round(len(sizes) * each) for each in sizes]


def exact_of(estimator: Together | Correlated, x: Floats, y: Floats) -> list[float]:
    squares = (
        [np.sum(x * x - SHIFT), np.sum(y * y - OTHER_SHIFT)] if isinstance(estimator, Correlated) else []
    )
    return [float(each) for each in (np.sum(x), np.sum(y), np.sum(x * y), *squares, len(x))]


def truth_of(estimator: Together | Correlated, x: Floats, y: Floats, *, sample: bool = True) -> float | None:
    """None where there is no value, so that any will do; `sample`: unless it is taken of all."""
    sample = sample and isinstance(estimator, Together) and estimator.sample
    if len(x) < (2 if sample else 1):
        return None
    covariance = float(np.mean((x - x.mean()) * (y - y.mean())))
    if isinstance(estimator, Together):
        return covariance * (len(x) / (len(x) - 1) if sample else 1)
    spread = float(np.std(x) * np.std(y))
    return min(1.0, max(-1.0, covariance / spread)) * (1 - 1e-12) if spread else None


@functools.cache
def drawn(mechanism: Laplace | Gaussian, place: int) -> Floats:
    with seeded(f"moments {place}"):  # the same measurement has the same noise
        return np.asarray(mechanism.release(np.zeros(DRAWS, np.int64)), dtype=float)


def noisy_of(
    estimator: Together | Correlated, law: str, x: Floats, y: Floats, loud: int | None = None
) -> tuple[list[Floats], list[Noise]]:
    """The noisy parts, many times, and their noise: of 1,000 times the rows where one part is loud."""
    found, noises = [], []
    times = 1 if loud is None else 1000
    for place, exact, scale in zip(
        estimator.parts, exact_of(estimator, x, y), scales_of(estimator), strict=True
    ):
        mechanism = mechanism_of(law, scale * (300 if place == loud else 1))
        found.append(exact * times + drawn(mechanism, place))
        noises.append(Noise.of(mechanism))
    return found, noises


def inside_of(
    estimator: Together | Correlated,
    law: str,
    x: Floats,
    y: Floats,
    confidence: float,
    *,
    told: float = 1.0,
    loud: int | None = None,
) -> np.ndarray:
    """Whether each interval holds the truth; where there is none, whether it holds everything possible."""
    noisy, noises = noisy_of(estimator, law, x, y, loud)
    noises = [replace(each, scale=each.scale * told) for each in noises]
    ends = estimator.interval(noisy, noises, risk=1 - confidence)
    return held_by(estimator, ends, truth_of(estimator, x, y, sample=loud is None))


def held_by(estimator: Together | Correlated, ends: tuple[Floats, Floats], truth: float | None) -> np.ndarray:
    """Whether each interval holds the truth, or without one everything; all are within what is possible."""
    low, high = ends
    assert (low <= high).all()
    most = float(estimator.upper or 0)
    assert (low >= -most).all()
    assert (high <= most).all()
    return (low <= -most) & (high >= most) if truth is None else (low <= truth) & (truth <= high)


def check(inside: np.ndarray, least: float, most: float = 1.0) -> None:
    count = int(np.count_nonzero(inside))
    bernoulli_finding(count, len(inside), least, most, "intervals that hold the truth").require(1e-9)


def tables() -> dict[str, tuple[Floats, Floats]]:
    generator = np.random.default_rng(11)
    spread = np.linspace(-HALF, HALF, 20_000)
    corner = np.concatenate([np.full(10_000, HALF), np.full(10_000, HALF - 1)])
    related = np.clip(spread * 6 + generator.normal(0, 12, len(spread)), -OTHER, OTHER)
    one = np.ones(1)
    return {
        "none": (np.zeros(0), np.zeros(0)),
        "one": (HALF * one, -OTHER * one),
        "two": (np.array([-HALF, HALF]), np.array([OTHER, -OTHER])),
        "few": (spread[::1000], related[::1000]),
        "hundreds": (spread[::60], related[::60]),
        "related": (spread, related),
        "unrelated": (spread, generator.uniform(-OTHER, OTHER, len(spread))),
        "proportional": (spread, -spread * 8),
        "constant": (np.full(20_000, HALF), related),
        "constants": (np.full(20_000, HALF), np.full(20_000, -OTHER)),
        "corner": (corner, np.where(corner == HALF, OTHER, OTHER - 8)),
        "rare": (
            np.where(np.arange(20_000) == 0, HALF, -HALF),
            np.where(np.arange(20_000) == 0, OTHER, -OTHER),
        ),
    }


TABLES = tables()
ESTIMATORS = {"covar_pop": covar(), "covar_samp": covar(sample=True), "corr": corr()}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_pairs_are_covered_whatever_the_data(name: str, law: str) -> None:
    estimator = ESTIMATORS[name]
    found, noises = zip(*(noisy_of(estimator, law, *table) for table in TABLES.values()), strict=True)
    noisy = [np.concatenate(each) for each in zip(*found, strict=True)]  # all tables are solved at once
    for confidence in CONFIDENCES:
        low, high = estimator.interval(noisy, noises[0], risk=1 - confidence)
        for place, table in enumerate(TABLES.values()):
            rows = slice(place * DRAWS, (place + 1) * DRAWS)
            check(held_by(estimator, (low[rows], high[rows]), truth_of(estimator, *table)), confidence)


def aside() -> tuple[Floats, Floats]:
    """Related columns, both off the middle of their ranges."""
    generator = np.random.default_rng(12)
    base = generator.uniform(-1, 1, 20_000)
    other = 0.6 * base + 0.4 * generator.uniform(-1, 1, 20_000)
    return HALF * (0.4 + 0.6 * base), OTHER * (0.5 + 0.5 * other)


ASIDE = aside()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_large_groups_are_hardly_conservative_whichever_part_is_noisy(name: str, law: str) -> None:
    estimator, confidence = ESTIMATORS[name], 0.9
    for loud in estimator.parts:
        # 1/16 to 1/8 of the risk goes to what must be placed first; close Laplace scales are moved apart.
        inside = inside_of(estimator, law, *ASIDE, confidence, loud=loud)
        check(inside, confidence, confidence + 0.35 * (1 - confidence))
        with pytest.raises(AssertionError):
            check(inside_of(estimator, law, *ASIDE, confidence, loud=loud, told=0.5), confidence)


@pytest.mark.parametrize("law", LAWS)
def test_the_interval_of_a_correlation_is_far_narrower_than_a_box_of_its_parts(law: str) -> None:
    x, y = TABLES["related"]
    noisy, noises = noisy_of(corr(), law, x, y)
    low, high = corr().interval(noisy, noises, risk=0.1)
    inner = replace(covar(), parts=(0, 1, 2, 5))
    parts = [noisy[place] for place in inner.parts]
    c_low, c_high = inner.interval(parts, [noises[place] for place in inner.parts], risk=0.1 / 3)
    spread = float(np.std(x) * np.std(y))
    assert np.median(high - low) < 1.2 * np.median(c_high - c_low) / spread  # as if both variances were known


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ["covar_pop", "corr"])
def test_parts_that_are_one_measurement_have_one_noise(name: str, law: str) -> None:
    """Of x and of x − 1: both sums have the same noise, which adds up instead of averaging out."""
    estimator = ESTIMATORS[name]
    places = tuple(0 if place == 1 else place for place in estimator.parts)
    estimator = replace(estimator, parts=places, other_half=estimator.half)
    x = np.tile(np.linspace(HALF - 0.5, HALF, 100), 500)
    sizes = scales_of(estimator)
    if name == "corr":
        estimator = replace(estimator, other_shift=estimator.shift)
    exact = [
        np.sum(x),
        np.sum(x),
        np.sum(x * x),
        *([np.sum(x * x - SHIFT)] * 2 if name == "corr" else []),
        len(x),
    ]
    small = [sizes[0], sizes[0], *(20 for _ in sizes[3:]), 1]  # the sums have nearly all of the noise
    noisy, noises = [], []
    for place, value, scale in zip(places, exact, [sizes[0] * 40, sizes[0] * 40, *small[2:]], strict=True):
        mechanism = mechanism_of(law, scale)
        with seeded(f"moments {place}"):
            noisy.append(value + np.asarray(mechanism.release(np.zeros(DRAWS, np.int64)), dtype=float))
        noises.append(Noise.of(mechanism))
    low, high = estimator.interval(noisy, noises, risk=0.2)
    truth = float(np.var(x)) if name == "covar_pop" else 1 - 1e-12
    check((low <= truth) & (truth <= high), 0.8)


def test_values_are_those_of_the_data_without_noise() -> None:
    for name, estimator in ESTIMATORS.items():
        for data in ("two", "few", "related", "proportional", "corner", "rare", "constants"):
            x, y = TABLES[data]
            found = float(estimator.value([np.array([each]) for each in exact_of(estimator, x, y)])[0])
            truth = truth_of(estimator, x, y)
            assert found == pytest.approx(0.0 if truth is None else truth, abs=1e-7), (name, data)


def test_values_are_held_within_what_is_possible() -> None:
    wild = [np.array([each, -each, each]) for each in (1e9, -3e9, 1e12, -1e12, 4e9)]
    count = np.array([3.0, -2.0, 0.5])
    for estimator in ESTIMATORS.values():
        parts = [*wild[: len(estimator.parts) - 1], count]
        found = estimator.value(parts)
        most = float(estimator.upper or 0)
        assert (np.abs(found) <= most).all()
        assert found[1] == 0
        low, high = estimator.interval(parts, [Noise("laplace", 1.0)] * len(parts), risk=0.1)
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()


# ── the split of a price ──


def numerical(estimator: Together | Correlated, x: Floats, y: Floats) -> list[float]:
    """The derivatives of the value by each part, times n."""
    exact = exact_of(estimator, x, y)
    found = []
    for i in range(len(exact)):
        ends = []
        for side in (-1, 1):
            moved = [np.array([value + side * 1e-3 * (i == j)]) for j, value in enumerate(exact)]
            ends.append(float(estimator.value(moved)[0]))
        found.append((ends[1] - ends[0]) / 2e-3 * len(x))
    return found


def test_the_gradients_of_a_covariance_are_those_at_a_typical_place() -> None:
    x = np.tile([HALF / 2 - 1, HALF / 2 + 1], 200)
    y = np.repeat([OTHER / 2 - 3, OTHER / 2 + 3], 200)
    found = np.abs(numerical(covar(), x, y))
    assert found == pytest.approx(covar().gradients(), rel=1e-3)


def test_the_gradients_of_a_correlation_are_means_over_both_signs() -> None:
    squares, count = [], 4000
    generator = np.random.default_rng(2)
    noise, base = generator.normal(0, 1, count), generator.normal(0, 1, count)
    base, noise = base - base.mean(), noise - noise.mean()
    noise -= base * (noise @ base) / (base @ base)
    base, noise = base / base.std(), noise / noise.std()
    deviation = 1 / math.sqrt(3)
    for sign in (-1, 1):
        x = HALF / 2 + deviation * HALF * base
        y = OTHER / 2 * sign + deviation * OTHER * (0.5 * base + math.sqrt(0.75) * noise)
        squares.append(np.square(numerical(corr(), x, y)))
    found = np.sqrt(np.mean(squares, axis=0))
    scale = HALF * OTHER / 3  # one over the factor that gradients leave out
    assert found * scale == pytest.approx(corr().gradients(), rel=0.02)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_part_of_a_pair_gets_a_share(name: str) -> None:
    estimator = ESTIMATORS[name]
    sizes = dict(zip(estimator.parts, scales_of(estimator), strict=True))
    measurements = tuple(Measurement("sum", Column(f"m{i}")) for i in estimator.parts)
    part = Part(measurements, estimator)
    costs = importance([part], [part], lambda each: float(sizes[measurements.index(each)]), "laplace")
    assert min(shares(list(costs.values()), "laplace")) > Fraction(1, 50)
    narrow = {
        name: Fraction(0)
        for name in ("half", "other_half", "shift", "other_shift")
        if hasattr(estimator, name)
    }
    still = replace(estimator, **narrow)
    assert any(still.gradients())


def test_widths_beforehand_are_those_that_are_found() -> None:
    x, y = TABLES["related"]
    for estimator in (covar(), corr()):
        form = form_of(Output("c", Column("a0")), [estimator])
        assert form.per_row
        noisy, noises = noisy_of(estimator, "gaussian", x, y)
        assert form.width(noises, 0.9) is None
        expected = form.width(noises, 0.9, rows=len(x))
        low, high = estimator.interval(noisy, noises, risk=0.1)
        assert expected == pytest.approx(float(np.median(high - low)) / 2, rel=0.6)
    assert form_of(Output("c", Column("a0")), [corr()]).most == 2
