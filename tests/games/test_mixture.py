import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.games import mixture
from sfumato.games.facility import UNIT, FacilityLocation
from sfumato.games.mixture import TruthfulMixture, balanced_mixture
from sfumato.games.truthful import gain
from sfumato.testing import assert_bernoulli, assert_discrete, seeded

LINE = [0, 1, 5, 6]
PLANE = [(0, 0), (10, 0), (2, 4), (7, 7)]
# A player at (2, 4) who says (0, 0), among others who live in the two far corners: the worst of laws.
TRIANGLE = [(0, 0), (10, 0), (2, 4)]
CROWD = [(2, 4), *[(0, 0)] * 100, *[(10, 0)] * 101]


def single_gains(mixed, profile, agent):
    """What each lie of one agent gains."""
    types = [tuple(each) if np.ndim(each) else each for each in mixed.private.types.tolist()]
    truth = profile[agent]
    honest = mixed.payoff(profile, agent, truth)
    for lie in types:
        if lie != truth:
            reports = list(profile)
            reports[agent] = lie
            yield lie, mixed.payoff(reports, agent, truth) - honest


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", 1])
@pytest.mark.parametrize("facilities", [1, 2])
@pytest.mark.parametrize("sites", [LINE, PLANE], ids=["line", "plane"])
def test_no_lie_gains(sites, facilities, epsilon):
    mixed = TruthfulMixture(FacilityLocation(epsilon, sites, facilities=facilities))
    for players in (1, 2, 4):
        found = gain(mixed.payoff, types=sites, players=players, anonymous=True)
        # Also after whatever rounding may have done.
        assert found.high < 0
    assert 0 < mixed.weight == mixed.needed < Fraction(1, 2)
    assert mixed.promise() == 0.0


def test_every_profile_in_full_agrees():
    mixed = TruthfulMixture(FacilityLocation(1, [0, 2, 3]))
    full = gain(mixed.payoff, types=[0, 2, 3], players=3)
    assert full.high < 0
    short = gain(mixed.payoff, types=[0, 2, 3], players=3, anonymous=True)
    assert short.value == pytest.approx(full.value, abs=1e-12)


def test_the_weight_cannot_be_much_smaller():
    """In a crowd of 202 a lie gains at 99 % of the weight, and costs at all of it."""
    private = FacilityLocation(1, TRIANGLE)
    enough = TruthfulMixture(private)
    assert all(change < 0 for _, change in single_gains(enough, CROWD, 0))
    for share in (Fraction(1, 2), Fraction(99, 100)):
        light = TruthfulMixture(private, weight=enough.weight * share)
        gains = dict(single_gains(light, CROWD, 0))
        assert gains[(0, 0)] > 1e-5
        assert gains[(0, 0)] <= light.promise()
        assert light.needed == enough.weight


def test_half_the_weight_is_red_on_the_line():
    private = FacilityLocation(1, LINE)
    enough = TruthfulMixture(private)
    half = TruthfulMixture(private, weight=enough.weight / 2)
    crowd = [5, *[6] * 100, *[0] * 101]
    assert max(change for _, change in single_gains(half, crowd, 0)) > 1e-4
    assert max(change for _, change in single_gains(enough, crowd, 0)) < 0
    small = gain(half.payoff, types=LINE, players=3, anonymous=True)
    assert 0 < small.low <= small.value <= half.promise()


def test_without_mixing_the_promise_is_that_of_the_choice():
    private = FacilityLocation(1, LINE)
    none = TruthfulMixture(private, weight=0)
    found = gain(none.payoff, types=LINE, players=3, anonymous=True)
    assert 0 < found.value <= none.promise() <= math.tanh(1 / 4)
    always = TruthfulMixture(private, weight=1)
    assert gain(always.payoff, types=LINE, players=2).value == pytest.approx(-float(always.gap))


def test_a_pair_may_still_gain_but_within_its_bound():
    mixed = TruthfulMixture(FacilityLocation(1, [0, 2, 3]))
    found = gain(mixed.payoff, types=[0, 2, 3], players=3, coalition=2, anonymous=True)
    assert found.low > 0
    assert found.high <= mixed.promise(coalition=2) < 2 * 2 * 1


