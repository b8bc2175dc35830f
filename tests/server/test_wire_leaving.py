"""Clients that leave, whenever and however their stream says so: no fault of the server, nothing is kept."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import struct
import sys
from typing import Any

import pytest

import sfumato as sf
from logs import logged
from sfumato.server.wire import Front
from sfumato.server.wire import connection as module
from sfumato.server.wire.connection import Connection
from wire_bytes import Anyone, Writer, executed, message, parsed, started, talk, text

BYTES = started() + b"".join(
    [
        message(b"Q", text("SET sfumato.epsilon = 0.01; BEGIN")),
        message(b"Q", text("DECLARE c CURSOR FOR SELECT relname FROM pg_class")),
        message(b"Q", text("SELECT relname FROM pg_class; SELECT nosuch FROM visits")),
        message(b"Q", text("ROLLBACK; SELECT COUNT(*) AS n FROM visits")),
        message(b"Q", text("COPY (SELECT repeat('x', 90000) FROM pg_class LIMIT 9) TO STDOUT")),
        parsed("SELECT relname FROM pg_class") + executed(1) + executed(),
        message(b"S", b""),
    ]
)
FAULTS = {
    "uvloop": RuntimeError(
        "unable to perform operation on <TCPTransport closed=True>; the handler is closed"
    ),
    "reset": ConnectionResetError("Connection lost"),
    "pipe": BrokenPipeError(32, "Broken pipe"),
    "route": OSError(113, "No route to host"),
    "keepalive": TimeoutError(110, "Connection timed out"),
}


class Leaving(Writer):
    """Fails from a call on, for good."""

    def __init__(self, at: int, fault: Exception) -> None:
        super().__init__()
        self._left, self._fault = at, fault

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise self._fault

    def write(self, data: bytes) -> None:
        self._count()
        super().write(data)

    async def drain(self) -> None:
        self._count()
        await super().drain()

    def close(self) -> None:
        self._count()

    @property
    def left(self) -> int:
        return self._left


@pytest.fixture(scope="module")
def open_front(steward: sf.Session) -> Front:
    return Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Anyone(),
        plain=True,
    )


def test_who_leaves_while_something_is_said_is_no_fault(
    open_front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    async def all_of_them() -> int:
        kinds = itertools.cycle(FAULTS.values())
        for at in range(0, 200, 2):
            writer = Leaving(at, next(kinds))
            await talk(open_front, BYTES, writer)
            if writer.left > 0:
                return at
        raise AssertionError("it never ends")

    with caplog.at_level(logging.INFO):
        assert asyncio.run(all_of_them()) > 40
    assert not logged(caplog)
    assert not open_front._connections
    assert open_front._room.used == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_who_leaves_within_a_message_is_no_fault(
    open_front: Front, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    async def leave(reader: Any) -> None:
        while reader._waiter is None:  # until all that is there was read
            await asyncio.sleep(0.001)
        reader.set_exception(FAULTS[fault])

    async def said(data: bytes) -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        leaving = asyncio.ensure_future(leave(reader))
        connection = Connection(open_front, reader, Writer())  # type: ignore[arg-type]
        open_front._connections[connection] = asyncio.current_task()  # type: ignore[assignment]
        await asyncio.wait_for(connection.serve(), 20)
        await leaving

    async def all_of_them() -> None:
        for end in [*range(0, len(started()) + 20, 11), len(BYTES)]:
            await said(BYTES[:end])

    with caplog.at_level(logging.INFO):
        asyncio.run(all_of_them())
    assert not logged(caplog)
    assert not open_front._connections
    assert open_front._room.used == 0


def test_a_planted_bug_shows(
    open_front: Front, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_stream", contextlib.nullcontext)
    with caplog.at_level(logging.INFO):
        asyncio.run(talk(open_front, BYTES, Leaving(9, FAULTS["uvloop"])))
    assert logged(caplog)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop")
def test_who_hangs_up_on_uvloop_is_no_fault(steward: sf.Session, caplog: pytest.LogCaptureFixture) -> None:
    """The loop that the server runs on, and a client that resets the connection while it is answered."""
    import uvloop

    front = Front(lambda login, database: steward.as_analyst("ada"), lambda *given: Anyone(), plain=True)
    long = message(b"Q", text("SELECT repeat('x', 900) FROM generate_series(1, 9000)"))

    def hang_up(parts: bytes, count: int) -> None:
        with contextlib.closing(socket.create_connection(("127.0.0.1", front.port), 20)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(started() + parts)
            while count > 0:
                more = client.recv(count)
                assert more
                count -= len(more)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        await front.start("127.0.0.1", 0)
        for count in (1, 900, 3_000, 200_000):
            await loop.run_in_executor(None, hang_up, long, count)
        while front._connections:
            await asyncio.sleep(0.01)
        await front.stop(1)

    async def within() -> Any:
        return await asyncio.wait_for(run(), 60)

    with caplog.at_level(logging.INFO), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(within())
    assert not logged(caplog)
