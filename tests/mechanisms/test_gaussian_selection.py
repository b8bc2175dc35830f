"""Selection by Gaussian noise: private for all neighbours, honest, and taken where it finds more."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import GaussianSelection, PartitionSelection, gaussian_selection
from sfumato.mechanisms._survivors import with_gaussian
from sfumato.numeric.figures import ball
from sfumato.plan.prices.selecting import selection_of
from sfumato.testing import assert_bernoulli, assert_discrete, seeded

BITS = 400
CASES = {
    "usual": GaussianSelection(1, "1e-5", groups=10),
    "one group": GaussianSelection(1, "0.01"),
    "exchange": GaussianSelection("1.5", "0.01", groups=3, exchange=True),
    "steep": GaussianSelection(20, "1e-9", groups=4),
    "flat": GaussianSelection("0.05", "1e-3", groups=5),
    "much delta": GaussianSelection(1, "0.4", groups=2),
    "many groups": GaussianSelection("0.5", "1e-6", groups=60),
}
cases = pytest.mark.parametrize("mechanism", CASES.values(), ids=CASES)


def beyond(x: arb) -> arb:
    """P(X ≥ x) of the normal law."""
    return (x / arb(2).sqrt()).erfc() / 2


def curve(log_ratio: arb, mu: arb) -> arb:
    """The δ of Gaussian noise whose values move by mu standard deviations, at ε = log_ratio."""
    if mu == 0:
        return (1 - log_ratio.exp()).max(arb(0))
    return beyond(log_ratio / mu - mu / 2) - log_ratio.exp() * beyond(log_ratio / mu + mu / 2)


def risks(mechanism: GaussianSelection) -> list[arb]:
    """The δ at the claimed ε, for every way in which neighbours can differ, in both directions.

    `mine` lone groups of one side, `yours` of the other, and as many groups in both as the limit leaves, of
    so many units that the threshold hides nothing of them: the worst case, since hiding is post-processing.
    """
    most, price = mechanism.groups, ball(mechanism.epsilon)
    sigma = ball(mechanism._variance).sqrt()
    kept = beyond((ball(mechanism.threshold) - arb(1) / 2) / sigma)
    found = []
    for mine in range(most + 1):
        for yours in range(most + 1) if mechanism.exchange else (0,):
            both = most - mine + (most - yours if mechanism.exchange else 0)
            mu = ball(both).sqrt() / sigma
            for own, other in ((mine, yours), (yours, mine)):
                none, free = (1 - kept) ** own, (1 - kept) ** other
                found.append(1 - none + none * curve(price + (free / none).log(), mu))
    return found


@cases
def test_every_pair_of_neighbours_is_within_the_price(mechanism):
    with ctx.workprec(BITS):
        worst = max(risks(mechanism), key=lambda risk: float(risk.mid()))
        assert all(risk <= ball(mechanism.delta) for risk in risks(mechanism))
        assert worst >= ball(mechanism.delta) / 4  # and little is wasted


@pytest.mark.parametrize("bug", ["no union over groups", "noise for one group", "threshold of nobody"])
def test_a_wrong_calibration_is_noticed(bug, monkeypatch):
    right, sigma = gaussian_selection._threshold, gaussian_selection.gaussian_sigma
    if bug == "no union over groups":
        monkeypatch.setattr(gaussian_selection, "_threshold", lambda v, r, g: right(v, r * 2, 1))
    elif bug == "threshold of nobody":
        monkeypatch.setattr(gaussian_selection, "_threshold", lambda v, r, g: right(v, r * 2, g) - 2)
    else:
        monkeypatch.setattr(gaussian_selection, "gaussian_sigma", lambda e, d: sigma(e, d) / 3)
    with ctx.workprec(BITS):
        assert any(risk > ball(Fraction("0.01")) for risk in risks(GaussianSelection(1, "0.01", groups=9)))


@cases
def test_the_chance_to_survive_is_that_of_the_law_and_rounded_down(mechanism):
    sigma = math.sqrt(mechanism._variance)
    top = mechanism.least("0.999")
    counts = np.unique(np.linspace(1, top, 20).astype(int))
    wanted = stats.norm.sf((mechanism.threshold + 0.5 - counts) / sigma)
    given = np.array([mechanism.keep_probability(int(count)) for count in counts])
    np.testing.assert_allclose(given, wanted, rtol=1e-9)
    assert mechanism.keep_probability(0) == 0
    assert mechanism.keep_probability(1) <= float(mechanism.delta) / 2 / mechanism.groups * 1.5
    for chance in ("0.01", "0.5", "0.99"):
        least = mechanism.least(chance)
        assert mechanism.keep_probability(least) >= float(chance) * (1 - 1e-9)
        assert least == 1 or mechanism.keep_probability(least - 1) < float(chance)


def test_what_is_released_has_the_law():
    mechanism, count, size = GaussianSelection(2, "0.05", groups=2), 6, 40_000
    with seeded(5):
        kept, noisy = mechanism.release(np.full(size, count))
        empty, none = mechanism.release(np.zeros(size, int))
    assert not empty.any()
    assert not none.any()
    assert ((noisy > mechanism.threshold) == kept).all()
    chance = mechanism.keep_probability(count)
    assert_bernoulli(int(kept.sum()), size, chance)
    places = np.arange(mechanism.threshold + 1, 60)
    edges = stats.norm.cdf((np.append(places, 60) - 0.5 - count) / mechanism.sigma)
    law = dict(zip(places.tolist(), (np.diff(edges) / chance).tolist(), strict=True))
    assert_discrete(noisy[kept], law)


@pytest.mark.parametrize("name", ["usual", "one group", "exchange", "steep", "much delta"])
def test_intervals_hold_for_survivors_of_every_count(name):
    mechanism = CASES[name]
    places = np.arange(mechanism.threshold + 1, mechanism.threshold + math.ceil(12 * mechanism.sigma) + 2)
    low, high = mechanism.interval(places, "0.9")
    assert (low <= high).all()
    for count in range(1, mechanism.least("0.999"), max(1, mechanism.threshold // 12)):
        steps = stats.norm.sf((places - 0.5 - count) / mechanism.sigma)
        law = (steps - stats.norm.sf((places + 0.5 - count) / mechanism.sigma)) / steps[0]
        assert law[(low <= count) & (count <= high)].sum() >= 0.9 - 1e-6


def test_figures():
    mechanism = CASES["usual"]
    with seeded(3):
        noise = with_gaussian(np.full(20_000, 10**6), mechanism._variance) - 10**6
    assert abs(noise.var() / mechanism.variance - 1) < 0.05
    assert mechanism.bias == 0
    width = mechanism.error("0.95")
    inside = stats.norm.cdf((width + 0.5) / mechanism.sigma) * 2 - 1
    assert inside >= 0.95 > stats.norm.cdf((width - 0.5) / mechanism.sigma) * 2 - 1
    assert mechanism.loss == PartitionSelection(1, "1e-5", groups=10).loss
    assert mechanism.certain is None


@pytest.mark.parametrize(
    "arguments",
    [(0, "0.1"), (1, 0), (1, 1), ("0.1", "0.9"), ("1e-18", "1e-30")],
)
def test_unusable_prices_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        GaussianSelection(*arguments)


def test_unusable_values_are_refused():
    mechanism = CASES["usual"]
    with pytest.raises(InvalidValue, match="fewer than 0"):
        mechanism.release([-1])
    with pytest.raises(InvalidValue, match="survived"):
        mechanism.interval([mechanism.threshold], "0.9")
    kept, noisy = mechanism.release(np.zeros((0, 2), int))
    assert kept.shape == noisy.shape == (0, 2)
    assert mechanism.release([2**62])[1][0] > 2**60


PRICES = [
    (Fraction(epsilon), Fraction(delta)) for epsilon in ("0.1", 1, 8) for delta in ("1e-3", "1e-6", "1e-10")
]


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_what_is_chosen_never_finds_less(epsilon, delta):
    better = 0
    for groups, exchange in itertools.product((1, 2, 4, 30), (False, True)):
        chosen = selection_of(epsilon, delta, groups=groups, exchange=exchange, counted=False)
        divided = PartitionSelection(epsilon, delta, groups=groups, exchange=exchange)
        if groups == 1 and not exchange:
            assert chosen == divided
        if chosen == divided:
            continue
        better += 1
        for count in range(divided.least("0.01"), divided.certain, max(1, divided.certain // 10)):
            assert chosen.keep_probability(count) >= min(divided.keep_probability(count) - 0.01, 0.99)
        counted = selection_of(epsilon, delta, groups=groups, exchange=exchange, counted=True)
        assert counted.error("0.95") <= divided.error("0.95")
    assert better >= 2  # thirty groups under either kind of neighbours
