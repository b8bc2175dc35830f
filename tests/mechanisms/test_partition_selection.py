"""Partition selection: optimal, private with its counts, and honest about the luck of those that survive."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms.partition_selection import PartitionSelection, _Law
from sfumato.numeric.figures import ball, upper
from sfumato.testing import seeded

BITS = 1200
HAIR = Fraction(1, 2**600)  # what balls of that precision leave open
CASES = {
    "usual": PartitionSelection(1, "1e-5"),
    "three groups": PartitionSelection(1, "0.01", groups=3),
    "exchange": PartitionSelection("1.5", "0.01", groups=2, exchange=True),
    "steep": PartitionSelection(5, "1e-8"),
    "very steep": PartitionSelection(60, "1e-9"),
    "flat": PartitionSelection("0.05", "1e-3"),
    "nearly uniform": PartitionSelection("1e-6", "0.1"),
    "two steps": PartitionSelection(1, "0.4"),
    "one half": PartitionSelection(1, "0.5"),
    "mostly delta": PartitionSelection(1, "0.9"),
    "thousand groups": PartitionSelection(1000, "1e-12", groups=1000),
}
cases = pytest.mark.parametrize("mechanism", CASES.values(), ids=CASES)


def optimal(rate: Fraction, risk: Fraction) -> list[arb]:
    """π(0), π(1), … up to 1: the recursion of Desfontaines et al. 2022, Theorem 1, as it is written."""
    x, delta, shares = ball(rate).exp(), ball(risk), [arb(0)]
    while shares[-1] < 1:
        last = shares[-1]
        shares.append((x * last + delta).min(1 - (1 - last - delta) / x).min(arb(1)))
    return shares


def weights(law: _Law) -> list[arb]:
    """What the sampler gives each J: the chance of a part times that of a place in it, part by part."""
    q = (-ball(law.rate)).exp()

    def places(length: int) -> list[arb]:
        return [(1 - q) * q**i / (1 - q**length) for i in range(length)]

    rise = law.rise() if law.rising > 1 else ball(law.risk)
    end = law._end() if law.falling else arb(1)
    rising = [rise * p for p in reversed(places(law.rising))]
    return [*rising, *((1 - rise) * (1 - end) * p for p in places(law.falling)), (1 - rise) * end]


def released(mechanism: PartitionSelection, count: int) -> dict[int | None, arb]:
    """The exact law of what `release` gives for one group: its own code, run on every J there is.

    A group of no units does not occur in the data, and so in no answer.
    """
    if count == 0:
        return {None: arb(1)}
    law = mechanism._law
    with mock.patch.object(_Law, "draw", lambda self, size: np.arange(size)):
        kept, noisy = mechanism.release(np.full(law.length, count))
    outputs: dict[int | None, arb] = defaultdict(lambda: arb(0))
    for survived, shown, p in zip(kept.tolist(), noisy.tolist(), weights(law), strict=True):
        outputs[shown if survived else None] += p
    return dict(outputs)


def joint(first: dict, second: dict) -> dict:
    return {(a, b): p * q for a, p in first.items() for b, q in second.items()}


def excess(p: dict, q: dict, epsilon: Fraction) -> Fraction:
    """The largest P(E) − e^ε·Q(E) over all events E, from above."""
    x = ball(epsilon).exp()
    return upper(sum(((mass - x * q.get(y, arb(0))).max(arb(0)) for y, mass in p.items()), arb(0)))


def touched(mechanism: PartitionSelection) -> int:
    return mechanism.groups * (2 if mechanism.exchange else 1)


def worst(mechanism: PartitionSelection) -> Fraction:
    """What delta one group needs at its epsilon, over all counts one apart and in both directions."""
    with ctx.workprec(BITS):
        laws = [released(mechanism, n) for n in range(mechanism._law.length + 3)]
        rate = mechanism.epsilon / touched(mechanism)
        return max(excess(a, b, rate) for pair in pairwise(laws) for a, b in (pair, pair[::-1]))


# Planted bugs: each claims the price of the mechanism that it stands in for.


class AtLeast(PartitionSelection):
    """The threshold itself is enough."""

    __slots__ = ()

    def release(self, counts):
        noisy = counts + (self.threshold - self._law.draw(counts.size)).reshape(counts.shape)
        kept = (noisy >= self.threshold) & (counts > 0)
        return kept, np.where(kept, noisy, 0)


class Mentioned(PartitionSelection):
    """A count that did not survive is shown as such, which tells that the group is there."""

    __slots__ = ()

    def release(self, counts):
        noisy = counts + (self.threshold - self._law.draw(counts.size)).reshape(counts.shape)
        return counts > 0, noisy


def with_law(mechanism: PartitionSelection, law: _Law) -> PartitionSelection:
    planted = PartitionSelection(
        mechanism.epsilon, mechanism.delta, groups=mechanism.groups, exchange=mechanism.exchange
    )
    for name, value in (("_law", law), ("_threshold", law.centre())):
        object.__setattr__(planted, name, value)
    return planted


def undivided(mechanism: PartitionSelection) -> PartitionSelection:
    """Every group has the whole delta."""
    return with_law(mechanism, _Law.of(mechanism.per_group[0], mechanism.delta))


@cases
def test_a_group_survives_as_often_as_any_mechanism_of_the_price_lets_it(mechanism) -> None:
    with ctx.workprec(BITS):
        best = [upper(share) for share in optimal(*mechanism.per_group)]
    assert mechanism.certain == len(best) - 1
    assert mechanism.keep_probability(0) == 0
    for n, share in enumerate(best):
        told = Fraction(mechanism.keep_probability(n))
        assert 0 <= share - told <= share / 2**52  # rounded down, and by no more than that
    assert mechanism.keep_probability(len(best) + 5) == 1


@settings(max_examples=60)
@given(
    epsilon=st.fractions(Fraction(1, 20), 8, max_denominator=1000),
    delta=st.fractions(Fraction(1, 10**6), Fraction(9, 10), max_denominator=10**7),
)
def test_the_optimum_holds_for_every_price_and_is_private_with_its_counts(epsilon, delta) -> None:
    mechanism = PartitionSelection(epsilon, delta)
    with ctx.workprec(BITS):
        best = optimal(epsilon, delta)
        assert mechanism.certain == len(best) - 1
        law = weights(mechanism._law)
        for n, share in enumerate(best[:-1]):
            assert abs(upper(best[n + 1] - share) - upper(law[n])) < HAIR
    if mechanism.certain < 40:
        assert abs(worst(mechanism) - delta) < HAIR


@cases
def test_the_parts_that_are_drawn_make_up_the_law(mechanism) -> None:
    with ctx.workprec(BITS):
        law, total = mechanism._law, arb(0)
        assert len(weights(law)) == law.length
        for j, p in enumerate(weights(law)):
            assert p > 0
            assert abs(upper(law.kept(j) - total)) < HAIR
            total += p
        assert abs(upper(total) - 1) < HAIR


@cases
def test_survival_and_count_together_need_just_their_delta(mechanism) -> None:
    """Over all neighbouring counts and all events, in exact arithmetic, running the release itself."""
    assert abs(worst(mechanism) - mechanism.delta / touched(mechanism)) < HAIR
    with mock.patch.object(_Law, "draw", lambda self, size: np.arange(size)):
        assert not mechanism.release(np.zeros(mechanism._law.length, np.int64))[0].any()


@pytest.mark.parametrize("name", ["usual", "steep", "flat", "two steps", "one half"])
def test_a_threshold_that_is_reached_is_not_passed(name) -> None:
    honest = CASES[name]
    planted = AtLeast(honest.epsilon, honest.delta, groups=honest.groups)
    assert worst(planted) > honest.per_group[1] * Fraction(5, 4)
    assert worst(Mentioned(honest.epsilon, honest.delta)) > 1 - HAIR


@pytest.mark.parametrize("name", ["three groups", "exchange", "thousand groups"])
def test_delta_is_divided_by_the_groups(name) -> None:
    honest = CASES[name]
    share = Fraction(1, touched(honest))
    assert honest.per_group == (honest.epsilon * share, honest.delta * share)
    assert worst(undivided(honest)) > honest.delta - HAIR


def test_noise_that_is_cut_off_early_or_falls_too_fast_is_seen() -> None:
    honest = CASES["three groups"]
    rate, risk = honest.per_group
    assert worst(with_law(honest, _Law.of(2 * rate, risk))) > 2 * risk
    law = honest._law
    shorter = dataclasses.replace(law, rising=law.rising, falling=law.falling - 2)
    assert worst(with_law(honest, shorter)) > risk * Fraction(11, 10)


@pytest.mark.parametrize("exchange", [False, True], ids=["add or remove", "exchange"])
def test_a_unit_in_two_groups_by_brute_force(exchange) -> None:
    mechanism = PartitionSelection(2, "0.05", groups=1 if exchange else 2, exchange=exchange)
    single = PartitionSelection(2, "0.05")  # what forgets the second group
    most = mechanism._law.length + 1
    with ctx.workprec(BITS):
        for planted, red in ((mechanism, False), (single, True)):
            laws, found = [released(planted, n) for n in range(most + 1)], Fraction(0)
            for a in range(most):
                for b in range(a, most):
                    # Joining both groups; or leaving one for the other.
                    one = joint(laws[a + exchange], laws[b])
                    other = joint(laws[a + (not exchange)], laws[b + 1])
                    found = max(found, excess(one, other, Fraction(2)), excess(other, one, Fraction(2)))
            assert (found > mechanism.delta) is red


def test_a_unit_alone_in_a_thousand_groups_is_seen_with_probability_delta_at_most() -> None:
    for delta in ("0.01", "1e-5", "1e-12"):
        mechanism = PartitionSelection(1, delta, groups=1000)
        with ctx.workprec(BITS):
            alone = upper(1 - (1 - mechanism._law.kept(1)) ** 1000)
            assert mechanism.delta * Fraction(99, 100) < alone <= mechanism.delta
            assert upper(1 - (1 - undivided(mechanism)._law.kept(1)) ** 1000) > 9 * mechanism.delta
        both = PartitionSelection(1, delta, groups=1000, exchange=True)
        assert Fraction(both.keep_probability(1)) <= mechanism.delta / 2000


def test_where_delta_fits_the_noise_is_the_truncated_symmetric_geometric_law() -> None:
    """The law of the paper's Section 4: P(x) ∝ e^(−ε|x|) up to ±k, whose last step is delta."""
    k, epsilon = 6, Fraction(1, 2)
    with ctx.workprec(BITS):
        parts = [(-ball(epsilon) * abs(x)).exp() for x in range(-k, k + 1)]
        ends = upper(parts[0] / sum(parts, arb(0)))
    for hair in (-1, 1):
        mechanism = PartitionSelection(epsilon, ends + hair * Fraction(1, 10**30))
        formula = math.log((math.expm1(0.5) + 2 * ends) / ((math.exp(0.5) + 1) * ends)) / 0.5
        assert formula == pytest.approx(k)
        assert mechanism.threshold == k
        assert mechanism.certain in (2 * k + 1, 2 * k + 2)
        with ctx.workprec(BITS):
            p = weights(mechanism._law)[: 2 * k + 1]
            shares = [float((a * sum(parts, arb(0)) / b).mid()) for a, b in zip(p, parts, strict=True)]
        assert shares == pytest.approx([1] * len(parts), rel=1e-12)
        assert abs(mechanism.bias) < 1e-12


