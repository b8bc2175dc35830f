"""Parameters of a query: every value becomes one node, whatever it holds."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.sql.text.dialects import understand
from sfumato.sql.text.parameters import Values
from sfumato.sql.text.statement import read


def filled(text: str, values: Values) -> str:
    return understand(text, values).select.sql("duckdb")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT COUNT(*) FROM t WHERE a > ? AND b = ? LIMIT ?", [1, "x", 3]),
        ("SELECT COUNT(*) FROM t WHERE a > $1 AND b = $2 LIMIT $3", (1, "x", 3)),
        ("SELECT COUNT(*) FROM t WHERE b = $2 AND a > $1 LIMIT $3", [1, "x", 3]),
        ("SELECT COUNT(*) FROM t WHERE a > $a AND b = $b LIMIT $c", {"a": 1, "b": "x", "c": 3}),
        ("SELECT COUNT(*) FROM t WHERE a > :a AND b = :b LIMIT :c", {"a": 1, "b": "x", "c": 3}),
        ("SELECT COUNT(*) FROM t WHERE a > @a AND b = @b LIMIT @c", {"a": 1, "b": "x", "c": 3}),
        (
            "SELECT COUNT(*) FROM t WHERE a > :date AND b = $end LIMIT :limit",
            {"date": 1, "end": "x", "limit": 3},
        ),
        ("SELECT COUNT(*) FROM t WHERE a > @from AND b = $from LIMIT :case", {"from": 1, "case": 3}),
    ],
)
def test_ways_to_write_a_parameter(text: str, values: Values) -> None:
    found = understand(text, values).select
    assert found.args["limit"].expression == exp.Literal.number(3)
    literals = sorted(each.this for each in found.find_all(exp.Literal))
    assert literals in (["1", "3", "x"], ["1", "1", "3"])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (3, "3"),
        (-3, "(-3)"),
        (np.int64(3), "3"),
        (0.1, "0.1"),
        (-2.5, "(-2.5)"),
        (1e300, "1e+300"),
        (np.float64(0.5), "0.5"),
        (True, "TRUE"),
        (None, "NULL"),
        ("it's", "'it''s'"),
        ("' OR 1 = 1 --", "''' OR 1 = 1 --'"),
        ("?", "'?'"),
        (datetime.date(2024, 2, 29), "CAST('2024-02-29' AS DATE)"),
        (datetime.datetime(2024, 2, 29, 8, 30), "CAST('2024-02-29T08:30:00' AS TIMESTAMP)"),
        (datetime.time(8, 30), "CAST('08:30:00' AS TIME)"),
    ],
)
def test_values_become_literals(value: object, written: str) -> None:
    assert (
        filled("SELECT COUNT(*) FROM t WHERE a = ?", [value]) == f"SELECT COUNT(*) FROM t WHERE a = {written}"
    )


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40))
def test_no_text_can_leave_its_literal(value: str) -> None:
    """A value changes one literal and nothing else of the tree, so that it can never be read as SQL."""
    found = understand("SELECT a, COUNT(*) FROM t WHERE b = ? AND c LIKE $$?$$ GROUP BY a", [value]).select
    plain = read("SELECT a, COUNT(*) FROM t WHERE b = 'here' AND c LIKE $$?$$ GROUP BY a")
    for literal in plain.find_all(exp.Literal):
        if literal.this == "here":
            literal.replace(exp.Literal.string(value))
    assert repr(found) == repr(plain)


def test_order_is_that_of_the_text() -> None:
    text = (
        "WITH c AS (SELECT ? AS a) SELECT SUM(x, contribution_bounds_per_group => (?, ?)), ? FROM c"
        " WHERE a > ? GROUP BY b HAVING COUNT(*) > ? ORDER BY b LIMIT ? OFFSET ?"
    )
    asked = understand(text, [0, 1, 2, 3, 4, 5, 6, 7])
    assert asked.select.sql("duckdb") == (
        "WITH c AS (SELECT 0 AS a) SELECT SUM(x), 3 FROM c WHERE a > 4 GROUP BY b HAVING COUNT(*) > 5"
        " ORDER BY b LIMIT 6 OFFSET 7"
    )
    assert asked.select.expressions[0].meta["bounds"] == ("group", Fraction(1), Fraction(2))


def test_values_in_options_and_bounds() -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = @e, delta = @d, max_groups_contributed = @k,"
        " group_selection_strategy = @s) SUM(x, contribution_bounds_per_group => (-@low, @high)) FROM t"
        " WHERE y = @e"
    )
    values = {"e": 0.1, "d": 1e-9, "k": 3, "s": "public_groups", "low": 2, "high": 0.3}
    asked = understand(text, values)
    assert (asked.epsilon, asked.delta) == (Fraction(1, 10), Fraction(1, 10**9))
    assert (asked.max_groups, asked.public_groups) == (3, True)
    assert asked.select.expressions[0].meta["bounds"] == ("group", Fraction(-2), Fraction(3, 10))
    assert asked.select.sql("duckdb") == "SELECT SUM(x) FROM t WHERE y = 0.1"
    clamped = understand("SELECT ANON_SUM(x CLAMPED BETWEEN $1 AND $2) FROM t", [1, 2])
    assert clamped.select.expressions[0].meta["bounds"] == ("group", Fraction(1), Fraction(2))


def test_at_is_an_operator_unless_a_value_has_the_name() -> None:
    assert (
        filled("SELECT COUNT(*) FROM t WHERE @a > @b", {"b": 1}) == "SELECT COUNT(*) FROM t WHERE ABS(a) > 1"
    )
    assert filled("SELECT COUNT(*) FROM t WHERE @a > 1", None) == "SELECT COUNT(*) FROM t WHERE ABS(a) > 1"
    assert filled("SELECT COUNT(*) FROM t WHERE @ a > ?", [1]) == "SELECT COUNT(*) FROM t WHERE ABS(a) > 1"


def test_no_parameters_no_values() -> None:
    for values in (None, [], {}, ()):
        assert filled("SELECT COUNT(*) FROM t", values) == "SELECT COUNT(*) FROM t"


WHERE = "SELECT COUNT(*) FROM t WHERE a = "


@pytest.mark.parametrize(
    ("text", "values", "sentence"),
    [
        (f"{WHERE}?", [], "The query has a parameter number 1, counted from 1, and 0 values were given."),
        (
            f"{WHERE}$3",
            [1, 2],
            "The query has a parameter number 3, counted from 1, and 2 values were given.",
        ),
        (f"{WHERE}$0", [1], "The query has a parameter number 0, counted from 1"),
        (
            f"{WHERE}?",
            [1, 2],
            "2 values were given, and the query uses 1 of them: give one for each parameter.",
        ),
        (f"{WHERE}$2", [1, 2], "2 values were given, and the query uses 1 of them"),
        (f"{WHERE}1", [1], "1 values were given, and the query uses 0 of them"),
        (f"{WHERE}:low", {"lov": 1}, "There is no value for the parameter 'low'. Did you mean lov?"),
        (f"{WHERE}:low", {"low": 1, "b": 1}, "The query has no parameter 'b': write $b, or leave it out."),
        (f"{WHERE}:low", [1], "The query names the parameter 'low': give its values as a dict."),
        (f"{WHERE}$1", {"a": 1}, "The query has the parameter $1: give its values in order, as a list."),
        (f"{WHERE}?", {"a": 1}, "The query has the parameter ?: give its values in order, as a list."),
        (f"{WHERE}?", "x", "The parameters must be a list of values, or a dict of values by name."),
        (f"{WHERE}?", 3, "The parameters must be a list of values, or a dict of values by name."),
        (f"{WHERE}?", {1: 2}, "The names of parameters must be plain words, such as 'country'."),
        (f"{WHERE}?", [[1, 2]], "not list. Give one value for each ?, as in IN (?, ?)."),
        (
            f"{WHERE}?",
            [datetime.datetime(2024, 1, 1, 0, 0, 0, 1)],
            "The parameter '1' must be in whole seconds",
        ),
        (f"{WHERE}?", [datetime.time(8, tzinfo=datetime.UTC)], "a time of day without a zone"),
        (
            f"{WHERE}?",
            [object()],
            "The parameter '1' must be an int, a float, a str, a bool, a date, a datetime, a time",
        ),
        (f"{WHERE}?", [float("nan")], "The parameter '1' must be finite."),
        (f"{WHERE}?", [float("inf")], "The parameter '1' must be finite."),
        (f"{WHERE}?", [2**63], "The parameter '1' must fit in 64 bits."),
        (f"{WHERE}?", [-(2**63)], "The parameter '1' must fit in 64 bits."),
        (f"{WHERE}?", ["\x00"], "The parameter '1' cannot be used. A text constant holds a character"),
        (f"{WHERE}?", ["x" * 10_001], "The parameter '1' cannot be used. A text constant is longer than"),
    ],
)
def test_wrong_values(text: str, values: Any, sentence: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        understand(text, values)
    assert sentence in str(refusal.value)
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    ("text", "values", "sentence"),
    [
        (
            f"{WHERE}?",
            None,
            "The query has a parameter, ?, and no values were given. Give parameters=[…] for ? and",
        ),
        (f"{WHERE}:a", None, "The query has a parameter, 'a', and no values were given."),
        (
            f"{WHERE}? AND b = $1",
            [1],
            "The query mixes ? and $1. Write ? everywhere, or number all parameters.",
        ),
        ("SELECT COUNT(*) FROM ?", ["t"], "A parameter stands for a value, not for a name."),
        ("SELECT COUNT(*) AS ? FROM t", ["n"], "A parameter stands for a value, not for a name."),
        ("SELECT x::DECIMAL(?) FROM t", [1], "A parameter stands for a value, not for a name."),
        (
            "SELECT COUNT(*) FROM t WHERE a IN ?",
            [1],
            "IN takes a list in parentheses. Write IN (?, ?) with one",
        ),
        ("SELECT a, COUNT(*) FROM t GROUP BY ?", [1], "cannot choose what to group or order by."),
        ("SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY (?)", [1], "Write the column's name or its number"),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = @e) COUNT(*) FROM t",
            None,
            "a parameter, 'e', and no",
        ),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = ?) COUNT(*) FROM t",
            ["1"],
            "epsilon takes a number",
        ),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = ?) COUNT(*) FROM t",
            [True],
            "epsilon takes a number",
        ),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = ?) COUNT(*) FROM t",
            [1e20],
            "would remove the noise",
        ),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column = ?) COUNT(*) FROM t",
            ["id"],
            "privacy_unit_column takes the name of a column",
        ),
        (
            "SELECT SUM(x, contribution_bounds_per_group => (?, 1)) FROM t",
            ["0"],
            "takes two numbers in parentheses",
        ),
        ("SELECT SUM(x, contribution_bounds_per_group => ?) FROM t", [1], "takes two numbers in parentheses"),
    ],
)
def test_parameters_in_wrong_places(text: str, values: Values, sentence: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        understand(text, values)
    assert sentence in str(refusal.value)
    assert refusal.value.fix


def test_messages_do_not_repeat_values() -> None:
    secret = "Rumpelstiltskin"
    for text, values in (
        (f"{WHERE}1", [secret]),
        (f"{WHERE}?", [secret, secret]),
        (f"{WHERE}:b", {"a": secret}),
        (f"{WHERE}?", [{secret: 1}]),
        (f"{WHERE}?", [secret * 1000]),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = ?) COUNT(*) FROM t", [secret]),
        ("SELECT SUM(x, contribution_bounds_per_group => (?, 1)) FROM t", [secret]),
    ):
        with pytest.raises((QueryRefused, InvalidParameter)) as refusal:
            understand(text, values)
        assert secret not in str(refusal.value)
