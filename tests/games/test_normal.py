import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.games.normal import NormalForm, best_correlated, incentive, nash

# Aumann's game of chicken: (dare, yield) pays 7 and 2, both yielding 6 each, both daring nothing.
CHICKEN = NormalForm([[[6, 2], [7, 0]], [[6, 7], [2, 0]]], high=7)


def test_chicken_has_two_pure_equilibria_and_a_mixed_one_worth_28_thirds():
    found = nash(CHICKEN)
    assert [each.pure for each in found] == [True, True, False]
    assert {each.payoffs for each in found[:2]} == {(2.0, 7.0), (7.0, 2.0)}
    assert found[2].strategies[0] == pytest.approx((2 / 3, 1 / 3))
    assert found[2].welfare == pytest.approx(28 / 3)


def test_the_best_advice_for_chicken_beats_every_nash_equilibrium():
    best = best_correlated(CHICKEN)
    assert best.welfare == pytest.approx(10.5)
    assert best.distribution == pytest.approx(np.array([[0.5, 0.25], [0.25, 0.0]]), abs=1e-9)
    assert best.welfare > max(each.welfare for each in nash(CHICKEN))
    assert incentive(CHICKEN, best.distribution) == pytest.approx(0.0, abs=1e-9)


def test_the_incentive_is_the_gain_of_the_best_swap():
    # Told "yield" against a yielding opponent, both would rather dare: 7 instead of 6.
    assert incentive(CHICKEN, [[1, 0], [0, 0]]) == 1.0
    assert incentive(CHICKEN, np.outer([2 / 3, 1 / 3], [2 / 3, 1 / 3])) == pytest.approx(0.0, abs=1e-12)


def test_largeness_agrees_with_trying_all_changes():
    rng = np.random.default_rng(4)
    game = NormalForm(rng.random((3, 2, 3, 2)))
    widest = 0.0
    for place in np.ndindex(2, 3, 2):
        for j in range(3):
            for other in range(game.actions[j]):
                moved = tuple(other if at == j else place[at] for at in range(3))
                change = np.abs(game.payoffs[(slice(None), *place)] - game.payoffs[(slice(None), *moved)])
                widest = max(widest, float(np.delete(change, j).max()))
    assert game.largeness() == widest
    assert NormalForm([[0.0, 1.0]]).largeness() == 0.0  # alone, nobody else to move


def test_equilibria_of_random_games_hold_and_advice_is_never_worse():
    rng = np.random.default_rng(5)
    for _ in range(10):
        game = NormalForm(rng.random((2, 3, 4)))
        found = nash(game)
        assert found
        for each in found:
            assert incentive(game, np.outer(*each.strategies)) < 1e-8
        assert best_correlated(game).welfare >= max(each.welfare for each in found) - 1e-9


def test_three_players_have_their_pure_equilibria():
    together = np.zeros((3, 2, 2, 2))
    together[:, 0, 0, 0], together[:, 1, 1, 1] = 1.0, 0.5
    found = nash(NormalForm(together))
    assert {each.payoffs[0] for each in found} == {1.0, 0.5}
    assert best_correlated(NormalForm(together)).welfare == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("payoffs", "words"),
    [
        ([[[1.5, 0], [0, 0]], [[0, 0], [0, 0]]], "outside the declared range"),
        ([[[np.nan, 0], [0, 0]], [[0, 0], [0, 0]]], "outside the declared range"),
        (np.zeros((2, 0, 2)), "at least one action"),
        (np.zeros((3, 2, 2)), "one table a player"),
        ([], "one table a player"),
    ],
)
def test_unusable_tables_are_refused(payoffs, words):
    with pytest.raises(InvalidParameter, match=words):
        NormalForm(payoffs)


def test_unusable_laws_are_refused():
    with pytest.raises(InvalidParameter, match="one probability a profile"):
        incentive(CHICKEN, [0.5, 0.5])
    with pytest.raises(InvalidParameter, match="add up to 1"):
        incentive(CHICKEN, [[1, 1], [0, 0]])
    with pytest.raises(InvalidParameter, match="below high"):
        NormalForm([[0.0]], low=1, high=1)
    with pytest.raises(InvalidParameter, match="probabilities"):
        incentive(CHICKEN, [["a", "b"], ["c", "d"]])


@pytest.mark.parametrize("unit", [1e-10, 1.0, 1e8])
@pytest.mark.parametrize("above", [1, 1e6])
def test_equilibria_do_not_depend_on_the_unit_or_on_a_range_that_is_too_wide(unit, above):
    game = NormalForm(CHICKEN.payoffs * unit, high=7 * unit * above)
    assert [each.pure for each in nash(game)] == [True, True, False]
    best = best_correlated(game)
    assert best.welfare == pytest.approx(10.5 * unit)
    assert incentive(game, best.distribution) <= 1e-6 * unit


def test_tables_that_would_take_forever_or_are_no_numbers_are_refused():
    with pytest.raises(InvalidParameter, match="8 actions each"):
        nash(NormalForm(np.zeros((2, 8, 14))))
    with pytest.raises(InvalidParameter, match="one shape"):
        NormalForm([[[1, 0], [1]], [[0, 0], [0, 0]]])
    with pytest.raises(InvalidParameter, match="finite"):
        NormalForm([[0.0, 1.0]], high=np.inf)
