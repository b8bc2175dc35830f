"""What the catalog computes is what PostgreSQL computes, or an error: never another value."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

import psycopg
import pytest

import sfumato as sf
from logs import logged
from sfumato.server.wire import Front
from wire_bytes import Anyone, answers, message, started, talk, text

EXPRESSIONS = 250
NOT_HERE = {"0A000", "42883", "42703"}  # what is not supported says so

SMALL = ["0", "1", "-7", "3", "2147483647", "9223372036854775807", "length('abc')", "'12'::int", "5::bigint"]
OTHERS = ["1.5", "7::float8", "-0.25", "2.0"]
TEXTS = [
    "abc",
    "12",
    " 7 ",
    "99999999999",
    "",
    "2024-02-30",
    "2024-02-29",
    "25:00",
    "1e3",
    "true",
    "infinity",
]
TYPES = ["int", "bigint", "smallint", "date", "boolean", "time", "timestamp", "float8"]


def number(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice(SMALL * 3 + OTHERS)
    left, right = number(chance, depth - 1), number(chance, depth - 1)
    if chance.random() < 0.15:
        return f"({left})::{chance.choice(['int', 'bigint', 'smallint'])}"
    return f"({left} {chance.choice('+-*//%')} {right})"


def expression(chance: random.Random) -> str:
    match chance.randrange(4):
        case 0:
            return f"'{chance.choice(TEXTS)}'::{chance.choice(TYPES)}"
        case 1:
            return f"{chance.choice(['date', 'timestamp'])} '{chance.choice(TEXTS)}'"
    return number(chance, chance.randint(1, 2))


@pytest.fixture(scope="module")
def open_front(steward: sf.Session) -> Front:
    return Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Anyone(),
        plain=True,
    )


def ours(front: Front, asked: list[str]) -> list[tuple[str, str | None]]:
    """The code of an error, or the value as text, of each."""
    parts = [message(b"Q", text(f"SELECT {one}")) for one in asked]
    sent = asyncio.run(talk(front, started() + b"".join(parts)))
    found: list[tuple[str, str | None]] = []
    for kind, body in answers(sent):
        if chr(kind) == "E":
            found.append(("E", next(part[1:].decode() for part in body.split(b"\0") if part[:1] == b"C")))
        elif chr(kind) == "D":
            found.append(("D", body[6:].decode() if body[2:6] != b"\xff" * 4 else None))
    return found


def real(connection: psycopg.Connection[Any], one: str) -> tuple[str, str | None]:
    try:
        ((value,),) = connection.execute(f"SELECT ({one})::text").fetchall()  # type: ignore[arg-type]
    except psycopg.Error as error:
        return "E", error.sqlstate
    return "D", value


def same(here: tuple[str, str | None], there: tuple[str, str | None]) -> bool:
    if here[0] == "E":
        return here[1] in NOT_HERE or there[0] == "E"
    if there[0] == "E" or here[1] is None or there[1] is None:
        return here == there
    try:
        return float(here[1]) == pytest.approx(float(there[1]), rel=1e-12)
    except ValueError:
        return here[1] == {"true": "t", "false": "f"}.get(there[1], there[1])


def test_values_are_those_of_postgresql_or_there_is_an_error(open_front: Front, postgres_server: Any) -> None:
    chance = random.Random(81)
    asked = [expression(chance) for _ in range(EXPRESSIONS)]
    found = ours(open_front, asked)
    assert len(found) == len(asked)
    with psycopg.connect(postgres_server.address(), autocommit=True) as connection:
        pairs = [(one, here, real(connection, one)) for one, here in zip(asked, found, strict=True)]
    wrong = [pair for pair in pairs if not same(*pair[1:])]
    assert not wrong
    assert sum(here[0] == "D" for _, here, _ in pairs) > EXPRESSIONS // 4


@pytest.mark.parametrize(
    ("asked", "state"),
    [
        ("1 / 0", "22012"),
        ("1 % 0", "22012"),
        ("'abc'::int", "22P02"),
        ("'1e3'::int", "22P02"),
        ("1.5 % 0", "22012"),
        ("'2024-02-29'::time", "22007"),
        ("'99999999999'::int", "22003"),
        ("2147483647 + 1", "22003"),
        ("9223372036854775807 + 1", "22003"),
        ("date '2024-02-30'", "22008"),
        ("'abc'::date", "22007"),
        ("date 'infinity'", "0A000"),
        ("ARRAY[timestamp '-infinity']::text", ""),
    ],
)
def test_errors_have_postgresql_s_codes(open_front: Front, asked: str, state: str) -> None:
    ((kind, said),) = ours(open_front, [asked])
    assert (kind == "E", said if kind == "E" else "") == (bool(state), state)


def test_moments_have_their_zone_and_nothing_is_said_about_them(
    open_front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        asked = ["now()", "localtimestamp", "extract(epoch from now()) > 0", "now() = current_timestamp"]
        (_, now), (_, local), *others = ours(open_front, asked)
    assert not logged(caplog)
    assert [one for _, one in others] == ["t", "t"]
    assert now is not None
    assert local is not None
    assert now.endswith("+00")
    assert "+" not in local


def test_columns_have_the_names_of_functions_as_they_are_written(open_front: Front) -> None:
    asked = (
        "SELECT now(), current_timestamp, char_length('x'), LENGTH('x'), pg_catalog.now(), strpos('a', 'b')"
    )
    sent = asyncio.run(talk(open_front, started() + message(b"Q", text(asked))))
    (columns,) = (body for kind, body in answers(sent) if chr(kind) == "T")
    names = ["now", "current_timestamp", "char_length", "length", "now", "strpos"]
    at, found = 2, []
    for _ in names:
        end = columns.index(b"\0", at)
        found.append(columns[at:end].decode())
        at = end + 19
    assert found == names
