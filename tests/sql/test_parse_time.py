"""Any text is read or refused in a bounded number of steps, however its parts are nested."""

from __future__ import annotations

import random

import pytest
from sqlglot.dialects.dialect import Dialect
from sqlglot.parser import Parser

from sfumato.errors import QueryRefused
from sfumato.server.wire.rewriting import parsed
from sfumato.sql.text import bounded
from sfumato.sql.text.dialects import understand
from sfumato.sql.text.statement import read

MOST = 60_000  # steps of the parser; 2^30 without the bound
DEEP = 30


class Endless(BaseException):
    """More steps than any text may take."""


@pytest.fixture
def steps(monkeypatch):
    """How many steps the parser takes; it is stopped beyond the most."""
    counted, real = [0], Parser._advance

    def advance(self, times=1):
        counted[0] += 1
        if counted[0] > MOST:
            raise Endless
        return real(self, times)

    monkeypatch.setattr(Parser, "_advance", advance)
    return counted


def ways(text):
    """Whether the text was read, by each that reads texts; each may take so many steps."""
    for reads in (read, understand, parsed):
        try:
            tree = reads(text)
        except QueryRefused:
            tree = None
        yield tree is not None


def check(steps, text):
    for _ in ways(text):
        assert steps[0] <= MOST
        steps[0] = 0


def type_words():
    """A way to write each type that brackets may follow, in the languages that are read."""
    found = {}
    for name in ("duckdb", "postgres"):
        language = Dialect.get_or_raise(name)
        for word, kind in language.tokenizer_class.KEYWORDS.items():
            if kind in language.parser_class.TYPE_TOKENS and word[:1].isalpha():
                found.setdefault(kind, word)
    return sorted(found.values())


TYPES = type_words()
OTHERS = [
    "ARRAY", "LATERAL", "CAST", "TRY_CAST", "EXTRACT", "f", "IF", "x IN ", "NOT ", "EXISTS", "CASE WHEN ",
    "x BETWEEN ", "INTERVAL ", "x OVER ", "x::", "x -> ", "SELECT * FROM ", "(SELECT * FROM t JOIN ",
    "UNNEST", "JOIN x ", "LEFT JOIN x ", "CROSS JOIN x ", "STRAIGHT_JOIN x ", "x UNION SELECT ",
    "WITH a AS ", "COLUMNS", "(VALUES ", "{'a': ", "ARRAY<INT>", "STRUCT<a INT>", "INT[1]", "CHAR(1)",
    '"CHAR" ', "REF", "x LIKE ", "-", "FILTER ", "PIVOT", "generate_series", "x AT TIME ZONE ",
    "DECIMAL(1)[1]",
]  # fmt: skip
BETWEEN = ["(", "[", "((", "(f(", "(1+(", "(x, ", "(SELECT ", "('a', ", "(x AS ", "[1, ", "(NOT ", " "]
ENDS = {"(": ")", "[": "]", "{": "}"}


