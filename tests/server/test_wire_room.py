"""What a connection keeps is weighed: many small things or few large ones, of every kind, in one room."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

import pytest

import sfumato as sf
from sfumato.server.wire import Front, room
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
