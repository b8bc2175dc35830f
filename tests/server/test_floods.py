"""Clients that open much and end nothing: what they may hold is bounded, and others are answered."""

import asyncio
import contextlib
import socket
import struct
import threading

import httpx
import pytest
import uvloop

import wire
from sfumato.server import open_files
from sfumato.server.http import connections, handshakes
from sfumato.server.running import Server
from sfumato.server.wire import Front

ONE = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
END = b"\r\n\r\n"
HELLO = b"\x16\x03\x01\x02\x00\x01"  # how a handshake begins
REQUEST_TLS = struct.pack(">ii", 8, 80877103)


class Slow:
    """Answers nothing on numbered paths until `go`, and counts what it was asked."""

    def __init__(self):
        self.asked, self.go = [], threading.Event()

    async def __call__(self, scope, receive, send):
        if scope["path"] != "/other":
            self.asked.append(scope["path"])
            while not self.go.is_set():
                await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def app():
    made = Slow()
    yield made
    made.go.set()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    wire.self_signed(folder)
    return folder / "cert.pem", folder / "key.pem"


@contextlib.contextmanager
def serving(app, **wishes):
    """The server that `sfumato serve` runs, in a thread: itself, and where it is."""
    begun = threading.Event()
    server = Server(app, ready=begun.set, **wishes)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run():
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(server.serve(sockets=[listening]))

        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert begun.wait(30)
            yield server, listening.getsockname()
        finally:
            server.should_exit = True
            thread.join(30)
        assert not thread.is_alive()


def knock(address, *parts):
    client = socket.create_connection(address, timeout=30)
    for part in parts:
        client.sendall(part)
    return client


