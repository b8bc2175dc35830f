"""Expressions in heads and messages are words of SQL, whatever they are made of."""

from __future__ import annotations

import datetime
import math
import operator
import random

import pytest
import sqlglot

from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.tree import Call, Column, call, literal
from sfumato.plan.expressions.written import written, written_argument, written_rows
from sfumato.sql.read.relation import called_after

AGE, DAY = Column("age"), Column("day")
NULL = literal(None)
OLD = call("greater", AGE, literal(60))
INNER = ("to_", "trunc_", "_days", "_months", "is_", "int_divide", "negate", "append", "case(", "in(", "not(")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_written_as_sql(name):
    least = max(FUNCTIONS[name].arity[0], 2 if name in ("case", "in") else 1)
    parts = (call("add", AGE, literal(1)), DAY, literal("x"), OLD, literal(datetime.date(2024, 1, 2)), NULL)
    for expression in (call(name, *parts[:least]), call(name, *parts[1 : least + 1])):
        for text in (written(expression, 300), written(call("equal", expression, AGE), 300)):
            assert not any(word in text for word in INNER), text
            sqlglot.parse_one(text.replace("²", ""), dialect="duckdb")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (call("case", OLD, literal(1), NULL), "rows where age > 60"),
        (call("case", OLD, DAY, NULL), "rows with day where age > 60"),
        (call("case", OLD, literal(1), literal(0)), "rows with CASE WHEN age > 60 THEN 1 ELSE 0 END"),
        (call("not", call("is_null", AGE)), "rows with age IS NOT NULL"),
        (call("less_equal", call("abs", AGE), literal(1e308)), "rows with age IS NOT NULL"),
        (Column(called_after("row number", ["a"])), "rows with row number(…)"),
        (Column(called_after("expression", ["a"])), "rows with an expression"),
        (Column("sfumato unread day"), "rows with day could not be read"),
    ],
)
def test_what_is_counted_is_said_in_words(expression, words):
    assert written_rows(expression) == words
    assert written_rows(expression).removeprefix("rows with ") in (words, written_argument(expression))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if FUNCTIONS[name].arity[0] == 1])
def test_each_part_of_a_deep_expression_is_written_once(name):
    expression = AGE
    for _ in range(60):  # to write each part twice would take 2**60 steps
        expression = call(name, expression)
    assert len(written(expression, 300)) <= 300


def test_the_rest_of_a_long_list_is_cut_off():
    listed = call("in", AGE, *map(literal, range(10_000)))
    assert written(listed, 40) == "age IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1…"
    assert written(listed, 400) == written(call("in", AGE, *map(literal, range(200))), 400)


KNOWN = {"age": 7, "x": -5}
MEANING = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "greatest": max,
    "negate": operator.neg,
    "floor": math.floor,
}


def drawn(draw, depth):
    if depth == 0:
        return draw.choice([AGE, Column("x"), literal(2)])
    function = draw.choice([*MEANING])
    parts = 1 if function in ("negate", "floor") else 2
    return call(function, *(drawn(draw, depth - 1) for _ in range(parts)))


def value_of(tree):
    if isinstance(tree, Call):
        return MEANING[tree.function](*map(value_of, tree.arguments))
    return KNOWN[tree.name] if isinstance(tree, Column) else tree.value


def test_brackets_say_what_belongs_together():
    """Read back, a text has the value of its tree: no part of it is taken for one of its neighbour."""
    draw, names = random.Random(3), {**KNOWN, "greatest": max, "floor": math.floor}
    for _ in range(200):
        tree = drawn(draw, draw.randint(1, 3))
        text = written(tree, 400)
        assert eval(text.replace("²", "**2"), names) == value_of(tree), text


def test_a_name_of_several_words_has_no_brackets():
    day = Column("Visit Date")
    assert written(call("trunc_month", day)) == "DATE_TRUNC('month', Visit Date)"
    since = call("greater", day, literal(datetime.date(2024, 3, 1)))
    assert written(since) == "Visit Date > DATE '2024-03-01'"
    assert written(call("multiply", Column("cost - tax"), AGE)) == "(cost - tax) * age"
    assert written(call("equal", call("is_null", day), AGE)) == "(Visit Date IS NULL) = age"
