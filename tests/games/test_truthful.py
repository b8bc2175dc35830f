import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import random
from sfumato.errors import InvalidParameter
from sfumato.games.truthful import Gain, gain, promised_gain, sampled_gain, textbook_gain
from sfumato.loss import GaussianLoss, PureLoss
from sfumato.mechanisms import Exponential


def response(epsilon):
    """Randomized response about one's own bit, by people who would rather be taken for the other."""
    kept = 1 / (1 + math.exp(-epsilon))

    def payoff(reports, agent, truth):
        return kept if reports[agent] != truth else 1 - kept

    return payoff


def table(seed, kinds, players):
    """A made-up mechanism: a payoff for everything that may be reported and be true."""
    values = np.random.default_rng(seed).random((*[kinds] * players, players, kinds))
    return lambda reports, agent, truth: values[(*reports, agent, truth)]


def brute(payoff, kinds, players, coalition):
    """The same question asked as plainly as it can be."""
    alone, together, cost = [], [], []
    for profile in itertools.product(range(kinds), repeat=players):
        for group in itertools.combinations(range(players), coalition):
            for reports in itertools.product(range(kinds), repeat=players):
                others = [i for i in range(players) if i not in group]
                if reports == profile or any(reports[i] != profile[i] for i in others):
                    continue
                gains = [payoff(reports, i, profile[i]) - payoff(profile, i, profile[i]) for i in group]
                alone.append(max(gains))
                together.append(sum(gains))
                cost.append(-min(gains))
    return max(alone), max(together), max(cost), len(alone)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(2, 1, 1), (3, 2, 1), (3, 2, 2), (2, 3, 2), (2, 3, 3)]))
def test_nothing_is_missed(seed, size):
    kinds, players, coalition = size
    payoff = table(seed, kinds, players)
    found = gain(payoff, types=range(kinds), players=players, coalition=coalition)
    alone, together, cost, checked = brute(payoff, kinds, players, coalition)
    assert (found.value, found.together, found.cost) == pytest.approx((alone, together, cost), abs=1e-12)
    assert found.checked == checked
    # Where it says, it is.
    reports = list(found.profile)
    for agent, lie in zip(found.agents, found.lie, strict=True):
        reports[agent] = lie
    gains = [
        payoff(tuple(reports), i, found.profile[i]) - payoff(found.profile, i, found.profile[i])
        for i in found.agents
    ]
    assert max(gains) == found.value


def shares(reports, agent, truth):
    """Anonymous: what counts is one's own report, one's type and how many others say what."""
    others = [each for i, each in enumerate(reports) if i != agent]
    return (0.3 * reports[agent] + 0.1 * others.count(truth) + 0.05 * sum(others) * truth) / 4


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_one_stands_for_all_in_any_anonymous_mechanism(seed, coalition):
    values = {}
    rng = np.random.default_rng(seed)

    def payoff(reports, agent, truth):
        others = tuple(sorted(reports[:agent] + reports[agent + 1 :]))
        return values.setdefault((reports[agent], others, truth), rng.random())

    full = gain(payoff, types=range(3), players=3, coalition=coalition)
    short = gain(payoff, types=range(3), players=3, coalition=coalition, anonymous=True)
    assert (short.value, short.together, short.cost) == (full.value, full.together, full.cost)


@pytest.mark.parametrize("coalition", [1, 2, 3])
def test_one_stands_for_all_who_are_alike(coalition):
    full = gain(shares, types=range(3), players=4, coalition=coalition)
    short = gain(shares, types=range(3), players=4, coalition=coalition, anonymous=True)
    assert (short.value, short.together, short.cost) == pytest.approx((full.value, full.together, full.cost))
    assert short.checked < full.checked


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 3])
def test_randomized_response_reaches_the_promise(epsilon):
    found = gain(response(epsilon), types=[0, 1], players=2, loss=PureLoss(epsilon))
    assert found.value == pytest.approx(math.tanh(epsilon / 2), abs=1e-12)
    assert found.promise == pytest.approx(found.value, abs=1e-9)
    assert not found.broken
    assert found.low <= found.value <= found.high <= found.low + 1e-11
    assert found.confidence is None


def test_a_response_that_is_kept_too_often_is_caught():
    found = gain(response(1.1), types=[0, 1], players=1, loss=PureLoss(1))
    assert found.broken
    assert "broken" in str(found)


