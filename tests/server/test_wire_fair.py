"""Whoever asks the catalog much waits for themselves: others' queries are answered, and all questions."""

from __future__ import annotations

import asyncio
import struct
import threading
from typing import Any

import pytest

import sfumato as sf
from sfumato.server.wire import Front
from sfumato.server.wire.apart import _Process
from sfumato.server.wire.desk import Desk
from wire_bytes import Anyone, answers, executed, message, parsed, started, states, talk, text

SLOW = "SELECT proname FROM pg_proc"
MANY = 5


def asked(statement: str) -> bytes:
    return message(b"Q", text(statement))


PREPARED = message(b"P", text("s") + text(SLOW) + b"\0\0")
WAYS = {
    "a query": asked(SLOW),
    "one in parentheses": asked(f"({SLOW})"),
    "one with a price": asked(f"SET LOCAL sfumato.epsilon = 1; {SLOW}"),
    "messages": parsed(SLOW) + executed() + message(b"S", b""),
    "a description of a statement": PREPARED + message(b"D", b"S" + text("s")) + message(b"S", b""),
    "a description of a portal": parsed(SLOW) + message(b"D", b"P" + text("")) + message(b"S", b""),
    "a cursor": asked("BEGIN") + asked(f"DECLARE c CURSOR FOR {SLOW}"),
    "a copy": asked(f"COPY ({SLOW}) TO STDOUT"),
    "a statement prepared in SQL": asked(f"PREPARE s AS {SLOW}") + asked("EXECUTE s"),
    "a statement prepared by a message": PREPARED + asked("EXECUTE s"),
    "EXECUTE by messages": PREPARED + parsed("EXECUTE s") + executed() + message(b"S", b""),
    "a description of EXECUTE": PREPARED
    + message(b"P", text("t") + text("EXECUTE s") + struct.pack(">h", 0))
    + message(b"D", b"S" + text("t"))
    + message(b"S", b""),
}


class Slow:
    """Queries of the catalog that go on once the event is set, and how many there are."""

    def __init__(self) -> None:
        self.go, self.most, self.now, self._lock = threading.Event(), 0, 0, threading.Lock()

    def wait(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.go.wait(60)
        with self._lock:
            self.now -= 1


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    made, real = Slow(), _Process.ask

    def ask(self: _Process, query: str, seconds: float) -> Any:
        if "pg_proc" in query:
            made.wait()
        return real(self, query, seconds)

    monkeypatch.setattr(_Process, "ask", ask)
    return made


@pytest.fixture(scope="module")
def open_front(steward: sf.Session) -> Front:
    return Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Anyone(),
        plain=True,
    )


@pytest.mark.parametrize("way", WAYS)
def test_slow_queries_of_the_catalog_keep_only_their_own_account_waiting(
    open_front: Front, slow: Slow, way: str
) -> None:
    others = asked("SELECT relname FROM pg_class") + asked("EXPLAIN SELECT COUNT(*) AS n FROM visits")

    async def all_of_them() -> list[bytes]:
        ada = [asyncio.ensure_future(talk(open_front, started() + WAYS[way])) for _ in range(MANY)]
        try:
            while slow.now < 2:
                await asyncio.sleep(0.001)
            for name in (b"ben", b"eve"):
                begun = started().replace(b"ada\0", name + b"\0")
                sent = await asyncio.wait_for(talk(open_front, begun + others), 10)
                assert not states(sent)
                assert b"visits" in sent
            assert not any(task.done() for task in ada)
            assert slow.most == 2
        finally:
            slow.go.set()
            found = await asyncio.gather(*ada)
        return found

    for sent in asyncio.run(all_of_them()):
        assert not states(sent)
        assert answers(sent)
    assert not open_front._catalog_turns._running


def test_a_planted_bug_shows(open_front: Front, slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries of the catalog take turns with questions, as before: one account has all processes."""
    monkeypatch.setattr(Desk, "asks_catalog", lambda self, statement: False)

    async def run() -> None:
        ada = [asyncio.ensure_future(talk(open_front, started() + asked(SLOW))) for _ in range(MANY)]
        while slow.now < 4:
            await asyncio.sleep(0.001)
        begun = started().replace(b"ada\0", b"ben\0")
        ben = asyncio.ensure_future(talk(open_front, begun + asked("SELECT relname FROM pg_class")))
        while not open_front._turns._running["ben"]:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.2)
        assert not ben.done()
        slow.go.set()
        await asyncio.gather(ben, *ada)

    asyncio.run(run())
