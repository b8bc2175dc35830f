"""Texts that say too much are refused before they are looked at, on every way in."""

import pytest
from sqlglot.dialects.dialect import Dialect

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.names import unused
from sfumato.server.wire.statements import statements
from sfumato.sql.text.dialects import understand
from sfumato.sql.text.size import MOST_WORDS, check_words

MANY = MOST_WORDS
LONG = {
    "parentheses": "SELECT " + "(" * MANY + "1" + ")" * MANY,
    "signs": "SELECT " + "+" * MANY + "1",
    "columns": "SELECT " + ",".join(["COUNT(*)"] * MANY) + " FROM visits",
    "conditions": "SELECT COUNT(*) FROM visits WHERE " + " AND ".join(["age > 1"] * MANY),
    "parameters": "SELECT COUNT(*) FROM visits WHERE age IN (" + ",".join("?" * MANY) + ")",
    "order": "SELECT COUNT(*) FROM visits ORDER BY " + ",".join("1" * MANY),
    "casts": "SELECT 1" + "::int" * MANY + " FROM visits",
    "words": "SELECT " + "a " * MANY,
    "semicolons": "SELECT 1" + ";" * MANY,
    "texts": "SELECT " + "'a' " * MANY,
    "comment that ends": "SELECT " + "/**/" * MANY + "1",
    "list in a comment": f"SELECT 1 IN ({','.join(['1'] * MANY)}) /* IN ({','.join(['1'] * 99)}) */",
}


@pytest.fixture
def tokenized(monkeypatch):
    """How long the texts were that were tokenized."""
    lengths, real = [], Dialect.tokenize

    def tokenize(self, text):
        lengths.append(len(text.split()))
        return real(self, text)

    monkeypatch.setattr(Dialect, "tokenize", tokenize)
    return lengths


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_a_text_of_too_many_words_is_refused_before_it_is_looked_at(tokenized, text):
    with pytest.raises(QueryRefused, match=r"words and signs\. Ask for less"):
        understand(text[:190_000])
    assert max(tokenized, default=0) < 200  # what is left without its lists, and what refusals look up


@pytest.mark.parametrize("text", [LONG["columns"], LONG["parameters"], LONG["words"]])
def test_over_the_wire_too(text):
    with pytest.raises(QueryRefused, match="words and signs"):
        statements(text[:90_000])


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) FROM visits WHERE age IN ({','.join(map(str, range(MANY)))})",
        f"SELECT COUNT(*) FROM visits WHERE name = '{'!' * 9_000}'",
        "SELECT" + " " * 50_000 + "COUNT(*) FROM visits",
        f'SELECT COUNT(*) AS "{"a" * 50_000}" FROM visits',
    ],
    ids=["list", "text", "blanks", "name"],
)
def test_what_is_long_and_says_little_is_looked_at(text):
    assert understand(text).select
    assert statements(text)[0].text == text


def test_just_as_many_words_as_may_be():
    check_words("a " * MOST_WORDS)
    check_words("'a b' " * MOST_WORDS)
    with pytest.raises(QueryRefused):
        check_words("a " * MOST_WORDS + "b")


def test_columns_of_one_name_are_numbered_without_trying_each_number_again():
    class Counting(dict):
        looks = 0

        def __contains__(self, name):
            self.looks += 1
            return super().__contains__(name)

    taken = Counting()
    assert [unused("n", taken) for _ in range(3)] == ["n", "n_2", "n_3"]
    assert unused("N_3", taken) == "N_3_2"
    assert [unused("", taken), unused("", taken)] == ["column", "_2"]
    assert unused("n", taken) == "n_4"
    taken.looks = 0
    names = [unused("n", taken) for _ in range(1000)]
    assert len({*names}) == 1000
    assert taken.looks <= 2000
