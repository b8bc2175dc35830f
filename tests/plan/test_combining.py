"""Groups in one order, whatever order a report has them in: against the rows written out and sorted."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from fractions import Fraction

import pytest

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, domain_of
from sfumato.plan.expressions.ranges import day_of
from sfumato.plan.questions.combining import all_in_order, in_order

DAY = datetime.date(2024, 1, 1)
KINDS = {
    "numbers": lambda draw: draw.randint(-9, 9),
    "floats and numbers": lambda draw: draw.choice([1, 1.0, True, 0.5, -2]),
    "texts": lambda draw: draw.choice("abAÉ zy"),
    "days": lambda draw: DAY + datetime.timedelta(draw.randint(-9, 9)),
    "several types": lambda draw: draw.choice([1, "a", 10, 9, DAY]),
}


def written_out(lists, order):
    listed = [tuple(row[index] for index in order) for row in itertools.product(*lists)]
    try:
        ranked = sorted(set(listed))
    except TypeError:
        ranked = sorted(set(listed), key=lambda row: [(type(value).__name__, str(value)) for value in row])
    places = {row: place for place, row in enumerate(ranked)}
    return tuple(ranked), tuple(places[row] for row in listed)


def test_all_combinations_are_those_that_sorting_the_rows_gives():
    draw = random.Random(1)
    for _ in range(150):
        makers = draw.choices(list(KINDS.values()), k=draw.randint(0, 3))
        lists = [tuple(maker(draw) for _ in range(draw.randint(0, 6))) for maker in makers]
        order = draw.sample(range(len(lists)), len(lists))
        found, expected = all_in_order(lists, order), written_out(lists, order)
        assert found == expected
        assert [*map(repr, found[0])] == [*map(repr, expected[0])]  # of 1, 1.0 and True the first
        listed = [tuple(row[index] for index in order) for row in itertools.product(*lists)]
        assert in_order(listed) == expected


def test_nan_is_no_key():
    for lists in ([(1.0, math.nan)], [("a",), (math.nan,)]):
        with pytest.raises(QueryRefused, match="NaN"):
            all_in_order(lists, range(len(lists)))
        with pytest.raises(QueryRefused, match="NaN"):
            in_order(list(itertools.product(*lists)))


def test_ranges_are_listed_exactly():
    draw = random.Random(2)
    made = {"integer": int, "float": float, "date": day_of}
    for _ in range(200):
        kind = draw.choice(list(made))
        parts = 1 if kind == "date" else draw.choice([1, 2, 3, 8, 10])
        lower, step = Fraction(draw.randint(-99, 99), parts), Fraction(draw.randint(1, 20), parts)
        count = draw.randint(1, 20)
        facts = Facts(kind, False, lower, lower + (count - 1) * step, step)
        assert domain_of(facts) == tuple(made[kind](lower + i * step) for i in range(count))
