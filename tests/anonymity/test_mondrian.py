"""Mondrian against a slow recursion, and every label against the values it stands for."""

import datetime
import math
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.anonymity import measure, mondrian
from sfumato.anonymity._guard import guard_of
from sfumato.anonymity._partition import partition
from sfumato.anonymity.codes import encode, text_of
from sfumato.anonymity.given import whole
from sfumato.anonymity.tables import opened
from sfumato.errors import InvalidParameter
from slow_anonymity import distance, measured, plain
from slow_mondrian import mondrian as slow

TEXTS = ["", "a", "A", 'quo"te', "it's", "naïve", "雪", "null", " ", "a\nb", None]
FLOATS = [0.0, -0.0, 1.5, 2.25, math.nan, math.inf, -math.inf, None]
DAYS = [datetime.date(2020, 1, 1), datetime.date(1969, 12, 31), datetime.date(2021, 7, 3), None]
TIMES = [datetime.datetime(2020, 1, 1, 12), datetime.datetime(2021, 7, 3, 1, 2, 3), None]
KINDS = [
    (TEXTS, pa.string()),
    (FLOATS, pa.float64()),
    (DAYS, pa.date32()),
    (TIMES, pa.timestamp("us")),
    ([*range(-3, 9), None], pa.int64()),
    (list(range(20)), pa.int32()),
    ([True, False, None], pa.bool_()),
]


def random_table(draw, *, rows, columns):
    """A table of `columns` columns c0, c1, … and a sensitive one, "v"."""
    made = {}
    for place in range(columns + 1):
        values, kind = draw.choice(KINDS)
        some = draw.sample(values, min(len(values), draw.randint(1, 8)))
        name = "v" if place == columns else f"c{place}"
        made[name] = pa.array([draw.choice(some) for _ in range(rows)], kind)
    return pa.table(made)


def is_covered(value, label):
    """Whether a label of Mondrian is true of a value."""
    if label == "*" or label == text_of(value):
        return True
    if value is None or label is None:
        return False
    if label.startswith("["):
        low, high = label[1:-1].split(", ")
        if isinstance(value, int | float):
            return float(low) <= value <= float(high)
        return low <= text_of(value) <= high
    if label.startswith("{"):
        return text_of(value) in label[1:-1]
    low, high = label.split(" … ")
    return low.encode() <= text_of(value).encode() <= high.encode()


def same(one, other):
    """Whether two columns hold the same values, NaN being one."""
    return [plain(value) for value in one.to_pylist()] == [plain(value) for value in other.to_pylist()]


@pytest.mark.parametrize("seed", range(60))
def test_the_classes_are_those_of_the_slow_recursion(seed):
    draw = random.Random(seed)
    rows = draw.choice([1, 2, 3, 9, 24, 40])
    table = random_table(draw, rows=rows, columns=draw.randint(1, 3))
    quasi = [name for name in table.column_names if name != "v"]
    k = draw.randint(1, min(rows, 6))
    columns = [table[name].to_pylist() for name in quasi]
    expected = slow(columns, list(range(rows)), lambda part: len(part) >= k)
    found = partition([encode(table, name) for name in quasi], guard_of(k, None, None, (), rows=rows))
    assert sorted(sorted(part) for part in expected) == sorted(
        [row for row in range(rows) if found[row] == number] for number in range(max(found) + 1)
    )


@pytest.mark.parametrize("seed", range(40))
def test_with_l_and_t_the_classes_are_those_of_the_slow_recursion(seed):
    draw = random.Random(1000 + seed)
    rows = draw.choice([5, 12, 24])
    table = random_table(draw, rows=rows, columns=2)
    if seed % 2:  # many rows that are the same, and unevenly often
        rows = 40
        table = table.take([min(draw.randrange(table.num_rows) for _ in range(2)) for _ in range(rows)])
    everyone, quasi = table.to_pylist(), ["c0", "c1"]
    k = draw.randint(1, 4)
    l = draw.choice([None, 1, min(2, len({plain(row["v"]) for row in everyone}))])  # noqa: E741
    t = draw.choice([None, 0.151, 0.301]) if l is not None else 0.201

    def admits(part):
        inside = [everyone[row] for row in part]
        if len(part) < k or len({plain(row["v"]) for row in inside}) < (l or 1):
            return False
        if t is None:
            return True
        return distance(inside, everyone, "v") <= t

    expected = slow([table[name].to_pylist() for name in quasi], list(range(rows)), admits)
    guard = guard_of(k, l, t, [encode(table, "v")], rows=rows)
    found = partition([encode(table, name) for name in quasi], guard)
    assert sorted(sorted(part) for part in expected) == sorted(
        [row for row in range(rows) if found[row] == number] for number in range(max(found) + 1)
    )


@pytest.mark.parametrize("seed", range(20))
def test_distances_are_those_of_the_definition(seed):
    draw = random.Random(3000 + seed)
    secrets = draw.choice(
        [[1.0, 2.0, 5.0, None], [0.5, -math.inf, math.inf, math.nan, None], ["a", "b", None]]
    )
    rows = 30
    table = pa.table({"v": [draw.choice(secrets) for _ in range(rows)]})
    classes = np.array([0, 1, 2] + [draw.randrange(3) for _ in range(rows - 3)])
    everyone, column = table.to_pylist(), encode(table, "v")
    truth = [
        float(distance([everyone[row] for row in np.flatnonzero(classes == each)], everyone, "v"))
        for each in range(3)
    ]
    for t in (*truth, 0.2):
        guard = guard_of(1, None, round(t + 1e-6, 9), [column], rows=rows)
        assert guard.close(np.arange(rows), classes, 3).tolist() == [each <= t + 1e-6 for each in truth]
        if t > 1e-6:
            guard = guard_of(1, None, round(t - 1e-6, 9), [column], rows=rows)
            assert guard.close(np.arange(rows), classes, 3).tolist() == [each <= t - 1e-6 for each in truth]