def rest(client):
    """All that is said until the end."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            found += part
    return found


def other(address, scheme="http"):
    return httpx.get(f"{scheme}://127.0.0.1:{address[1]}/other", verify=False).status_code


def test_of_one_connection_so_many_requests_wait_and_the_next_is_the_last(app):
    most = connections.MOST_WAITING
    sent = b"".join(ONE % number for number in range(most + 4))
    with serving(app) as (_, address), contextlib.closing(knock(address, sent)) as client:
        app.go.set()
        answers = rest(client).split(b"HTTP/1.1 ")[1:]
        assert [answer[:3] for answer in answers] == [b"204"] * (most + 1) + [b"429"]
        assert b"requests that wait" in answers[-1]
        assert app.asked == [f"/{number}" for number in range(most + 1)]  # in order, and no more


def test_as_many_as_may_wait_are_all_answered(app):
    most = connections.MOST_WAITING
    sent = b"".join(ONE % number for number in range(most + 1))
    with serving(app) as (_, address), contextlib.closing(knock(address, sent)) as client:
        app.go.set()
        got = b""
        while got.count(END) < most + 1:
            got += client.recv(65536)
        client.sendall(ONE % 99)
        while got.count(END) < most + 2:
            got += client.recv(65536)
        assert got.count(b"HTTP/1.1 204") == most + 2


def test_thousands_of_requests_on_one_connection_are_not_kept(app, until):
    """Also while answers go out, which is when more is read."""
    sent = b"".join(ONE % number for number in range(20_000))
    with serving(app) as (server, address), contextlib.closing(knock(address)) as client:

        def flood():
            with contextlib.suppress(OSError):
                client.sendall(sent)

        thread = threading.Thread(target=flood)
        thread.start()
        until(lambda: bool(app.asked), seconds=30)
        assert other(address) == 204
        most = max(len(each.pipeline) for each in server.server_state.connections)
        app.go.set()
        rest(client)
        thread.join(30)
        assert not thread.is_alive()  # the connection is over
        assert 0 < most <= connections.MOST_WAITING + 1
        assert len(app.asked) <= connections.MOST_WAITING + 1
        assert other(address) == 204


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\n", HELLO], ids=["silent", "plain", "hello"])
def test_who_never_ends_a_handshake_is_counted_and_let_go(app, files, until, monkeypatch, first):
    monkeypatch.setattr(handshakes, "SECONDS", 60)
    with serving(app, tls=files, per_address=3) as (server, address), contextlib.ExitStack() as stack:
        crowd = server.config.http_protocol_class.crowd
        clients = [stack.enter_context(contextlib.closing(knock(address, first))) for _ in range(3)]
        if first.startswith(b"GET"):  # which is no handshake: they are let go at once
            for client in clients:
                rest(client)
        else:
            fourth = stack.enter_context(contextlib.closing(knock(address)))
            assert rest(fourth) == b""  # it is refused: three are there
            for client in clients:
                client.close()
        until(lambda: not crowd._all, seconds=30)
        assert other(address, "https") == 204


def test_a_handshake_takes_so_long_and_no_longer(app, files, until, monkeypatch):
    monkeypatch.setattr(handshakes, "SECONDS", 0.1)
    with serving(app, tls=files, per_address=1) as (server, address):
        with contextlib.closing(knock(address)) as client:
            assert rest(client) == b""  # which ends
        until(lambda: not server.config.http_protocol_class.crowd._all, seconds=30)
        assert other(address, "https") == 204


def test_all_together_have_so_many_connections(app, files, until, monkeypatch):
    monkeypatch.setattr("sfumato.server.running._MOST_CONNECTIONS", 2)
    for tls, scheme in ((None, "http"), (files, "https")):
        with serving(app, tls=tls) as (server, address), contextlib.ExitStack() as stack:
            for _ in range(4):
                stack.enter_context(contextlib.closing(knock(address)))
            until(lambda: server.config.http_protocol_class.crowd._all == 4, seconds=30)
            with contextlib.closing(knock(address)) as fifth:
                assert b"HTTP/1.1 204" not in rest(fifth)
            stack.close()
            until(lambda: not server.config.http_protocol_class.crowd._all, seconds=30)
            assert other(address, scheme) == 204


def test_a_server_ends_while_somebody_shakes_hands(app, files):
    with serving(app, tls=files) as (_, address):
        client = knock(address, b"\x16\x03\x01")
    with contextlib.closing(client):
        assert rest(client) == b""


@pytest.mark.parametrize(
    "first", [b"", b"\0\0", REQUEST_TLS, REQUEST_TLS + HELLO], ids=["silent", "begun", "asked", "hello"]
)
def test_over_the_wire_who_never_ends_a_handshake_is_counted_and_let_go(steward, tmp_path, until, first):
    context, _ = wire.self_signed(tmp_path)

    class Anyone:
        def first(self, _):
            raise AssertionError

    made = Front(
        lambda login, database: steward,
        lambda user, address, binding: Anyone(),
        tls=context,
        per_address=2,
        login_seconds=1,
    )
    with wire.serving(made) as front, contextlib.ExitStack() as stack:
        where = ("127.0.0.1", front.port)
        clients = [stack.enter_context(contextlib.closing(knock(where, first[:8]))) for _ in range(2)]
        for client in clients if len(first) > 8 else ():
            assert client.recv(1) == b"S"
            client.sendall(first[8:])
        until(lambda: len(front._connections) == 2, seconds=30)
        with contextlib.closing(knock(where)) as third:
            assert rest(third) == b""  # two are there
        for client in clients:
            rest(client)  # which ends
        until(lambda: not front._crowd._all, seconds=30)
        with contextlib.closing(knock(where, REQUEST_TLS)) as again:
            assert again.recv(1) == b"S"


def test_the_process_may_open_as_many_files_as_its_connections_need():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = open_files._WANTED if before[1] == resource.RLIM_INFINITY else min(open_files._WANTED, before[1])
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted - 1, 1024), before[1]))
        open_files.allow_many()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (wanted, before[1])
        open_files.allow_many()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (wanted, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