def test_privacy_makes_every_report_nearly_as_good_as_the_truth():
    """The trap: approximate truthfulness says just as little against a lie."""
    kept = 1 / (1 + math.exp(-0.2))
    found = gain(
        lambda reports, agent, truth: kept if reports[agent] == truth else 1 - kept,
        types=[0, 1],
        players=2,
        loss=PureLoss(Fraction(1, 5)),
    )
    assert found.value < 0
    assert str(found).startswith("Every lie costs at least 0.09967")
    # Yet no lie costs more than what the promise would let it gain.
    assert 0 < found.cost <= found.promise


@pytest.mark.parametrize("coalition", [1, 2, 5])
def test_the_promise_is_total_variation_and_far_below_the_textbook(coalition):
    epsilon = Fraction(1, 8)
    total = float(coalition * epsilon)
    promised = promised_gain(PureLoss(epsilon), coalition=coalition)
    assert math.tanh(total / 2) <= promised <= math.tanh(total / 2) + 1e-9
    assert promised <= textbook_gain(epsilon, coalition) / 4
    assert textbook_gain(epsilon, coalition) == 2 * total
    choice = promised_gain(Exponential(epsilon, 1).loss, coalition=coalition)
    assert math.tanh(total / 4) <= choice <= math.tanh(total / 4) + 1e-9


def test_the_promise_of_other_losses():
    # N(0, 1) against N(μ, 1) with ρ = μ²/2: 2Φ(μ/2) − 1.
    assert promised_gain(GaussianLoss("0.5")) == pytest.approx(math.erf(0.5 / math.sqrt(2)), abs=1e-9)
    assert promised_gain(PureLoss(1), coalition=100) == 1.0


def test_the_textbook_bound_ends_at_one():
    assert textbook_gain("0.5", 2) == 2.0
    with pytest.raises(InvalidParameter, match="at most 1"):
        textbook_gain("0.5", 3)


def play(epsilon, generator):
    def utilities(reports, agent, truth, count):
        return generator.random(count) < response(epsilon)(reports, agent, truth)

    return utilities


def test_samples_enclose_the_exact_gain():
    exact = gain(response(1), types=[0, 1], players=2)
    found = sampled_gain(
        play(1, random.simulation(1)),
        types=[0, 1],
        players=2,
        profiles=list(itertools.product([0, 1], repeat=2)),
        samples=4000,
        confidence=1 - 1e-6,
        loss=PureLoss(1),
    )
    assert found.low <= exact.value <= found.high
    assert found.checked == exact.checked
    assert found.high - found.low < 0.15
    assert not found.broken
    assert "confidence" in str(found)


def test_samples_catch_a_broken_promise():
    found = sampled_gain(
        play(2, random.simulation(2)),
        types=[0, 1],
        players=3,
        trials=10,
        samples=4000,
        confidence=1 - 1e-6,
        loss=PureLoss(1),
        seed=3,
    )
    assert found.broken
    assert found.checked == 10


def test_random_deviations_repeat_with_their_seed():
    def once(seed):
        return sampled_gain(
            lambda reports, agent, truth, count: np.full(count, table(5, 3, 3)(reports, agent, truth)),
            types=range(3),
            players=3,
            coalition=2,
            trials=50,
            samples=1,
            confidence=0.9,
            seed=seed,
        )

    exact = gain(table(5, 3, 3), types=range(3), players=3, coalition=2)
    assert once(1) == once(1)
    assert once(1).value <= exact.value


def test_another_range_of_utilities_scales_the_promise():
    found = gain(
        lambda *which: 10 * response(1)(*which) - 5,
        types=[0, 1],
        players=1,
        utilities=(-5, 5),
        loss=PureLoss(1),
    )
    assert found.value == pytest.approx(10 * math.tanh(0.5), abs=1e-10)
    assert found.promise == pytest.approx(10 * math.tanh(0.5), abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"types": []}, "empty"),
        ({"types": [0, 1, 0]}, "twice"),
        ({"types": [0]}, "nothing to lie about"),
        ({"players": 0}, "players must be at least 1"),
        ({"players": 2.0}, "whole number"),
        ({"coalition": 3}, "does not fit"),
        ({"utilities": (1, 1)}, "increasing"),
        ({"utilities": 3}, "pair"),
        ({"utilities": (0, 0.5)}, "outside the declared utilities 0 to 0.5"),
        ({"profiles": []}, "at least one"),
        ({"profiles": [(0, 1, 1)]}, "one type for each of the 2"),
        ({"profiles": [(0, 7)]}, "not in the type space"),
        ({"most": 3}, "There are 8 deviations"),
        ({"players": 10**9}, "more than 1e15 deviations"),
    ],
)
def test_what_cannot_be_checked_is_refused(changes, words):
    given = {"types": [0, 1], "players": 2} | changes
    with pytest.raises(InvalidParameter, match=words):
        gain(response(1), **given)


