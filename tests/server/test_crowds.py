"""Clients that are slow, many or too fast: each is let go in time, and nobody else notices."""

import contextlib
import socket
import threading

import httpx
import psycopg
import pytest
import uvicorn

import wire
from served import Client, house, known
from sfumato.server.access import Account, Accounts
from sfumato.server.crowds import Crowd, Rates, TooFast
from sfumato.server.doors import wire_front
from sfumato.server.http import connections
from sfumato.server.http.app import make_app
from sfumato.server.ways import Ways


def test_an_account_saves_up_ten_seconds_of_requests_and_no_more():
    now = [0.0]
    rates = Rates(2, ticks=lambda: now[0])
    for _ in range(20):
        rates.admit("ada")
    with pytest.raises(TooFast) as refused:
        rates.admit("Ada")  # the same account
    assert refused.value.wait == 1
    rates.admit("bob")
    now[0] = 0.5
    rates.admit("ada")
    with pytest.raises(TooFast):
        rates.admit("ada")
    now[0] = 1e6
    for _ in range(20):
        rates.admit("ada")
    with pytest.raises(TooFast):
        rates.admit("ada")
    Rates().admit("ada")


def test_slow_rates_wait_long():
    rates = Rates(0.1, ticks=lambda: 0.0)
    rates.admit("ada")
    with pytest.raises(TooFast) as refused:
        rates.admit("ada")
    assert refused.value.wait == 10


def test_connections_are_counted_by_address():
    crowd = Crowd(2)
    assert [crowd.enter("10.0.0.1") for _ in range(3)] == [True, True, False]
    assert crowd.enter("10.0.0.2")
    crowd.leave("10.0.0.1")
    assert crowd.enter("10.0.0.1")
    assert [crowd.enter(f"2001:db8::{n}") for n in range(3)] == [True, True, False]  # one network


def test_over_http_too_many_requests_are_told_when_to_come_back():
    with house() as place:
        ask = Client(make_app(place, known, ways=Ways(rates=Rates(0.2, ticks=lambda: 0.0))))
        assert [ask("GET", "/api/me").status_code for _ in range(3)] == [200, 200, 429]
        found = ask("POST", "/api/release", json={"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 1})
        assert (found.status_code, found.headers["retry-after"]) == (429, "5")
        assert found.json()["error"]["code"] == "too_many_requests"
        assert place.session("ada").balance().spent == 0
        assert ask("GET", "/api/me", "token-of-bob").status_code == 200
        assert ask("GET", "/health", None).status_code == 200


def test_over_the_wire_the_same_account_has_the_same_bucket():
    ways = Ways(rates=Rates(1, ticks=lambda: 0.0), per_address=1)
    with house() as place, Accounts.open(None) as accounts:
        accounts.add("ada")
        token, _ = accounts.issue("ada")
        with wire.serving(wire_front(place, accounts, "demo", None, ways)) as front:
            where = {
                "host": "127.0.0.1",
                "port": front.port,
                "user": "ada",
                "password": token,
                "dbname": "demo",
            }
            with psycopg.connect(**where, autocommit=True) as connection:
                with pytest.raises(psycopg.OperationalError):
                    psycopg.connect(**where)  # one address, one connection
                with contextlib.suppress(TooFast):
                    while True:
                        ways.rates.admit("ada")
                with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="Too many requests"):
                    connection.execute("SELECT 1")
            assert accounts.check(token) == Account("ada", "analyst")


# ── connections of HTTP


async def large(scope, receive, send):
    """Answers with more than a client that reads nothing can take."""
    if scope["path"] == "/large":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200):
            await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})
    else:
        await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@contextlib.contextmanager
def serving(crowd):
    """A server of such connections in a thread: its state, and its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        config = uvicorn.Config(
            large,
            http=connections.connections(crowd),
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield server.server_state, listening.getsockname()
        finally:
            server.should_exit = True
            thread.join(30)


@contextlib.contextmanager
def knocked(address, *parts):
    with socket.create_connection(address, timeout=30) as client:
        for part in parts:
            client.sendall(part)
        yield client


def rest(client):
    """All that is said until the end."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            found += part
    return found


BEGUN = b"GET / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    "parts", [(), (b"GET",), (BEGUN,), (b"\r\n",), (BEGUN + b"\r\n", b"\r\n"), (BEGUN + b"\r\n" + BEGUN,)]
)
def test_a_request_that_does_not_arrive_is_let_go(monkeypatch, parts):
    monkeypatch.setattr(connections, "SECONDS_TO_BEGIN", 0.1)
    with serving(Crowd()) as (_, address), knocked(address, *parts) as client:
        found = rest(client)  # which ends, and does not wait for ever
        assert b"did not arrive in time" in found or found.startswith(b"HTTP/1.1 204")


def test_a_request_that_comes_byte_by_byte_is_let_go(monkeypatch):
    monkeypatch.setattr(connections, "SECONDS_TO_BEGIN", 0.1)
    with serving(Crowd()) as (_, address), knocked(address) as client:
        client.settimeout(0.02)
        found = b""
        with contextlib.suppress(ConnectionError):
            for _ in range(3000):
                client.sendall(b"G")
                with contextlib.suppress(TimeoutError):
                    if not (part := client.recv(65536)):
                        break
                    found += part
            else:
                raise AssertionError("it goes on")
        assert b"HTTP/1.1 4" in found


def test_a_client_that_reads_nothing_is_let_go(monkeypatch):
    monkeypatch.setattr(connections, "SECONDS_TO_READ", 0.1)
    crowd = Crowd(1)
    with serving(crowd) as (_, address), knocked(address, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"):
        for _ in range(3000):
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"http://127.0.0.1:{address[1]}/").status_code == 204:
                    break
        else:
            raise AssertionError("it keeps its place")


def test_an_address_has_so_many_connections_and_gets_them_back():
    with serving(Crowd(2)) as (state, address):
        with knocked(address, b"G"), knocked(address, b"G"):
            while len(state.connections) < 2:
                pass
            with knocked(address) as third:
                assert b"too many connections" in rest(third)
        while state.connections:
            pass
        assert httpx.get(f"http://127.0.0.1:{address[1]}/").status_code == 204
