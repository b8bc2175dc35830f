"""What a connection keeps is weighed: many small things or few large ones, of every kind, in one room."""

from __future__ import annotations

import asyncio
import gc
import struct
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import sfumato as sf
from sfumato.server.wire import Front, connection, room
from sfumato.server.wire.desk import Desk
from sfumato.server.wire.sqlstates import WireError
from wire_bytes import Anyone, answers, executed, message, parsed, started, states, talk, text

ROOM = 200_000
LARGE = 60_000
BEGIN = message(b"Q", text("BEGIN"))


def asked(sql: str) -> bytes:
    return message(b"Q", text(sql))


def bound(portal: str, statement: str, *values: bytes) -> bytes:
    given = b"".join(struct.pack(">i", len(value)) + value for value in values)
    return message(
        b"B",
        text(portal) + text(statement) + struct.pack(">hh", 0, len(values)) + given + struct.pack(">h", 0),
    )


def prepared(name: str, sql: str) -> bytes:
    return message(b"P", text(name) + text(sql) + b"\0\0")


def suspended(number: int, size: int) -> bytes:
    """An answer of two rows, of which the client has taken one."""
    sql = f"SELECT repeat('x', {size // 2}) FROM pg_class LIMIT 2"
    begun = prepared(f"s{number}", sql) + bound(f"p{number}", f"s{number}")
    return begun + message(b"E", text(f"p{number}") + struct.pack(">i", 1))


