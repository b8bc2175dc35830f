"""What cards and dossiers keep between two looks: the same as without, and nothing that is over."""

import asyncio
import random
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import httpx
import pytest

import sfumato as sf
from served import started
from sfumato.catalog import Catalog
from sfumato.cli.serving import opened
from sfumato.demo import prepare
from sfumato.dossier import Card, card, facts
from sfumato.dossier.card import _meaning
from sfumato.dossier.facts import _holds, with_errors
from sfumato.errors import LedgerTampered
from sfumato.explain import words
from sfumato.ledger import Budget, Verification
from sfumato.server import dossiers
from sfumato.server.access import Role
from sfumato.server.doors import http_front
from sfumato.server.page.show import section

SQL = "SELECT ward, COUNT(*) AS n FROM visits WHERE age > {} GROUP BY ward"
PAGE = "/show/datasets/visits/"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A house of the hospital, with its accounts."""
    catalog = Catalog.read(prepare(tmp_path_factory.mktemp("hospital"), epsilon=100), environ={})
    with opened(catalog) as (house, accounts):
        house.session("ada").sql(SQL.format(18)).release(epsilon="0.5")
        yield house, accounts


def uncached(house, latest):
    plain = facts(house.catalog, house.ledger, "visits")
    return plain if latest == 0 else with_errors(plain, house.ledger, session=house._steward, latest=latest)


def test_what_is_kept_is_the_same_as_what_is_read(made):
    house, _ = made
    chance = random.Random(25)

    def release():
        asked = SQL.format(chance.randrange(20, 60))
        house.session(chance.choice(("ada", "ben"))).sql(asked).release(epsilon=chance.choice(("0.1", "0.2")))

    def limit():
        budget = Budget(chance.randrange(20, 40), "1e-7")
        house.steward("sofia").limit("visits", "ben", budget, reason="a test")

    def look():
        latest = chance.choice((0, 1, 3, None))
        found = house.facts("visits", latest=latest)
        assert found == uncached(house, latest)
        assert found is house.facts("visits", latest=latest)
        told = [bool(paid.errors) for paid in found.paid]
        assert told == [latest is None or place < latest for place in range(len(told))][::-1]

    for act in chance.choices((release, limit, look), (2, 1, 4), k=11):
        act()
    look()


@pytest.mark.parametrize("latest", [0, None])
def test_a_card_of_one_loss_tells_nothing_of_another(made, latest):
    house, _ = made
    _meaning.cache_clear()
    found = card(house.facts("visits", latest=latest))
    for price in (1, 2, 1):
        loss = sf.loss.PureLoss(price)
        one = Card(replace(found.facts, loss=loss))
        assert one.meaning == words(loss, unit="person")
        assert Card(replace(found.facts, loss=loss, unit=sf.PrivacyUnit.row())).meaning == words(
            loss, unit="row"
        )
    assert _meaning.cache_info().currsize == 4


def test_what_is_kept_hides_no_tampering(made, tmp_path):
    house, _ = made
    where = house.catalog.ledger
    with opened(house.catalog) as (other, _), closing(sqlite3.connect(where, isolation_level=None)) as file:
        other.facts("visits", latest=0)
        (body,) = file.execute("SELECT body FROM sfumato_receipts WHERE number = 2").fetchone()
        file.execute("UPDATE sfumato_receipts SET body = ? WHERE number = 2", (body + " ",))
        try:
            with pytest.raises(LedgerTampered):
                other.facts("visits", latest=0)
        finally:
            file.execute("UPDATE sfumato_receipts SET body = ? WHERE number = 2", (body,))


def test_only_what_no_day_changes_is_kept(made):
    house, _ = made
    known = house.facts("visits", latest=0)
    same = Verification((), known.entries, known.head)
    each = Budget(100, "1e-6", each="day")
    for seen, verification, holds in (
        (known, same, True),
        (known, replace(same, entries=same.entries + 1), False),
        (known, replace(same, head="0" * 64), False),
        (replace(known, catalog=replace(known.catalog)), same, False),
        (replace(known, dataset="other"), same, False),
        (replace(known, paid=()), same, True),
        (replace(known, budget=each), same, True),
        (replace(known, budget=each, paid=()), same, False),
    ):
        assert _holds(seen, house.catalog, "visits", verification) == holds


def test_so_many_releases_are_kept_and_no_more(made, monkeypatch):
    house, _ = made
    count = len(house.facts("visits", latest=0).paid)
    monkeypatch.setattr(dossiers, "_RELEASES", 2 * (count + 1))
    kept = dossiers.Dossiers()
    for latest in (0, 1, 2, None):
        kept.facts(house.catalog, house.ledger, "visits", session=house._steward, latest=latest)
        assert len(kept._known) <= 2
    monkeypatch.setattr(dossiers, "_RELEASES", 1)
    found = kept.facts(house.catalog, house.ledger, "visits", session=house._steward, latest=1)
    assert found == uncached(house, 1)
    assert not kept._known


def test_cards_are_made_ahead_and_long_ones_in_threads(made, monkeypatch):
    house, accounts = made
    house.session("ada").sql(SQL.format(61)).release(epsilon="0.1")
    begun, ended, real = [], threading.Event(), Card.yaml.fget

    def watched(self, name, latest=0):
        begun.append(latest)
        found = known(self, name, latest)
        ended.set()
        return found

    def written(self):
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return real(self)

    known = section.Show._known
    monkeypatch.setattr(section.Show, "_known", watched)
    monkeypatch.setattr(section, "_MOST", 1)
    monkeypatch.setattr(Card, "yaml", property(written))
    tokens = {}
    for name, role in (("ada", Role.ANALYST), ("omar", Role.AUDITOR)):
        accounts.add(name, role)
        tokens[name] = accounts.issue(name)[0]
    with (
        started(http_front(house, accounts)) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        client.post("/login", data={"token": tokens["ada"]})
        assert client.get("/show").status_code == 200
        assert begun == []
        client.post("/login", data={"token": tokens["omar"]})
        assert client.get("/show").status_code == 200
        assert ended.wait(60)
        assert begun == [0]
        before = _meaning.cache_info()
        assert "Suppose that an attacker" in client.get(PAGE + "card").text
        assert _meaning.cache_info().misses == before.misses
        releases = len(house.facts("visits", latest=0).paid)
        short, whole = client.get(PAGE + "dossier").text, client.get(PAGE + "dossier?all=1").text
        assert f"The newest 1 of {releases} releases" in short
        assert short.count("GROUP BY ward") == 1
        assert whole.count("GROUP BY ward") == releases
        assert "The newest" not in whole
        assert client.get(PAGE + "registry.yaml").text.count("GROUP BY ward") == releases
