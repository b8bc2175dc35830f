import itertools
import math
import runpy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.audit.blackbox import lower_bounds
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games import equilibrium
from sfumato.games._rounds import Played, certificate, play, regrets, stationary, temptations
from sfumato.games.congestion import CongestionGame
from sfumato.games.equilibrium import PrivateAdvice, correlated_advice, examples, measured_gain
from sfumato.games.normal import NormalForm, incentive
from sfumato.games.routing import grid_roads, routing_game
from sfumato.mechanisms import DiscreteGaussian
from sfumato.testing import seeded

TRIPS = (((0, 0), (3, 3)), ((3, 0), (0, 3)), ((1, 0), (2, 3)))


def town(players=2000, paths=4):
    game = routing_game(grid_roads(4, 4, players=players), TRIPS, players=players, paths=paths)
    return game, [TRIPS[i % 3] for i in range(players)]


def bent_town(players=500):
    """Roads whose cost grows with the fourth power of the load."""
    roads = {road: (lambda x: 1 + 3 * (x / players) ** 4) for road in grid_roads(3, 3, players=players)}
    trips = (((0, 0), (2, 2)), ((2, 0), (0, 2)))
    game = routing_game(roads, trips, players=players, paths=3)
    return game, [trips[i % 2] for i in range(players)]


def test_the_price_is_that_of_all_rounds_and_of_the_largest_move():
    game, _ = town()
    one, many = (PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=t) for t in (1, 100))
    for mechanism in (one, many):
        rho = mechanism.loss.concentrated[0]
        exact = Fraction(mechanism.rounds * game.distance()) / (2 * mechanism._noise._variance)
        assert rho == exact
        assert (mechanism._noise.loss * mechanism.rounds).rho == rho  # the rounds one by one
        assert mechanism.loss.delta(1) <= 1e-6
        assert mechanism.loss.approximate == (1, Fraction(1, 10**6))
    assert many.sigma == pytest.approx(10 * one.sigma, rel=1e-6)
    assert many.influence == pytest.approx(one.influence, rel=1e-9)
    assert one.influence <= math.sqrt(float(rho) / 2) * (1 + 1e-12)


def test_the_largest_move_of_the_loads_is_the_distance():
    game, _ = town(players=6)
    rows = np.arange(len(game.uses))
    base = np.zeros(6, dtype=int)
    moves = [
        np.sum((game.loads(np.r_[a, base[1:]]) - game.loads(np.r_[b, base[1:]])) ** 2)
        for a in rows
        for b in rows
    ]
    assert max(moves) == game.distance()


def _audited(example, *, samples, seed):
    """How many of the deltas prove the claim wrong, at a chance below 1e-6 each of blaming an honest one."""
    deltas = [0.001, 0.01, 0.1]
    with seeded(seed):
        sides = [example.draw(side, samples) for side in ("left", "right")]
    bounds = lower_bounds(*sides, deltas=deltas, confidence=1 - 1e-7)
    return [bound.epsilon > example.loss.epsilon(delta) for bound, delta in zip(bounds, deltas, strict=True)]


@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_what_the_others_see_keeps_the_claim(example):
    assert not any(_audited(example, samples=40_000, seed=1))


@pytest.mark.parametrize("bug", ["half the noise", "moves of 1 resource", "price of one round"])
def test_the_audit_turns_red_on_planted_bugs(bug, monkeypatch):
    honest = equilibrium.DiscreteGaussian

    def faulty(*point, squared_sensitivity, rho=None):
        if rho is None:
            return honest(*point, squared_sensitivity=squared_sensitivity)
        factor = {"half the noise": 4, "moves of 1 resource": 2, "price of one round": 3}[bug]
        return honest(rho=factor * rho, squared_sensitivity=squared_sensitivity)

    monkeypatch.setattr(equilibrium, "DiscreteGaussian", faulty)
    example = equilibrium.others_view("bug", ("left", "left", "right"), ("right", "left", "right"))
    assert any(_audited(example, samples=60_000, seed=2))