KINDS: dict[str, tuple[Callable[[int, int], bytes], Callable[[int], bytes], bytes]] = {
    "cursor": (
        lambda n, size: asked(f"DECLARE c{n} CURSOR FOR SELECT repeat('x', {size})"),
        lambda n: asked(f"CLOSE c{n}"),
        b"C",
    ),
    "cursor that is held": (
        lambda n, size: asked(f"DECLARE c{n} CURSOR WITH HOLD FOR SELECT repeat('x', {size})"),
        lambda n: asked(f"CLOSE c{n}"),
        b"C",
    ),
    "cursor that a portal declared": (
        lambda n, size: parsed(f"DECLARE c{n} CURSOR FOR SELECT repeat('x', {size})") + executed(),
        lambda n: message(b"C", b"P" + text(f"c{n}")),
        b"C",
    ),
    "long name": (
        lambda n, size: asked(f"DECLARE c{n}{'x' * size} CURSOR FOR SELECT 1"),
        lambda n: asked("CLOSE ALL"),
        b"C",
    ),
    "long name of a column": (
        lambda n, size: asked(f'DECLARE c{n} CURSOR FOR SELECT 1 AS "{"x" * size}"'),
        lambda n: asked(f"CLOSE c{n}"),
        b"C",
    ),
    "PREPARE": (
        lambda n, size: asked(f"PREPARE p{n} AS SELECT '{'x' * size}'"),
        lambda n: asked(f"DEALLOCATE p{n}"),
        b"C",
    ),
    "prepared by a message": (
        lambda n, size: prepared(f"p{n}", f"SELECT '{'x' * size}'"),
        lambda n: message(b"C", b"S" + text(f"p{n}")),
        b"1",
    ),
    "portal of a statement that was forgotten": (
        lambda n, size: prepared("", f"SELECT '{'x' * size}'") + bound(f"p{n}", ""),
        lambda n: message(b"C", b"P" + text(f"p{n}")),
        b"2",
    ),
    "value": (
        lambda n, size: prepared("", "SELECT $1::text") + bound(f"p{n}", "", b"x" * size),
        lambda n: message(b"C", b"P" + text(f"p{n}")),
        b"2",
    ),
    "list of values": (
        lambda n, size: (
            prepared("", "SELECT $1::int4[]") + bound(f"p{n}", "", b"{1" + b",1" * (size // 40) + b"}")
        ),
        lambda n: message(b"C", b"P" + text(f"p{n}")),
        b"2",
    ),
    "portal with rows left": (
        suspended,
        lambda n: message(b"C", b"P" + text(f"p{n}")) + message(b"C", b"S" + text(f"s{n}")),
        b"s",
    ),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_BYTES", ROOM)


@pytest.fixture(scope="module")
def open_front(steward: sf.Session) -> Front:
    return Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Anyone(),
        plain=True,
    )


def told(front: Front, *parts: bytes) -> bytes:
    return asyncio.run(talk(front, started() + b"".join(parts)))


def taken(sent: bytes, marker: bytes) -> int:
    """How many were kept before the first error."""
    kinds = [kind for kind, _ in answers(sent)]
    end = kinds.index(ord("E")) if ord("E") in kinds else len(kinds)
    begun = next(at for at, (kind, body) in enumerate(answers(sent)) if body == b"BEGIN\0")
    return kinds[begun + 1 : end].count(marker[0])


@pytest.mark.parametrize("size", [1, LARGE], ids=["many small", "few large"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_that_a_connection_keeps_is_weighed(open_front: Front, kind: str, size: int) -> None:
    keep, let_go, marker = KINDS[kind]
    enough = 250 if size == 1 else 5
    sent = told(open_front, BEGIN, *(keep(number, size) for number in range(enough)))
    fit = taken(sent, marker)
    assert states(sent) <= {"53200", "25P02"}
    assert "53200" in states(sent)
    assert 0 < fit * (size + 500) <= ROOM
    assert b"CLOSE cursors and DEALLOCATE" in sent
    again = told(
        open_front, BEGIN, *(keep(number, size) for number in range(fit)), let_go(0), keep(fit + 1, size)
    )
    assert not states(again)


@pytest.mark.parametrize("other", KINDS)
@pytest.mark.parametrize("kind", ["cursor", "PREPARE", "value"])
def test_all_kinds_share_one_room(open_front: Front, kind: str, other: str) -> None:
    keep = KINDS[kind][0]
    sent = told(open_front, BEGIN, *(keep(number, LARGE // 2) for number in range(2)))
    assert not states(sent)
    sent = told(open_front, BEGIN, *(keep(number, LARGE) for number in range(2)), KINDS[other][0](7, 90_000))
    assert "53200" in states(sent)


def test_what_has_been_read_to_its_end_is_let_go(open_front: Front) -> None:
    """Answers that are not read in parts are as large as they like, and as many."""
    whole = prepared("", f"SELECT repeat('x', {LARGE}) FROM pg_class LIMIT 2") + b"".join(
        bound(f"p{number}", "") + message(b"E", text(f"p{number}") + struct.pack(">i", most))
        for number, most in enumerate([0, 2, 9, -1] * 5)
    )
    sent = told(open_front, BEGIN, whole)
    assert not states(sent)
    assert sent.count(b"x" * LARGE) == 40
    parts = suspended(1, LARGE) + message(b"E", text("p1") + struct.pack(">i", 0))
    ended = b"".join(parts.replace(b"p1\0", b"p%d\0" % n).replace(b"s1\0", b"s%d\0" % n) for n in range(9))
    assert not states(told(open_front, BEGIN, ended))


PRICED = asked("SET sfumato.epsilon = 0.0123")


@pytest.mark.parametrize(("in_parts", "age"), [("cursor", 51), ("portal", 52)])
def test_what_was_paid_and_found_no_room_is_free_to_read(
    open_front: Front, steward: sf.Session, monkeypatch: pytest.MonkeyPatch, in_parts: str, age: int
) -> None:
    question = f"SELECT day, COUNT(*) AS n FROM visits WHERE age < {age} GROUP BY day"
    keep = {
        "cursor": asked(f"DECLARE c CURSOR WITH HOLD FOR {question}"),
        "portal": parsed(question) + executed(1),
    }[in_parts]
    before = steward.balance().remaining
    monkeypatch.setattr(room, "MOST_BYTES", 900)
    assert states(told(open_front, PRICED, keep)) == {"53200"}
    assert steward.balance().remaining == before  # no room for anything: refused before it is paid
    monkeypatch.setattr(room, "MOST_BYTES", 4_000)
    assert states(told(open_front, PRICED, keep)) == {"53200"}
    paid = steward.balance().remaining
    assert paid < before
    sent = told(open_front, PRICED, keep, message(b"S", b""), asked(question))
    assert [kind for kind, _ in answers(sent)].count(ord("D")) == 31
    assert steward.balance().remaining == paid


# Whoever has left keeps nothing.

ENDS = {
    "a client that is gone": b"",
    "a client that takes its leave": message(b"X", b""),
    "bytes that are no message": b"\0\0\0\0\0\0",
    "a question that fails": message(b"P", text("") + text("SELECT nosuch FROM visits") + b"\0\0")
    + executed(),
}


@pytest.fixture
def desks(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Desk]]:
    """The desks of connections, as they are made."""
    made = list[weakref.ref[Desk]]()

    def desk(*given: Any, **more: Any) -> Desk:
        one = Desk(*given, **more)
        made.append(weakref.ref(one))
        return one

    monkeypatch.setattr(connection, "Desk", desk)
    return made


@pytest.mark.parametrize("end", ENDS)
def test_a_connection_that_is_over_keeps_nothing(
    open_front: Front, desks: list[weakref.ref[Desk]], end: str
) -> None:
    """At once: not when Python next looks for what nothing uses, which may be never."""
    parts = [keep(number, 1_000) for number, (keep, _, _) in enumerate(KINDS.values())]

    async def talks() -> list[bool]:
        gc.disable()
        try:
            sent = await talk(open_front, started() + BEGIN + b"".join(parts) + ENDS[end])
            assert taken(sent, b"C") > 3
            assert open_front._room.used == 0
            for _ in range(400):
                if any(desk() for desk in desks):
                    await asyncio.sleep(0.01)  # the thread that did the last work lets go of it, too
            return [desk() is None for desk in desks]
        finally:
            gc.enable()

    assert asyncio.run(talks()) == [True]
    assert not open_front._rooms


def test_what_a_thread_still_keeps_for_nobody_counts_for_nobody() -> None:
    every = room.Room(most=ROOM)
    account = room.Room(every, most=ROOM)
    own = room.Room(account)
    shelf = room.Shelf[str](own, lambda: WireError("34000", "gone"))
    shelf.put("a", "x", LARGE)
    assert every.used == account.used == own.used > LARGE
    assert own.leave() > LARGE
    shelf.put("b", "x", LARGE)
    shelf.clear()
    assert every.used == account.used == own.used == 0


def test_the_connections_of_an_account_share_a_room_and_so_do_all_accounts(
    steward: sf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST_OF_ACCOUNT", 3 * LARGE)
    monkeypatch.setattr(room, "MOST_OF_ALL", 4 * LARGE)
    made = Front(lambda login, database: steward.as_analyst("ada"), lambda *given: Anyone(), plain=True)
    rooms = [room.Room(made.room_of(who)) for who in ("ada", "ada", "bob", "bob")]
    assert made.room_of("ada") is not made.room_of("bob")
    shelves = [room.Shelf[str](one, lambda: WireError("34000", "gone")) for one in rooms]
    for shelf in shelves[:2]:
        shelf.put("a", "x", LARGE)
    with pytest.raises(WireError, match="An account keeps"):
        shelves[1].put("b", "x", LARGE)
    shelves[2].put("a", "x", LARGE)
    with pytest.raises(WireError, match="This server keeps"):
        shelves[3].put("a", "x", LARGE)
    rooms[0].leave()
    shelves[1].put("b", "x", LARGE)
    for one in rooms[1:]:
        one.leave()
    assert made._room.used == 0
