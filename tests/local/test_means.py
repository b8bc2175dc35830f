"""Means of people's numbers: exact laws, unbiased estimates, intervals that hold, bad input refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local import _mean_laws
from sfumato.local._mean_bars import Spread, half_width, share_interval
from sfumato.local._mean_laws import STEPS
from sfumato.local.base import aggregate_from, randomizer_from
from sfumato.local.means import DuchiMean, HybridMean, MeanAggregate, PiecewiseMean
from sfumato.loss import PureLoss
from sfumato.testing import assert_discrete, assert_mean, seeded

KINDS = [DuchiMean, PiecewiseMean, HybridMean]
EPSILONS = ["0.1", "0.61", "1", "3", "8"]


def terms(made, reports):
    """The unbiased term of each report, from the listed law rather than from the aggregate."""
    low, span = float(made.lower), float(made.upper - made.lower)
    p = 1 / (1 + math.exp(-float(made.epsilon)))
    places, numbers = made._law.window.places, reports.astype(np.int64)
    if isinstance(made, DuchiMean):
        numbers = numbers + places
    ends = (numbers - places + p - 1) / (2 * p - 1)
    first, last = (chances(PiecewiseMean(made.epsilon, 0, 1), i)[:-2] @ np.arange(places) for i in (0, STEPS))
    return low + span * np.where(numbers < places, (numbers - first) / (last - first), ends)


def chances(made, point):
    """The law of a report for a grid point, listed: the places, then the two ends."""
    window, share = made._law.window, float(made._law.share)
    law = np.full(window.places + 2, window.outside / STEPS)
    law[point : point + window.width] = window.inside / window.width
    law *= share
    p, q = (1 / (1 + math.exp(-each)) for each in (float(made.epsilon), -float(made.epsilon)))
    t = point / STEPS
    law[-1] = (1 - share) * (t * p + (1 - t) * q)
    law[-2] = (1 - share) * (t * q + (1 - t) * p)
    return law


@pytest.mark.parametrize("epsilon", [*EPSILONS, "1e-6", "50"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_law_that_is_drawn_is_within_epsilon_and_reaches_it(kind, epsilon):
    made = kind(epsilon, 0, 1)
    laws = np.array([chances(made, point) for point in (0, 1, STEPS // 3, STEPS // 2, STEPS - 1, STEPS)])
    assert np.allclose(laws.sum(axis=1), 1, rtol=1e-12)
    laws = laws[:, laws.max(axis=0) > 0]
    ratio = np.log(laws.max(axis=0) / laws.min(axis=0))
    assert ratio.max() <= float(made.epsilon) * (1 + 1e-9) + 1e-11
    assert ratio.max() >= float(made.epsilon) * (1 - 1e-6) - 1e-11
    assert made.loss == PureLoss(Fraction(epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_window_is_exactly_as_likely_as_the_proof_says(epsilon):
    """The ratio of the two probabilities of the exact coin is e^ε to two hundred bits."""
    window = PiecewiseMean(epsilon, 0, 1)._law.window
    with ctx.workprec(300):
        a = window.coin.probability()
        ratio = (a / window.width) / ((1 - a) / STEPS)
        exact = Fraction(epsilon)
        assert abs(ratio.log() - arb(exact.numerator) / exact.denominator).upper() < arb(2) ** -200


@pytest.mark.parametrize("point", [0, 1, STEPS // 3, STEPS])
@pytest.mark.parametrize("kind", KINDS)
def test_reports_follow_the_law(kind, point):
    made = kind("1.2", -3, 5)
    value = float(made.lower + (made.upper - made.lower) * Fraction(point, STEPS))
    with seeded(f"{kind.__name__} {point}"):
        reports = made.encode(np.full(100_000, value)).astype(np.int64)
    law, places = chances(made, point), made._law.window.places
    if kind is DuchiMean:
        law, places = law[-2:], 0
    edges = np.unique(np.r_[np.linspace(0, places, 60).astype(int), point, point + made._law.window.width])
    edges = np.unique(np.r_[edges[edges <= places], places, places + 1])
    observed = np.searchsorted(edges, reports, side="right") - 1
    sums = np.add.reduceat(law, edges[edges < law.size])
    expected = {i: mass for i, mass in enumerate(sums) if mass > 0}
    assert_discrete(observed, expected)


@pytest.mark.parametrize("point", range(6))
def test_every_place_of_a_coarse_grid_has_its_probability(point, monkeypatch):
    """The same law with so few steps that one place too many or too few would show."""
    monkeypatch.setattr(_mean_laws, "STEPS", 5)
    window = _mean_laws.Window.at(Fraction(1))
    assert window.width == 3
    with seeded(point):
        drawn = window.draw(np.full(50_000, point / 5))
    a = math.e * 3 / (math.e * 3 + 5)
    law = {place: a / 3 if point <= place < point + 3 else (1 - a) / 5 for place in range(8)}
    assert_discrete(drawn, law)
    mean = sum(place * chance for place, chance in law.items())
    assert window.start + point * window.slope == pytest.approx(mean)
    variance = sum((place - mean) ** 2 * chance for place, chance in law.items())
    assert window.variance(point) == pytest.approx(variance)


def test_a_number_between_two_points_is_rounded_by_lot(monkeypatch):
    monkeypatch.setattr(_mean_laws, "STEPS", 5)
    window = _mean_laws.Window.at(Fraction(3))
    assert window.width == 1
    with seeded("between"):
        drawn = window.draw(np.full(50_000, 0.45))
    a = math.e**3 / (math.e**3 + 5)
    law = {place: 0.75 * (a if place == 2 else (1 - a) / 5) for place in range(6)}
    assert_discrete(drawn, {place: law[place] + 0.25 * (a if place == 3 else (1 - a) / 5) for place in law})


@pytest.mark.parametrize("value", [-3.0, -1.2345, 0.7, 5.0])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS)
def test_terms_are_unbiased_with_the_stated_variance(kind, epsilon, value):
    made, people = kind(epsilon, -3, 5), 60_000
    with seeded(f"{kind.__name__} {epsilon} {value}"):
        reports = made.encode(np.full(people, value))
    each = terms(made, reports)
    variance = made.variance_at(value)
    assert made.aggregate(reports).estimate().value == pytest.approx(each.mean(), abs=1e-9)
    assert_mean(each, value, deviation=math.sqrt(variance), tail=np.abs(each - value).max() + 1e-9)
    rare = np.mean((each - value) ** 4) / variance**2 / people  # of the ratio, its variance
    assert abs(each.var() / variance - 1) < max(0.1, 6 * math.sqrt(rare))
    assert variance <= made.variance * (1 + 1e-12)


def test_variances_are_those_of_the_literature():
    """Duchi et al. and Wang et al. over [−1, 1]; the grid costs less than a millionth part."""
    for epsilon in (0.3, 1.0, 2.5, 5.0):
        e, root = math.exp(epsilon), math.exp(epsilon / 2)
        for x in (-1.0, -0.4, 0.0, 0.9):
            duchi = ((e + 1) / (e - 1)) ** 2 - x * x
            piecewise = x * x / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
            share = 1 - 1 / root if epsilon > 0.61 else 0.0
            hybrid = share * piecewise + (1 - share) * duchi
            assert DuchiMean(epsilon, -1, 1).variance_at(x) == pytest.approx(duchi, rel=1e-9)
            assert PiecewiseMean(epsilon, -1, 1).variance_at(x) == pytest.approx(piecewise, rel=2e-4)
            assert HybridMean(epsilon, -1, 1).variance_at(x) == pytest.approx(hybrid, rel=2e-4)
    assert HybridMean(1, -1, 1).variance < min(DuchiMean(1, -1, 1).variance, PiecewiseMean(1, -1, 1).variance)


def test_the_printed_estimator_would_be_biased():
    """p − 1 belongs to every answer: added once to their sum, as is printed, the estimate is far off."""
    made, people = DuchiMean(1, 0, 1), 100_000
    with seeded(4):
        reports = made.encode(np.full(people, 0.25))
    p = 1 / (1 + math.exp(-1))
    assert made.aggregate(reports).estimate().value == pytest.approx((reports.mean() + p - 1) / (2 * p - 1))
    printed = (int(reports.sum()) + p - 1) / ((2 * p - 1) * people)
    assert abs(printed - 0.25) > 0.5


def test_errors_follow_the_best_rate_there_is():
    """1/(ε√n) up to a constant, for ε up to 1: Duchi, Jordan, Wainwright 2018."""
    for epsilon in (0.1, 0.3, 1.0):
        for people in (100, 10_000):
            made, turns = HybridMean(epsilon, -1, 1), 300
            with seeded(f"rate {epsilon} {people}"):
                reports = made.encode(np.zeros(turns * people)).reshape(turns, people)
            errors = [made.aggregate(each).estimate().value for each in reports]
            assert 1.7 < np.sqrt(np.mean(np.square(errors))) * epsilon * math.sqrt(people) < 2.6


@pytest.mark.parametrize("people", [1, 7, 60, 3000])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "5"])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_as_often_as_they_say(kind, epsilon, people):
    made, turns = kind(epsilon, 0, 100), 400
    with seeded(f"bars {kind.__name__} {epsilon} {people}"):
        numbers = np.linspace(0, 100, people) ** 1.5 / 10 if people > 1 else np.array([93.0])
        reports = made.encode(np.tile(numbers, turns)).reshape(turns, people)
    for confidence in (0.5, 0.95):
        found = [made.aggregate(each).estimate(confidence) for each in reports]
        held = sum(each.low <= numbers.mean() <= each.high for each in found)
        assert held >= stats.binom.ppf(1e-9, turns, confidence)
        assert all(0 <= each.low <= each.high <= 100 for each in found)
        assert all(each.low <= min(max(each.value, 0), 100) <= each.high for each in found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_of_one_report_keeps_to_the_bounds(kind):
    made = kind(1, -20, "33.3")
    for number in (-20, 7, 33.3):
        with seeded(f"one {number}"):
            found = [made.aggregate(made.encode([number])).estimate() for _ in range(20)]
        assert any(not -20 <= each.value <= 33.3 for each in found)  # unbiased, and not moved
        assert all(-20 <= each.low <= each.high <= 33.3 for each in found)


def test_intervals_come_close_to_normal_ones():
    for kind in KINDS:
        made, people = kind(1, -1, 1), 1_000_000
        with seeded(kind.__name__):
            found = made.aggregate(made.encode(np.full(people, 0.2))).estimate()
        normal = 1.96 * math.sqrt(made.variance_at(0.2) / people)
        assert 0.999 < (found.high - found.low) / 2 / normal < 1.05
        assert abs(found.value - 0.2) < 4 * normal


def test_half_widths_hold_for_the_worst_law_of_a_spread():
    """Terms at the ends of their range as often as their variance allows, summed exactly."""
    spread = Spread(center=0.3, slope=0.8, reach=2.0)
    for people in (1, 4, 30, 300, 3000):
        for t in (0.0, 0.5, 0.9):
            variance = spread.center + spread.slope * (t - 0.5) ** 2
            # Rare and far above, otherwise just below: as skewed as reach and variance allow.
            far = spread.reach + 0.5 - t
            chance = variance / (variance + far * far)
            counts = np.arange(people + 1)
            mean = t + (counts * far - (people - counts) * variance / far) / people
            square = variance + (t - 0.5) ** 2
            width = half_width(spread, people, square, 0.95)
            missed = stats.binom.pmf(counts, people, chance)[np.abs(mean - t) > width].sum()
            assert missed <= 0.05


@pytest.mark.parametrize("people", [1, 2, 5, 40])
def test_share_intervals_hold_for_unequal_answers(people):
    """All sums of answers with two different probabilities, exactly."""
    bounds = [share_interval(ones, people, 0.9) for ones in range(people + 1)]
    for p in (0.0, 1e-3, 0.02, 0.3, 0.5):
        for q in (0.0, 0.01, 0.5, 0.97, 1.0):
            for first in {0, 1, people // 2, people}:
                law = np.convolve(
                    stats.binom.pmf(range(first + 1), first, p),
                    stats.binom.pmf(range(people - first + 1), people - first, q),
                )
                mean = (first * p + (people - first) * q) / people
                held = sum(law[i] for i, (low, high) in enumerate(bounds) if low <= mean <= high)
                assert held >= 0.9 - 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_batches_merge_and_travel(kind):
    made = kind("0.7", "-1.5", 2)
    reports = made.encode(np.linspace(-1.5, 2, 5000))
    whole = made.aggregate(reports)
    parts = made.aggregate([reports[:1], reports[1:1], reports[1:4000]]) + made.aggregate(reports[4000:])
    assert parts.to_dict() == whole.to_dict()
    again = aggregate_from(whole.to_dict())
    assert isinstance(again, MeanAggregate)
    assert again.estimate(0.9) == whole.estimate(0.9)
    assert randomizer_from(made.to_dict()) == made
    assert made.fingerprint != kind("0.8", "-1.5", 2).fingerprint
    with pytest.raises(InvalidParameter, match="another epsilon"):
        whole + kind("0.8", "-1.5", 2).start()


def test_sums_of_squares_do_not_wrap():
    made = PiecewiseMean("1e-3", 0, 1)
    last = made._law.window.places - 1
    aggregate = made.aggregate(np.full(100_000, last, np.uint16))
    assert aggregate.squares == 100_000 * last**2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "values",
    [[0.0, 1.1], [-0.001], [math.nan], [math.inf], ["a"], [None], np.array([True]), [[0.5]], 0.5, [1 + 0j]],
)
def test_values_outside_are_refused_without_being_shown(kind, values):
    with pytest.raises(InvalidValue) as caught:
        kind(1, 0, 1).encode(values)
    assert "1.1" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_reports_of_others_change_nothing(kind):
    made = kind(1, 0, 1)
    aggregate = made.aggregate(made.encode([0.5] * 10))
    before = aggregate.to_dict()
    largest = np.iinfo(made.report_dtype).max
    for reports in (
        np.array([0, largest], made.report_dtype),
        np.array([0, 1], np.int64),
        np.array([[0, 1]], made.report_dtype),
        np.array(1, made.report_dtype),
    ):
        with pytest.raises(InvalidValue):
            aggregate.add(reports)
    assert aggregate.to_dict() == before
    with pytest.raises(InvalidValue, match="no reports"):
        made.start().estimate()


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_checked(kind):
    wrong = ((0, 0, 1), (51, 0, 1), (1, 1, 1), (1, 2, 1), (1, "x", 1), (1, math.inf, 2), (1, 0, "1e400"))
    for arguments in wrong:
        with pytest.raises(InvalidParameter):
            kind(*arguments)
    with pytest.raises(InvalidParameter):
        kind.from_dict({"kind": kind.wire, "epsilon": "1", "lower": "0"})
    with pytest.raises(InvalidParameter, match="confidence"):
        kind(1, 0, 1).aggregate(kind(1, 0, 1).encode([0.5])).estimate(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_states_that_cannot_be_are_refused(kind):
    made = kind(2, 0, 1)
    good = made.aggregate(made.encode([0.2] * 50)).to_dict()
    for name in ("fine", "ones", "total", "squares"):
        for wrong in (-1, 10**12, 1.5, "1", None, True):
            with pytest.raises(InvalidValue):
                aggregate_from({**good, "state": {**good["state"], name: wrong}})
    for state in (None, [], {}, {**good["state"], "more": 1}):
        with pytest.raises(InvalidValue):
            aggregate_from({**good, "state": state})
