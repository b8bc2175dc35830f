"""What is set holds as long as in PostgreSQL: the same bytes to both, and the same prices, codes and tags.

Whoever goes back must not pay a price that was set by what did not happen.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import socket
import struct
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import sfumato as sf
from sfumato.server.wire import Front, settings
from wire_bytes import Anyone, answers, message, started, states, talk, text

EPSILON = "sfumato.epsilon"
BEGUN = "SET sfumato.epsilon = 1; RESET sfumato.epsilon"  # then PostgreSQL knows of it
SEQUENCES, ENOUGH, LONGEST = 100, 500, 9

Told = list[tuple[str, str]]


def asked(*statements: str) -> bytes:
    return message(b"Q", text("; ".join(statements)))


def pipelined(*statements: str) -> bytes:
    """One after the other, with one Sync behind them all."""
    parts = b""
    for statement in statements:
        parts += message(b"P", text("") + text(statement) + b"\0\0")
        parts += message(b"B", text("") * 2 + struct.pack(">hhh", 0, 0, 0))
        parts += message(b"E", text("") + struct.pack(">i", 0))
    return parts + message(b"S", b"")


def statement(chance: random.Random) -> str:
    """One statement that sets, ends or fails."""
    value, name = chance.choice(["0.5", "2", "0.004"]), chance.choice("aab")
    local = chance.choice(["true", "false"])
    return chance.choice(
        [
            *[f"SET {EPSILON} = {value}"] * 3,
            *[f"SET LOCAL {EPSILON} = {value}"] * 3,
            f"SET SESSION {EPSILON} TO DEFAULT",
            f"RESET {EPSILON}",
            *["RESET ALL"] * 2,
            *["BEGIN"] * 2,
            "START TRANSACTION READ ONLY",
            "COMMIT",
            "END TRANSACTION",
            "ROLLBACK",
            "COMMIT AND CHAIN",
            "ROLLBACK WORK AND CHAIN",
            "ABORT AND NO CHAIN",
            *[f"SAVEPOINT {name}"] * 2,
            *[f"ROLLBACK TO {name}"] * 2,
            f"ROLLBACK TO SAVEPOINT {name}",
            f"RELEASE {name}",
            "SELECT nosuch FROM pg_class",
            f"SELECT set_config('{EPSILON}', '{value}', {local})",
            f"SELECT set_config('{EPSILON}', '{value}', {local}), nosuch FROM pg_class",
            f"SELECT set_config('{EPSILON}', '{value}', {local}) FROM pg_class WHERE false",
        ]
    )


def sequence(chance: random.Random) -> list[bytes]:
    """Messages of one or more statements each, and the price after each."""
    parts = [asked(BEGUN), *chance.choice([[], [asked(f"SET {EPSILON} = 7"), asked("BEGIN")]])]
    for _ in range(chance.randint(2, LONGEST)):
        together = [statement(chance) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
        parts.append(chance.choice([asked, asked, pipelined])(*together))
        parts.append(asked(f"SHOW {EPSILON}"))
    return [*parts, asked("ROLLBACK"), asked(f"SHOW {EPSILON}")]


def told(sent: bytes) -> Told:
    """Codes of errors, values, tags and where transactions stand, in order."""
    found = []
    for kind, body in answers(sent):
        match chr(kind):
            case "E":
                found.append(("E", next(part[1:].decode() for part in body.split(b"\0") if part[:1] == b"C")))
            case "D" | "C" | "Z" as letter:
                found.append((letter, body[6:].decode() if letter == "D" else body.decode().strip("\0")))
    return found


@pytest.fixture(scope="module")
def open_front(steward: sf.Session) -> Front:
    return Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Anyone(),
        plain=True,
    )


class Real:
    """A connection to PostgreSQL that takes bytes."""

    def __init__(self, address: str) -> None:
        self._connection = psycopg.connect(address, sslmode="disable", autocommit=True)
        self._socket = socket.socket(fileno=os.dup(self._connection.fileno()))
        self._socket.settimeout(20)

    def talk(self, parts: list[bytes]) -> bytes:
        """What it says to them; it is as new afterwards."""
        found = b""
        for part in parts:
            self._socket.sendall(part)
            found += self._answer()
        self._socket.sendall(asked("ROLLBACK"))
        self._answer()
        self._socket.sendall(asked("RESET ALL"))
        self._answer()
        return found

    def _answer(self) -> bytes:
        held = b""
        while not re.search(rb"Z\0\0\0\x05[ITE]\Z", held):
            more = self._socket.recv(1 << 16)
            assert more
            held += more
        return held

    def close(self) -> None:
        self._socket.close()
        self._connection.close()


@pytest.fixture(scope="module")
def real(postgres_server: Any) -> Iterator[Real]:
    made = Real(postgres_server.address())
    yield made
    made.close()


def ours(front: Front, parts: list[bytes]) -> Told:
    sent = asyncio.run(talk(front, started() + b"".join(parts)))
    _, begun, rest = sent.partition(b"Z\0\0\0\5I")
    assert begun
    return told(rest)


def differing(front: Front, real: Real, seed: int, count: int) -> Iterator[tuple[list[bytes], Told, Told]]:
    """The sequences to which the two say something different, one after the other."""
    chance = random.Random(seed)
    for _ in range(count):
        parts = sequence(chance)
        here, there = ours(front, parts), told(real.talk(parts))
        if here != there:
            yield parts, here, there


def test_settings_hold_as_long_as_in_postgresql(open_front: Front, real: Real) -> None:
    for parts, here, there in differing(open_front, real, 71, SEQUENCES):
        assert here == there, [part[5:] for part in parts]


def _reset_below(self: settings.Settings) -> None:
    self._take(settings._Layers(dict(self._first), self._layers.local))


def _end_as_before(real: Any) -> Any:
    def end(self: settings.Settings, *, undo: bool) -> None:
        before, local = self._before, self._layers.local
        real(self, undo=undo)
        if before is not None and local and not undo:
            self._take(before)

    return end


PLANTED = {
    "RESET ALL leaves what is local": ("reset", lambda real: _reset_below),
    "COMMIT goes back to the beginning": ("end", _end_as_before),
    "what failed stays": ("end", lambda real: lambda self, *, undo: real(self, undo=False)),
    "a savepoint keeps nothing": ("back", lambda real: lambda self, name: self._place(name) and None),
    "all is local": ("set", lambda real: lambda self, *given, local=False: real(self, *given, local=True)),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_shows(
    open_front: Front, real: Real, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    name, make = PLANTED[bug]
    monkeypatch.setattr(settings.Settings, name, make(getattr(settings.Settings, name)))
    assert next(differing(open_front, real, 72, ENOUGH), None)


PAID = "SELECT COUNT(*) AS n FROM visits WHERE age > {}"


def spent(session: sf.Session) -> float:
    balance = session.balance()
    return float(balance.epsilon - balance.remaining)


@pytest.mark.parametrize(
    ("age", "steps", "price"),
    [
        (1, ["SET {} = 0.4", "BEGIN", "SET {} = 0.02", "SET LOCAL {} = 0.01", "COMMIT"], 0.02),
        (2, ["SET {} = 0.4", "BEGIN", "SET LOCAL {} = 0.01", "RESET ALL", "COMMIT"], None),
        (3, ["SET {} = 0.4", "BEGIN", "SET LOCAL {} = 0.01", "DISCARD ALL", "COMMIT"], None),
        (4, ["SET {0} = 0.01", "SET {0} = 0.4; SELECT nosuch FROM visits"], 0.01),
        (5, ["SELECT set_config('{0}', '0.01', false), set_config('{0}', 'lots', false)"], None),
        (6, ["BEGIN", "SET {} = 0.01", "SET LOCAL {} TO DEFAULT", "COMMIT AND CHAIN", "ROLLBACK"], 0.01),
    ],
)
def test_the_next_question_pays_what_was_set_last_and_not_undone(
    open_front: Front, steward: sf.Session, age: int, steps: list[str], price: float | None
) -> None:
    before = spent(steward)
    parts = [asked(step.format(EPSILON)) for step in steps]
    sent = asyncio.run(talk(open_front, started() + b"".join(parts) + asked(PAID.format(age))))
    assert spent(steward) - before == pytest.approx(price or 0)
    assert ("55000" in states(sent)) == (price is None)


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("ROLLBACK PREPARED 'x'", "0A000"),
        ("COMMIT PREPARED 'x'", "0A000"),
        ("COMMIT AND", "42601"),
        ("ROLLBACK AND SUCH", "42601"),
        ("END of it", "42601"),
        ("START", "42601"),
        ("BEGIN ISOLATION LEVEL CHAOS", "42601"),
        ("DISCARD nothing", "42601"),
        ("COMMIT -- now\n AND /* then */ CHAIN", ""),
        ("COMMIT" + " " * 50_000 + "/* " * 4_000, ""),
    ],
)
def test_a_statement_is_read_to_its_end(open_front: Front, statement: str, state: str) -> None:
    parts = asked("BEGIN") + asked(f"SET LOCAL {EPSILON} = 2") + asked(statement)
    sent = asyncio.run(talk(open_front, started() + parts + asked(f"SHOW {EPSILON}")))
    assert states(sent) == (
        {state, "25P02"} if state else set()
    )  # it failed, and is in its transaction still


def test_set_config_is_seen_by_the_columns_after_it_alone(open_front: Front) -> None:
    """As tools do it: the old value is read and another one set by one query."""
    shown = f"current_setting('{EPSILON}')"
    both = asked(f"SET {EPSILON} = 1") + asked(
        f"SELECT {shown} AS a, set_config('{EPSILON}', '2', false), {shown} AS b"
    )
    rows = [
        body for kind, body in answers(asyncio.run(talk(open_front, started() + both))) if kind == ord("D")
    ]
    assert rows == [b"\0\3" + b"".join(b"\0\0\0\1" + value for value in (b"1", b"2", b"2"))]