@pytest.mark.parametrize("seed", range(40))
def test_the_table_keeps_what_was_asked_for_and_labels_are_true(seed):
    draw = random.Random(2000 + seed)
    rows = draw.choice([1, 4, 17, 60])
    table = random_table(draw, rows=rows, columns=draw.randint(1, 4))
    quasi = [name for name in table.column_names if name != "v"]
    k = draw.randint(1, min(rows, 5))
    done = mondrian(table, quasi, k, l=1, t=0.9, sensitive="v")
    assert done.table.column_names == table.column_names
    assert same(done.table["v"], table["v"])
    for name in quasi:
        for value, label in zip(table[name].to_pylist(), done.table[name].to_pylist(), strict=True):
            assert is_covered(value, label if isinstance(label, str) else text_of(label))
    found = measure(done.table, quasi=quasi, sensitive="v")
    assert found.k == done.k >= k
    assert found.classes == done.classes
    assert found.t <= 0.9
    slow_found = measured(done.table.to_pylist(), quasi, "v")
    assert (slow_found.k, slow_found.classes) == (done.k, done.classes)
    assert done.suppressed == 0
    assert done.discernibility == sum(int(size) ** 2 for size in done.after)


def test_the_order_of_rows_changes_nothing():
    draw = random.Random(7)
    table = random_table(draw, rows=200, columns=3)
    quasi = ["c0", "c1", "c2"]
    order = list(range(200))
    draw.shuffle(order)
    straight, shuffled = mondrian(table, quasi, 15), mondrian(table.take(order), quasi, 15)
    assert straight.ncp > 0
    for name in quasi:
        assert same(straight.table[name].take(order), shuffled.table[name])
    assert straight.ncp == shuffled.ncp


def test_labels_read_well():
    table = pa.table(
        {
            "age": [20, 21, 29, 30, 40, 41],
            "born": [datetime.date(2000 + year, 1, 1) for year in (5, 5, 5, 0, 0, 0)],
            "town": ["Aix", "Bern", "Aix", "Cork", "Delft", "Cork"],
        }
    )
    done = mondrian(table, ["age", "born", "town"], 3)
    assert done.table["age"].to_pylist() == ["[20, 29]"] * 3 + ["[30, 41]"] * 3
    assert done.table["town"].to_pylist() == ["{Aix, Bern}"] * 3 + ["{Cork, Delft}"] * 3
    assert done.table["born"].type == pa.date32()  # nothing in it changed
    assert done.lost["born"] == 0.0
    assert done.lost["age"] == pytest.approx((9 + 11) / 2 / 21)
    assert done.lost["town"] == pytest.approx(1 / 3)


def test_missing_values_are_a_class_of_their_own_where_they_can_be():
    table = pa.table({"age": pa.array([1, 2, 3, None, None, None], pa.int64())})
    assert mondrian(table, "age", 3).table["age"].to_pylist() == ["[1, 3]"] * 3 + [None] * 3
    assert mondrian(table, "age", 4).table["age"].to_pylist() == ["*"] * 6


def test_a_long_list_of_categories_is_told_from_to():
    towns = [f"town {place:02d}" for place in range(20)]
    done = mondrian(pa.table({"town": towns}), "town", 10)
    assert set(done.table["town"].to_pylist()) == {"town 00 … town 09", "town 10 … town 19"}
    assert done.ncp == pytest.approx(9 / 19)


def test_rows_of_a_large_table_keep_their_order(tmp_path):
    rows = 1_500_000  # several threads read so many
    table = pa.table({"n": np.arange(rows)})
    pq.write_table(table, tmp_path / "large.parquet", row_group_size=122_880)
    with opened(table) as held:
        held._cursor.execute("SET threads = 8")
        try:
            for source in (table, str(tmp_path / "large.parquet")):
                assert np.array_equal(whole(source)[0]["n"].to_numpy(), np.arange(rows))
        finally:
            held._cursor.execute("RESET threads")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"quasi": "weight", "k": 2}, 'no column "weight"'),
        ({"quasi": [], "k": 2}, "at least one quasi-identifier"),
        ({"quasi": "age", "k": 0}, "k must be at least 1"),
        ({"quasi": "age", "k": 4}, "k is 4, but the table has only 3 rows"),
        ({"quasi": "age", "k": 2.0}, "k must be a whole number"),
        ({"quasi": "age", "k": 2, "l": 2}, "name it with sensitive="),
        ({"quasi": "age", "k": 2, "l": 3, "sensitive": "ill"}, 'Column "ill" has fewer than 3'),
        ({"quasi": "age", "k": 2, "t": -1, "sensitive": "ill"}, "t must not be negative"),
        ({"quasi": ["age", "ill"], "k": 2, "sensitive": "ill"}, "named twice"),
        ({"quasi": "list", "k": 2}, "have no order"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, said):
    table = pa.table({"age": [17171, 2, 3], "ill": ["secret", "no", "no"], "list": [[1], [2], [3]]})
    with pytest.raises(InvalidParameter, match=said) as refused:
        mondrian(table, **arguments)
    assert "17171" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_an_empty_table_is_refused():
    with pytest.raises(InvalidParameter, match="no rows"):
        mondrian(pa.table({"age": pa.array([], pa.int64())}), "age", 1)
