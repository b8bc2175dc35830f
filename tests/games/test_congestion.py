import itertools

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games.congestion import CongestionGame
from sfumato.games.routing import braess, grid_roads, pigou, routing_game


def two_roads(players=4, latency=((0.1, 0.0), (0.0, 0.4))):
    strategies = {"any": [["left"], ["right"]], "left only": [["left"]]}
    return CongestionGame(["left", "right"], strategies, players=players, latency=list(latency))


def test_costs_and_loads_are_those_of_a_hand_count():
    game = two_roads()
    chosen = np.array([[0, 0, 1, 0], [1, 1, 1, 1]])
    assert game.loads(chosen).tolist() == [[3, 1], [0, 4]]
    assert game.costs(game.loads(chosen)) == pytest.approx(np.array([[0.3, 0.4], [0.0, 0.4]]))
    assert game.costs(np.array([99, -5])) == pytest.approx([0.4, 0.4])  # cut to 0 … n
    assert game.index(["any", "left only", "any", "any"]).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("bent", [False, True])
def test_largeness_against_trying_every_profile(bent):
    """Exact for straight lines; for others never less than the truth."""
    rng = np.random.default_rng(1)
    tables = np.cumsum(rng.random((3, 4)), axis=1) / 20
    latency = list(tables) if bent else [(0.05, 0.1), (0.02, 0.0), (0.0, 0.2)]
    game = CongestionGame(
        "xyz", {1: ["x", "yz"], 2: ["xy", "z"]}, players=3, latency=latency
    )  # letters are the resources of a strategy
    found, count = 0.0, len(game.uses)
    for profile in itertools.product(range(count), repeat=3):
        for other in range(count):
            before = game.costs(game.loads(np.array(profile)))[profile[0]]
            after = game.costs(game.loads(np.array((profile[0], other, profile[2]))))[profile[0]]
            found = max(found, abs(before - after))
    assert game.affine is not bent
    assert game.largeness() >= found - 1e-12
    if not bent:
        assert game.largeness() == pytest.approx(found)


def test_largeness_of_routing_falls_as_one_over_the_players():
    found = [
        routing_game(grid_roads(4, 4, players=n), [((0, 0), (3, 3))], players=n).largeness()
        for n in (50, 500)
    ]
    assert found[1] == pytest.approx(found[0] / 10, rel=1e-6)
    assert found[1] <= 1 / 500 + 1e-12  # with everybody on it a path costs 1, so a player adds at most 1/n


def test_distance_is_the_largest_symmetric_difference():
    game = CongestionGame("abcd", {1: ["ab", "cd"], 2: ["a"]}, players=2, latency=[(0.1, 0)] * 4)
    assert game.distance() == 4  # ab against cd
    assert two_roads().distance() == 2


def test_pigou_settles_on_the_narrow_road_though_half_would_be_better():
    game = pigou(100)
    selfish, best = game.settle(["driver"] * 100), game.settle(["driver"] * 100, social=True)
    assert selfish[0, 1] >= 99  # the last one is indifferent
    assert best.tolist() == [[50, 50]]
    assert game.mean_cost(best) == pytest.approx(0.75)
    assert game.mean_cost(selfish) >= 0.99


def test_braess_shortcut_makes_everybody_slower():
    types = [("s", "t")] * 100
    slow, quick = braess(100), braess(100, shortcut=False)
    cost = [game.mean_cost(game.settle(types)) * game.scale for game in (slow, quick)]
    assert cost[0] == pytest.approx(2.0, abs=0.03)
    assert cost[1] == pytest.approx(1.5)


def test_settle_ends_where_nobody_gains_by_moving_alone():
    n = 300
    game = routing_game(grid_roads(4, 5, players=n), [((0, 0), (3, 4)), ((3, 0), (0, 3))], players=n, paths=5)
    counts = game.settle([game.types[i % 2] for i in range(n)])
    assert counts.sum(axis=1).tolist() == [150, 150]
    loads = (counts.ravel() @ game.uses[game.home.ravel()]).astype(int)
    for g in range(2):
        for k in np.flatnonzero(counts[g]):
            here = game.uses[game.home[g, k]]
            paid = game.costs(loads)[game.home[g, k]]
            for other in game.home[g]:
                # On what is shared nothing changes, on the rest the mover is one more.
                moved = (loads + (1 - here) * game.uses[other]).astype(int)
                assert paid <= game.costs(moved)[other] + 1e-9