def test_joint_privacy_is_not_privacy_the_own_advice_tells_the_own_type():
    roads = {"left": [["left"]], "right": [["right"]]}
    game = CongestionGame(["left", "right"], roads, players=3, latency=[(1 / 3, 0)] * 2)
    mechanism = PrivateAdvice(game, epsilon="0.1", delta="1e-9", rounds=2)
    told = {}
    for kind in ("left", "right"):
        advice = mechanism.advise([kind, "left", "right"])
        told[kind] = advice.resources(0, [kind, "left", "right"])
        others = [advice.resources(i, [kind, "left", "right"]) for i in (1, 2)]
        assert others == [("left",), ("right",)]
    # The full vector tells the two types apart for certain, whatever epsilon was paid.
    assert told == {"left": ("left",), "right": ("right",)}


def test_given_the_board_nobody_elses_advice_depends_on_a_type():
    """The billboard lemma: the same board and coins give the others the same advice, whatever one's type."""
    game, types = town(players=60)
    mechanism = PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=4)
    index = game.index(types)
    other = index.copy()
    other[0] = (other[0] + 1) % 3
    board = play(game, index, rounds=4, noise=mechanism._noise).board

    class Posted:  # the board as it turned out: what the lemma fixes
        sigma = mechanism.sigma

        def __init__(self):
            self.rounds = iter(range(4))

        def release(self, loads):
            return board[:, next(self.rounds)]

    seen = []
    for given in (index, other):
        with seeded("coins"):
            seen.append(play(game, given, rounds=4, noise=Posted()))
    assert np.array_equal(seen[0].weights, seen[1].weights)
    assert np.array_equal(seen[0].actions[..., 1:], seen[1].actions[..., 1:])
    assert not np.array_equal(seen[0].loads, seen[1].loads)


def test_regret_stays_below_the_certificate_and_both_below_the_promise():
    game, types = town()
    for rounds, seed in ((40, 1), (200, 2)):
        mechanism = PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=rounds)
        with seeded(seed):
            advice = mechanism.advise(types)
        assert 0 < advice.alpha <= advice.certified() <= mechanism.promised_alpha()
        assert advice.alpha < 0.06
        assert advice.incentive <= advice.alpha + mechanism.influence + 0.01
    assert advice.certified() < 0.15 < mechanism.promised_alpha() < 0.8


def test_bounds_hold_for_bent_latencies():
    game, types = bent_town()
    assert not game.affine
    mechanism = PrivateAdvice(game, epsilon=2, delta="1e-5", rounds=100)
    with seeded(3):
        advice = mechanism.advise(types)
    assert 0 < advice.alpha <= advice.certified() <= mechanism.promised_alpha() <= 1


def test_more_players_regret_less():
    """The noise is the same number of cars, so it matters less where there are more of them."""
    alphas = []
    for players in (150, 3000):
        game, types = town(players=players)
        with seeded(4):
            alphas.append(correlated_advice(game, types, epsilon="0.5", delta="1e-6", rounds=100).alpha)
    assert alphas[1] < alphas[0] / 2


def test_advice_costs_about_what_selfish_drivers_settle_on():
    game, types = town()
    with seeded(5):
        advice = correlated_advice(game, types, epsilon=1, delta="1e-6", rounds=150)
    selfish = game.mean_cost(game.settle(types))
    assert selfish * 0.98 < advice.mean_cost < selfish * 1.05
    assert game.mean_cost(game.settle(types, social=True)) <= selfish


def test_regret_agrees_with_the_normal_form_of_a_small_game():
    roads = {"any": [["x"], ["y"], ["z"]], "few": [["x"], ["y"]]}
    game = CongestionGame("xyz", roads, players=3, latency=[(0.2, 0.0), (0.1, 0.3), (0.05, 0.4)])
    kinds = [0, 0, 1]
    index = np.array(kinds)
    noise = DiscreteGaussian(sigma=1, sensitivity=2)
    with seeded(6):
        seen = play(game, index, rounds=12, noise=noise)
    actions = seen.actions[0]
    shape = [len(game.strategies[g]) for g in kinds]
    payoffs = np.zeros((3, *shape))
    law = np.zeros(shape)
    for place in np.ndindex(*shape):
        chosen = game.home[index, list(place)]
        payoffs[(slice(None), *place)] = 1 - game.costs(game.loads(chosen))[chosen]
    for row in actions:
        law[tuple(row)] += 1 / len(actions)
    assert regrets(game, index, actions, seen.loads[0]).max() == pytest.approx(
        incentive(NormalForm(payoffs), law), abs=1e-12
    )


