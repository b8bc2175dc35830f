"""Whoever asks for how much: others are answered, and so is who runs the server."""

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

import wire
from served import house, known, started
from sfumato.engines.duckdb import DuckDB
from sfumato.server import doors
from sfumato.server.access import Accounts
from sfumato.server.http.app import make_app
from sfumato.server.turns import TooBusy, Turns

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE amount > {}"


# ── turns


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def test_an_account_has_half_of_the_turns_and_the_fewest_is_next():
    async def run():
        turns, order = Turns(4), []

        async def one(name):
            await turns.enter(name)
            order.append(name)

        tasks = [asyncio.ensure_future(one(name)) for name in ["ada"] * 6]
        await settle()
        assert order == ["ada", "ada"]
        tasks += [asyncio.ensure_future(one(name)) for name in ["bob", "bob", "bob", "eve"]]
        await settle()
        assert order == ["ada", "ada", "bob", "bob"]
        turns.leave("ada")
        await settle()
        assert order[4:] == ["eve"]  # who has none, before who waited longer
        turns.leave("bob")
        turns.leave("eve")
        await settle()
        assert sorted(order[5:]) == ["ada", "bob"]
        for name in order[5:]:
            turns.leave(name)
        turns.leave("bob")
        await settle()
        assert order[7:] == ["ada"]  # one, since another is there
        turns.leave("ada")
        turns.leave("ada")
        await asyncio.gather(*tasks)
        turns.leave("ada")
        turns.leave("ada")
        assert (turns._all, turns._running, turns._waiting) == (0, {}, {})

    asyncio.run(run())


def test_even_one_turn_is_somebodys():
    async def run():
        turns = Turns(1)
        await turns.enter("ada")
        waiting = asyncio.ensure_future(turns.enter("bob"))
        await settle()
        turns.leave("ada")
        await waiting

    asyncio.run(run())


@pytest.mark.parametrize("given", [False, True])
def test_who_gives_up_waiting_keeps_no_turn(given):
    async def run():
        turns = Turns(2)
        await turns.enter("ada")
        waiting = asyncio.ensure_future(turns.enter("ada"))
        await settle()
        if given:
            turns.leave("ada")  # it is theirs, and they are gone before they know
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not given:
            turns.leave("ada")
        assert (turns._all, turns._running, turns._waiting) == (0, {}, {})

    asyncio.run(run())


def test_so_many_of_one_account_wait():
    async def run():
        turns = Turns(2, waiting=1)
        await turns.enter("ada")
        waiting = asyncio.ensure_future(turns.enter("ada"))
        await settle()
        with pytest.raises(TooBusy, match="ask again"):
            await turns.enter("ada")
        await turns.enter("bob")
        turns.leave("ada")
        await waiting

    asyncio.run(run())


# ── both fronts


class Slow:
    """Reads that go on once the event is set, and how many there are."""

    def __init__(self):
        self.go, self.reading = threading.Event(), 0


@pytest.fixture
def slow(monkeypatch):
    made, real, lock = Slow(), DuckDB._fetch, threading.Lock()

    def fetch(self, *arguments, **more):
        with lock:
            made.reading += 1
        assert made.go.wait(60)
        return real(self, *arguments, **more)

    monkeypatch.setattr(DuckDB, "_fetch", fetch)
    yield made
    made.go.set()


@pytest.fixture
def threads(slow):
    with ThreadPoolExecutor(32) as pool:
        yield pool
        slow.go.set()