@pytest.mark.parametrize("facilities", [1, 2, 3])
@pytest.mark.parametrize("sites", [[0, 1, 2, 4, 8], PLANE], ids=["line", "plane"])
def test_penalties_are_those_of_every_draw_counted(sites, facilities):
    game = FacilityLocation(1, sites, facilities=facilities)
    mixed = TruthfulMixture(game)
    draws = list(itertools.combinations(range(len(sites)), max(facilities, 2)))
    penalties = []
    for t, other in itertools.permutations(range(len(sites)), 2):
        lost = 0
        for drawn in draws:
            best, told = (max(drawn, key=lambda s, k=k: (game.near[k, s], -s)) for k in (t, other))
            lost += int(game.near[t, best] - game.near[t, told])
        penalties.append(Fraction(lost, len(draws) * UNIT))
        assert mixed.penalty(sites[t], sites[other]) == penalties[-1]
    assert mixed.gap == min(penalties) > 0


def test_numbers_of_sets_beyond_64_bits_stay_exact():
    sites = list(range(80))
    game = FacilityLocation(1, sites, facilities=40, types=[0, 1, 79], method="greedy")
    mixed = TruthfulMixture(game)
    assert math.comb(80, 40) > 2**64
    ways = [math.comb(79 - rank, 39) for rank in range(80)]
    # Types 0 and 79 rank the sites in order and in reverse.
    near = game.near[0].tolist()
    exact = sum(way * (near[r] - near[79 - r]) for r, way in enumerate(ways))
    assert mixed.penalty(0, 79) == Fraction(exact, math.comb(80, 40) * UNIT)


def test_a_search_over_outcomes_only_lowers_the_weight(monkeypatch):
    games = [FacilityLocation(1, LINE), FacilityLocation(1, PLANE, facilities=2)]
    close = [TruthfulMixture(game).weight for game in games]
    monkeypatch.setattr(mixture, "_PAIRS", 0)
    for game, weight in zip(games, close, strict=True):
        coarse = TruthfulMixture(game)
        assert weight <= coarse.weight < 1
        assert coarse.promise() == 0.0


def test_no_law_at_all_lets_a_lie_gain_more_than_its_pull():
    """The supremum over every law that others could bring about, and the two outcomes that reach it."""
    rng = np.random.default_rng(8)
    worth, rate = rng.random((2, 5)), 3.0
    pull = mixture._tilted(worth, 0, rate)[1]
    tilt = np.exp(rate * (worth[1] - worth[0]))

    def gained(laws):
        tilted = laws * tilt
        return (tilted / tilted.sum(axis=1, keepdims=True) - laws) @ worth[0]

    some = gained(rng.dirichlet(np.full(5, 0.2), 20_000))
    assert 0.5 * pull < some.max() <= pull
    shares = np.linspace(0, 1, 2001)[:, None]
    pairs = [
        gained(shares * np.eye(5)[a] + (1 - shares) * np.eye(5)[b]).max() for a in range(5) for b in range(5)
    ]
    assert max(pairs) == pytest.approx(pull, rel=1e-5)
    assert pull <= mixture._ranged(worth, 0, rate)[1]


def test_a_fine_map_is_mixed_by_the_coarser_bound():
    side = np.linspace(0, 1, 10)
    mixed = TruthfulMixture(FacilityLocation("0.1", [(x, y) for x in side for y in side], facilities=2))
    assert 0 < mixed.weight < 1
    assert mixed.gap > 0


def test_greedy_choices_can_be_mixed_too():
    mixed = TruthfulMixture(FacilityLocation(1, LINE, facilities=2, method="greedy"))
    assert gain(mixed.payoff, types=LINE, players=3, anonymous=True).high < 0


def test_types_that_no_draw_tells_apart_are_refused():
    with pytest.raises(InvalidParameter, match="merge such types"):
        TruthfulMixture(FacilityLocation(1, [0, 1], types=[0, 0.1, 1]))
    told = TruthfulMixture(FacilityLocation(1, [0, 0.1, 1], types=[0, 0.1, 1]))
    assert told.gap > 0


def test_two_sites_need_no_punishment():
    """With two places a lie only ever helps the wrong one."""
    assert TruthfulMixture(FacilityLocation(1, [0, 1])).weight == 0