def test_temptation_is_the_best_of_all_answers_to_anothers_advice():
    roads = {"any": ["x", "y", "z"], "few": ["xy", "z"]}
    game = CongestionGame("xyz", roads, players=5, latency=[(0.1, 0.0), (0.05, 0.1), (0.02, 0.3)], scale=None)
    with seeded(12):
        seen = play(game, np.array([0, 0, 0, 1, 1]), rounds=9, noise=DiscreteGaussian(sigma=1, sensitivity=2))
    found = temptations(game, seen.weights[0], seen.loads[0])
    costs = game.costs(seen.loads[0])
    for mine, heard in itertools.product(range(2), range(2)):
        own, told = (game.home[g][game.home[g] >= 0] for g in (mine, heard))
        paid = (seen.weights[0, :, mine, : len(own)] * costs[:, own]).sum()
        answered = [
            sum((seen.weights[0, :, heard, a] * costs[:, own[b]]).sum() for a, b in enumerate(answer))
            for answer in itertools.product(range(len(own)), repeat=len(told))
        ]
        assert found[mine, heard] == pytest.approx((paid - min(answered)) / 9)


def test_the_learner_plays_the_stationary_law_and_learns_a_constant_cost():
    rng = np.random.default_rng(7)
    valid = np.array([[True, True, True, False]])
    logits = rng.normal(size=(1, 1, 4, 4))
    law = stationary(logits, valid)[0, 0]
    rows = np.exp(logits[0, 0, :3, :3])
    rows /= rows.sum(axis=1, keepdims=True)
    assert law[:3] @ rows == pytest.approx(law[:3])
    assert law[3] == 0
    game = CongestionGame("xy", {"any": ["x", "y"]}, players=2, latency=[(0, 1.0), (0.01, 0.0)])
    with seeded(8):
        seen = play(game, np.zeros(2, dtype=int), rounds=60, noise=DiscreteGaussian(sigma=1, sensitivity=1))
    assert seen.weights[0, -1, 0, 1] > 0.99


def test_no_player_is_drawn_beyond_the_own_strategies():
    game = CongestionGame("xy", {"one": ["x"], "two": ["x", "y"]}, players=50, latency=[(0.01, 0)] * 2)
    index = np.arange(50) % 2
    seen = play(game, index, rounds=5, noise=DiscreteGaussian(sigma=3, sensitivity=2), runs=4)
    assert seen.actions[:, :, index == 0].max() == 0
    assert set(np.unique(seen.actions[:, :, index == 1])) == {0, 1}
    assert seen.board.shape == (4, 5, 2)


def test_lying_was_seen_to_bring_less_than_the_bound():
    game, types = town(players=300)
    mechanism = PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=40)
    with seeded(9):
        bound = mechanism.advise(types).incentive
        for player, report in ((0, TRIPS[1]), (1, TRIPS[0])):
            gain = measured_gain(mechanism, types, player=player, report=report, runs=6)
            assert gain.half_width > 0
            assert gain.mean - gain.half_width <= bound


def test_play_gives_the_utility_of_truth_and_of_lies():
    """On two equal roads a driver who may use both pays for one; who is stuck on a full one pays more."""
    roads = {"any": [["left"], ["right"]], "left": [["left"]]}
    game = CongestionGame(["left", "right"], roads, players=4, latency=[(0.25, 0), (0.25, 0)])
    mechanism = PrivateAdvice(game, epsilon=5, delta="0.01", rounds=5)
    with seeded(11):
        stuck = mechanism.play(["left"] * 4, 0, "left", 20)
        lying = mechanism.play(["left"] * 4, 0, "any", 20)  # told left, answers by the empty road
        free = mechanism.play(["any", "left", "left", "left"], 0, "any", 200)
    assert stuck == pytest.approx(np.zeros(20))
    assert lying == pytest.approx(np.full(20, 0.75))
    assert np.all((free >= 0) & (free <= 0.75))
    assert free.mean() > 0.3


def test_who_has_no_choice_regrets_nothing_exactly():
    bent = np.cumsum(np.random.default_rng(0).random((2, 21)), axis=1) / 30
    game = CongestionGame("ab", {"one": ["a"], "two": ["ab"]}, players=20, latency=[*bent])
    with seeded(1):
        advice = PrivateAdvice(game, epsilon=20, delta="0.01", rounds=50).advise(["one", "two"] * 10)
    assert advice.alpha == 0.0 == advice.certified()