def nested(parts, *, closed):
    """The parts within each other, as deeply as a query may be nested, around a 1."""
    brackets = sum(part.count(mark) for part in parts for mark in "([{") or len(parts)
    opened = "".join(parts) * (DEEP // brackets)
    ends = "".join(ENDS[mark] for mark in reversed(opened) if mark in ENDS and closed)
    return f"{opened}1{ends}"


@pytest.mark.parametrize("word", TYPES)
def test_names_of_types_within_each_other_take_few_steps(steps, word):
    for between in random.Random(word).sample(["(", "[", "((", "(f(", "(x, "], 2):
        for closed in (True, False):
            text = nested([word + between], closed=closed)
            check(steps, f"SELECT COUNT(*) FROM t WHERE a < {text}")


@pytest.mark.parametrize("word", [word for word in OTHERS if word not in ("NOT ", "-")])
def test_nothing_else_takes_many_steps_either(steps, word):
    for between in random.Random(word).sample(BETWEEN, 5):
        for start in ("SELECT ", "SELECT * FROM t ", "SELECT * FROM "):
            for closed in (True, False):
                check(steps, start + nested([word + between], closed=closed))


def mixed(seed):
    draw = random.Random(seed)
    some = [draw.choice(TYPES), *draw.sample(TYPES + OTHERS, draw.randint(0, 3))]
    parts = [word + draw.choice(BETWEEN) for word in some]
    start = draw.choice(["SELECT ", "SELECT * FROM t ", "SELECT * FROM ", "SELECT x FROM t WHERE "])
    return start + nested(parts, closed=draw.random() < 0.5)


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(n, marks=pytest.mark.stats) for n in range(5, 200))]
)
def test_nor_does_any_mixture(steps, seed):
    for each in range(30):
        check(steps, mixed(seed * 1000 + each))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM t WHERE a < " + nested(["CHAR("], closed=True),
        "SELECT COUNT(*) FROM t WHERE a < " + nested(["CHAR((CHAR((f("], closed=True),
        "SELECT " + "STRUCT(" * DEEP,
        "SELECT " + nested(["ARRAY["], closed=True),
        "SELECT " + "INT[1][INT[1][" * 12,
        "SELECT COUNT(*) FROM t " + "JOIN x " * 2_000,
        "SELECT * FROM " + "LATERAL(x, " * 20,
        f'SELECT CAST(1 AS "{nested(["CHAR("], closed=True)}") FROM t',
        f"SELECT generate_series(1, 2, '{nested(['CHAR('], closed=True)}')",
    ],
)
@pytest.mark.parametrize("watched", [True, False])
def test_what_is_known_is_refused_before_it_is_parsed(monkeypatch, steps, text, watched):
    monkeypatch.setattr(bounded, "_CAN_WATCH", watched)  # as where sqlglot is compiled
    assert [*ways(text)] == [False] * 3
    assert steps[0] < 200  # advice is looked up


def test_what_is_not_known_is_refused_where_it_becomes_too_much(monkeypatch, steps):
    monkeypatch.setattr(bounded, "_check_twice", lambda tokens, types: None)
    assert [*ways("SELECT COUNT(*) FROM t WHERE a < " + nested(["CHAR("], closed=True))] == [False] * 3
    assert 10_000 < steps[0] <= MOST


@pytest.mark.parametrize("filling", ["1" * 50_000, " " * 50_000])
@pytest.mark.parametrize(
    "place", ["INTERVAL '{}'", "INTERVAL '{}' DAY", "INTERVAL 1 DAY '{}' DAY", "INTERVAL $${}$$"]
)
def test_a_text_that_is_no_interval_is_not_read_as_one(monkeypatch, filling, place):
    monkeypatch.setattr(Parser, "parse", None)
    text = f"SELECT COUNT(*) FROM t WHERE a < {place.format(filling)}"
    with pytest.raises(QueryRefused, match="too long to be an interval"):
        read(text)
    assert parsed(text) is None


def test_the_refusal_says_what_to_write():
    with pytest.raises(QueryRefused, match=r"Write CAST\(… AS DATE\) instead of DATE\(…\)"):
        read("SELECT COUNT(*) FROM t WHERE a < " + nested(["DATE("], closed=True))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM t WHERE CAST(CAST(CAST(a AS TEXT) AS DATE) AS TEXT) < CHAR(DATE('2024'))",
        "SELECT COUNT(*) FROM t WHERE YEAR(DATE(TIMESTAMP(CAST(DATE('2024-01-01') AS TEXT)))) = 2024",
        "SELECT COUNT(*) FROM t WHERE a IN (DATE('2024-01-01'), TIME('10:00'), CHAR(VARCHAR(CHAR('a'))))",
        "SELECT COUNT(*) FROM t WHERE a = [[1, 2], [3, 4]][1][2] AND b > NOW() - INTERVAL '1 day'",
        "SELECT COUNT(*) FROM t " + " ".join(f"JOIN x{i} ON t.u = x{i}.u" for i in range(40)),
        "SELECT COUNT(*) FROM t " + " ".join(f"JOIN x{i} USING (u)" for i in range(40)),
        "SELECT COUNT(*) FROM t " + " ".join(f"CROSS JOIN x{i}" for i in range(40)),
        "SELECT COUNT(*) FROM t JOIN (x JOIN (y JOIN z ON z.u = y.u) ON x.u = y.u) ON t.u = x.u",
        "SELECT " + ", ".join("COUNT(DATE(CHAR(a)))" for _ in range(400)) + " FROM t",
        f"SELECT COUNT(*) FROM t WHERE a = DATE('{'1' * 50_000}')",
    ],
)
def test_honest_questions_are_read(text):
    assert [*ways(text)] == [True] * 3
