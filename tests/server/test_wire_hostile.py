"""Bytes that no client sends: none crashes the front, none is charged, each gets a proper answer."""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
import subprocess
import sys
from typing import Any

import pytest

import sfumato as sf
from sfumato.server.wire import Front, messages, room
from sfumato.server.wire.messages import ProtocolViolation
from wire_bytes import Anyone, Writer, answers, executed, message, parsed, started, states, talk, text

FEW, CASES = 400, 5_000


def sound(chance: random.Random) -> bytes:
    """One message as a client would send it."""
    query = text("SELECT country, COUNT(*) AS n FROM visits WHERE age > $1 GROUP BY country")
    return chance.choice(
        [
            message(b"Q", text("SELECT 1")),
            message(b"Q", text("SELECT relname FROM pg_class; SHOW ALL; BEGIN")),
            message(b"Q", query),
            message(b"P", text("s") + query + struct.pack(">HI", 1, 23)),
            message(b"B", text("") + text("s") + struct.pack(">HHHI", 1, 1, 1, 4) + b"\0\0\0\x1e" + b"\0\0"),
            message(b"D", b"S" + text("s")),
            message(b"D", b"P" + text("")),
            message(b"E", text("") + struct.pack(">I", 5)),
            message(b"C", b"P" + text("")),
            message(b"H", b""),
            message(b"S", b""),
        ]
    )


def spoiled(chance: random.Random) -> bytes:
    """A few messages, of which some bytes are wrong."""
    data = bytearray(b"".join(sound(chance) for _ in range(chance.randint(1, 4))))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data))
        match chance.randrange(5):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randint(1, 8)]
            case 2:
                data[at:at] = chance.randbytes(chance.randint(1, 8))
            case 3:
                data[at : at + 4] = struct.pack(">i", chance.choice([-1, 0, 3, 2**31 - 1, 70_000, -(2**31)]))
            case 4:
                data += chance.randbytes(chance.randint(1, 40))
        if not data:
            return b"\0"
    return bytes(data)


@pytest.fixture
def open_front(steward: sf.Session) -> Front:
    return Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Anyone(),
        plain=True,
    )


@pytest.mark.parametrize("cases", [FEW, pytest.param(CASES, marks=pytest.mark.stats)])
def test_malformed_messages_get_an_error_and_cost_nothing(
    open_front: Front, steward: sf.Session, cases: int
) -> None:
    chance = random.Random(24)
    before = steward.balance().remaining

    async def all_of_them() -> set[str]:
        seen: set[str] = set()
        for _ in range(cases // 2):
            seen |= states(await talk(open_front, started() + spoiled(chance)))
        for _ in range(cases // 4):
            begun = bytearray(started())
            for _ in range(chance.randint(1, 4)):
                begun[chance.randrange(len(begun))] = chance.randrange(256)
            seen |= states(await talk(open_front, bytes(begun)))
        for _ in range(cases // 4):
            seen |= states(await talk(open_front, chance.randbytes(chance.randint(1, 60))))
        ending = await talk(open_front, started() + message(b"Q", text("SELECT 1")))
        assert b"SELECT 1\0" in ending
        await open_front.stop()
        return seen

    seen = asyncio.run(all_of_them())
    assert "08P01" in seen
    assert "XX000" not in seen  # nothing that nobody foresaw
    assert not open_front._connections
    assert steward.balance().remaining == before


def test_parsers_give_a_message_or_a_violation_whatever_the_bytes() -> None:
    chance = random.Random(25)
    kinds = b"QPBDECSHXpz"
    for _ in range(CASES):
        body = chance.randbytes(chance.randint(0, 30))
        for parse in (
            lambda body=body: messages.first_message(body),
            lambda body=body: messages.message(bytes([chance.choice(kinds)]), body),
            lambda body=body: messages.length_of_first(body[:4].ljust(4, b"\0")),
            lambda body=body: messages.length_of_message(body[:5].ljust(5, b"\0")),
        ):
            with contextlib.suppress(ProtocolViolation):
                parse()


def test_a_client_that_reads_nothing_does_not_fill_the_memory(open_front: Front) -> None:
    asked = message(b"P", text("a") + text("SELECT repeat('x', 60000)") + struct.pack(">h", 0))
    once = message(b"B", text("") + text("a") + struct.pack(">hhh", 0, 0, 0))
    once += message(b"E", text("") + struct.pack(">i", 0))
    writer = Writer()
    sent = asyncio.run(talk(open_front, started() + asked + once * 20, writer))
    assert sent.count(b"x" * 60_000) == 20
    assert writer.most < 100_000


COUNT = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
PRICED = message(b"Q", text("SET sfumato.epsilon = 0.0123"))


class _Revoking(Writer):
    """Revokes a login once the first row was sent."""

    revoked = False

    def write(self, data: bytes) -> None:
        super().write(data)
        self.revoked |= data[:1] == b"D"

    def check(self, login: object) -> None:
        if self.revoked:
            raise sf.errors.LoginFailed("This login is not valid.")


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(parsed(COUNT) + executed(1) + executed(), id="portal"),
        pytest.param(
            message(b"Q", text(f"DECLARE c CURSOR FOR {COUNT}"))
            + message(b"Q", text("FETCH 1 FROM c"))
            + message(b"Q", text("FETCH ALL FROM c")),
            id="cursor",
        ),
        pytest.param(
            message(b"Q", text(f"DECLARE c CURSOR FOR {COUNT}"))
            + parsed("FETCH ALL FROM c")
            + executed(1)
            + executed(),
            id="portal of a cursor",
        ),
    ],
)
def test_a_revoked_login_reads_no_more_of_what_it_began_to_read(steward: sf.Session, asked: bytes) -> None:
    writer = _Revoking()
    front = Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Anyone(),
        check=writer.check,
        plain=True,
    )
    asyncio.run(talk(front, started() + PRICED + message(b"Q", text("BEGIN")) + asked, writer))
    sent = answers(bytes(writer.sent))
    assert [kind for kind, _ in sent].count(ord("D")) == 1
    assert sent[-1][0] == ord("E")
    assert b"SFATAL\0" in sent[-1][1]
    assert b"not valid" in sent[-1][1]