def test_unusable_input_is_refused():
    game, types = town(players=30)
    with pytest.raises(InvalidParameter, match="rounds must be at least 1"):
        PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=0)
    with pytest.raises(InvalidParameter, match="epsilon"):
        PrivateAdvice(game, epsilon=0, delta="1e-6", rounds=3)
    with pytest.raises(InvalidParameter, match="delta"):
        PrivateAdvice(game, epsilon=1, delta=0, rounds=3)
    mechanism = PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=3)
    with pytest.raises(InvalidValue, match="not one of the game's"):
        mechanism.advise(["nowhere"] * 30)
    with pytest.raises(InvalidValue, match="each of the 30"):
        mechanism.advise(types[:-1])
    with pytest.raises(InvalidValue, match="not one of the game's"):
        measured_gain(mechanism, types, player=0, report="nowhere")
    for wrong in (-1, 30):
        with pytest.raises(InvalidParameter, match="player must be"):
            measured_gain(mechanism, types, player=wrong, report=types[1])
        with pytest.raises(InvalidParameter, match="player must be"):
            mechanism.play(types, wrong, types[0], 2)
    with pytest.raises(InvalidParameter, match="fewer rounds"):
        PrivateAdvice(game, epsilon=1, delta="1e-6", rounds=10**9).advise(types)
    one = CongestionGame("x", {"a": ["x"]}, players=2, latency=[(0.1, 0)])
    with pytest.raises(InvalidParameter, match="nothing to advise"):
        PrivateAdvice(one, epsilon=1, delta="1e-6", rounds=3)
    assert mechanism.promised_alpha("0.9999999") <= 1  # more certain than can be known: the trivial bound


def test_the_example_tells_its_story(capsys, tmp_path):
    script = Path(__file__).parents[2] / "examples" / "games" / "routing.py"
    main = runpy.run_path(str(script))["main"]
    with seeded(10):
        main(tmp_path / "regret.png", drivers=400, rounds=(20, 40), runs=2)
    told = capsys.readouterr().out
    assert "10.50 with good advice, and 9.33" in told
    assert max(map(len, told.replace(str(tmp_path), "").splitlines())) <= 80
    assert (tmp_path / "regret.png").stat().st_size > 10_000


@pytest.mark.parametrize("failure", [0.5, 1e-6])
def test_the_certificate_is_that_of_a_hand_count(failure):
    """Two roads posted at the same two loads for nine rounds, always drawn evenly."""
    game = CongestionGame("ab", {"any": ["a", "b"]}, players=4, latency=[(0.25, 0.0), (0.25, 0.0)])
    rounds = 9
    board = np.tile(np.array([3, 1]), (1, rounds, 1))
    played = Played(board, np.full((1, rounds, 1, 2), 0.5), np.zeros((1, rounds, 4), np.int16), board)
    (found,) = certificate(game, played, failure=failure)
    regret = 0.5 * rounds * 0.5  # leaving the busy road, in half of the rounds, for half a unit
    tail = math.log(4 * 16 / failure) + 2 * math.log(2)
    steps = min(2.0**j * rounds * (0.5 + 0.5) ** 2 / 2 + tail / 2.0**j for j in range(16))
    assert found == pytest.approx((regret + steps) / rounds)


def test_what_is_certified_counts_noise_and_presence_too():
    n, rounds, beta = 1000, 200, 0.1
    game = CongestionGame("ab", {"any": ["a", "b"]}, players=n, latency=[(1 / n, 0.0), (1 / n, 0.0)])
    mechanism = PrivateAdvice(game, epsilon=5, delta="1e-6", rounds=rounds)
    with seeded(2):
        advice = mechanism.advise(["any"] * n)
    (coins,) = certificate(game, advice._played, failure=beta / 2)
    steep = 2 / n**2  # two roads differ
    noise = mechanism.sigma * math.sqrt(2 * steep * (math.log(2 * n / beta) + 2 * math.log(2)) / rounds)
    assert noise > 0.005
    assert advice.certified("0.9") == pytest.approx(coins + noise + 2 * 2 / n)
