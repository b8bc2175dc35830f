"""Selection in two rounds: what its proof needs holds exactly, and it does what a slow reading of it does."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import AdaptiveSelection, GaussianSelection, PartitionSelection, adaptive_selection
from sfumato.mechanisms.adaptive_selection import WHOLE
from sfumato.numeric.figures import ball
from sfumato.plan.prices.selecting import selection_of
from sfumato.testing import record, seeded
from two_rounds import slowly

BITS = 400
CASES = {
    "usual": AdaptiveSelection(1, "1e-5", groups=10),
    "one group": AdaptiveSelection(1, "0.01"),
    "exchange": AdaptiveSelection("1.5", "0.01", groups=3, exchange=True),
    "steep": AdaptiveSelection(20, "1e-9", groups=4),
    "flat": AdaptiveSelection("0.05", "1e-3", groups=5),
    "much delta": AdaptiveSelection(1, "0.4", groups=2),
    "many groups": AdaptiveSelection("0.5", "1e-6", groups=700),
}
cases = pytest.mark.parametrize("mechanism", CASES.values(), ids=CASES)


def beyond(x: arb) -> arb:
    """P(X ≥ x) of the normal law."""
    return (x / arb(2).sqrt()).erfc() / 2


def curve(epsilon: arb, mu: arb) -> arb:
    """The δ of Gaussian noise whose values move by mu standard deviations."""
    return beyond(epsilon / mu - mu / 2) - epsilon.exp() * beyond(epsilon / mu + mu / 2)


def variances(mechanism: AdaptiveSelection) -> list[Fraction]:
    """Of the noise that both rounds really draw."""
    tape = record(lambda: mechanism.release(np.full((1, 1), True)), inside=True)
    return [meeting.parameter for meeting in tape.meetings]


def move(mechanism: AdaptiveSelection) -> int:
    """The most that a unit's weights have in squared L2, for every number of groups; twice, exchanged."""
    own = max(degree * mechanism.weight(degree) ** 2 for degree in range(1, mechanism.groups + 1))
    return own * (2 if mechanism.exchange else 1)


def of_noise(mechanism: AdaptiveSelection) -> arb:
    """δ of what groups in both tables show, at ε − r/(1 − r): two Gaussian mechanisms in a row."""
    half = mechanism.delta / 2
    mu = sum((ball(Fraction(move(mechanism)) / each) for each in variances(mechanism)), arb(0)).sqrt()
    return curve(ball(mechanism.epsilon - half / (1 - half)), mu)


def of_lone(mechanism: AdaptiveSelection) -> arb:
    """The largest probability with which one of a unit's t own groups is shown, over t, in either round."""
    (one, two), (first, both) = variances(mechanism), mechanism._thresholds
    worst = arb(0)
    for own in range(1, mechanism.groups + 1):
        weight = mechanism.weight(own)
        early = beyond((ball(first - weight) + arb(1) / 2) / ball(one).sqrt())
        late = beyond(ball(both - 8 * weight - 3) / ball(one + 49 * two).sqrt())
        worst = worst.max(1 - (1 - early - late) ** own)
    return worst


@cases
def test_what_the_proof_needs_holds_and_little_is_wasted(mechanism):
    with ctx.workprec(BITS):
        half = ball(mechanism.delta / 2)
        assert move(mechanism) <= mechanism.squared_sensitivity
        assert half * 98 / 100 <= of_noise(mechanism) <= half
        assert half * 90 / 100 <= of_lone(mechanism) <= half
    weights = [mechanism.weight(degree) for degree in range(1, mechanism.groups + 2)]
    assert weights == sorted(weights, reverse=True)
    assert (weights[0], weights[-1]) == (WHOLE, 0)
    ideal = [WHOLE / math.sqrt(degree) for degree in range(1, mechanism.groups + 1)]
    assert all(one >= 0.965 * best for one, best in zip(weights, ideal, strict=False))


def _reweighed(weight):
    """Other weights for the ends of steps."""
    return lambda right: lambda k: tuple((end, weight(end, own)) for end, own in right(k))


def _narrower(part):
    return lambda right: lambda numbers, variance: right(numbers, variance * part)