def test_draws_follow_the_weight_and_the_reports():
    mixed = TruthfulMixture(FacilityLocation(1, LINE))
    reports = [0, 5, 6, 1]
    with seeded(4):
        drawn = [mixed.select(reports) for _ in range(1500)]
    bound = [each for each in drawn if each.bound]
    assert_bernoulli(len(bound), len(drawn), float(mixed.weight))
    pairs = list(itertools.combinations(LINE, 2))
    assert_discrete(
        [pairs.index(tuple(each.sites.tolist())) for each in bound], dict.fromkeys(range(6), 1 / 6)
    )
    for each in drawn[:100]:
        assert len(each.sites) == (2 if each.bound else 1)
        for home, number in zip(reports, each.assigned, strict=True):
            assert abs(each.sites[number] - home) == min(abs(each.sites - home))


def test_the_payoff_is_that_of_the_draw():
    mixed = TruthfulMixture(FacilityLocation(1, LINE))
    reports, truth = [6, 0, 5], 5
    q = float(mixed.weight)
    pairs = list(itertools.combinations(LINE, 2))
    sent = [min(pair, key=lambda site: abs(site - reports[0])) for pair in pairs]
    bound = sum(1 - abs(truth - site) / 6 for site in sent) / len(pairs)
    free = mixed.private.payoff(reports, 0, truth)
    assert mixed.payoff(reports, 0, truth) == pytest.approx((1 - q) * free + q * bound, abs=2 / UNIT)


@pytest.mark.parametrize("facilities", [1, 2])
def test_mixing_takes_no_more_than_it_says(facilities):
    private = FacilityLocation(1, PLANE, facilities=facilities)
    mixed = TruthfulMixture(private)
    lost = [
        private.payoff(profile, 0, profile[0]) - mixed.payoff(profile, 0, profile[0])
        for crowd in itertools.product(PLANE, repeat=2)
        for profile in [[crowd[0]] * 20 + [crowd[1]] * 20]
    ]
    assert 0 < max(lost) <= mixed.welfare_lost < float(mixed.weight)


def test_truth_becomes_cheap_as_the_crowd_grows():
    shortfall = []
    for players in (100, 10_000, 1_000_000):
        mixed = balanced_mixture(players, LINE)
        shortfall.append(mixed.welfare_lost + mixed.private.guarantee(0.95) / players)
    assert shortfall[0] > 3 * shortfall[1] > 9 * shortfall[2]
    assert shortfall[2] < 0.01


def test_too_deep_a_crowd_is_refused():
    mixed = TruthfulMixture(FacilityLocation(1, [0, 1, 2], types=[0, 1, 2]))
    object.__setattr__(mixed.private, "sensitivity", 1)
    with pytest.raises(InvalidParameter, match="coarser"):
        mixed.select([0] * 5000)


@pytest.mark.parametrize("weight", [-1, 1.5, "heavy"])
def test_a_weight_is_a_probability(weight):
    with pytest.raises(InvalidParameter, match="weight"):
        TruthfulMixture(FacilityLocation(1, LINE), weight=weight)


@pytest.mark.parametrize("example", mixture.examples(), ids=lambda each: each.name)
def test_examples_keep_their_claim_and_come_close_to_it(example):
    left, right = example.pmf("left"), example.pmf("right")
    assert sum(left.values()) == pytest.approx(1)
    worst = max(abs(math.log(left[i] / right[i])) for i in left)
    assert float(example.loss.pure) / 2 < worst <= float(example.loss.pure)
    with seeded(2):
        assert_discrete(example.draw("right", 1500), right)


def test_a_greedy_choice_can_be_mixed_at_any_price():
    """Two choices of a billionth each: their composed curve is below what the numerics certify."""
    mixed = TruthfulMixture(FacilityLocation("1e-9", PLANE, facilities=2, method="greedy"))
    assert 0 < mixed.weight < Fraction(1, 10**6)
    assert gain(mixed.payoff, types=PLANE[:3], players=2, anonymous=True).high <= 1e-11


@pytest.mark.parametrize("coalition", [2, 5])
def test_a_group_is_promised_what_so_many_exchanges_allow(coalition):
    mixed = TruthfulMixture(FacilityLocation(1, LINE))
    allowed = (1 - float(mixed.weight)) * math.tanh(coalition / 4)
    assert allowed <= mixed.promise(coalition=coalition) == pytest.approx(allowed)


def test_a_mixture_is_made_of_places():
    with pytest.raises(InvalidParameter, match="made of a FacilityLocation"):
        TruthfulMixture(3)
