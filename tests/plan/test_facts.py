"""What declared bounds say, what a predicate narrows, which keys follow."""

from __future__ import annotations

import datetime
import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, column_facts, domain_of, facts_of, refine, resolve
from sfumato.plan.expressions.functions import evaluate
from sfumato.plan.expressions.tree import Call, Column, call, literal
from sfumato.schema import Bool, Date, Enum, Float, Int, Text

COLUMNS = {
    "age": column_facts(Int(0, 100)),
    "id": column_facts(Int()),
    "price": column_facts(Float(0, 0.1)),
    "free": column_facts(Float()),
    "country": column_facts(Enum("IT", "FR", "DE")),
    "grade": column_facts(Enum(5, 1, 3)),
    "city": column_facts(Text()),
    "member": column_facts(Bool(nullable=False)),
    "day": column_facts(Date("2024-01-15", "2024-03-02")),
    "any_day": column_facts(Date()),
}
AGE, CITY, DAY, COUNTRY = Column("age"), Column("city"), Column("day"), Column("country")


def date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def domain(expression, columns=COLUMNS):
    return domain_of(facts_of(expression, columns))


def test_declared_columns():
    assert COLUMNS["age"] == Facts("integer", True, Fraction(0), Fraction(100), Fraction(1))
    assert COLUMNS["id"] == Facts("integer")
    assert COLUMNS["price"].upper == Fraction(0.1)  # the double above 1/10, not 1/10
    assert COLUMNS["price"].upper > Fraction(1, 10)
    assert COLUMNS["country"].values == ("IT", "FR", "DE")
    assert not COLUMNS["member"].nullable
    assert COLUMNS["day"].upper - COLUMNS["day"].lower == 47


def test_domains():
    assert domain(COUNTRY) == ("IT", "FR", "DE")  # as declared, not sorted
    assert domain(Column("grade")) == (5, 1, 3)
    assert domain(Column("member")) == (False, True)
    assert domain(DAY)[:2] == (date("2024-01-15"), date("2024-01-16"))
    assert len(domain(DAY)) == 48
    assert domain(AGE) == tuple(range(101))
    assert domain(CITY) is None
    assert domain(Column("id")) is None
    assert domain(Column("price")) is None
    assert domain_of(COLUMNS["age"], 100) is None
    assert domain_of(COLUMNS["age"], 101) is not None
    wide = column_facts(Int(0, 2**53))
    assert domain_of(wide) is None


def test_domains_of_expressions():
    decade = call("multiply", call("floor", call("divide", AGE, literal(10))), literal(10))
    assert domain(decade) == tuple(range(0, 101, 10))
    assert domain(call("multiply", AGE, literal(0.5)))[:3] == (0.0, 0.5, 1.0)
    assert domain(call("divide", AGE, literal(10))) is None  # tenths are no doubles
    assert domain(call("year", DAY)) == (2024,)
    assert domain(call("month", DAY)) == (1, 2, 3)
    assert domain(call("trunc_month", DAY)) == (date("2024-01-01"), date("2024-02-01"), date("2024-03-01"))
    weeks = domain(call("trunc_week", DAY))
    assert weeks[:2] == (date("2024-01-15"), date("2024-01-22"))
    assert len(weeks) == 7
    assert domain(call("less", AGE, literal(5))) == (False, True)
    young = call("case", call("less", AGE, literal(18)), literal("young"), literal("old"))
    assert domain(young) == ("young", "old")
    assert domain(call("coalesce", COUNTRY, literal("other"))) == ("IT", "FR", "DE", "other")
    assert domain(call("lower", COUNTRY)) == ("it", "fr", "de")
    assert domain(call("left", COUNTRY, literal(1))) == ("I", "F", "D")
    assert domain(call("append", COUNTRY, literal("-x"))) == ("IT-x", "FR-x", "DE-x")
    assert domain(call("equal", COUNTRY, literal("IT"))) == (True, False)
    assert domain(call("multiply", Column("grade"), literal(10))) == (50, 10, 30)
    assert domain(call("to_text", call("year", DAY))) == ("2024",)
    assert domain(call("to_integer", Column("member"))) == (0, 1)
    assert domain(call("width_bucket", AGE, literal(0), literal(100), literal(4))) == (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("expression", "lower", "upper", "nullable"),
    [
        (call("divide", AGE, call("add", AGE, literal(1))), 0, 100, True),
        (call("divide", AGE, AGE), 0, 100, True),  # a whole number that is not 0 is at least 1
        (call("divide", AGE, Column("price")), 0, None, True),
        (call("modulo", Column("id"), literal(7)), -6, 6, True),
        (call("least", Column("free"), literal(10)), None, 10, False),
        (call("least", call("greatest", Column("free"), literal(-1)), literal(10)), -1, 10, False),
        (call("abs", call("subtract", AGE, literal(50))), 0, 50, True),
        (call("coalesce", AGE, literal(-1)), -1, 100, False),
        (call("nullif", literal(3), AGE), 3, 3, True),
        (call("subtract", DAY, DAY), -47, 47, True),
        (call("sqrt", call("negate", literal(4))), 0, None, True),
        (call("length", CITY), 0, None, True),
        (call("power", call("subtract", AGE, literal(50)), literal(2)), 0, None, True),
    ],
)
def test_bounds(expression, lower, upper, nullable):
    facts = facts_of(expression, COLUMNS)
    assert facts.lower == lower
    assert upper is None or facts.upper == upper
    assert facts.nullable == nullable


