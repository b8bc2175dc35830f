"""Which groups a unit counts in looks random: all subsets alike, for each unit and salt by itself.

The joint law is tested, not the marginals: a hash that is linear in its arguments chooses each group equally
often and yet meets two of twenty subsets. What is read is the statement that a vault would run. Units have
different powers of two for values, so that the sums of a group tell which of them count in it.
"""

from __future__ import annotations

import datetime
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sqlglot import exp

from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.dialect import DUCKDB
from sfumato.plan.expressions.tree import Column
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.questions.bounding.choose import Choose
from sfumato.plan.questions.nodes import Measured
from sfumato.plan.questions.sensitivity import WEIGHT
from sfumato.schema import ColumnType, Date, Enum, Int, PrivacyUnit, PrivateTable, Text
from sfumato.sql.read.parse import parse
from sfumato.sql.write.lower import lower
from sfumato.testing.statistics import ALPHA, assert_discrete

GROUPS, CHOSEN, UNITS = 6, 3, 2000
BITS, COLUMNS = 50, 8  # so many units are told apart in one column, and so many columns are summed at once
SUBSETS = list(itertools.combinations(range(GROUPS), CHOSEN))
SALTS = (0, 1, 2, 4_611_686_018_427_387_905)
_DAY = datetime.date(2024, 1, 1)
KEYS: dict[str, tuple[ColumnType, list[Any]]] = {
    "text": (Enum("a", "b", "c", "d", "e", "f"), list("abcdef")),
    "integer": (Int(1, GROUPS), list(range(1, GROUPS + 1))),
    "date": (
        Date("2024-01-01", "2024-01-06"),
        [_DAY + datetime.timedelta(days=each) for each in range(GROUPS)],
    ),
    "open": (Text(), ["x", "y", "z", "xx", "", "ü"]),
}
IDS = {"text": pa.string(), "integer": pa.int64()}
CASES = [
    ("text", "text"),
    ("text", "integer"),
    ("integer", "integer"),
    ("date", "text"),
    ("open", "integer"),
]


def question(kind: str) -> tuple[Measured, PrivateTable]:
    """A question in which groups are chosen for units."""
    schema = {"k": KEYS[kind][0]} | {f"x{i}": Int(0, 2**BITS) for i in range(COLUMNS)}
    unit = PrivacyUnit("u", max_groups=CHOSEN, max_rows=CHOSEN)
    table = PrivateTable("t", source=None, unit=unit, schema=schema)
    sums = ", ".join(f"SUM(x{i})" for i in range(COLUMNS))
    report = parse(f"SELECT k, {sums} FROM t GROUP BY k", {"t": table})
    return measured_of(replace(report, child=replace(report.child, bounding=Choose())), table), table


def as_it_is(statement: exp.Expr) -> None:
    """No change."""


def once(statement: exp.Expr) -> None:
    """One hash where there is the hash of a hash."""
    for each in list(statement.find_all(exp.Anonymous)):
        inner = each.expressions[0] if each.expressions else None
        if each.name == "hash" and isinstance(inner, exp.Anonymous):
            each.replace(inner.copy())


def without_units(statement: exp.Expr) -> None:
    """The same choice for everybody."""
    for each in statement.find_all(exp.Anonymous):
        each.set("expressions", [one for one in each.expressions if one.name != "u"])


def without_salt(statement: exp.Expr) -> None:
    """The same choice whatever the salt."""
    for each in statement.find_all(exp.Anonymous):
        each.set("expressions", [one for one in each.expressions if not isinstance(one, exp.Cast)])


Change = Callable[[exp.Expr], None]


