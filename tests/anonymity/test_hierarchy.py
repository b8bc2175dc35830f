"""Hierarchies: readable labels, exact edges, and steps that only ever join."""

import datetime
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import pytest

from sfumato.anonymity import Hierarchy
from sfumato.errors import InvalidParameter


def test_numbers_become_intervals_that_hold_their_lower_end():
    ages = Hierarchy.intervals(5, 10, 20)
    assert ages.levels == ("exact", "intervals of 5", "intervals of 10", "intervals of 20", "*")
    assert [ages.labels([67], level)[0] for level in range(5)] == [
        "67",
        "[65, 70)",
        "[60, 70)",
        "[60, 80)",
        "*",
    ]
    assert ages.labels([20, 29, 30, -1, 0], 2) == ["[20, 30)", "[20, 30)", "[30, 40)", "[-10, 0)", "[0, 10)"]
    assert ages.labels([None, math.nan, math.inf], 2) == [None, "NaN", "inf"]
    assert ages.labels([None, math.nan, 3], 4) == ["*", "*", "*"]


def test_a_float_means_the_decimal_it_shows():
    tenths = Hierarchy.intervals("0.1", start="0.05")
    assert tenths.labels([0.15, 0.3, Decimal("0.25"), 0.35], 1) == [
        "[0.15, 0.25)",
        "[0.25, 0.35)",
        "[0.25, 0.35)",
        "[0.35, 0.45)",
    ]
    assert Hierarchy.intervals(0.1).labels([0.3, 0.7, 2.0], 1) == ["[0.3, 0.4)", "[0.7, 0.8)", "[2, 2.1)"]
    assert Hierarchy.intervals("1/3").labels([1], 1)[0].startswith("[1, 1.333333")


def test_days_become_months_quarters_years_and_decades():
    days = [datetime.date(2021, 7, 3), datetime.datetime(2021, 12, 31, 23, 59), None]
    dates = Hierarchy.dates(times=True)
    assert Hierarchy.dates().labels(days, 1) == dates.labels(days, 2)
    assert dates.levels == ("exact", "day", "month", "quarter", "year", "decade", "*")
    assert dates.labels(days, 0) == ["2021-07-03", "2021-12-31 23:59:00", None]
    assert dates.labels(days, 1) == ["2021-07-03", "2021-12-31", None]
    assert dates.labels(days, 2) == ["2021-07", "2021-12", None]
    assert dates.labels(days, 3) == ["2021-Q3", "2021-Q4", None]
    assert dates.labels(days, 4) == ["2021", "2021", None]
    assert dates.labels(days, 5) == ["2020s", "2020s", None]
    assert dates.labels(days, 6) == ["*", "*", "*"]


def test_zip_codes_lose_their_last_digits_first():
    codes = Hierarchy.prefixes(5)
    assert [codes.labels(["19456"], level)[0] for level in range(6)] == [
        "19456",
        "1945*",
        "194**",
        "19***",
        "1****",
        "*",
    ]
    assert codes.labels([2139, "SW1"], 2) == ["021**", "SW1**"]
    with pytest.raises(InvalidParameter, match="larger length"):
        codes.labels(["123456"], 1)


def test_categories_climb_a_tree_of_any_shape():
    tree = Hierarchy.tree(
        {"school": ["9th", "10th"], "college": {"first": ["Bachelors"], "more": ["Masters"]}}
    )
    values = ["9th", "Bachelors", "Masters", None]
    assert tree.levels == ("exact", "4 labels, step 1 of 2", "school, college", "*")
    assert tree.labels(values, 1) == ["9th", "first", "more", None]
    assert tree.labels(values, 2) == ["school", "college", "college", None]
    assert tree.labels(values, 3) == ["*"] * 4
    assert tree.costs(values, 2) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert Hierarchy.tree({"small": [1, 2], "none": [None]}).labels([1, None], 1) == ["small", "none"]
    assert Hierarchy.tree({"small": ["1"]}).labels([1], 1) == ["small"]