@cases
def test_threshold_variance_bias_and_widths_are_those_of_the_law(mechanism) -> None:
    with ctx.workprec(BITS):
        law = weights(mechanism._law)
        exact = [upper(p) for p in law]
    noise = [mechanism.threshold - j for j in range(len(law))]
    mean = sum(x * p for x, p in zip(noise, exact, strict=True))
    variance = sum(x * x * p for x, p in zip(noise, exact, strict=True)) - mean * mean
    assert mechanism.bias == pytest.approx(float(mean), rel=1e-9, abs=1e-15)
    assert abs(mechanism.bias) <= 0.5
    assert variance - HAIR <= Fraction(mechanism.variance) <= variance * (1 + Fraction(1, 2**51))
    x, delta = math.exp(mechanism.per_group[0]), float(mechanism.per_group[1])
    steps = math.log((x - 1 + 2 * delta) / ((x + 1) * delta)) / float(mechanism.per_group[0])
    assert math.floor(steps) <= mechanism.threshold <= math.ceil(steps)
    for confidence in ("0.1", "0.5", "0.95", "0.999999"):
        for size in (1, 10):
            width = mechanism.error(confidence, size=size)
            inside = [
                sum(p for x, p in zip(noise, exact, strict=True) if abs(x) <= w) for w in _around(width)
            ]
            assert inside[1] ** size >= Fraction(confidence) - HAIR
            assert width == 0 or inside[0] ** size <= Fraction(confidence)


