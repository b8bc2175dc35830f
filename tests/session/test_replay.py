"""Whole questions on neighbouring tables with the noise frozen: all that is seen must be alike."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

import sfumato as sf
from random_queries import Asked
from random_shapes import FORMS
from random_tables import Side, World
from replayed import Outcome, replay_forms, replay_queries, seen_of, sessions
from sfumato.audit.session import query_pair
from sfumato.games import DailyReserve, ReservePrice
from sfumato.ledger import Ledger
from sfumato.session import choices, noise
from sfumato.session import query as asking
from sfumato.session.vault import Vault
from sfumato.testing import compare

_COUNT = Asked("SELECT city, COUNT(*) AS n, AVG(spend) AS mean FROM visits GROUP BY city")
_PRICE = {"epsilon": 1}


def _clean(outcome: Outcome) -> None:
    assert not outcome.broken, "\n".join(outcome.broken)


def test_random_queries_show_nothing_but_noise():
    outcome = replay_queries("quick", worlds=4, queries=4)
    _clean(outcome)
    assert outcome.answered >= 10


@pytest.mark.parametrize("start", range(5))
def test_every_form_shows_nothing_but_noise(start):
    forms = sorted(FORMS)[start::5]
    outcome = replay_forms(forms, "quick", worlds=1, queries=1)
    _clean(outcome)
    assert outcome.answered == len(forms)


@pytest.mark.stats
@pytest.mark.parametrize("part", range(10))
def test_many_random_queries_show_nothing_but_noise(part):
    outcome = replay_queries(part, worlds=20, queries=20)
    _clean(outcome)
    assert outcome.answered >= 300


@pytest.mark.stats
@pytest.mark.parametrize("form", sorted(FORMS))
def test_many_questions_of_every_form_show_nothing_but_noise(form):
    outcome = replay_forms([form], "long", worlds=10, queries=15)
    _clean(outcome)
    assert outcome.answered >= 80


def _world(**columns) -> World:
    """Ten people and a neighbour without the last of them, whose row holds the odd values."""
    rows = {
        "id": pa.array(range(10), pa.int64()),
        "city": pa.array(["a", "b"] * 5, pa.string()),
        "spend": pa.array([float(each) for each in range(10)], pa.float64()),
    } | columns
    whole = pa.table(rows)
    table = sf.PrivateTable(
        "visits",
        source=None,
        unit=sf.PrivacyUnit("id"),
        schema={"city": sf.Enum("a", "b"), "spend": sf.Float(0, 10)},
    )
    side = Side("without", {"visits": whole.slice(0, 9)})
    return World({"visits": table}, {"visits": whole}, (side,))


def _findings(world: World, asked: Asked = _COUNT) -> list[str]:
    with sessions(world, world.sides[0]) as (left, right):
        return compare(lambda: seen_of(left, asked, _PRICE), lambda: seen_of(right, asked, _PRICE))


_ODD = {
    "nan": {"spend": pa.array([1.0] * 9 + [float("nan")])},
    "infinite": {"spend": pa.array([1.0] * 9 + [float("-inf")])},
    "huge": {"spend": pa.array([1.0] * 9 + [1.7e308])},
    "null": {"spend": pa.array([1.0] * 9 + [None])},
    "unknown city": {"city": pa.array(["a", "b"] * 4 + ["a", "zz\x00é"])},
    "no id": {"id": pa.array([*range(9), None])},
    "text": {"spend": pa.array(["1"] * 9 + ["forty\ud7ff"])},
}


@pytest.fixture
def odd_world(odd, tmp_path):
    """A world with one odd row; text among numbers is in files of text, since a typed column has none."""
    world = _world(**_ODD[odd])
    if odd != "text":
        return world
    paths = []
    for name, rows in {"base": world.base, "side": world.sides[0].rows}.items():
        (tmp_path / name).mkdir()
        paths.append(str(tmp_path / name / "visits.csv"))
        write_csv(rows["visits"], paths[-1])
    return World(world.tables, {"visits": paths[0]}, (Side("without", {"visits": paths[1]}),))


@pytest.mark.parametrize("odd", sorted(_ODD))
def test_one_odd_row_shows_in_nothing(odd_world):
    assert _findings(odd_world) == []


def _by_size(values, mechanism, unit):
    """How noise was drawn before: in one call, or one value at a time if one of them is large."""
    if all(abs(value) < mechanism.sensitivity / 4 for value in values):
        return np.asarray(mechanism.release(np.array(values))).astype(np.float64) * float(unit)
    return np.array([mechanism.release(value) for value in values]).astype(np.float64) * float(unit)


asking_answered = asking.answered


def test_noise_that_is_drawn_by_the_size_of_values_is_found(monkeypatch):
    monkeypatch.setattr(noise, "_noisy", _by_size)
    assert _findings(_world(spend=pa.array([5.0] * 9 + [10.0])))


def test_a_record_that_holds_the_truth_is_found(monkeypatch):
    def leaky(quote, read):
        kept = []
        answer = asking_answered(quote, lambda *which: kept.append(read(*which)) or kept[-1])
        object.__setattr__(answer, "mechanism", f"{answer.mechanism} {kept[0].columns[0][1]}")
        return answer

    monkeypatch.setattr(asking, "answered", leaky)
    assert _findings(_world())


def test_an_error_that_depends_on_a_row_is_found(monkeypatch):
    def strict(values, mechanism, unit):
        if sum(values) * unit > 9:
            raise sf.errors.EngineFailed("Too many rows.")
        return honest(values, mechanism, unit)

    honest = noise._noisy
    monkeypatch.setattr(noise, "_noisy", strict)
    assert _findings(_world(), Asked("SELECT city, COUNT(*) AS n FROM visits GROUP BY city"))


def test_groups_that_are_found_are_replayed_too():
    world = _world()
    table = world.tables["visits"]
    tables = {"visits": sf.PrivateTable("visits", unit=table.unit, source=None, schema={"city": sf.Text()})}
    rows = world.base["visits"].set_column(1, "city", pa.array(["a", "b", "c"] * 3 + ["only here"]))
    side = Side("without", {"visits": rows.slice(0, 9)})
    asked = Asked("SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
    found = _findings(World(tables, {"visits": rows}, (side,)), asked)
    assert found == []


def _log(bids):
    auctions = [str(each // 2) for each in range(len(bids))]
    bidders = [f"b{each}" for each in range(len(bids))]
    return auctions, bidders, bids


@pytest.mark.parametrize("odd", [0.0, 7.25, 1e300, float("nan"), float("inf"), -3.0])
def test_a_learned_reserve_shows_nothing_but_its_noise(odd):
    bids = [1.0, 2.0, 5.0, 5.0, 3.0, 4.0]

    def learn(values):
        with Ledger.open(None) as ledger:
            ledger.register("bids", {"unit": {"column": "bidder"}, "version": None}, sf.Budget(10))
            daily = DailyReserve(ledger, "bids", ReservePrice(epsilon=1, prices=(0, 10, 1)))
            price = daily.learn("2026-03-01", lambda: _log(values))
            lines = [{**each.to_dict(), "time": "", "mac": ""} for each in ledger.entries()]
            return price, daily.learn("2026-03-01", lambda: _log(values)), json.dumps(lines)

    assert compare(lambda: learn(bids), lambda: learn([*bids, odd])) == []


def test_an_audit_shows_nothing_but_noise():
    world = _world(**_ODD["huge"])
    rows = (world.base["visits"], world.sides[0].rows["visits"])

    def program(source):
        table = replace(world.tables["visits"], source=source)
        pair = query_pair(table, table, "SELECT city, SUM(spend) AS s FROM visits GROUP BY city", epsilon=1)
        return pair.quote.loss.to_dict(), pair.draw("left", 1)

    assert compare(lambda: program(rows[0]), lambda: program(rows[1])) == []


def _chosen(session: sf.Session) -> list[object]:
    """What is seen of both choices, and all that the ledger keeps of them."""
    asked = ["SELECT COUNT(*) AS n FROM visits", "SELECT SUM(spend) AS s FROM visits WHERE city = 'a'"]
    found = [
        choice
        for _ in range(2)
        for choice in (
            session.most_common("city", epsilon=1, count=2),
            session.most_common("spend", epsilon=1, among=[1.0, 2.0]),
            session.first_above(asked, threshold=5, epsilon=1),
        )
    ]
    lines = [{**each.to_dict(), "time": "", "mac": ""} for each in session.ledger.entries()]
    kept = [
        payload
        for each in found
        for _, payload in session.ledger.recall(each.receipt.dataset, each.receipt.fingerprint)
    ]
    return [[str(each) for each in found], [each.free for each in found], kept, json.dumps(lines)]


@pytest.mark.parametrize("odd", _ODD)
def test_a_choice_shows_nothing_but_its_noise(odd_world):
    with sessions(odd_world, odd_world.sides[0]) as (left, right):
        assert compare(lambda: _chosen(left), lambda: _chosen(right)) == []


def test_a_choice_that_keeps_its_scores_is_noticed(monkeypatch):
    world, kept = _world(), choices.KeptChoice.to_bytes
    read = Vault.read

    def remembered(self, *those, **more):
        found = read(self, *those, **more)
        monkeypatch.setattr(
            choices.KeptChoice,
            "to_bytes",
            lambda mine: kept(mine)[:-1] + b',"scores":%d}' % sum(found.columns[0]),
        )
        return found

    monkeypatch.setattr(Vault, "read", remembered)
    with sessions(world, world.sides[0]) as (left, right):
        assert compare(lambda: _chosen(left), lambda: _chosen(right)) != []