def test_a_table_of_steps_is_the_same_as_its_tree():
    steps = Hierarchy.steps({"a": ["low", "any"], "b": ["low", "any"], "c": ["high", "any"]})
    assert steps == Hierarchy.tree({"any": {"low": ["a", "b"], "high": ["c"]}})


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: Hierarchy.intervals(5, 12), "multiple of the one before"),
        (lambda: Hierarchy.intervals(5, 5), "multiple of the one before"),
        (lambda: Hierarchy.intervals(0), "width must be"),
        (lambda: Hierarchy.prefixes(0), "length must be at least 1"),
        (lambda: Hierarchy.tree({}), "nothing below"),
        (lambda: Hierarchy.tree({"a": []}), "A tree is labels"),
        (lambda: Hierarchy.tree({"a": "bcd"}), "A tree is labels"),
        (lambda: Hierarchy.tree({"a": ["x"], "b": ["x"]}), "two places"),
        (
            lambda: Hierarchy.tree({"x": {"other": ["b"]}, "y": {"other": ["c"]}}),
            '"other" has two labels above',
        ),
        (lambda: Hierarchy.steps({"a": ["x"], "b": ["x", "y"]}), "of the same length"),
        (lambda: Hierarchy.steps({"a": "xy"}), "list of labels"),
        (lambda: Hierarchy.steps({"a": ["x", "y"], "b": ["x", "z"]}), '"x" has two labels above'),
        (lambda: Hierarchy.flat().labels([1], 2), "levels go from 0 to 1"),
    ],
)
def test_a_hierarchy_that_cannot_be_is_refused(build, said):
    with pytest.raises(InvalidParameter, match=said):
        build()


DAYS = [datetime.date(1999, 12, 31) + datetime.timedelta(days=37 * place) for place in range(80)]


@pytest.mark.parametrize(
    ("hierarchy", "values"),
    [
        (Hierarchy.intervals(3, 6, 24, start=1), [*range(-30, 60), None]),
        (Hierarchy.intervals("0.1", "0.2", "1"), [place / 40 for place in range(-50, 90)] + [math.nan]),
        (Hierarchy.dates(), [*DAYS, None]),
        (Hierarchy.dates(times=True), [*DAYS, None]),
        (Hierarchy.prefixes(4), ["1234", "123", "1299", "12", "", "9", 7, 1234, None]),
        (Hierarchy.tree({"a": ["x", "y"], "b": {"c": ["z"], "d": {"e": ["w"]}}}), ["x", "y", "z", "w", None]),
    ],
)
def test_each_step_only_joins_and_never_loses_less(hierarchy, values):
    for level, (fine, coarse) in enumerate(
        itertools.pairwise(hierarchy.labels(values, each) for each in range(len(hierarchy.levels)))
    ):
        if level:
            assert len(dict(zip(fine, coarse, strict=True))) == len(set(zip(fine, coarse, strict=True)))
        before, after = hierarchy.costs(values, level), hierarchy.costs(values, level + 1)
        assert all(0 <= low <= high <= 1 for low, high in zip(before, after, strict=True))
    assert hierarchy.costs(values, 0) == [0.0] * len(values)
    assert hierarchy.costs(values, len(hierarchy.levels) - 1) == [1.0] * len(values)


@pytest.mark.parametrize(
    ("width", "start"), [("0.1", 0), ("0.3", "0.07"), (7, -3), ("1e-7", 1000), (5, 10**17)]
)
def test_every_number_is_in_the_interval_that_it_shows_also_near_edges(width, start):
    hierarchy = Hierarchy.intervals(width, start=start)
    wide, first = Fraction(width), Fraction(start)
    edges = [float(first + place * wide) for place in (-10, -3, 0, 1, 2, 3, 1000, 10**6, 10**10)]
    values = [
        near
        for edge in edges
        for near in (math.nextafter(edge, -math.inf), edge, math.nextafter(edge, math.inf))
    ]
    values += [int(edge) for edge in edges] + [0, 2**62]
    for value, label in zip(values, hierarchy.labels(values, 1), strict=True):
        low, high = map(Fraction, label[1:-1].split(", "))
        assert low <= Fraction(repr(value)) < high
        assert high - low == wide
