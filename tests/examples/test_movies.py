"""One film for everybody: true sensitivities, kept bounds, and the leak of a careless average."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.testing import seeded

PATH = Path(__file__).parents[2] / "examples" / "movies.py"
spec = importlib.util.spec_from_file_location("movies", PATH)
movies = importlib.util.module_from_spec(spec)
sys.modules["movies"] = movies  # a dataclass looks its module up
spec.loader.exec_module(movies)

# Anything may stand in the data: stars out of range, one film rated again and again.
ratings = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(-1, 7)), max_size=15)


def table(rows):
    return movies.Ratings(*np.array(rows, np.int64).reshape(-1, 3).T)


@settings(max_examples=60)
@given(ratings, st.integers(1, 3))
def test_no_viewer_moves_a_score_by_more_than_the_sensitivity(rows, floor):
    data = table(rows)
    for make in (lambda r: movies.by_likes(r, "1"), lambda r: movies.by_average(r, "1", floor)):
        for viewer in range(4):
            (choice, with_them), (_, without) = make(data), make(data.without(viewer))
            assert np.abs(with_them - without).max() <= choice.sensitivity
            law = np.log(choice.probabilities(with_them) / choice.probabilities(without))
            assert np.abs(law).max() <= 1 + 1e-9


def test_the_sensitivity_with_a_floor_is_nearly_reached():
    # Two who loved a film, and a third who hated it, at a floor of two: 2 falls to 2/3, by 4/(F + 1).
    data = table([(0, 0, 5), (1, 0, 5), (2, 0, 1)])
    (choice, with_them), (_, without) = (movies.by_average(r, "1", 2) for r in (data, data.without(2)))
    assert choice.sensitivity - 2 <= np.abs(with_them - without).max() <= choice.sensitivity


def test_the_careless_average_moves_by_stars_and_gives_the_viewer_away():
    data = movies.viewers()
    (choice, with_them), (_, without) = (movies.careless(r, "0.5") for r in (data, data.without(0)))
    assert np.abs(with_them - without).max() > 1_000 * choice.sensitivity
    with seeded(1):
        found = movies.attack("0.5", rounds=100)
    assert found.pop("careless average") == 1.0
    # Privacy allows 62 %: of 200 guesses, 165 right would have a probability below 1e-9.
    assert max(found.values()) < 0.82


@pytest.mark.parametrize("make", [movies.by_likes, lambda r, e: movies.by_average(r, e, 200)])
def test_the_film_is_within_the_bound(make):
    choice, scores = make(movies.viewers(), "0.05")
    bound = choice.error("0.95", candidates=len(movies.FILMS))
    with seeded(2):
        below = [scores.max() - scores[choice.select(scores)] for _ in range(200)]
    # At most 10 of 200 are expected beyond; 35 or more have a probability below 1e-9.
    assert np.count_nonzero(np.array(below) > bound) < 35
    assert max(below) > 0


def test_the_story_fits_eighty_columns(capsys):
    with seeded(3):
        movies.main()
    told = capsys.readouterr().out
    assert max(len(row) for row in told.splitlines()) <= 80
    assert "The Long Afternoon" in told
    assert "100% right" in told
