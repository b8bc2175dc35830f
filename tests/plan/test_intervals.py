"""Intervals for the noise of sums, ratios and variances: coverage measured with the real mechanisms."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import integrate, special

from sfumato.mechanisms import Gaussian, Geometric, Laplace
from sfumato.plan.intervals.forms import (
    Blend,
    Floats,
    mean_interval,
    quotient,
    tail_of_two,
    variance_interval,
)
from sfumato.plan.intervals.noise import Noise
from sfumato.testing import seeded
from sfumato.testing.statistics import bernoulli_finding

CONFIDENCES = (0.5, 0.9, 0.95, 0.99)
DRAWS, FEWER = 12_000, 1_500
LAWS = ("laplace", "gaussian")


def mechanism_of(law: str, scale: int) -> Laplace | Gaussian | Geometric:
    if law == "geometric":
        return Geometric(Fraction(1, scale), 1)
    return Laplace(1, scale) if law == "laplace" else Gaussian(sigma=scale, sensitivity=1)


@functools.cache
def draws(law: str, scale: int, seed: str, count: int = DRAWS) -> Floats:
    with seeded(seed):
        return np.asarray(mechanism_of(law, scale).release(np.zeros(count, np.int64)), dtype=float)


def noise_of(law: str, scale: int) -> Noise:
    return Noise.of(mechanism_of(law, scale))


def check(inside: np.ndarray, least: float, most: float = 1.0) -> float:
    """Coverage is between these, at alpha 1e-9; and what it is."""
    count = int(np.count_nonzero(inside))
    bernoulli_finding(count, len(inside), least, most, "intervals that hold the truth").require(1e-9)
    return count / len(inside)


def within(box: tuple[Floats, Floats], truth: float) -> np.ndarray:
    return (box[0] <= truth) & (truth <= box[1])


# --- linear forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.0, 1e-9, 0.3, 0.999, 1 - 1e-12, 1.0])
@pytest.mark.parametrize("width", [0.0, 1e-6, 0.5, 3.0, 40.0])
def test_the_tail_of_two_laplaces_loses_no_digits(ratio: float, width: float) -> None:
    with mpmath.workdps(80):
        a, b, t = mpmath.mpf(1), mpmath.mpf(ratio), mpmath.mpf(width)
        if ratio == 1:
            exact = (1 + t / 2) * mpmath.exp(-t)
        elif ratio == 0:
            exact = mpmath.exp(-t)
        else:
            exact = (a**2 * mpmath.exp(-t / a) - b**2 * mpmath.exp(-t / b)) / (a**2 - b**2)
        for pair in ((1.0, ratio), (ratio, 1.0)):
            assert float(tail_of_two(width, *pair)) == pytest.approx(float(exact), rel=1e-13)


def test_the_tail_without_noise_is_certain() -> None:
    assert tail_of_two([1.0, 0.0], [0.0, 0.0], [0.0, 0.0]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(
    "laws", [("laplace", "laplace"), ("gaussian", "gaussian", "gaussian"), ("gaussian",)]
)
@pytest.mark.parametrize("scales", [(1000, 1000, 1000), (1000, 3000, 10), (50, 40, 1)])
def test_exact_forms_have_exact_coverage(
    laws: tuple[str, ...], scales: tuple[int, ...], confidence: float
) -> None:
    form = np.array([[1.0], [-2.0], [0.5]])[: len(laws)]
    noises = tuple(noise_of(law, scale) for law, scale in zip(laws, scales, strict=False))
    width = Blend(noises).width(form, 1 - confidence)
    total = sum(
        factor[0] * draws(law, scale, f"sum {i}")
        for i, (factor, law, scale) in enumerate(zip(form, laws, scales, strict=False))
    )
    check(np.abs(total) <= width, confidence)
    check(np.abs(total) < width * (1 - 1e-6), 0.0, confidence)
    understated = tuple(Noise(n.law, n.scale * 0.9, n.slack) for n in noises)
    if confidence >= 0.9:
        with pytest.raises(AssertionError):
            check(np.abs(total) <= Blend(understated).width(form, 1 - confidence), confidence)


@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("alike", [True, False])
def test_partial_fractions_of_several_laplaces_are_nearly_exact(count: int, alike: bool) -> None:
    scales = [1.0] * count if alike else [1.0, 0.3, 2.0, 1.1, 0.01][:count]
    noises = tuple(Noise("laplace", scale) for scale in scales)
    form = np.ones((count, 1))
    # The exact tail by Fourier inversion: P(|Z| > t) = 1 − (2/π)∫ sin(ts)/s · Π 1/(1 + b²s²) ds.
    for t in (0.5, 3.0, 8.0):
        inverted = integrate.quad(
            lambda s, t=t: t * np.sinc(t * s / math.pi) / math.prod(1 + (b * s) ** 2 for b in scales),
            0,
            60,
            limit=500,
        )[0]
        exact = 1 - 2 / math.pi * inverted
        bound = float(Blend(noises).tail(form, np.array([t]))[0])
        wider = float(Blend(noises).tail(form, np.array([t / 1.01**count]))[0])
        assert exact * (1 - 1e-6) - 1e-5 <= bound <= wider * (1 + 1e-9) + 1e-9
        assert bound <= exact * 1.35 + 1e-4


@pytest.mark.parametrize("confidence", [0.9, 0.99, 0.999999])
def test_many_or_mixed_noises_are_bounded_no_worse_than_by_bonferroni(confidence: float) -> None:
    mixed = (Noise("laplace", 2.0), Noise("gaussian", 3.0), Noise("laplace", 1.0))
    many = tuple(Noise("laplace", 1.0 + i / 10) for i in range(12))
    generator = np.random.default_rng(3)
    for noises in (mixed, many):
        form = np.ones((len(noises), 1))
        width = float(Blend(noises).width(form, 1 - confidence)[0])
        box = sum(each.width((1 - confidence) / len(noises)) for each in noises)
        assert width <= box * (1 + 1e-9)
        total = sum(
            generator.normal(0, n.scale, 20_000)
            if n.law == "gaussian"
            else generator.laplace(0, n.scale, 20_000)
            for n in noises
        )
        check(np.abs(total) <= width, confidence)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_sums_of_geometric_and_laplace_noise_are_covered(confidence: float) -> None:
    for scale in (1, 20):
        noises = (noise_of("geometric", scale), noise_of("geometric", scale))
        width = Blend(noises).width(np.ones((2, 1)), 1 - confidence)
        total = draws("geometric", scale, "g1") + draws("geometric", scale, "g2")
        share = check(np.abs(total) <= width, confidence)
        assert share <= confidence + (0.35 if scale == 1 else 0.03)  # the slack, beside noise of scale 1


# --- ratios -------------------------------------------------------------------------------------------

HALF = 10.0


def mean_boxes(
    law: str,
    n: float,
    theta: float,
    confidence: float,
    *,
    count_law: str | None = None,
    understate: float = 1.0,
    size: int = DRAWS,
) -> tuple[Floats, Floats]:
    count_law = count_law or law
    sums, counts = (100, law), (4, count_law)
    total = theta * n + draws(sums[1], sums[0], "S", size)
    count = n + draws(counts[1], counts[0], "n", size)
    noises = tuple(noise_of(name, scale) for scale, name in (sums, counts))
    told = tuple(Noise(each.law, each.scale * understate, each.slack, each.whole) for each in noises)
    return mean_interval(total, count, (told[0], told[1]), lower=-HALF, upper=HALF, risk=1 - confidence)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("n", [0, 0.3, 1, 3, 10, 200, 100_000])
def test_means_are_covered_whatever_the_group(law: str, n: float, confidence: float) -> None:
    for theta in (-HALF, 0.0, 5.0, HALF):
        box = mean_boxes(law, n, theta, confidence, size=FEWER)
        check(within(box, theta), confidence)
        assert (box[0] <= box[1]).all()
        assert (np.abs(box) <= HALF).all()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_means_of_large_groups_have_exact_coverage(law: str, confidence: float) -> None:
    for theta in (0.0, 5.0, -8.0):
        inside = within(mean_boxes(law, 5000, theta, confidence), theta)
        check(inside, confidence, confidence)
        if confidence in (0.9, 0.95):
            understated = within(mean_boxes(law, 5000, theta, confidence, understate=0.9), theta)
            with pytest.raises(AssertionError):
                check(understated, confidence)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_means_over_geometric_counts_are_covered(confidence: float) -> None:
    for n in (0, 1, 10, 1000):
        for theta in (0.0, HALF):
            box = mean_boxes("laplace", n, theta, confidence, count_law="geometric", size=FEWER)
            check(within(box, theta), confidence)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_ratio_interval_is_narrower_than_a_box_of_both_parts(law: str, confidence: float) -> None:
    n, theta = 200.0, 5.0
    total, count = theta * n + draws(law, 100, "S"), n + draws(law, 4, "n")
    low, high = mean_boxes(law, n, theta, confidence)
    split = (1 - confidence) / 2
    width_s, width_n = noise_of(law, 100).width(split), noise_of(law, 4).width(split)
    corners = np.stack([(total + a) / (count + b) for a in (-width_s, width_s) for b in (-width_n, width_n)])
    box = np.clip(corners.max(axis=0), -HALF, HALF) - np.clip(corners.min(axis=0), -HALF, HALF)
    assert (high - low).mean() < 0.85 * box.mean()


def test_gaussian_ratios_agree_with_the_quadratic_of_fieller() -> None:
    generator = np.random.default_rng(4)
    numerator, denominator = generator.normal(0, 50, 500), generator.normal(80, 10, 500)
    blend, risk = Blend((Noise("gaussian", 7.0), Noise("gaussian", 3.0))), 0.05
    low, high = quotient(
        blend,
        risk,
        top=np.array([[1.0], [0.0]]),
        bottom=np.array([[0.0], [1.0]]),
        numerator=numerator,
        denominator=denominator,
    )
    z2 = 2 * special.erfcinv(risk) ** 2
    a, b, c = denominator**2 - z2 * 9, -2 * numerator * denominator, numerator**2 - z2 * 49
    root = np.sqrt(b**2 - 4 * a * c)
    np.testing.assert_allclose(low, (-b - root) / (2 * a), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(high, (-b + root) / (2 * a), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("bottom", [300.0, -300.0, 0.0, 8.0])
def test_ratios_without_a_range_are_covered(law: str, confidence: float, bottom: float) -> None:
    theta = 2.5
    numerator, denominator = theta * bottom + draws(law, 20, "N"), bottom + draws(law, 5, "D")
    low, high = quotient(
        Blend((noise_of(law, 20), noise_of(law, 5))),
        1 - confidence,
        top=np.array([[1.0], [0.0]]),
        bottom=np.array([[0.0], [1.0]]),
        numerator=numerator,
        denominator=denominator,
    )
    check(within((low, high), theta), confidence)
    ratio = numerator / denominator
    assert ((low <= ratio) & (ratio <= high)).all()
    if abs(bottom) == 300:
        check(within((low, high), theta), confidence, confidence)
        assert np.isfinite(high).all()
    elif bottom == 0.0:
        assert np.isinf(high).mean() >= confidence - 0.05


def test_a_ratio_to_the_same_noise_is_seen_to_be_dependent() -> None:
    # (S + c·n)/n: the noise of n partly cancels, and the interval must know.
    n, theta = 1000.0, 3.0
    total, count = theta * n + draws("laplace", 100, "S"), n + draws("laplace", 40, "n")
    low, high = quotient(
        Blend((noise_of("laplace", 100), noise_of("laplace", 40))),
        0.1,
        top=np.array([[1.0], [50.0]]),
        bottom=np.array([[0.0], [1.0]]),
        numerator=total + 50 * count,
        denominator=count,
    )
    check(within((low, high), theta + 50), 0.9, 0.9)
    plain = mean_interval(
        total, count, (noise_of("laplace", 100), noise_of("laplace", 40)), lower=-100, upper=100, risk=0.1
    )
    np.testing.assert_allclose(high - 50, plain[1], rtol=1e-6)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("risk", [0.5, 0.1, 1e-6])
def test_the_width_is_convex_in_the_ratio_so_that_the_set_is_an_interval(law: str, risk: float) -> None:
    blend = Blend((Noise(law, 3.0), Noise(law, 1.0)))  # type: ignore[arg-type]
    theta = np.linspace(-40, 40, 4001)
    width = blend.width(np.stack([np.ones_like(theta), theta]), risk)
    assert np.diff(width, 2).min() > -1e-9 * width.max()
    assert np.abs(np.diff(width)).max() <= blend.width(np.array([[0.0], [1.0]]), risk)[0] * 0.02 * (1 + 1e-6)


# --- variances ----------------------------------------------------------------------------------------


def variance_boxes(
    law: str,
    n: float,
    mu: float,
    v: float,
    confidence: float,
    *,
    sample: bool = False,
    understate: float = 1.0,
    size: int = DRAWS,
) -> tuple[Floats, Floats]:
    shift, scales = HALF**2 / 2, (30, 150, 3)
    exact = (mu * n, n * (v + mu * mu - shift), n)
    noisy = [value + draws(law, scale, f"V{scale}", size) for value, scale in zip(exact, scales, strict=True)]
    noises = [noise_of(law, scale) for scale in scales]
    told = [Noise(each.law, each.scale * understate, each.slack) for each in noises]
    return variance_interval(
        *noisy, (told[0], told[1], told[2]), half=HALF, shift=shift, sample=sample, risk=1 - confidence
    )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("n", [0, 1, 3, 10, 100, 50_000])
def test_variances_are_covered_whatever_the_group(law: str, n: float, confidence: float) -> None:
    for mu, v in ((0.0, 4.0), (8.0, 1.0), (5.0, 0.0), (0.0, HALF**2)):
        low, high = variance_boxes(law, n, mu, v, confidence, size=FEWER)
        check(within((low, high), v), confidence)
        assert ((low >= 0) & (low <= high)).all()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_variances_of_large_groups_are_hardly_conservative(law: str, confidence: float) -> None:
    n, mu, v = 50_000.0, 6.0, 20.0
    inside = within(variance_boxes(law, n, mu, v, confidence), v)
    # 1/16 of the risk goes to the mean, and close Laplace scales are moved apart by 1 %.
    check(inside, confidence, confidence + 0.12 * (1 - confidence))
    if confidence >= 0.9:
        with pytest.raises(AssertionError):
            check(within(variance_boxes(law, n, mu, v, confidence, understate=0.85), v), confidence)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [2, 5, 60, 5000])
def test_sample_variances_are_covered(law: str, n: int) -> None:
    mu, v = 2.0, 25.0
    truth = v * n / (n - 1)
    for confidence in (0.5, 0.95):
        check(within(variance_boxes(law, n, mu, v, confidence, sample=True, size=FEWER), truth), confidence)


@pytest.mark.parametrize("law", LAWS)
def test_variances_beat_the_box_of_two_ratios(law: str) -> None:
    n, mu, v, confidence = 5000.0, 8.0, 10.0, 0.95
    low, high = variance_boxes(law, n, mu, v, confidence)
    shift, third = HALF**2 / 2, (1 - confidence) / 2
    total, squares = mu * n + draws(law, 30, "V30"), n * (v + mu * mu - shift) + draws(law, 150, "V150")
    count = n + draws(law, 3, "V3")
    noises = {scale: noise_of(law, scale) for scale in (30, 150, 3)}
    first = mean_interval(total, count, (noises[30], noises[3]), lower=-HALF, upper=HALF, risk=third)
    second = mean_interval(squares, count, (noises[150], noises[3]), lower=-shift, upper=shift, risk=third)
    box = (second[1] - first[0] ** 2) - (second[0] - first[1] ** 2)
    assert (high - low).mean() < 0.75 * box.mean()


def test_a_count_within_one_of_its_noise_says_nothing() -> None:
    noises = (Noise("laplace", 10.0), Noise("laplace", 2.0))
    edge = noises[1].width(0.1)
    low, high = mean_interval(
        np.zeros(2), np.array([edge + 0.9, edge + 1.1]), noises, lower=-HALF, upper=HALF, risk=0.1
    )
    assert (low[0], high[0]) == (-HALF, HALF)
    wide = mean_interval(np.zeros(1), np.array([40 * edge]), noises, lower=-HALF, upper=HALF, risk=0.1)
    assert -HALF < wide[0][0] < wide[1][0] < HALF


def test_a_variance_allows_for_every_mean_that_is_not_refuted() -> None:
    noises = (Noise("laplace", 30.0), Noise("laplace", 1e-6), Noise("laplace", 1e-6))
    total, squares, count = (np.array([each]) for each in (100.0, 0.0, 200.0))
    low_mu, high_mu = mean_interval(
        total, count, (noises[0], noises[2]), lower=-HALF, upper=HALF, risk=0.1 / 16
    )
    _, high = variance_interval(total, squares, count, noises, half=HALF, shift=50.0, sample=False, risk=0.1)
    for mu in (low_mu[0], high_mu[0]):
        assert high[0] >= 50 - 2 * mu * 0.5 + mu * mu > 50 - 0.25


def test_nothing_breaks_at_the_ends() -> None:
    noises = (Noise("laplace", 1e-300), Noise("laplace", 1e300))
    huge = mean_interval(np.array([1e308, -1e308, 0.0]), np.array([1e-300, 1e308, 0.0]), noises,
                         lower=-1.0, upper=1.0, risk=0.05)  # fmt: skip
    assert np.isfinite(huge).all()
    empty = mean_interval(np.zeros(0), np.zeros(0), noises, lower=-1.0, upper=1.0, risk=0.05)
    assert empty[0].shape == (0,)
    none = np.zeros((2, 1))
    assert Blend(noises).width(none, 0.05).tolist() == [0.0]
