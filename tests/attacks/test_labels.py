"""What a label covers: every value it was made from, and none of another label's."""

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from sfumato.anonymity import Hierarchy, mondrian
from sfumato.attacks.labels import covers
from sfumato.random import simulation

DAY = datetime.date(2021, 7, 3)
TIME = datetime.datetime(2021, 7, 3, 1, 2, 3)


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("*", None),
        ("*", "anything"),
        (None, None),
        ("19***", "19456"),
        ("19***", 19456),
        ("02***", 2139),
        ("60-70", 60),
        ("60-70", 70),
        ("60–70", 67.5),
        ("30-39", "31"),
        ("-5--1", -3),
        ("[60, 70)", 60),
        ("[0.1, 0.3)", 0.1),
        ("[0.1, 0.3]", Decimal("0.3")),
        ("[2021-07-01, 2021-07-03]", DAY),
        ("[2021-07-03 01:00:00, 2021-07-03 02:00:00)", TIME),
        ("70+", 70),
        ("<30", 29),
        ("≤30", 30),
        ("≥ 70", 71),
        ("2021-07-03", DAY),
        ("2021-07-03", TIME),
        ("2021-07", DAY),
        ("2021-Q3", DAY),
        ("2021", TIME),
        ("2020s", DAY),
        ("{a, b, c}", "b"),
        ("{Doe, Jane, x}", "Doe, Jane"),
        ("b … d", "c"),
        ("67", 67.0),
        ("true", True),
        (67, 67),
        (DAY, "2021-07-03"),
        ("NaN", math.nan),
    ],
)
def test_a_label_covers(label, value):
    assert covers(label, value)


@pytest.mark.parametrize(
    ("label", "value"),
    [
        (None, "x"),
        ("x", None),
        ("19***", None),
        ("19***", "30309"),
        ("19***", "194567"),
        ("19***", 1945),  # the zip code 01945
        ("60-70", 71),
        ("60-70", "sixty"),
        ("60-70", True),
        ("[60, 70)", 70),
        ("(60, 70]", 60),
        ("[0.1, 0.3)", 0.3),
        ("[60, 70)", math.inf),
        ("[2021-07-01, 2021-07-03)", DAY),
        ("70+", 69),
        ("<30", 30),
        (">70", 70),
        ("2021-06", DAY),
        ("2021-Q2", DAY),
        ("2021-Q3", datetime.date(2020, 8, 1)),
        ("2020", DAY),
        ("2010s", DAY),
        ("2021", 2022),
        ("{ab, cd}", "b"),
        ("b … d", "e"),
        ("single", "Divorced"),
    ],
)
def test_a_label_does_not_cover(label, value):
    assert not covers(label, value)


def test_the_names_of_a_tree_mean_what_the_tree_says():
    tree = Hierarchy.tree({"single": ["Divorced", "Widowed"], "couple": ["Married"]})
    assert covers("single", "Divorced", hierarchy=tree)
    assert covers("*", "Divorced", hierarchy=tree)
    assert not covers("couple", "Divorced", hierarchy=tree)


@pytest.mark.parametrize(
    ("hierarchy", "values"),
    [
        (Hierarchy.intervals(5, 10, 20), [*range(-12, 70, 3), 1.5, None]),
        (Hierarchy.intervals("0.1", "0.5", start="0.05"), [i / 20 for i in range(-9, 30)]),
        (Hierarchy.prefixes(5), [19456, 2139, 30309, 19445, 7]),
        (Hierarchy.prefixes(5), ["19456", "02139", "30309", "194", None]),
        (Hierarchy.dates(), [datetime.date(1999 + i % 23, 1 + i % 12, 1 + i % 28) for i in range(90)]),
        (
            Hierarchy.dates(times=True),
            [TIME + i * datetime.timedelta(days=37, hours=5) for i in range(60)],
        ),
    ],
)
def test_a_label_of_a_hierarchy_covers_its_values_and_no_others(hierarchy, values):
    for level in range(len(hierarchy.levels)):
        labels = hierarchy.labels(values, level)
        for told in set(labels):
            for value, own in zip(values, labels, strict=True):
                assert covers(told, value) == (told == own)


def test_every_label_of_mondrian_covers_the_row_it_was_made_from():
    draw = simulation(5)
    kinds = {
        "number": [0.0, -0.0, 1.5, 2.25, math.nan, math.inf, None],
        "text": ["", "a", "A", "it's", "雪", "a, b", None, *(f"t{i}" for i in range(30))],
        "day": [datetime.date(2020, 1 + i % 12, 1 + i) for i in range(20)],
        "time": [datetime.datetime(2020, 1, 1 + i, i) for i in range(20)],
        "flag": [True, False, None],
    }
    table = pa.table(
        {name: [values[i] for i in draw.integers(len(values), size=120)] for name, values in kinds.items()}
    )
    done = mondrian(table, list(kinds), 4).table
    for name in kinds:
        told, exact = done[name].to_pylist(), table[name].to_pylist()
        assert len(set(told)) > 1
        assert all(covers(label, value) for label, value in zip(told, exact, strict=True))