def test_a_square_is_bounded_on_both_sides():
    facts = facts_of(call("power", call("subtract", AGE, literal(50)), literal(2)), COLUMNS)
    assert facts.lower == 0
    assert 2500 <= facts.upper <= Fraction(2500) + Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        (call("add", CITY, literal(1)), "numbers"),
        (call("equal", CITY, literal(1)), "mixes"),
        (call("and", AGE, Column("member")), "truth value"),
        (call("case", call("less", AGE, literal(1)), literal("a"), literal(1)), "mixes"),
        (call("year", CITY), "date"),
        (call("ln"), "takes 1 argument"),
        (call("round", AGE, AGE), "constant"),
        (call("nonsense", AGE), "no function"),
        (Column("nothing"), "no column"),
        (call("like", CITY, CITY), "constant"),
        (call("replace", CITY, literal("a"), literal("aa")), "no longer"),
        (call("like", CITY, literal("%" * 9)), "at most"),
        (call("like", CITY, literal("a!"), literal("!")), "escape"),
        (literal(float("inf")), "finite"),
        (literal(2**63), "64 bits"),
        (call("add_months", DAY, literal(10**7)), "months"),
        (call("equal", DAY, literal("yesterday")), "not a date"),
        (call("int_divide", Column("free"), literal(2)), "whole"),
        (call("width_bucket", AGE, literal(5), literal(1), literal(3)), "below"),
    ],
)
def test_refusals_name_the_reason(expression, word):
    with pytest.raises(QueryRefused, match=word):
        facts_of(expression, COLUMNS)


def test_a_misspelt_name_gets_the_nearest():
    with pytest.raises(QueryRefused, match="country"):
        facts_of(Column("contry"), COLUMNS)
    with pytest.raises(QueryRefused, match="floor"):
        facts_of(call("flor", AGE), COLUMNS)


def narrowed(predicate, name):
    return refine(predicate, COLUMNS)[name]


def test_in_lists_the_values_of_text():
    facts = narrowed(call("in", CITY, literal("Nice"), literal("Lyon")), "city")
    assert facts.values == ("Lyon", "Nice")
    assert not facts.nullable
    both = call("or", call("equal", CITY, literal("B")), call("in", CITY, literal("A"), literal("C")))
    assert narrowed(both, "city").values == ("A", "B", "C")
    assert narrowed(call("or", both, call("less", AGE, literal(3))), "city").values is None
    assert narrowed(call("not", call("in", COUNTRY, literal("FR"))), "country").values == ("IT", "DE")
    assert narrowed(call("in", COUNTRY, literal("DE"), literal("IT"), literal("XX")), "country").values == (
        "IT",
        "DE",
    )