def test_a_failed_transaction_reads_no_more_of_its_portals(open_front: Front) -> None:
    begun = PRICED + message(b"Q", text("BEGIN")) + parsed(COUNT) + executed(1)
    wrong = message(b"E", text("none") + b"\0\0\0\0") + message(b"S", b"")
    sent = asyncio.run(talk(open_front, started() + begun + wrong + executed()))
    assert [kind for kind, _ in answers(sent)].count(ord("D")) == 1
    assert states(sent) == {"34000", "25P02"}


@pytest.mark.parametrize(
    ("age", "statement", "formats"),
    [(41, "{}", (0, 0, 0)), (42, "EXECUTE asked", (0, 0, 0)), (43, "{}", (1,) * 9)],
)
def test_formats_that_do_not_fit_are_refused_before_anything_is_paid(
    open_front: Front, steward: sf.Session, age: int, statement: str, formats: tuple[int, ...]
) -> None:
    new = f"SELECT country, COUNT(*) AS n FROM visits WHERE age < {age} GROUP BY country"
    statement, before = statement.format(new), steward.balance().remaining
    begun = started() + PRICED + message(b"Q", text(f"PREPARE asked AS {new}"))
    sent = asyncio.run(talk(open_front, begun + parsed(statement, *formats) + executed()))
    assert states(sent) == {"08P01"}
    assert steward.balance().remaining == before
    assert not states(asyncio.run(talk(open_front, begun + parsed(statement, 0, 1) + executed())))
    assert steward.balance().remaining < before


def test_formats_say_nothing_where_there_are_no_columns(open_front: Front) -> None:
    sent = asyncio.run(talk(open_front, started() + parsed("SET sfumato.epsilon = 0.1", 0, 1) + executed()))
    assert not states(sent)


def test_one_cursor_too_many_is_refused_before_it_is_paid(
    open_front: Front, steward: sf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_MOST", 1)
    before = steward.balance().remaining
    first = message(b"Q", text("BEGIN; DECLARE a CURSOR FOR SELECT 1"))
    second = message(b"Q", text("DECLARE b CURSOR FOR SELECT COUNT(*) FROM visits WHERE age < 44"))
    assert states(asyncio.run(talk(open_front, started() + PRICED + first + second))) == {"53400"}
    assert steward.balance().remaining == before


def test_what_is_too_long_is_refused_before_it_is_read(open_front: Front) -> None:
    async def tries() -> list[bytes]:
        start = struct.pack(">I", messages.LARGEST_STARTUP + 1)
        query = started() + b"Q" + struct.pack(">I", messages.LARGEST + 1)
        login = started().partition(b"p\0")[0] + b"p" + struct.pack(">I", messages.LARGEST_LOGIN + 1)
        found = [await talk(open_front, data) for data in (start, query, login)]
        await open_front.stop()
        return found

    for sent in asyncio.run(tries()):
        assert "08P01" in states(sent)


def test_bytes_before_the_handshake_of_tls_are_never_read_after_it(
    steward: sf.Session, tmp_path: Any
) -> None:
    import wire

    context, _ = wire.self_signed(tmp_path)
    made = Front(lambda login, database: steward, lambda user, address, binding: Anyone(), tls=context)

    async def smuggle() -> bytes:
        sent = await talk(made, struct.pack(">II", 8, 80877103) + started())
        await made.stop()
        return sent

    assert states(asyncio.run(smuggle())) == {"08P01"}


_READING = """
from sfumato.server.wire.desk import _PLAINLY
from sfumato.server.wire.rewriting import tree_of
from sfumato.server.wire.shapes import parameter_oids
from sfumato.server.wire.statements import statements
from sfumato.server.wire.types import decoded

blanks = " " * 99_000
heads = ["", "SET x", "SHOW x", "FETCH", "MOVE", "CLOSE x", "PREPARE x", "PREPARE x (", "EXECUTE x"]
heads += ["EXECUTE x (", "DECLARE x", "DECLARE x NO", "COPY (", "COPY (SELECT 1) TO STDOUT"]
heads += ["COPY (SELECT 1) TO STDOUT WITH ("]
texts = [head + blanks + "((" for head in heads]
texts += ["/* " * 33_000, "SELECT" + "/* " * 33_000, "/**/ " * 19_000 + "x"]
for text in texts:
    try:
        statements(text)
    except Exception as error:
        assert type(error).__name__ in ("WireError", "QueryRefused"), error
    tree_of(text), parameter_oids(text, (), {}), _PLAINLY.sub("", text)
for oid in (1082, 1083, 1114, 1184, 20, 700, 701, 1700, 16, 1182, 1115):
    for value in ("2024-02-01" + " " * 900_000 + "x", "1" * 900_000, "1," * 400_000, " " * 900_000):
        try:
            decoded(oid, 0, value.encode())
        except Exception as error:
            assert type(error).__name__ == "WireError", error
try:
    statements("SELECT 1 --" + "x" * 100_000)
except Exception as error:
    assert error.fields()["C"] == "54000"
else:
    raise AssertionError
"""


def test_no_text_keeps_the_front_busy_for_long() -> None:
    """Patterns that are tried in every way would hold the whole process for minutes, or for ever."""
    subprocess.run([sys.executable, "-c", _READING], check=True, timeout=100)
