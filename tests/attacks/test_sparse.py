"""A few ratings or places find a person, and a private table of them finds strangers as often."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks.linkage import sparse_linkage
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded
from verdicts import sure

USERS, FILMS, EACH, AWARE = 300, 400, 30, 6
POPULAR = 1 / np.arange(1, FILMS + 1)


def ratings(seed, *, start=0, popular=POPULAR):
    """What users rated: a long table, the films of each user different ones."""
    draw = simulation(seed)
    user, film = [], []
    for i in range(USERS):
        film += draw.choice(FILMS, size=EACH, replace=False, p=popular / popular.sum()).tolist()
        user += [start + i] * EACH
    return pa.table({"user": user, "film": film, "stars": draw.integers(1, 6, len(film)), "id": user})


def some_of(table, each, seed):
    """A few ratings of every user, the stars off by one at most."""
    draw = simulation(seed)
    rows = np.concatenate([np.sort(draw.permutation(EACH)[:each]) + EACH * i for i in range(USERS)])
    taken = table.take(pa.array(rows))
    stars = np.clip(taken["stars"].to_numpy() + draw.integers(-1, 2, len(rows)), 1, 5)
    return taken.set_column(2, "stars", pa.array(stars))


RATINGS = ratings(1)
PSEUDONYMS = RATINGS.set_column(
    0, "user", pa.array([f"u{(7 * i) % USERS}" for i in RATINGS["user"].to_pylist()])
)
AUX = some_of(RATINGS, AWARE, 2)
STRANGERS = some_of(ratings(3, start=USERS), AWARE, 4)
WHO = {"person": "user", "item": "film"}


def test_six_ratings_find_most_people_and_are_seldom_wrong():
    found = sparse_linkage(AUX, PSEUDONYMS, **WHO, value="stars", tolerance=1, truth="id")
    assert found.works
    assert found.rate > 0.8
    assert found.reached.hits > 0.95 * found.detail["found"]
    assert found.baseline == 1 / USERS
    # What the films alone tell is a little less, and two ratings tell much less.
    assert sparse_linkage(AUX, PSEUDONYMS, **WHO, truth="id").rate > 0.5
    assert sparse_linkage(some_of(RATINGS, 1, 5), PSEUDONYMS, **WHO, truth="id").rate < 0.3


def test_strangers_are_seldom_taken_for_somebody():
    found = sparse_linkage(AUX, PSEUDONYMS, **WHO, value="stars", tolerance=1, control=STRANGERS)
    assert found.works
    assert found.baseline < 0.5 * found.rate


def test_a_private_table_finds_members_as_often_as_strangers():
    # How often each film is rated, at epsilon 1 for a user of at most 30 ratings; users are then made up.
    counts = np.bincount(RATINGS["film"].to_numpy(), minlength=FILMS)
    with seeded("films"):
        noisy = sf.Geometric(epsilon=1, sensitivity=EACH).release(counts)
    private = ratings(6, popular=np.maximum(noisy, 0) + 1e-9)
    found = sparse_linkage(AUX, private, **WHO, eccentricity=0.5, control=STRANGERS, target="epsilon 1")
    assert sure(found).within
    assert found.reached.hits > 20


def test_four_places_and_hours_find_a_phone():
    draw = simulation(7)
    rows = 200 * 40
    traces = pa.table(
        {
            "phone": np.repeat(np.arange(200), 40),
            "cell": draw.integers(0, 50, rows),
            "hour": [datetime.datetime(2020, 1, 1 + i // 24, i % 24) for i in draw.integers(0, 168, rows)],
        }
    )
    traces = traces.append_column("id", traces["phone"])
    seen = traces.take(pa.array(np.concatenate([40 * i + np.arange(4) for i in range(200)])))
    found = sparse_linkage(seen, traces, person="phone", item=["cell", "hour"], truth="id")
    assert found.rate > 0.95
    # The same place within three hours, where the hour is not exact.
    late = seen.set_column(
        2, "hour", pa.array([t + datetime.timedelta(hours=2) for t in seen["hour"].to_pylist()])
    )
    near = sparse_linkage(late, traces, person="phone", item="cell", value="hour", tolerance=0.1, truth="id")
    assert near.works
    assert (
        sparse_linkage(
            late, traces, person="phone", item="cell", value="hour", tolerance=0.05, truth="id"
        ).rate
        < near.rate
    )


def test_a_few_searches_find_a_pseudonym():
    """A log in which numbers stand for people: everybody asks for the weather, two for the same street."""

    def own(i):
        return [f"plumber in street {i // 2}", f"pain in the {('knee', 'back')[i % 2]}", "weather"]

    def log(user, *, beside=()):
        rows = [(user(i), text, i) for i in range(200) for text in [*own(i), *beside]]
        return pa.table(dict(zip(("user", "text", "id"), zip(*rows, strict=True), strict=True)))

    searches = log(lambda i: f"n{i}", beside=["news", "lottery numbers", "train times"])
    known = log(lambda i: i)
    found = sparse_linkage(known, searches, person="user", item="text", truth="id")
    assert found.works
    assert found.rate > 0.95
    # What everybody asks for finds nobody.
    common = known.filter(pa.compute.equal(known["text"], "weather"))
    assert sparse_linkage(common, searches, person="user", item="text", truth="id").reached.hits == 0


def test_scores_and_eccentricity_are_those_of_the_formula():
    released = pa.table(
        {"p": ["a", "a", "b", "b", "c"], "i": ["x", "y", "x", "z", "x"], "id": [1, 1, 2, 2, 3]}
    )
    aware = pa.table({"p": [9, 9, 9], "i": ["x", "z", "z"], "id": [2, 2, 2]})
    # x is had by three and z by one; known twice, it counts once: a and c score 1/ln 4, b 1/ln 4 + 1/ln 2.
    scores = np.array([1 / np.log(4), 1 / np.log(4) + 1 / np.log(2), 1 / np.log(4)])
    edge = (1 / np.log(2)) / scores.std()
    for eccentricity, hits in ((edge - 1e-6, 1), (edge + 1e-6, 0)):
        found = sparse_linkage(aware, released, person="p", item="i", truth="id", eccentricity=eccentricity)
        assert found.reached.hits == hits


def test_what_is_rare_weighs_more():
    released = pa.table({"p": ["a", "b", "c", "d"], "i": ["u", "z", "u", "u"], "id": [1, 2, 3, 4]})
    aware = pa.table({"p": [9, 9], "i": ["u", "z"], "id": [2, 2]})  # one item of each candidate's
    scores = np.array([1 / np.log(4), 1 / np.log(2), 1 / np.log(4), 1 / np.log(4)])
    edge = (1 / np.log(2) - 1 / np.log(4)) / scores.std()
    for eccentricity, hits in ((edge - 1e-6, 1), (edge + 1e-6, 0)):
        found = sparse_linkage(aware, released, person="p", item="i", truth="id", eccentricity=eccentricity)
        assert found.reached.hits == hits


def test_who_was_often_at_a_place_was_there_once():
    released = pa.table({"p": ["a"] * 9 + ["b", "b"], "i": ["x"] * 9 + ["x", "y"], "id": [1] * 9 + [2, 2]})
    aware = pa.table({"p": [5, 5], "i": ["x", "y"], "id": [2, 2]})
    assert sparse_linkage(aware, released, person="p", item="i", truth="id").reached.hits == 1


def test_nobody_stands_out_where_all_are_alike():
    alike = pa.table({"p": [1, 2, 3], "i": ["x"] * 3})
    assert sparse_linkage(alike, alike, person="p", item="i", eccentricity=0).reached.hits == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"item": "fil"}, 'no column "fil"'),
        ({"item": []}, "at least one column"),
        ({"item": "user"}, "different columns"),
        ({"tolerance": -1}, "tolerance must be"),
        ({"eccentricity": float("nan")}, "eccentricity must be"),
        ({"truth": "id", "control": STRANGERS}, "not both"),
        ({"value": "title"}, "numbers or days"),
        ({"released": RATINGS.slice(0, EACH)}, "has one person"),
    ],
)
def test_what_cannot_be_attacked_is_refused(given, words):
    titled = AUX.append_column("title", pa.array(["t"] * AUX.num_rows))
    released = RATINGS.append_column("title", pa.array(["t"] * RATINGS.num_rows))
    given = {"released": released} | WHO | given
    with pytest.raises(InvalidParameter, match=words):
        sparse_linkage(titled, given.pop("released"), **given)