def test_comparisons_cut():
    between = call("and", call("greater_equal", AGE, literal(20)), call("less_equal", AGE, literal(29)))
    assert domain_of(narrowed(between, "age")) == tuple(range(20, 30))
    assert domain_of(narrowed(call("not", between), "age")) == tuple(range(101))
    assert narrowed(call("less", literal(20.5), AGE), "age").lower == 21
    assert narrowed(call("less", AGE, literal(20)), "age").upper == 19
    assert narrowed(call("greater", Column("id"), literal(3)), "id").lower == 4
    assert narrowed(call("less", Column("free"), literal(3)), "free").upper == 3
    assert narrowed(call("greater_equal", DAY, literal("2024-02-01")), "day").lower == 19754
    year = call("and", call("greater_equal", Column("any_day"), literal(date("2024-01-01"))),
                call("less", Column("any_day"), literal(date("2025-01-01"))))  # fmt: skip
    assert len(domain_of(narrowed(year, "any_day"))) == 366
    assert narrowed(call("equal", AGE, literal(7)), "age").values == (7,)
    assert narrowed(Column("member"), "member").values == (True,)
    assert narrowed(call("not", Column("member")), "member").values == (False,)
    assert narrowed(call("greater", Column("grade"), literal(2)), "grade").values == (5, 3)


def test_nothing_left_leaves_the_columns():
    assert narrowed(call("greater", AGE, literal(200)), "age").upper == 100
    assert narrowed(call("equal", COUNTRY, literal("XX")), "country").values == ("IT", "FR", "DE")


def test_presence():
    assert narrowed(call("not", call("is_null", AGE)), "age").nullable is False
    assert narrowed(call("is_null", AGE), "age").nullable is True
    either = call("or", call("is_null", AGE), call("less", AGE, literal(5)))
    assert narrowed(either, "age").nullable is True


def test_a_predicate_must_be_a_condition():
    with pytest.raises(QueryRefused, match="condition"):
        refine(AGE, COLUMNS)


def random_predicate(draw: random.Random, depth: int = 3):
    luck = draw.random()
    if depth and luck < 0.5:
        word = draw.choice(["and", "or", "not"])
        return Call(word, tuple(random_predicate(draw, depth - 1) for _ in range(1 if word == "not" else 2)))
    name, values = draw.choice([("n", [0, 1, 2, 2.5, 5, -1]), ("s", ["a", "b", "z"]), ("e", ["a", "b"])])
    sides = [Column(name), literal(draw.choice(values))]
    if luck < 0.6:
        return call("is_null", Column(name))
    if luck < 0.75:
        return call("in", Column(name), *(literal(each) for each in draw.sample(values, 2)))
    if draw.random() < 0.3:
        sides.reverse()
    return call(draw.choice(["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]), *sides)


def test_refinement_is_sound_on_every_row():
    columns = {"n": column_facts(Int(0, 5)), "s": column_facts(Text()), "e": column_facts(Enum("b", "a"))}
    rows = list(itertools.product([None, 0, 1, 2, 3, 4, 5], [None, "a", "b", "q"], [None, "a", "b"]))
    table = {name: np.array([row[i] for row in rows], dtype=object) for i, name in enumerate(columns)}
    draw, narrowing = random.Random(5), 0
    for _ in range(400):
        predicate = random_predicate(draw)
        known = refine(predicate, columns)
        narrowing += known != columns
        holds = evaluate(predicate, table).filled(False).astype(bool)
        for row in itertools.compress(rows, holds):
            for value, facts in zip(row, known.values(), strict=True):
                if value is None:
                    assert facts.nullable, predicate
                    continue
                assert facts.values is None or value in facts.values, (predicate, facts)
                assert not isinstance(value, int) or facts.low <= value <= facts.high, (predicate, facts)
    assert narrowing > 200


def test_normal_forms():
    assert resolve(call("add", literal(1), DAY), COLUMNS) == call("add_days", DAY, literal(1))
    assert resolve(call("subtract", DAY, literal(1)), COLUMNS) == call("subtract_days", DAY, literal(1))
    assert resolve(call("subtract", DAY, DAY), COLUMNS) == call("days_between", DAY, DAY)
    assert resolve(call("to_text", AGE), COLUMNS) == call("integer_to_text", AGE)
    member = Column("member")
    nested = call("and", call("and", member, member), call("or", call("or", member, member), member))
    assert resolve(nested, COLUMNS) == call("and", member, member, call("or", member, member, member))
    unsorted = call("in", CITY, literal("b"), literal("a"), literal("b"))
    assert resolve(unsorted, COLUMNS) == call("in", CITY, literal("a"), literal("b"))
    once = resolve(nested, COLUMNS)
    assert resolve(once, COLUMNS) == once
