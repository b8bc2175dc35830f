"""The whole ledger over HTTP: who may read it, what it holds, and that others go on meanwhile."""

import json
import sqlite3
import threading
from contextlib import closing

import pytest

from served import SQL, client_of, house
from sfumato.server.http import books

SAM, EVE = "token-of-sam", "token-of-eve"


@pytest.fixture
def place(tmp_path):
    with house(ledger=str(tmp_path / "visits.ledger")) as made:
        yield made


@pytest.fixture
def ask(place):
    asked = client_of(place)
    for number in range(3):
        body = {"sql": SQL, "epsilon": f"0.{number + 1}"}
        assert asked("POST", "/api/release", json=body).status_code == 200
    return asked


def lines(found):
    return [json.loads(line) for line in found.text.splitlines()]


@pytest.mark.parametrize("path", ["/api/ledger/export", "/api/ledger/verify"])
def test_an_analyst_is_told_nothing_of_the_whole_ledger(ask, path):
    refused = ask("GET", path)
    assert refused.status_code == 403
    assert "read the whole ledger" in refused.json()["error"]["message"]
    assert ask("GET", path, "nobody's").status_code == 401


@pytest.mark.parametrize("page", [1, 2, 1000])
@pytest.mark.parametrize("token", [SAM, EVE])
def test_the_export_is_every_receipt_whatever_the_pages(place, ask, token, page, monkeypatch):
    monkeypatch.setattr(books, "_PAGE", page)
    whole = json.loads(json.dumps(place.ledger.export()))
    found = ask("GET", "/api/ledger/export", token)
    assert found.headers["content-type"] == "application/x-ndjson"
    assert int(found.headers["sfumato-receipts"]) == len(whole)
    assert lines(found) == whole
    assert lines(ask("GET", "/api/ledger/export?after=3", token)) == whole[3:]
    assert ask("GET", f"/api/ledger/export?after={len(whole)}", token).content == b""
    assert ask("GET", f"/api/ledger/export?after={2**61}", token).content == b""


@pytest.mark.parametrize("after", ["-1", "x", "", "1.5", "9" * 30])
def test_what_is_no_number_is_refused(ask, after):
    refused = ask("GET", f"/api/ledger/export?after={after}", EVE)
    assert refused.status_code == 422
    assert "after" in refused.json()["error"]["message"]


def test_the_verdict_is_that_of_the_command(place, ask):
    found = ask("GET", "/api/ledger/verify", EVE).json()
    told = place.ledger.verify()
    assert found == {"ok": True, "entries": told.entries, "head": told.head, "problems": []}


def test_an_edit_is_found_from_afar(tmp_path, place, ask):
    with closing(sqlite3.connect(tmp_path / "visits.ledger", isolation_level=None)) as database:
        database.execute("UPDATE sfumato_receipts SET analyst = 'bob' WHERE number = 3")
    found = ask("GET", "/api/ledger/verify", SAM).json()
    assert not found["ok"]
    assert "Receipt 3" in found["problems"][0]


def test_others_pay_while_the_ledger_is_verified(place, ask):
    """Planted: a verification that keeps the ledger to itself, on which the answer below waits for ever."""
    sql, told = "SELECT COUNT(*) AS n FROM visits", []

    def pay(*_):
        thread = threading.Thread(
            target=lambda: told.append(place.session("bob").sql(sql).release(epsilon="0.1").receipt.number),
            daemon=True,
        )
        thread.start()
        thread.join(20)

    assert place.ledger.verify(beside=True, progress=pay).ok
    assert told
    assert ask("GET", "/api/ledger/verify", SAM).json()["ok"]


def test_a_ledger_in_memory_is_verified_too():
    with house() as made:
        assert client_of(made)("GET", "/api/ledger/verify", SAM).json()["ok"]


def test_losses_are_those_of_who_asks_and_nobody_elses(ask):
    def paid(token):
        found = ask("GET", "/api/session/balance/visits/losses", token).json()
        return sum(count for _, count in found)

    assert [paid(token) for token in ("token-of-ada", "token-of-bob", EVE, SAM)] == [3, 0, 0, 0]
    body = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.7"}
    assert ask("POST", "/api/release", "token-of-bob", json=body).status_code == 200
    assert [paid(token) for token in ("token-of-ada", "token-of-bob", EVE, SAM)] == [3, 1, 0, 0]