def _around(width: float) -> tuple[float, float]:
    return width - 1, width


def shares_of(mechanism: PartitionSelection, most: int) -> np.ndarray:
    """π(0), …, π(most), then zeros: what negative indices from −most on must read."""
    with ctx.workprec(BITS):
        shares = [float(share.mid()) for share in optimal(*mechanism.per_group)][: most + 1]
    return np.array([*shares, *[1.0] * (most + 1 - len(shares)), *[0.0] * most])


def tail(shares: np.ndarray, n: np.ndarray, above: int) -> np.ndarray:
    """The smaller of P(as many or more | survived) and P(as many or fewer | survived) for true counts n."""
    return np.minimum(shares[n - above], shares[n] - shares[n - above - 1]) / shares[n]


def coverage(shares: np.ndarray, n: int, inside: np.ndarray) -> float:
    """P(n is inside | survived) where `inside[d]` says whether it is at a noisy count d above the least."""
    above = np.arange(n)
    return float((shares[n - above] - shares[n - above - 1])[inside[:n]].sum() / shares[n])


INTERVALS = ["three groups", "steep", "flat", "nearly uniform", "two steps", "one half", "mostly delta"]


@pytest.mark.parametrize("name", INTERVALS)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_intervals_invert_the_law_given_survival(name, confidence) -> None:
    mechanism, alpha = CASES[name], (1 - confidence) / 2
    most = 2 * mechanism.certain + 5
    shares = shares_of(mechanism, most + mechanism.certain + 2)
    above = np.arange(most)
    low, high = mechanism.interval(mechanism.threshold + 1 + above, confidence)
    assert low.dtype == high.dtype == np.int64
    assert (low >= 1).all()
    assert (low <= high).all()
    for d in above.tolist():
        n = np.arange(1, d + mechanism.certain + 2)
        allowed, wanted = (n[tail(shares, n, d) > alpha + hair] for hair in (-1e-9, 1e-9))
        assert allowed.min() <= low[d] <= wanted.min(initial=most + mechanism.certain)
        assert wanted.max(initial=1) <= high[d] <= allowed.max()