def test_paths_are_the_quickest_simple_ones():
    roads = {("a", "b"): (0.1, 1), ("b", "c"): (0.1, 1), ("a", "c"): (0.1, 3), ("b", "a"): (0.1, 1)}
    game = routing_game(roads, [("a", "c")], players=2)
    assert game.strategies == (((("a", "b"), ("b", "c")), (("a", "c"),)),)
    assert game.uses @ game.tables[:, -1] == pytest.approx([2.4 / 3.2, 1.0])
    grid = routing_game(grid_roads(6, 6, players=10), [((0, 0), (5, 5))], players=10, paths=8)
    lengths = [len(path) for path in grid.strategies[0]]
    assert len(lengths) == 8
    assert min(lengths) == 10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"players": 1}, "players must be at least 2"),
        ({"strategies": {}}, "space of types is empty"),
        ({"strategies": {"a": []}}, "at least one strategy"),
        ({"strategies": {"a": [[]]}}, "at least one strategy"),
        ({"strategies": {"a": [["up"]]}}, "not in resources"),
        ({"strategies": {"a": [["left"], ["left"]]}}, "repeat"),
        ({"latency": [(-0.1, 0.4), (0, 0)]}, "decreases"),
        ({"latency": [[0.3, 0.2, 0.1, 0.0, 0.0], (0, 0)]}, "decreases"),
        ({"latency": [(0.1, -0.4), (0, 0)]}, "not negative"),
        ({"latency": [(1.0, 0.0), (0, 0)]}, "above the range of 1"),
        ({"latency": [(0.1, 0.0)]}, "one entry for each resource"),
        ({"latency": [[0.1, 0.2], (0, 0)]}, "each load from 0 to 4"),
        ({"latency": [(0, 0), (0, 0)], "scale": None}, "cost something"),
        ({"resources": ["left", "left"]}, "all different"),
        ({"resources": [["left"], ["right"]]}, "must list names"),
        ({"strategies": {"a": [1]}}, "list of resources"),
        ({"strategies": [["left"]]}, "list of resources"),
        ({"latency": None}, "one entry for each resource"),
        ({"latency": [("x", 0), (0, 0)]}, "must be finite"),
        ({"latency": [lambda x: "much", (0, 0)]}, "must be finite"),
        ({"latency": [lambda x: [1, 2], (0, 0)]}, "each load from 0 to 4"),
        ({"scale": "one"}, "positive number"),
    ],
)  # fmt: skip
def test_unusable_games_are_refused(change, words):
    good = {
        "resources": ["left", "right"],
        "strategies": {"any": [["left"], ["right"]]},
        "players": 4,
        "latency": [(0.1, 0.0), (0.0, 0.4)],
    }
    good |= change
    with pytest.raises(InvalidParameter, match=words):
        CongestionGame(good.pop("resources"), good.pop("strategies"), **good)


def test_unknown_types_are_refused_without_naming_them():
    with pytest.raises(InvalidValue, match="not one of the game's") as told:
        two_roads().index(["any", "secret", "any", "any"])
    assert "secret" not in str(told.value)
    with pytest.raises(InvalidValue, match="each of the 4"):
        two_roads().index(["any"])
    with pytest.raises(InvalidParameter, match="No path"):
        routing_game({("a", "b"): (0.1, 0)}, [("b", "a")], players=3)


def test_what_the_first_user_pays_moves_nobody_else():
    game = CongestionGame("ab", {"any": ["a", "b"]}, players=3, latency=[[0, 0.5, 0.5, 0.5], (0.0, 0.4)])
    assert game.largeness() == 0.0
