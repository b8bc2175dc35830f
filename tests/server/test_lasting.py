"""Free answers are given again as they were sent, while the ledger ends where it did, and no longer."""

import asyncio
import json
import threading

import pytest

import sfumato as sf
from served import SQL, Client, client_of, house, known
from sfumato.ledger import Budget, Ledger, Steward
from sfumato.ledger.anchor import Mark
from sfumato.server.access import Accounts, accounts
from sfumato.server.http.app import make_app
from sfumato.server.http.lasting import Ends, Lasting
from sfumato.server.ways import Ways

BODY = {"sql": SQL, "epsilon": "0.5"}
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


class Asked:
    """A house whose front gives an answer from memory by now."""

    def __init__(self, place):
        self.place, self.ask = place, client_of(place)
        self.first = self.release()
        self.again = [self.release() for _ in range(3)]

    def release(self, token="token-of-ada", **headers):
        return self.ask("POST", "/api/release", token, json=BODY, headers=headers)


@pytest.fixture
def asked():
    with house() as place:
        yield Asked(place)


def shut(place, patch):
    """Nothing more is computed: only what is kept can be given."""

    def none(_):
        raise RuntimeError("asked again")

    patch.setattr(place, "session", none)


def test_the_same_request_is_given_the_same_bytes_without_asking_the_session(asked, monkeypatch):
    assert not asked.first.json()["free"]
    assert len({each.content for each in asked.again}) == 1
    assert asked.again[0].json()["free"]
    shut(asked.place, monkeypatch)
    kept = asked.release()
    assert kept.content == asked.again[0].content
    assert sorted(kept.headers.items()) == sorted(asked.again[0].headers.items())


@pytest.mark.parametrize("token", ["token-of-bob", "token-of-sam"])
def test_nobody_else_is_given_it(asked, monkeypatch, token):
    shut(asked.place, monkeypatch)
    assert asked.release(token).status_code == 500


def test_who_may_not_ask_is_not_given_it(asked):
    assert asked.release("token-of-eve").status_code == 403
    assert asked.release(None).status_code == 401


def test_another_form_of_it_is_made_anew(asked):
    assert asked.release(**ARROW).headers["content-type"] == ARROW["Accept"]
    named = {"Idempotency-Key": "once"}
    assert asked.ask("POST", "/api/release", json={**BODY, "epsilon": "0.4"}, headers=named).json()["free"]
    assert asked.release(**named).status_code == 422  # the word was for another question


def test_what_is_left_is_what_is_left_now(asked):
    asked.ask(
        "POST", "/api/release", "token-of-bob", json={"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 1}
    )
    assert asked.again[0].json()["left"]["epsilon"] == 9.5
    assert asked.release().json()["left"]["epsilon"] == 8.5


@pytest.mark.parametrize(
    ("act", "status"),
    [
        (lambda steward: steward.revoke("visits", "ada", reason="left"), 403),
        (lambda steward: steward.close_budget("visits", reason="over"), 403),
        (lambda steward: steward.limit("visits", "ada", Budget("0.6", "1e-6"), reason="less"), 200),
    ],
)
def test_what_a_steward_decides_holds_at_once(asked, act, status):
    act(Steward(asked.place.ledger))
    found = asked.release()
    assert found.status_code == status
    if status == 200:
        assert found.json()["left"]["epsilon"] == pytest.approx(0.1)


def test_what_another_process_writes_holds_at_once(tmp_path):
    with Ledger.open(tmp_path / "visits.ledger") as own, house(ledger=own) as place:
        asked = Asked(place)
        with Ledger.open(tmp_path / "visits.ledger") as other:
            Steward(other).revoke("visits", "ada", reason="left")
        assert asked.release().status_code == 403


def test_an_answer_of_anothers_counts_once_and_says_so_once(asked):
    found = [asked.release("token-of-bob").json() for _ in range(4)]
    assert all(each["free"] for each in found)
    assert [bool(each["counted"]) for each in found] == [True, False, False, False]
    assert found[1] == found[2] == found[3]


def test_where_the_ledger_ends_is_never_looked_up_before_it_is_asked():
    gate, looks = threading.Semaphore(0), []

    def look():
        looks.append(len(looks))
        number = looks[-1]
        gate.acquire()
        return Mark(number, b"")

    async def several():
        ends = Ends(look)
        first = asyncio.create_task(ends.now())
        while not looks:
            await asyncio.sleep(0.001)
        later = [asyncio.create_task(ends.now()) for _ in range(5)]
        await asyncio.sleep(0.01)
        gate.release(9)
        return await first, await asyncio.gather(*later)

    first, later = asyncio.run(several())
    assert first.number == 0
    assert [each.number for each in later] == [1] * 5
    assert looks == [0, 1]


def test_a_ledger_that_cannot_be_read_gives_nothing():
    def look():
        raise sf.errors.LedgerUnusable("not to be read")

    assert asyncio.run(Ends(look).now()) is None


def test_a_token_is_recent_only_while_its_check_is():
    moment = [0.0]
    with Accounts.open(None, ticks=lambda: moment[0]) as found:
        found.add("ada")
        token, info = found.issue("ada")
        assert found.recent(token) is None
        found.check(token)
        assert found.recent(token).name == "ada"
        moment[0] = accounts.FRESH
        assert found.recent(token) is None
        found.check(token)
        found.revoke(info.id)
        assert found.recent(token) is None


def test_whoever_watches_sees_the_same_address():
    seen = []
    with house() as place:
        ask = Client(make_app(place, known, ways=Ways(log=seen.append)))
        for _ in range(4):
            ask("POST", "/api/release", json=BODY)
    assert [(event.act, event.who, event.free) for event in seen] == [
        ("POST /api/release", "ada", free) for free in (False, True, True, True)
    ]
    assert len({event.receipt for event in seen}) == 1


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/receipts/3/answer", None),
        ("GET", "/api/session/receipts/3", None),
        ("POST", "/api/session/release", {"sql": SQL, "epsilon": "0.5"}),
    ],
)
def test_every_way_to_read_again_lasts_as_long(asked, monkeypatch, method, path, body):
    found = [asked.ask(method, path, **({} if body is None else {"json": body})) for _ in range(3)]
    assert [each.status_code for each in found] == [200] * 3
    with monkeypatch.context() as patch:
        shut(asked.place, patch)
        assert asked.ask(method, path, **({} if body is None else {"json": body})).content == found[0].content
        assert asked.ask(method, path, "token-of-bob", **({} if body is None else {"json": body})).is_error
    Steward(asked.place.ledger).revoke("visits", "ada", reason="left")
    assert asked.ask(method, path, **({} if body is None else {"json": body})).status_code == 403


def test_what_is_remembered_of_a_request_is_small_however_long_it_is(asked, monkeypatch):
    """Else an analyst fills the memory with one free question and other blanks around it."""
    kept = []
    monkeypatch.setattr(Lasting, "_keep", lambda _, key, sent: kept.append((key, sent)))
    long = json.dumps(BODY) + " " * 100_000
    ask = client_of(asked.place)
    for blanks in range(3):
        headers = {"Content-Type": "application/json", "X-Blanks": "x" * 10_000}
        given = ask("POST", "/api/release", "token-of-ada", content=long + " " * blanks, headers=headers)
        assert given.json()["free"]
    keys = {key for key, _ in kept}
    assert len(keys) == 3
    assert all(len(repr(key)) <= 1_000 for key in keys)