@pytest.mark.parametrize("name", INTERVALS)
def test_intervals_cover_every_count_given_that_it_survived(name) -> None:
    mechanism = CASES[name]
    most = 2 * mechanism.certain + 3
    noisy, shares = mechanism.threshold + 1 + np.arange(most), shares_of(mechanism, most)
    for confidence in (0.5, 0.9, 0.99):
        low, high = mechanism.interval(noisy, confidence)
        for n in range(1, most):
            assert coverage(shares, n, (low <= n) & (n <= high)) >= confidence - 1e-12


def test_intervals_that_forget_the_selection_do_not_cover() -> None:
    mechanism = PartitionSelection(1, "1e-5")
    noisy, shares = mechanism.threshold + 1 + np.arange(40), shares_of(mechanism, 40)
    assert coverage(shares, 3, np.abs(noisy - 3) <= mechanism.error("0.95")) == 0
    low, high = mechanism.interval(noisy, "0.95")
    assert coverage(shares, 3, (low <= 3) & (high >= 3)) >= 0.95


def test_far_from_the_threshold_intervals_move_with_the_count() -> None:
    mechanism = PartitionSelection("0.1", "1e-6", groups=3)
    far = mechanism.threshold + 2 * mechanism.certain + np.array([0, 1, 1000, 2**61])
    low, high = mechanism.interval(far, "0.95")
    assert (np.ptp(far - low), np.ptp(high - far)) == (0, 0)
    assert abs(int(high[0] - low[0]) - 2 * mechanism.error("0.95")) <= 2
    assert mechanism.interval(far.reshape(2, 2), "0.95")[0].shape == (2, 2)
    assert mechanism.interval([], "0.95")[0].shape == (0,)
    assert mechanism.interval(far, "0.9999999999999")[0][0] < low[0]
    for bad in (mechanism.threshold, 0, -5):
        with pytest.raises(InvalidValue, match="survived"):
            mechanism.interval([bad], "0.95")
    for confidence in (0, 1, 2, math.nan):
        with pytest.raises(InvalidParameter):
            mechanism.interval(far, confidence)


