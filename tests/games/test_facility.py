import itertools
import math
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games import facility
from sfumato.games.facility import UNIT, FacilityLocation
from sfumato.games.truthful import gain
from sfumato.loss import PureLoss
from sfumato.mechanisms import Exponential
from sfumato.testing import assert_discrete, seeded

GRID = [0.0, 0.25, 0.5, 0.75, 1.0]
SQUARE = [(0, 0), (4, 0), (0, 3), (4, 3)]


def at_the_mean(reports, agent, truth):
    """Builds at the average of the reports: everybody pulls it their way by exaggerating."""
    return 1 - abs(float(np.mean(reports)) - truth)


def at_the_median(reports, agent, truth):
    """Builds at the (lower) median of the reports: exactly truthful, and not private at all."""
    return 1 - abs(sorted(reports)[(len(reports) - 1) // 2] - truth)


CONTRASTS = {"mean location": at_the_mean, "median location": at_the_median}


def half_priced(game):
    """The planted bug: scores that move twice as far as their sensitivity says."""
    object.__setattr__(game, "_choice", Exponential(game.epsilon, game.sensitivity // 2))
    return game


def worst_ratio(game, players):
    """The largest log-ratio of probabilities over all exchanges of one report."""
    types = [tuple(each) if np.ndim(each) else each for each in game.types.tolist()]
    worst = 0.0
    for others in itertools.combinations_with_replacement(types, players - 1):
        laws = [np.log(game.law([*others, each])) for each in types]
        worst = max(worst, max(float(np.abs(a - b).max()) for a, b in itertools.combinations(laws, 2)))
    return worst


GAMES = [
    FacilityLocation(1, GRID),
    FacilityLocation(1, GRID, facilities=2),
    FacilityLocation("0.5", SQUARE, facilities=2),
    FacilityLocation(2, [0, 1], types=[0, 0.4, 1]),
    FacilityLocation(1, SQUARE, types=[(1, 1), (2, 2), (3, 0)]),
    FacilityLocation(1, GRID, facilities=2, method="greedy"),
]


@pytest.mark.parametrize("game", GAMES, ids=repr)
def test_no_exchange_is_told_apart_by_more_than_epsilon(game):
    worst = worst_ratio(game, 3)
    assert worst <= float(game.epsilon) * (1 + 1e-9)
    assert worst > float(game.epsilon) / 4


def test_half_the_sensitivity_would_be_seen():
    assert worst_ratio(half_priced(FacilityLocation(1, [0, 1])), 3) > 1.3


@pytest.mark.parametrize("game", GAMES, ids=repr)
def test_the_sensitivity_is_the_largest_move_of_a_score(game):
    worth = np.stack([game.utility(t) for t in range(len(game.types))])
    moved = max(int(np.abs(a - b).max()) for a, b in itertools.combinations(worth, 2))
    if game.method == "exact":
        assert game.sensitivity == moved
    else:
        assert moved <= game.sensitivity
    assert game.sensitivity <= UNIT


def test_types_that_lie_close_together_lower_the_sensitivity():
    near = FacilityLocation(1, [0, 10], types=[4, 5, 6])
    # Two of the six steps to the far site.
    assert near.sensitivity == pytest.approx(UNIT / 3, abs=2)


@pytest.mark.parametrize("facilities", [1, 2, 3])
def test_welfare_is_the_sum_of_utilities(facilities):
    game = FacilityLocation(1, SQUARE, facilities=facilities, types=[(1, 1), (2, 2), (3, 0)])
    reports = [(1, 1), (3, 0), (3, 0), (1, 1), (2, 2)]
    widest = math.dist((3, 0), (0, 3))
    for row, total in zip(game.outcomes, game.welfare(reports), strict=True):
        exact = sum(1 - min(math.dist(home, SQUARE[i]) for i in row) / widest for home in reports)
        assert exact - len(reports) / UNIT - 1e-9 <= total <= exact + 1e-9
        assert len(row) == facilities


@pytest.mark.parametrize("method", ["exact", "greedy"])
def test_places_open_as_the_law_says(method):
    game = FacilityLocation(2, SQUARE, facilities=2, method=method)
    reports = [SQUARE[0], SQUARE[0], SQUARE[3], SQUARE[1]]
    number = {tuple(map(tuple, game.sites[row].tolist())): i for i, row in enumerate(game.outcomes)}
    with seeded(7):
        drawn = [number[tuple(map(tuple, game.select(reports).tolist()))] for _ in range(2000)]
    law = game.law(reports)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert_discrete(drawn, dict(enumerate(law.tolist())))
    with pytest.raises(AssertionError):
        assert_discrete(drawn, dict(enumerate(np.roll(law, 1).tolist())))


@pytest.mark.parametrize("confidence", [0.8, 0.99])
@pytest.mark.parametrize("game", GAMES, ids=repr)
def test_the_guarantee_holds_for_every_town(game, confidence):
    types = [tuple(each) if np.ndim(each) else each for each in game.types.tolist()]
    for reports in itertools.combinations_with_replacement(types, 3):
        many = [each for each in reports for _ in range(20)]
        welfare, law = game.welfare(many), game.law(many)
        bad = welfare < game.share * welfare.max() - game.guarantee(confidence)
        assert law[bad].sum() <= 1 - confidence


def test_the_guarantee_is_reached_up_to_a_little():
    """Two sites, just apart enough: the worst that the bound allows."""
    game = FacilityLocation(1, [0, 1])
    allowed = game.guarantee(0.95)
    ones = math.floor(10 + allowed)  # the gap in welfare is then at most `allowed`
    law, welfare = game.law([0] * 10 + [1] * ones), game.welfare([0] * 10 + [1] * ones)
    assert welfare[1] - welfare[0] <= allowed
    assert law[0] > 0.05 * 0.9


def test_the_payoff_is_the_mean_utility():
    game = FacilityLocation(1, GRID)
    law = game.law([0, 0.5, 1])
    assert game.payoff([0, 0.5, 1], 1, 0.75) == pytest.approx(
        sum(p * (1 - abs(0.75 - site)) for p, site in zip(law, GRID, strict=True)), abs=2 / UNIT
    )


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", 1])
@pytest.mark.parametrize("coalition", [1, 2])
@pytest.mark.parametrize("sites", [[0, 1, 5, 6], SQUARE], ids=["line", "plane"])
def test_lying_to_a_private_choice_gains_little(epsilon, coalition, sites):
    game = FacilityLocation(epsilon, sites)
    found = gain(game.payoff, types=sites, players=3, coalition=coalition, anonymous=True, loss=game.loss)
    assert found.high <= found.promise
    assert found.promise <= math.tanh(coalition * float(epsilon) / 2) < 2 * coalition * float(epsilon)
    assert 0 < found.cost <= found.promise


def test_the_private_choice_alone_is_not_exactly_truthful():
    game = FacilityLocation(1, [0, 1, 5, 6])
    assert gain(game.payoff, types=[0, 1, 5, 6], players=3, anonymous=True).low > 0.001


def test_one_agent_stands_for_all_who_live_there():
    game = FacilityLocation(1, [0, 1, 3])
    full = gain(game.payoff, types=[0, 1, 3], players=3)
    short = gain(game.payoff, types=[0, 1, 3], players=3, anonymous=True)
    assert short.value == pytest.approx(full.value, abs=1e-12)


def test_the_mean_rewards_exaggeration():
    found = gain(CONTRASTS["mean location"], types=GRID, players=3, loss=PureLoss("0.1"))
    assert found.broken
    assert found.value == pytest.approx(1 / 6)  # at a half, others at 0: say 1
    truth, lie = found.profile[found.agents[0]], found.lie[0]
    mean = np.mean(found.profile)
    assert (lie - truth) * (truth - mean) > 0  # one overstates on the side one is on


def test_the_median_is_exactly_truthful_alone_but_not_private():
    found = gain(CONTRASTS["median location"], types=GRID, players=3, loss=PureLoss("0.1"))
    assert found.value == 0.0
    # One report decides where it is built: nothing finite describes that as privacy.
    assert sorted([0, 0, 1])[1] != sorted([0, 1, 1])[1]


def test_a_report_that_is_no_type_counts_as_the_nearest():
    game = FacilityLocation(1, GRID)
    assert game.snap([0.3, 0.9, -2.0, 0.125]).tolist() == [0.25, 1.0, 0.0, 0.0]
    assert game.indices([0.3, 0.9, -2.0, 0.125, 1e300, math.inf, -math.inf, 10**400]).tolist() == [
        1, 4, 0, 0, 4, 4, 0, 4,
    ]  # fmt: skip
    plane = FacilityLocation(1, SQUARE)
    assert plane.snap([(1, 1), (3.9, 2)]).tolist() == [[0, 0], [4, 3]]
    assert plane.indices([(1, 1), (3.9, 2), (4, 3), (math.inf, 0)]).tolist()[:3] == [0, 3, 3]
    assert plane.select(plane.snap([(1, 1), (3.9, 2)])).shape == (1, 2)
    assert FacilityLocation(1, [-0.0, 1]).law([0.0]).shape == (2,)


NOWHERE = [None, math.nan, "here", [1], pd.NA, 1j, b"0.5", (1, 2, 3), np.datetime64("NaT"), [[1], [2]]]


@pytest.mark.parametrize("odd", NOWHERE, ids=repr)
def test_a_report_that_is_no_place_counts_as_the_first_type_and_changes_no_other(odd):
    line, plane = FacilityLocation(1, [0.5, 0.0, 1.0]), FacilityLocation(1, SQUARE[1:])
    for container in (list, tuple):
        assert line.indices(container([1.0, 0, odd])).tolist() == [2, 1, 0]
        assert plane.indices(container([(4, 3), [0, 3], odd, (odd, 3)])).tolist() == [2, 1, 0, 0]


def test_reports_come_in_columns_of_any_make():
    game = FacilityLocation(1, GRID)
    for reports in (pd.Series([1, None], dtype="Int64"), pl.Series([1, None]), pa.array([1, None])):
        assert game.indices(reports).tolist() == [4, 0]
    assert FacilityLocation(1, SQUARE).indices(pd.DataFrame({"x": [4, 0], "y": [3, 3]})).tolist() == [3, 2]


def test_a_city_of_ten_thousand_in_the_plane():
    side = np.linspace(0, 1, 20)
    sites = np.array([(x, y) for x in side for y in side])
    game = FacilityLocation(1, sites, facilities=2)
    rng = np.random.default_rng(0)
    centres = np.array([(0.2, 0.2), (0.8, 0.7)])
    homes = game.snap(centres[rng.integers(2, size=10_000)] + rng.normal(0, 0.05, (10_000, 2)))
    with seeded(1):
        opened = game.select(homes)
    assert len(game.outcomes) == math.comb(400, 2)
    assert np.abs(opened - centres).max() < 0.1


def test_more_sets_than_can_be_compared_are_chosen_greedily():
    side = np.linspace(0, 1, 20)
    sites = np.array([(x, y) for x in side for y in side])
    with pytest.raises(InvalidParameter, match="method='greedy'"):
        FacilityLocation(1, sites, facilities=4)
    game = FacilityLocation(2, sites, facilities=4, method="greedy")
    homes = sites[np.random.default_rng(1).integers(400, size=20_000)]
    with seeded(1):
        assert game.select(homes).shape == (4, 2)
    assert game.loss.pure == 2
    assert 0.63 < game.share < 0.69
    with pytest.raises(InvalidParameter, match="too many sets"):
        game.law(homes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sites": []}, "empty"),
        ({"sites": [0, 1, 1]}, "twice"),
        ({"sites": [0, math.nan]}, "finite"),
        ({"sites": [(0, 1, 2)]}, "pairs"),
        ({"sites": ["here"]}, "numbers"),
        ({"sites": [3]}, "nothing to choose"),
        ({"sites": [0, 1], "types": []}, "types is empty"),
        ({"sites": [0, 1], "types": [(0, 1)]}, "both"),
        ({"sites": [0, 1], "facilities": 3}, "at least 3 sites"),
        ({"sites": [0, 1], "facilities": 0}, "at least 1"),
        ({"sites": [0, 1], "method": "best"}, "'exact' or 'greedy'"),
        ({"sites": [0, 1], "epsilon": 0}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, words):
    with pytest.raises(InvalidParameter, match=words):
        FacilityLocation(**({"epsilon": 1} | arguments))


@pytest.mark.parametrize(
    "reports", [[], np.array([[0, 1]]), np.array(["31337"]), 0.31337, "31337", np.ma.array([0.5], mask=[1])]
)
def test_reports_of_another_type_or_shape_are_refused_and_never_quoted(reports):
    with pytest.raises(InvalidValue) as caught:
        FacilityLocation(1, GRID).select(reports)
    assert "31337" not in str(caught.value)


def test_the_agent_is_one_of_the_players():
    with pytest.raises(InvalidParameter, match="agent"):
        FacilityLocation(1, GRID).payoff([0, 1], 2, 0)


@pytest.mark.parametrize("example", facility.examples(), ids=lambda each: each.name)
def test_examples_keep_their_claim_and_come_close_to_it(example):
    left, right = example.pmf("left"), example.pmf("right")
    worst = max(abs(math.log(left[i] / right[i])) for i in left)
    assert float(example.loss.pure) / 2 < worst <= float(example.loss.pure)
    with seeded(2):
        assert_discrete(example.draw("left", 1500), left)


@pytest.mark.parametrize("script", ["facility", "truthful"])
def test_the_script_tells_its_story(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = Path(__file__).parents[2] / "examples" / "games" / f"{script}.py"
    main = runpy.run_path(str(path))["main"]
    if script == "facility":
        main(["facility", "welfare.png"], draws=20, crowds=(10, 100))
        assert Path("welfare.png").stat().st_size > 10_000
    else:
        main()
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert "truth" in told


def test_the_third_of_three_remembers_the_first():
    """Greedy on a line: who is served already by the first place asks for nothing of the third."""
    game = FacilityLocation(60, GRID, facilities=3, method="greedy")
    reports = [0.0] * 8 + [0.25] + [0.75] * 3 + [1.0] * 4
    rows = {tuple(row): i for i, row in enumerate(game.outcomes.tolist())}
    histogram = game._histogram(reports)
    with seeded(3):
        drawn = [rows[tuple(game.chosen(histogram).tolist())] for _ in range(1500)]
    assert_discrete(drawn, dict(enumerate(game.law(reports).tolist())))