BUGS = {
    "weights of norm two": ("_steps", _reweighed(lambda end, own: 2 * own)),
    "weights that do not fall": ("_steps", _reweighed(lambda end, own: WHOLE)),
    "weights that fall too slowly": ("_steps", _reweighed(lambda end, own: math.isqrt(WHOLE * own))),
    "weights for one group fewer": (
        "_steps",
        _reweighed(lambda end, own: math.isqrt(WHOLE**2 // max(1, end - 1))),
    ),
    "a first round that is not paid for": ("with_gaussian", _narrower(Fraction(7, 8))),
    "noise for adding where units are exchanged": ("_squared", lambda right: lambda exchange: WHOLE**2),
    "a first threshold for one group": ("_first", lambda right: lambda steps, v, r: right(steps[:1], v, r)),
    "a second threshold for one group": ("_second", lambda right: lambda steps, v, r: right(steps[:1], v, r)),
    "a threshold without the unit's own weight": (
        "_second",
        lambda right: lambda steps, v, r: right(tuple((end, 0) for end, _ in steps), v, r),
    ),
    "all of the risk in each round": (
        "_first",
        lambda right: lambda steps, v, r: right(steps, v, r * 20),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_calibration_is_noticed(bug, monkeypatch):
    name, change = BUGS[bug]
    monkeypatch.setattr(adaptive_selection, name, change(getattr(adaptive_selection, name)))
    planted = AdaptiveSelection(1, "0.01", groups=9, exchange=True)
    with ctx.workprec(BITS):
        half = ball(planted.delta / 2)
        assert not (of_noise(planted) <= half and of_lone(planted) <= half)


def test_the_fast_way_does_what_a_slow_one_does(monkeypatch):
    draw, mechanism = random.Random(1), AdaptiveSelection(3, "0.05", groups=3)
    scale, shown = math.sqrt(mechanism._variance), set()
    for _ in range(60):
        names = "abcdef"[: draw.randint(1, 6)]
        often = [draw.random() for _ in names]
        units = [
            [name for name, share in zip(names, often, strict=True) if draw.random() < share]
            for _ in range(draw.randint(1, 40))
        ]
        units.append(list(names))  # perhaps more than may count, and no group is empty
        noise = [{name: round(draw.gauss(0, scale)) for name in names} for _ in range(2)]
        first, second = slowly(mechanism, units, noise)
        drawn = iter([[noise[0][g] for g in names], [noise[1][g] for g in names if g not in first]])
        monkeypatch.setattr(
            adaptive_selection,
            "with_gaussian",
            lambda numbers, _, drawn=drawn: numbers + np.array(next(drawn), np.int64).reshape(numbers.shape),
        )
        kept, _ = mechanism.release(np.array([[name in own for name in names] for own in units]))
        assert {name for name, one in zip(names, kept, strict=True) if one} == first | second
        shown.add((bool(first), bool(second)))
    assert len(shown) == 4  # groups were found in either round, in both and in none


def test_a_group_survives_at_least_as_often_as_is_said():
    mechanism, size = AdaptiveSelection(2, "0.05", groups=4), 20_000
    for degree, count in ((1, 4), (4, 8)):
        names = count * degree if degree > 1 else 1
        members = np.zeros((count, names), bool)
        members[:, 0] = True
        for unit in range(count):
            members[unit, 1 + unit * (degree - 1) : 1 + (unit + 1) * (degree - 1)] = True
        with seeded(5):
            kept, noisy = mechanism._released(members, size)
        chance = mechanism.keep_probability(count, degree=degree)
        assert 0.1 < chance < 0.9
        assert kept[:, 0].mean() >= chance - 0.01
        assert ((noisy != 0) <= kept).all()
        # In one group there is nothing to turn to, and the first round alone adds little.
        assert degree > 1 or kept[:, 0].mean() <= chance + 0.02


def alone(mechanism, own, crowd, size):
    """How often one of a unit's own groups is shown, beside one of a crowd that the first round finds."""
    members = np.zeros((crowd + 1, own + 1), bool)
    members[:crowd, own] = True
    members[crowd] = True
    with seeded(own):
        kept, _ = mechanism._released(members, size)
    return kept[:, :own].any(axis=1).mean()


def test_groups_of_one_unit_stay_hidden_also_if_it_turns_to_them(monkeypatch):
    mechanism, size = AdaptiveSelection(1, "0.4", groups=5), 6_000
    most, error = float(mechanism.delta / 2), 5 * math.sqrt(0.2 * 0.8 / size)
    seen = [alone(mechanism, own, 200, size) for own in (1, 2, 4)]
    assert max(seen) <= most + error
    assert max(seen) >= 0.6 * most  # the bound is not far
    right = adaptive_selection._second
    monkeypatch.setattr(adaptive_selection, "_second", lambda steps, v, r: right(steps, v, r * 3))
    assert alone(AdaptiveSelection(1, "0.4", groups=5), 4, 200, size) > most + error


def test_units_turn_to_what_was_not_found():
    mechanism = AdaptiveSelection(1, "0.001", groups=4)
    large, count = 3 * mechanism.least("0.99", degree=1), mechanism.least("0.2")
    members = np.zeros((large + count, 4), bool)
    members[:large, 0] = members[large:] = True
    members[:large, 1:3] = True
    with seeded(3):
        kept, _ = mechanism._released(members, 2_000)
        alone, _ = mechanism._released(members[large:], 2_000)
    assert kept[:, 0].all()
    assert kept[:, 3].mean() > alone[:, 3].mean() + 0.3  # from 1/√4 to 1 in the last of four groups


def test_figures():
    mechanism = CASES["usual"]
    assert mechanism.loss == PartitionSelection(1, "1e-5", groups=10).loss
    assert (mechanism.bias, mechanism.certain) == (0, None)
    assert mechanism.variance >= mechanism.sigma**2
    assert math.isclose(mechanism.error("0.95"), 1.96 * mechanism.sigma, rel_tol=1e-4)
    for degree, chance in itertools.product((1, 10), ("0.01", "0.5", "0.99")):
        least = mechanism.least(chance, degree=degree)
        assert mechanism.keep_probability(least, degree=degree) >= float(chance) * (1 - 1e-9)
        assert mechanism.keep_probability(least - 1, degree=degree) < float(chance)
    assert mechanism.keep_probability(0) == 0
    assert mechanism.keep_probability(9, degree=11) == 0
    with pytest.raises(InvalidParameter, match="count nowhere"):
        mechanism.least("0.5", degree=11)


@pytest.mark.parametrize("arguments", [(0, "0.1"), (1, 0), (1, 1), ("0.1", "0.9"), ("1e-14", "1e-30")])
def test_unusable_prices_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        AdaptiveSelection(*arguments)


@pytest.mark.parametrize("members", [[[1, 0]], [True], None, np.zeros((2, 2, 2), bool), "ab"])
def test_unusable_values_are_refused(members):
    with pytest.raises(InvalidValue, match="a row for each unit"):
        CASES["usual"].release(members)


def test_sums_of_any_size_are_taken():
    mechanism = CASES["usual"]
    found, noisy = mechanism.first_round([2**100, 0, 2**58])
    assert found.tolist() == [True, False, True]
    more, both = mechanism.second_round(noisy, [2**100, 0, 2**57])
    assert more.tolist() == [True, False, True]
    assert (both[[0, 2]] > 2**59).all()
    hidden, _ = mechanism.second_round(np.array([-(2**62)]), [2**57])
    assert not hidden.any()
    kept, noise = mechanism.release(np.zeros((0, 2), bool))
    assert not kept.any()
    assert noise.tolist() == [0, 0]


PRICES = [(Fraction("0.1"), Fraction("1e-10")), (Fraction(4), Fraction("1e-6"))]


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_two_rounds_are_taken_where_they_find_no_less(epsilon, delta):
    taken = 0
    for groups, exchange in itertools.product((1, 2, 40), (False, True)):
        options = {"groups": groups, "exchange": exchange}
        before = selection_of(epsilon, delta, counted=False, **options)
        assert isinstance(before, GaussianSelection | PartitionSelection)
        chosen = selection_of(epsilon, delta, counted=False, rounds=True, **options)
        assert selection_of(epsilon, delta, counted=True, rounds=True, **options) == selection_of(
            epsilon, delta, counted=True, **options
        )
        if groups == 1:
            assert chosen == before
        if chosen == before:
            continue
        taken += 1
        for chance in ("0.1", "0.5", "0.9"):
            assert chosen.least(chance) <= 1 + before.least(chance) * 1.03  # all in as many as may be
            assert chosen.least(chance, degree=1) <= before.least(chance)  # in one group each
    assert taken >= 1