@functools.cache
def choices(kind: str, ids: str, salt: int, change: Change, units: int) -> tuple[int, ...]:
    """Which of the subsets of groups each of the units counts in."""
    measured, table = question(kind)
    values = KEYS[kind][1]
    statement = lower(measured, {"t": table}, DUCKDB, salt=salt)
    change(statement)
    text = statement.sql("duckdb")
    places = {
        each.argument.name: f"m{i}"
        for i, each in enumerate(measured.measurements)
        if each.kind == "sum" and isinstance(each.argument, Column)
    }
    found: list[int] = []
    with duckdb.connect(config={"threads": 1}) as connection:
        for first in range(0, units, BITS * COLUMNS):
            connection.register("t", rows(values, ids, first))
            answer = connection.execute(text)
            columns = [each[0] for each in answer.description]
            lines = {line[columns.index("k0")]: line for line in answer.fetchall()}
            for i in range(COLUMNS):
                place = columns.index(places[f"x{i}"])
                sums = [lines[value][place] // WEIGHT if value in lines else 0 for value in values]
                found += [
                    SUBSETS.index(tuple(group for group, each in enumerate(sums) if each >> j & 1))
                    for j in range(BITS)
                ]
    return tuple(found)


def rows(values: list[Any], ids: str, first: int) -> pa.Table:
    """A row in each group for units of consecutive ids."""
    numbers = range(first, first + BITS * COLUMNS)
    names = [f"unit {each}" for each in numbers] if ids == "text" else list(numbers)
    made: dict[str, Any] = {
        "k": values * len(names),
        UNIT_COLUMN: pa.array([name for name in names for _ in values], IDS[ids]),
    }
    for i in range(COLUMNS):
        held = [2 ** (j % BITS) if j // BITS == i else 0 for j in range(len(names))]
        made[f"x{i}"] = pa.array([each for each in held for _ in values], pa.int64())
    return pa.table(made)


def assert_uniform(found: Sequence[int]) -> None:
    assert_discrete(list(found), dict.fromkeys(range(len(SUBSETS)), 1 / len(SUBSETS)))


def assert_independent(pairs: Iterable[tuple[int, int]]) -> None:
    """Pearson's chi-square over all pairs of subsets, at the alpha of all statistical tests."""
    table = np.zeros((len(SUBSETS), len(SUBSETS)))
    for pair in pairs:
        table[pair] += 1
    level = stats.chisquare(table.ravel()).pvalue  # also against a choice that is not uniform
    assert table.sum() >= 15 * table.size
    assert level > ALPHA, level


@pytest.mark.parametrize("salt", SALTS)
@pytest.mark.parametrize(("kind", "ids"), CASES)
def test_all_subsets_of_groups_are_chosen_alike(kind, ids, salt):
    assert_uniform(choices(kind, ids, salt, as_it_is, UNITS))


def neighbouring(
    kind: str, ids: str, change: Change = as_it_is, units: int = UNITS
) -> Iterator[tuple[int, int]]:
    """The choices of units that follow one another, which is where a weak hash would show."""
    for salt in SALTS:
        yield from itertools.pairwise(choices(kind, ids, salt, change, units))


def again(kind: str, ids: str, change: Change = as_it_is, units: int = UNITS) -> Iterator[tuple[int, int]]:
    """The choices of the same units with another salt, with the next one too."""
    for one, other in itertools.pairwise(SALTS):
        found = (choices(kind, ids, each, change, units) for each in (one, other))
        yield from zip(*found, strict=True)


@pytest.mark.parametrize(("kind", "ids"), CASES)
def test_units_choose_independently(kind, ids):
    assert_independent(neighbouring(kind, ids))


@pytest.mark.parametrize(("kind", "ids"), CASES)
def test_salts_choose_independently(kind, ids):
    assert_independent(again(kind, ids))


@pytest.mark.stats
@pytest.mark.parametrize(("kind", "ids"), CASES)
def test_many_units_choose_alike_and_independently(kind, ids):
    for salt in SALTS:
        assert_uniform(choices(kind, ids, salt, as_it_is, 10 * UNITS))
    assert_independent(neighbouring(kind, ids, as_it_is, 10 * UNITS))
    assert_independent(again(kind, ids, as_it_is, 10 * UNITS))


@pytest.mark.parametrize(("kind", "ids"), CASES)
def test_hashing_once_turns_it_red(kind, ids):
    with pytest.raises(AssertionError):
        assert_uniform(choices(kind, ids, SALTS[1], once, UNITS))


def test_a_hash_without_the_unit_turns_it_red():
    with pytest.raises(AssertionError):
        assert_independent(neighbouring("text", "integer", without_units))


def test_a_hash_without_the_salt_turns_it_red():
    assert_uniform(choices("text", "integer", 0, without_salt, UNITS))
    with pytest.raises(AssertionError):
        assert_independent(again("text", "integer", without_salt))
