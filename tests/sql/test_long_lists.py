"""Long lists after IN: read as one token, they mean and are refused as if each constant were read alone."""

from __future__ import annotations

import random
import re

import pytest

from sfumato.errors import QueryRefused
from sfumato.plan.prices.recipe import recipe
from sfumato.schema import Date, Float, Int, PrivacyUnit, PrivateTable, Text
from sfumato.sql.read.parse import parse
from sfumato.sql.text import listed
from sfumato.sql.text.statement import tokenized

TABLE = PrivateTable(
    "visits",
    source=None,
    unit=PrivacyUnit.row(),
    schema={"city": Text(), "age": Int(0, 99), "spent": Float(0, 200), "free": Int(), "day": Date()},
)
FORMS = (
    "SELECT COUNT(*) AS n FROM visits WHERE {list}",
    "SELECT COUNT(*) FILTER (WHERE {list}) FROM visits WHERE {list} AND NOT ({list})",
    "SELECT {list} AS k, SUM(CASE WHEN {list} THEN spent ELSE 1 END) AS s FROM visits GROUP BY 1",
    "SELECT age, COUNT(*) AS n FROM visits WHERE {list} GROUP BY age HAVING COUNT(*) > 3 OR {list}",
    "SELECT COUNT(*) AS \"age IN ({long})\", SUM('IN ({long})') FROM visits -- IN ({long})\nWHERE {list}",
    "SELECT COUNT(*) AS n /* IN ({long}) */ FROM visits WHERE city <> 'x IN ({long})' AND {list}",
    "SELECT COUNT(*) AS n FROM visits WHERE city = $$IN ({long})$$ OR {list}",
    "SELECT COUNT(*) AS n FROM visits WHERE {list} ANDD age > 3",
    "SELECT COUNT(*) AS n FROM visits WHERE ({list} AND age > 3",
    "SELECT COUNT(*) AS n FROM visits WHERE {list} AND nobody = 3",
    "SELECT COUNT(*) AS n FROM visits WHERE age.in ({long}) OR in ({long})",
    "SELECT COUNT(*) AS n FROM visits WHERE {deep}{list}{closed}",
    "SELECT COUNT(*) AS n FROM visits WHERE age IN ( -- IN (77,\n{long}) OR {list}",
    "SELECT COUNT(*) AS n FROM visits WHERE age IN -- IN\r({long}) OR age IN /* IN (7) */ ({long}) OR {list}",
    "SELECT COUNT(*) AS n FROM visits WHERE POSITION('a' IN ({long})) > 1 OR {list}",
)
ODD = (
    "NULL", "TRUE", "- 3", "+3", "(4)", ".5", "5.", "1_000", "0x1F", "1e999", "9" * 19, "9" * 41, "''''",
    "'a' 'b'", "e'x'", "'{name}'", "'a\\'", "'two\nlines'", "1 -- no\n", "age", "ABS(3)", "1e3",
    "-9223372036854775808", "'" + "z" * 10_001 + "'", "'half \0'", "(1, 2)", "", "1 2", "\u00a07", "٣",
    "'é'", "?", "DATE '2024-01-31'", "'it''s, (so)'", "-'x'", "CAST('1' AS INTEGER)",
)  # fmt: skip


def _constant(draw: random.Random, kind: str) -> str:
    match kind:
        case "whole":
            return str(draw.choice((1, -1)) * draw.randrange(10 ** draw.randint(1, 18)))
        case "number":
            return draw.choice(
                (f"{draw.uniform(-99, 99):.3f}", f"{draw.random():.6e}", str(draw.randrange(99)))
            )
        case "text":
            return "'" + "".join(draw.choice("aé ,()''") for _ in range(4)).replace("'", "''") + "'"
    return f"'20{draw.randrange(10, 30)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}'"


def _text(draw: random.Random) -> str:
    """A query with a list that is long or nearly so, of one kind or with something odd in it."""
    kind, column = draw.choice(
        [("whole", "age"), ("whole", "free"), ("number", "spent"), ("text", "city"), ("day", "day")]
    )
    constants = [_constant(draw, kind) for _ in range(draw.choice((31, 32, 33, 40)))]
    if draw.random() < 0.4:
        constants[draw.choice((0, -1, 7))] = draw.choice(ODD)
    between = draw.choice((",", ", ", " ,\n\t", "\r\n , "))
    word = draw.choice((" IN (", " in( ", " NOT IN\n(", "\nIn  ( "))
    deep = draw.choice((0, 29, 30, 31))
    return draw.choice(FORMS).format(
        list=f"{column}{word}{between.join(constants)}{draw.choice(('', ' ', chr(10)))})",
        long=", ".join(map(str, range(40))),
        deep="(" * deep,
        closed=")" * deep,
    )


def _outcome(text: str) -> object:
    """The plan of a text with its fingerprints, or the sentences of its refusal."""
    try:
        report = parse(text, {"visits": TABLE})
        return report, [question.fingerprint for question in recipe(report, TABLE).questions]
    except QueryRefused as refusal:
        return str(refusal)


def _compare(seed: int, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many of so many random texts are read; each as it is without long lists."""
    draw, usual, accepted = random.Random(seed), listed._LIST, 0
    for _ in range(count):
        text = _text(draw)
        folded = _outcome(text)
        monkeypatch.setattr(listed, "_LIST", re.compile("(?!)"))
        assert folded == _outcome(text), text
        monkeypatch.setattr(listed, "_LIST", usual)
        accepted += not isinstance(folded, str)
    return accepted


def test_lists_are_read_as_if_each_constant_were_read_alone(monkeypatch):
    assert 4 <= _compare(1, 24, monkeypatch) <= 20


@pytest.mark.parametrize("form", FORMS[-3:])
def test_a_list_begins_where_the_tokenizer_finds_it_to_begin(monkeypatch, form):
    text = form.format(long=", ".join(map(str, range(40))), list="age IN (1)")
    folded = _outcome(text)
    monkeypatch.setattr(listed, "_LIST", re.compile("(?!)"))
    assert folded == _outcome(text)


@pytest.mark.stats
def test_many_lists_are_read_as_if_each_constant_were_read_alone(monkeypatch):
    assert _compare(2, 1500, monkeypatch) > 400


def test_a_long_list_is_one_token():
    constants = ", ".join(["-1", "2.5", "'it''s'"] * 40)
    tokens = tokenized(f"SELECT 1 FROM visits WHERE age IN ({constants}) AND age > 3")
    (found,) = [token for token in tokens if isinstance(token.text, listed.Listed)]
    assert (found.text.nodes, found.text.signs) == (160, 40)
    assert found.text == constants
    assert len(tokens) == 14


def test_parts_are_counted_in_a_long_list():
    with pytest.raises(QueryRefused, match="more than 50,000 parts"):
        parse(f"SELECT COUNT(*) AS n FROM visits WHERE age IN ({','.join('1' * 60_000)})", {"visits": TABLE})
