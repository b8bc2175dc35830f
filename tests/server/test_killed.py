"""Kill -9 of a server under load, at named points: no answer without its receipt, no charge that is lost."""

from __future__ import annotations

import itertools
import signal
import threading
from typing import NamedTuple

import httpx
import psycopg
import pytest

from lives import POINTS, catalog, tokens_of
from sfumato.catalog import Catalog
from sfumato.ledger import Ledger

PRICE = "0.01"
OVER_HTTP, OVER_WIRE = ("ada", "bob", "cleo", "dora"), ("emil", "fay")
CLIENTS = len(OVER_HTTP) + len(OVER_WIRE)


class Answer(NamedTuple):
    rows: list[tuple]
    receipt: int | None = None  # PostgreSQL's protocol has no place for it
    free: bool = False


class Analyst:
    """Asks one question after the other, an unanswered one again, until the server is gone."""

    def __init__(self, name: str, token: str, first: int) -> None:
        self.name, self.token = name, token
        self._new = (
            f"SELECT COUNT(*) AS n FROM visits WHERE amount BETWEEN {first} AND {last}"
            for first, last in itertools.combinations(range(200)[first::CLIENTS], 2)
        )
        self.answers: dict[str, Answer] = {}
        self.open: str | None = None  # asked, and not answered

    def next(self) -> str:
        self.open = self.open or next(self._new)
        return self.open

    def got(self, text: str, answer: Answer) -> None:
        self.answers[text], self.open = answer, None

    def over_http(self, life) -> None:
        with httpx.Client(base_url=life.http, timeout=60, verify=False) as client:
            try:
                while True:
                    text = self.next()
                    self.got(text, self.asked(client, text))
            except httpx.TransportError:
                return

    def asked(self, client, text: str) -> Answer:
        found = client.post(
            "/api/release",
            json={"sql": text, "epsilon": PRICE},
            headers={"Authorization": f"Bearer {self.token}"},
        )
        assert found.status_code == 200, found.text
        document = found.json()
        rows = [tuple(row.values()) for row in document["rows"]]
        return Answer(rows, document["receipt"], document["free"])

    def over_wire(self, life) -> None:
        try:
            with psycopg.connect(
                life.postgresql, user=self.name, password=self.token, autocommit=True
            ) as connection:
                connection.execute(f"SET sfumato.epsilon = {PRICE}")
                while True:
                    text = self.next()
                    self.got(text, Answer(connection.execute(text).fetchall()))
        except psycopg.OperationalError:
            return


def under_load(life, analysts) -> None:
    """All of them ask at once, until the server dies."""
    threads = [
        threading.Thread(target=each.over_http if each.name in OVER_HTTP else each.over_wire, args=(life,))
        for each in analysts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def killed(nursery, folder, point, deaths, url=""):
    """Lives that die at a point, and one that answers everything that was asked in them once more."""
    config = catalog(folder, url=url, epsilon=1000)
    tokens = tokens_of(config, dict.fromkeys((*OVER_HTTP, *OVER_WIRE), "analyst"))
    analysts = [Analyst(*pair, place) for place, pair in enumerate(tokens.items())]
    late = 0  # answers that their asker got from the record, in a later life
    for death in range(deaths):
        life = nursery.life(config, point, at=CLIENTS + death % 7)
        under_load(life, analysts)
        assert life.status() == -signal.SIGKILL
        assert_nothing_told(life)
    life = nursery.life(config)
    with httpx.Client(base_url=life.http, timeout=60, verify=False) as client:
        for analyst in analysts:
            open_one = analyst.open
            if open_one is not None:
                analyst.got(open_one, analyst.asked(client, open_one))
                late += analyst.answers[open_one].free
            for text, answer in analyst.answers.items():
                again = analyst.asked(client, text)
                assert again.free
                assert again.rows == answer.rows
                assert answer.receipt in (None, again.receipt)
                analyst.answers[text] = again
    assert life.end() == 0
    assert_nothing_told(life)
    accounted(config, analysts, point, deaths)
    assert late or point != "before reply"  # what was on record and never told is given after all


def accounted(config, analysts, point, deaths) -> None:
    """Every answer has its debit, every debit its answer or a death that cost it, and the ledger holds."""
    read = Catalog.read(config, environ={})
    given = {answer.receipt for each in analysts for answer in each.answers.values()}
    assert len(given) == sum(len(each.answers) for each in analysts)
    with Ledger.open(read.ledger, state=read.state) as ledger:
        entries = list(ledger.entries())
        debits = {each.number for each in entries if each.kind == "debit"}
        answered = {each.memo["debit"] for each in entries if each.kind == "release"}
        assert given == answered
        assert answered <= debits
        lost = len(debits - answered)
        assert lost <= deaths * CLIENTS
        assert lost >= (deaths if point in ("after commit", "mid-read") else 0)
        assert float(ledger.balance("visits").spent) == pytest.approx(float(PRICE) * len(debits), abs=1e-9)
        assert ledger.verify().ok
    assert Ledger.inspect(read.ledger, state=read.state).ok


def assert_nothing_told(life) -> None:
    assert "Traceback" not in life.said
    assert "Zanzibar" not in life.said


@pytest.mark.parametrize("point", POINTS)
def test_a_server_that_is_killed_leaves_no_answer_unaccounted(nursery, tmp_path, point):
    killed(nursery, tmp_path, point, deaths=2)


@pytest.mark.stats
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
@pytest.mark.parametrize("point", POINTS)
def test_a_server_that_is_killed_twenty_times_does_so_too(nursery, postgres_server, tmp_path, place, point):
    with postgres_server.database() as url:
        killed(nursery, tmp_path, point, deaths=20, url=url if place == "postgresql" else "")