def test_release_keeps_shapes_and_hides_what_does_not_survive() -> None:
    mechanism = PartitionSelection(1, "1e-6")
    counts = np.array([[0, 1, 10], [1000, 2**61, 2**63 - 1]])
    with seeded(2):
        kept, noisy = mechanism.release(counts)
    assert kept.dtype == bool
    assert noisy.dtype == np.int64
    assert kept.shape == noisy.shape == (2, 3)
    assert kept.tolist()[1] == [True, True, True]
    assert not kept[0, 0]
    assert (noisy[~kept] == 0).all()
    assert (noisy[kept] > mechanism.threshold).all()
    assert abs(noisy[1, 2] - 2**61) <= mechanism.certain  # clamped there
    assert [part.shape for part in mechanism.release([])] == [(0,), (0,)]
    assert [part.shape for part in mechanism.release(5)] == [(), ()]
    assert mechanism.release(np.array([3, 4], np.int16))[1].dtype == np.int64
    with seeded(3):
        assert not mechanism.release(np.zeros(200_000, np.int64))[0].any()


def test_release_refuses_what_is_no_count() -> None:
    mechanism = PartitionSelection(1, "1e-6")
    for bad in (
        [987654321, -1],
        [987654321.0, 2.0],
        [True],
        ["1"],
        None,
        math.nan,
        np.ma.masked_array([1], [True]),
    ):
        with pytest.raises(InvalidValue) as refusal:
            mechanism.release(bad)
        assert "987654321" not in str(refusal.value)


def test_the_price_is_one_exact_point() -> None:
    mechanism = sf.PartitionSelection(0.1, 1e-6, groups=4)
    assert mechanism.loss.approximate == (Fraction(1, 10), Fraction(1, 10**6))
    assert mechanism.loss.pure is None
    assert repr(mechanism) == "PartitionSelection(epsilon=0.1, delta=1e-06, groups=4)"
    assert repr(PartitionSelection(1, "0.01", exchange=True)).endswith("groups=1, exchange=True)")
    assert mechanism == PartitionSelection("0.1", "1e-6", groups=4)
    assert mechanism != PartitionSelection("0.1", "1e-6", groups=4, exchange=True)
    assert (
        PartitionSelection(1, "1e-6", groups=2).per_group
        == PartitionSelection(1, "1e-6", exchange=True).per_group
    )


def test_unusable_parameters_are_refused_in_a_sentence() -> None:
    for arguments, named in (
        ((0, "0.1"), {}),
        ((-1, "0.1"), {}),
        ((1, 0), {}),
        ((1, 1), {}),
        ((1, "0.1"), {"groups": 0}),
        ((1, "0.1"), {"groups": 1.5}),
        ((1, "0.1"), {"groups": True}),
        ((701, "0.1"), {}),
        (("1e-20", "0.1"), {}),
        ((1, "1e-299"), {"groups": 1000}),
        ((1, "0.1"), {"groups": 2**60}),
    ):
        with pytest.raises(InvalidParameter) as refusal:
            PartitionSelection(*arguments, **named)
        assert str(refusal.value).endswith(".")
    for bad in (-1, 1.5, True):
        with pytest.raises(InvalidParameter):
            PartitionSelection(1, "0.1").keep_probability(bad)


@pytest.mark.parametrize(
    ("epsilon", "delta", "groups"),
    [
        ("1e-9", "1e-12", 1000),
        (700, "1e-299", 1),
        ("1e-12", "0.999", 1),
        (1, "1e-12", 1000),
        ("0.01", "1e-290", 7),
    ],
)
def test_extreme_prices_still_draw(epsilon, delta, groups) -> None:
    mechanism = PartitionSelection(epsilon, delta, groups=groups)
    least = mechanism.certain
    with seeded(4):
        kept, noisy = mechanism.release(np.full(300, least))
    assert kept.all()
    assert (np.abs(noisy - least) <= least).all()
    rate, risk = mechanism.per_group
    assert Fraction(mechanism.keep_probability(1)) == pytest.approx(risk, rel=1e-15)
    assert mechanism.keep_probability(least) == 1
    assert 0 < mechanism.variance <= least**2
    assert 0 <= mechanism.error("0.99") <= least
    low, high = mechanism.interval(noisy, "0.9")
    assert ((low <= least) & (least <= high)).mean() > 0.7
    assert (low <= high).all()
    assert 2 * rate * mechanism.threshold >= rate * (least - 2)
