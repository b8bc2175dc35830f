"""No all-clear where a planted leak is missed: every attack over many shapes, and its planted twin."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from leaks import ANSWERS, TABLES, attacks_in, crowd, leaking, table_attacks
from sfumato import attacks
from sfumato.attacks import Outcome, Power, Tally
from sfumato.attacks import _power as planting
from sfumato.attacks.singling import singling_out
from sfumato.random import simulation

SHAPES = [(10, 2), (40, 3), (40, 20), (150, 12), (500, 4)]
FEW = [shape for shape in SHAPES if shape != (40, 20)]  # the widest takes longest: in `make stats`
SHARES = [0.1, 0.3]


def test_every_attack_of_the_package_has_a_leak_planted_before_it():
    assert not set(TABLES) & set(ANSWERS)
    assert {*TABLES, *ANSWERS} == attacks_in(attacks)


def test_an_attack_without_one_would_be_seen():
    def burglary(_house) -> Outcome:
        """An attack that nobody has planted a leak for."""

    # Annotations are texts where a module puts them off, as those of the package do.
    burglary.__annotations__["return"] = "Outcome"
    assert attacks_in(SimpleNamespace(**vars(attacks), burglary=burglary)) - {*TABLES, *ANSWERS} == {
        "burglary"
    }


def judged(seed, shapes=SHAPES, shares=SHARES):
    """What every attack says of tables in which a leak is planted, by name: verdicts and how many of each."""
    said: Counter[tuple[str, bool | None]] = Counter()
    for people, columns in shapes:
        for share in shares:
            draw = simulation(seed * 1000 + people + columns)
            own, others, released = (crowd(people, columns, draw) for _ in range(3))
            leaky = leaking(released, own, share, draw)
            for name, found in table_attacks(own, leaky, others, share, seed):
                said[name, found.works] += 1
                assert (found.power is None) == bool(found.works)
    return said


def answered(name, seeds, sizes=(4, 16, 60), shares=(0.1, 0.3, 1.0)):
    """What an attack on answers or models says where a leak is planted."""
    return Counter(
        found.works
        for seed in seeds
        for size in sizes
        for share in shares
        for found in ANSWERS[name](size, share, seed)
    )


def test_no_attack_on_a_table_gives_an_all_clear_where_a_leak_is_planted():
    said = judged(1, FEW)
    cleared = sum(count for (_, works), count in said.items() if works is False)
    # 72 tables and attacks; each may be missed once in fifty times though all of its twins were noticed.
    assert cleared <= 2
    for name in TABLES:
        assert sum(said[name, works] for works in (True, False, None)) >= len(SHARES) * (len(FEW) - 1)
        assert name == "homogeneity" or said[name, True] > 0


@pytest.mark.stats
def test_no_attack_on_a_table_gives_an_all_clear_where_a_leak_is_planted_in_many_tables():
    said = sum((judged(seed) for seed in range(2, 8)), Counter())
    for name in TABLES:
        tables = sum(said[name, works] for works in (True, False, None))
        assert said[name, False] <= binom.isf(1e-4, tables, 0.02)


@pytest.mark.parametrize("name", ANSWERS)
def test_no_attack_on_answers_or_models_gives_an_all_clear_where_a_leak_is_planted(name):
    said = answered(name, range(2))
    assert said[True] > 0
    assert said[False] <= 1


@pytest.mark.stats
@pytest.mark.parametrize("name", ANSWERS)
def test_no_attack_on_answers_or_models_gives_an_all_clear_in_many_of_them(name):
    said = answered(name, range(100, 110), sizes=(4, 16, 60, 300))
    assert said[False] <= binom.isf(1e-4, said.total(), 0.02)


def test_an_attack_that_believes_itself_would_be_caught(monkeypatch):
    monkeypatch.setattr(Power, "enough", property(lambda _: True))
    said = judged(1, shapes=[(10, 2), (40, 3)])
    assert sum(count for (_, works), count in said.items() if works is False) > 10


def test_large_tables_without_a_leak_get_their_all_clear():
    draw = simulation(5)
    own, others, released = (crowd(1000, 6, draw) for _ in range(3))
    cleared = set()
    for name, found in table_attacks(own, released, others, 0.3, 5):
        if found.works is False:
            cleared.add(name)
            assert found.power.enough
            assert "would be noticed in 20 of 20 twins planted with it" in " ".join(str(found).split())
    assert cleared >= {"linkage", "homogeneity", "intersection", "singling_out"}


# ── ten per cent of copied rows


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("width", [3, 5])
def test_singling_out_is_silent_on_copies_that_it_would_not_see(seed, width):
    draw = simulation(seed)
    own, others, released = (crowd(400, 6, draw) for _ in range(3))
    found = singling_out(own, leaking(released, own, 0.1, draw), others, width=width, seed=seed)
    assert found.works is not False
    if found.works is None:
        assert "No verdict: this attack would notice a planted leak (one person in ten copied" in " ".join(
            str(found).split()
        )
        assert found.to_dict()["power"]["enough"] is False
    everything = singling_out(own, own, others, width=6, seed=seed)
    assert everything.works


# ── answers


@pytest.mark.parametrize("people", [3, 16, 64])
@pytest.mark.parametrize("queries", [2, 64, None])
def test_exact_counts_are_never_cleared(people, queries):
    secret = np.arange(people) % 2 == 0
    found = attacks.reconstruction(lambda who: int(secret[who].sum()), secret, queries=queries, seed=3)
    assert found.works is not False
    found = attacks.reconstruction(lambda _: people / 4, secret, queries=queries, seed=3)
    assert (found.works is None) == (people == 3 or queries == 2)


def test_gradients_of_large_batches_get_no_verdict():
    draw = simulation(4)
    rows = draw.normal(size=(60, 6))
    mixed = attacks.gradient_leakage(
        lambda some, _: draw.normal(size=(1, len(some))) @ some, rows, np.zeros(60), batch=30, seed=1
    )
    assert mixed.works is None
    alone = attacks.gradient_leakage(lambda *_: draw.normal(size=6), rows, np.zeros(60), seed=1)
    assert alone.works is False
    assert alone.power.noticed.hits == 20


def test_one_secret_is_enough_and_a_wide_list_of_guesses_is_not():
    def nothing(_documents, _seed):
        return None

    def blind(_model, texts):
        return np.zeros(len(texts))

    given = {"candidates": [f"{code:03d}" for code in range(1000)], "seed": 0}
    found = attacks.extraction(nothing, blind, [], ["ada", "bea", "cid", "dan"], **given)
    assert found.works is False
    assert found.power.noticed == 1
    found = attacks.extraction(nothing, blind, [], ["ada"], **given, top=999)
    assert found.works is None


def test_fresh_noise_that_would_not_show_gets_no_verdict():
    draw = simulation(1)
    few = attacks.averaging(lambda: float(draw.normal()), truth=0, tolerance=0.01, times=2, trials=5)
    assert few.works is None
    same = attacks.averaging(lambda: 3.0, truth=0, tolerance=1, times=5, trials=3)
    assert same.works is False
    assert same.power.why == "all answers of a trial were the same"


# ── what is said


def test_power_in_words_and_values():
    base = Outcome("an attack", "it hits", Tally(1, 10), 0.1, "a guess")
    none = planting.stated(base, lambda: Power("a leak", Tally(3, 20)), advice="give more people")
    assert none.works is none.within is None
    assert none.undecided == (
        "this attack would notice a planted leak (a leak) only in 3 of 20 twins planted with it, so that its "
        "failure says nothing; give more people."
    )
    assert none.to_dict()["power"] == {"leak": "a leak", "hits": 3, "twins": 20, "enough": False}
    clear = planting.stated(base, lambda: Power("a leak", Tally(20, 20)))
    assert clear.works is False
    assert str(clear).endswith("A leak (a leak) would be noticed in 20 of 20 twins\nplanted with it.")
    sure = planting.stated(base, lambda: planting.certain_power("a leak", "all is looked at"))
    assert sure.to_dict()["power"] == {
        "leak": "a leak",
        "probability": 1.0,
        "enough": True,
        "why": "all is looked at",
    }
    found = planting.stated(replace(base, reached=Tally(9, 10)), lambda: 1 / 0)
    assert found.works
    assert found.power is None


def test_all_twins_must_be_noticed_and_the_rest_is_arithmetic():
    assert not Power("", Tally(19, 20)).enough
    assert Power("", Tally(5, 5)).enough
    # p^N·(1 − p) is largest at p = N/(N + 1).
    chances = np.linspace(0, 1, 2001)
    assert (chances**20 * (1 - chances)).max() <= (20 / 21) ** 20 / 21 < 0.018
    # What is computed is what is counted: the power of counting beside ten thousand draws.
    draw = simulation(2)
    for trials, guess, share in ((20, 0.3, 0.2), (100, 0.05, 0.1), (50, 0.5, 0.3)):
        base = Outcome("an attack", "it hits", Tally(0, trials), guess, "a guess")
        leaked = round(share * trials)
        hits = leaked + draw.binomial(trials - leaked, guess, 10_000)
        counted = np.mean(hits / trials > base.baseline_interval[1])
        assert planting.counted_power(base, share, "").noticed == pytest.approx(counted, abs=0.02)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.1, "one person in ten"),
        (0.5, "one person in two"),
        (1.0, "all people"),
        (0.35, "35.0% of the people"),
    ],
)
def test_shares_in_words(share, words):
    assert planting.one_in(share) == words