def test_a_payoff_that_is_no_number_is_refused():
    with pytest.raises(InvalidParameter, match="NaN"):
        gain(lambda *which: math.nan, types=[0, 1], players=1)
    with pytest.raises(InvalidParameter, match="as many utilities"):
        sampled_gain(lambda *which: 0.5, types=[0, 1], players=1, samples=9, confidence=0.9, profiles=[(0,)])


@pytest.mark.parametrize("which", [{}, {"trials": 3, "profiles": [(0,)]}])
def test_samples_need_to_know_what_to_try(which):
    with pytest.raises(InvalidParameter, match="either profiles"):
        sampled_gain(
            play(1, random.simulation(1)), types=[0, 1], players=1, samples=9, confidence=0.9, **which
        )


def test_many_players_who_are_alike_are_no_trouble():
    found = gain(lambda reports, agent, truth: sum(reports) / 100, types=[0, 1], players=100, anonymous=True)
    assert found.value == pytest.approx(0.01)
    assert found.profile.count(0) >= 1
    assert found.lie == (1,)


def test_a_gain_of_nothing_says_so():
    found = gain(lambda *which: 0.5, types=["red", "blue"], players=2)
    assert isinstance(found, Gain)
    assert str(found) == "No lie gains anything, in 8 deviations."


def test_groups_are_counted_in_types_however_many_are_alike():
    found = gain(
        lambda reports, agent, truth: sum(reports) / 2000,
        types=[0, 1],
        players=2000,
        coalition=3,
        anonymous=True,
        profiles=[[0] * 1000 + [1] * 1000],
    )
    assert found.value == pytest.approx(3 / 2000)
    assert found.checked == 4 * 7


def test_tiny_losses_that_add_up_still_promise_something():
    one = Exponential("1e-9", 1).loss
    promised = promised_gain(one * 2)
    assert 2.5e-10 < promised <= math.tanh(1e-9) * 1.01


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"types": None}, "types must list"),
        ({"profiles": [0, 1]}, "one type for each of the 2"),
        ({"payoff": lambda *which: None}, "one number"),
        ({"payoff": lambda *which: np.zeros(2)}, "one number"),
        ({"loss": 1.0}, "privacy loss"),
    ],
)
def test_what_is_no_game_is_refused(changes, words):
    given = {"payoff": lambda *which: 0.5, "types": [0, 1], "players": 2} | changes
    with pytest.raises(InvalidParameter, match=words):
        gain(given.pop("payoff"), **given)


def test_rows_of_arrays_are_types_too():
    rows = [np.array([0, 0]), np.array([1, 1])]
    assert gain(lambda *which: 0.5, types=rows, players=2, profiles=[rows]).checked == 2


def test_the_bounds_of_samples_hold_for_all_deviations_at_once():
    found = sampled_gain(
        lambda reports, agent, truth, count: [0.5] * count,
        types=[0, 1, 2],
        players=2,
        coalition=2,
        samples=40,
        confidence="0.9",
        profiles=[(0, 1), (2, 2)],
    )
    assert found.checked == 2 * 8
    assert found.high == -found.low == pytest.approx(math.sqrt(math.log(2 * 16 * 2 / 0.1) / 40))


def test_rounding_is_not_called_a_gain():
    found = gain(
        lambda reports, agent, truth: 0.3 if reports[agent] == truth else 0.1 + 0.2, types=[0, 1], players=1
    )
    assert 0 < found.value < 1e-15
    assert str(found).startswith("No lie gains more than rounding may")


def test_what_is_no_function_is_refused():
    for check in (
        gain,
        lambda given, **world: sampled_gain(given, samples=1, confidence=0.5, trials=1, **world),
    ):
        with pytest.raises(InvalidParameter, match="What is checked is a function"):
            check(5, types=[0, 1], players=2)