def test_over_http_who_fills_everything_keeps_nobody_else_out(slow, threads, until):
    with (
        house(epsilon=100) as place,
        Accounts.open(None) as accounts,
        started(make_app(place, known, accounts=accounts, at_once=4)) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):

        def ask(who, method, path, **more):
            return client.request(method, path, headers={"Authorization": f"Bearer token-of-{who}"}, **more)

        def release(who, number):
            return ask(who, "POST", "/api/release", json={"sql": COUNT.format(number), "epsilon": "0.1"})

        asked = [threads.submit(release, "ada", number) for number in range(6)]
        until(lambda: slow.reading == 2, seconds=60)
        assert ask("bob", "POST", "/api/quote", json={"sql": COUNT.format(9), "epsilon": 1}).is_success
        asked += [threads.submit(release, "bob", number) for number in range(10, 16)]
        until(lambda: slow.reading == 4, seconds=60)  # all threads are taken
        assert client.get("/ready").json() == {"status": "ready"}
        assert ask("eve", "GET", "/api/me").json()["role"] == "auditor"
        assert ask("eve", "GET", "/api/receipts").is_success
        assert ask("eve", "GET", "/api/ledger/export").is_success
        limit = {"epsilon": 5, "reason": "they ask too much"}
        assert ask("sam", "PUT", "/api/datasets/visits/analysts/bob/limit", json=limit).is_success
        assert ask("sam", "GET", "/api/datasets/visits/analysts").is_success
        assert ask("sam", "POST", "/api/accounts", json={"name": "carol"}).status_code == 201
        assert slow.reading == 4
        slow.go.set()
        assert [each.result(60).status_code for each in asked] == [200] * 12


def test_over_http_too_much_of_one_account_is_told(slow, threads, until, monkeypatch):
    monkeypatch.setattr(Turns.__init__, "__kwdefaults__", {"waiting": 1})
    with house() as place, started(make_app(place, known, at_once=2)) as url:
        sent = {"headers": {"Authorization": "Bearer token-of-ada"}, "timeout": 60}

        def release(number):
            body = {"sql": COUNT.format(number), "epsilon": "0.1"}
            return httpx.post(f"{url}/api/release", json=body, **sent)

        first = threads.submit(release, 0)
        until(lambda: slow.reading == 1, seconds=60)
        others = [threads.submit(release, number) for number in (1, 2)]
        until(lambda: any(each.done() for each in others), seconds=60)
        slow.go.set()
        (refused,) = [found for each in others if (found := each.result(60)).status_code == 429]
        assert refused.json()["error"]["code"] == "too_many_requests"
        assert refused.headers["retry-after"] == "1"
        assert first.result(60).status_code == 200
        assert float(place.session("ada").balance().spent) == pytest.approx(0.2)


def test_over_the_wire_who_fills_everything_keeps_nobody_else_out(slow, threads, until, monkeypatch):
    monkeypatch.setattr(doors, "_WORKERS", 2)
    with house(epsilon=100) as place, Accounts.open(None) as accounts, contextlib.ExitStack() as stack:
        tokens = {}
        for name in ("ada", "bob", "carol"):
            accounts.add(name)
            tokens[name], _ = accounts.issue(name)
        front = stack.enter_context(wire.serving(doors.wire_front(place, accounts, "demo")))
        front._turns._may_wait = 2

        def connected(name):
            made = psycopg.connect(
                host="127.0.0.1",
                port=front.port,
                user=name,
                password=tokens[name.lower()],
                dbname="demo",
                autocommit=True,
                options="-c sfumato.epsilon=0.1",
            )
            return stack.enter_context(made)

        with contextlib.closing(contextlib.ExitStack()) as held:
            held.callback(slow.go.set)  # before connections are closed, whatever happens
            asked = [threads.submit(connected("ada").execute, COUNT.format(number)) for number in range(3)]
            until(lambda: slow.reading == 1, seconds=60)
            bob = connected("bob")
            assert bob.execute(f"EXPLAIN {COUNT.format(9)}").fetchall()
            until(lambda: len(front._turns._waiting["ada"]) == 2, seconds=60)
            with pytest.raises(psycopg.errors.TooManyConnections, match="of this account wait"):
                connected("Ada").execute("SELECT 1")  # the same account
            asked.append(threads.submit(bob.execute, COUNT.format(10)))
            until(lambda: slow.reading == 2, seconds=60)  # all threads are taken
            connected("carol")
            assert slow.reading == 2
            slow.go.set()
            for each in asked:
                assert each.result(60).fetchall()
