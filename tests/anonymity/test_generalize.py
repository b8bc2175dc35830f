"""Full-domain generalisation: the least loss of all, shown by trying all."""

import datetime
import math
import random

import pyarrow as pa
import pytest

from sfumato.anonymity import Hierarchy, generalize, measure, suggest
from sfumato.anonymity._lattice import Node, cheapest
from sfumato.errors import InvalidParameter
from slow_anonymity import distance, plain
from slow_mondrian import every_level, generalized

TOWNS = {"north": ["Aix", "Bern", 'Cá"n'], "south": {"coast": ["Delft"], "hills": ["Essen", "雪"]}}
WAYS = [
    (Hierarchy.intervals(2, 4, 8), [*range(-4, 12), None], pa.int64()),
    (
        Hierarchy.intervals("0.5", 1, start="0.25"),
        [0.0, -0.0, 0.3, 1.25, math.nan, math.inf, None],
        pa.float64(),
    ),
    (Hierarchy.prefixes(3), ["123", "124", "133", "223", "22", None], pa.string()),
    (Hierarchy.dates(), [datetime.date(2020, month, 3) for month in range(1, 13)] + [None], pa.date32()),
    (Hierarchy.tree(TOWNS), ["Aix", "Bern", 'Cá"n', "Delft", "Essen", "雪", None], pa.string()),
    (Hierarchy.flat(), ["x", "it's", None], pa.string()),
]


def random_problem(draw, rows, columns):
    ways, made = {}, {}
    for place in range(columns):
        hierarchy, values, kind = draw.choice(WAYS)
        some = draw.sample(values, draw.randint(1, len(values)))
        ways[f"c{place}"] = hierarchy
        made[f"c{place}"] = pa.array([draw.choice(some) for _ in range(rows)], kind)
    made["v"] = pa.array([draw.choice([1, 2, 5, None]) for _ in range(rows)], pa.int64())
    return ways, pa.table(made)


@pytest.mark.parametrize("seed", range(30))
def test_nothing_among_all_levels_loses_less(seed):
    draw = random.Random(seed)
    rows = draw.choice([1, 5, 20, 40])
    ways, table = random_problem(draw, rows, draw.randint(1, 3))
    everyone, columns = table.to_pylist(), [table[name].to_pylist() for name in ways]
    k = draw.randint(1, min(5, rows))
    l = draw.choice([None, 1, min(2, len({plain(row["v"]) for row in everyone}))])  # noqa: E741
    t = draw.choice([None, None, 0.2501])
    suppress = draw.choice([0, 0.1, 0.3])

    def admits(part):
        return len(part) >= k and len({plain(everyone[row]["v"]) for row in part}) >= (l or 1)

    best = None
    for levels in every_level(list(ways.values())):
        kept, gone, lost = generalized(list(ways.values()), columns, levels, admits)
        left = [everyone[row] for part in kept for row in part]
        close = t is None or all(distance([everyone[row] for row in part], left, "v") <= t for part in kept)
        if len(gone) <= math.floor(suppress * rows) and close:
            node = Node(round(float(lost), 12), len(gone), sum(levels), levels)
            best = node if best is None else min(best, node)
    if best is None:
        with pytest.raises(InvalidParameter, match="No combination of levels"):
            generalize(table, ways, k, l=l, t=t, sensitive="v", suppress=suppress)
        return
    done = generalize(table, ways, k, l=l, t=t, sensitive="v", suppress=suppress)
    assert done.ncp == pytest.approx(best.loss, abs=1e-9)
    assert done.suppressed == best.suppressed
    assert list(done.levels.values()) == [
        way.levels[level] for way, level in zip(ways.values(), best.levels, strict=True)
    ]
    if done.classes:
        found = measure(done.table, quasi=list(ways), sensitive="v")
        assert (found.k, found.classes) == (done.k, done.classes)
        assert found.k >= k
        assert found.l >= (l or 1)
        assert t is None or found.t <= t
    assert done.table.num_rows == rows - done.suppressed
    assert done.table.column_names == table.column_names


@pytest.mark.parametrize("seed", range(40))
def test_the_search_finds_what_trying_all_finds_and_looks_at_less(seed):
    draw = random.Random(seed)
    heights = [draw.randint(2, 6) for _ in range(draw.randint(1, 4))]
    costs = [sorted(draw.random() for _ in range(height)) for height in heights]
    corners = [tuple(draw.randrange(height) for height in heights) for _ in range(draw.randint(1, 4))]
    extra = {}

    def look(levels):
        if not any(all(a >= b for a, b in zip(levels, corner, strict=True)) for corner in corners):
            return None
        floor = sum(each[level] for each, level in zip(costs, levels, strict=True))
        return floor + extra.setdefault(levels, draw.choice([0.0, 0.1, 0.4])), 0

    found = cheapest(costs, look)
    every = [levels for levels in every_level([_Stub(height) for height in heights]) if look(levels)]
    best = min(Node(round(look(levels)[0], 12), 0, sum(levels), levels) for levels in every)
    assert found.node == best
    assert found.looked_at <= found.combinations


class _Stub:
    def __init__(self, height):
        self.levels = range(height)


def test_a_large_lattice_is_searched_with_few_looks():
    costs = [[(level / 7) ** (1 + place / 4) / 5 for level in range(8)] for place in range(5)]
    corners = [(7, 0, 3, 1, 0), (2, 5, 5, 2, 0), (4, 4, 1, 0, 6)]

    def look(levels):
        if not any(all(a >= b for a, b in zip(levels, corner, strict=True)) for corner in corners):
            return None
        return sum(each[level] for each, level in zip(costs, levels, strict=True)), 0

    found = cheapest(costs, look)
    assert found.combinations == 8**5
    assert found.node.levels == min(corners, key=look)
    assert found.looked_at < 400


def test_levels_that_are_refused_alone_do_not_hide_what_is_below():
    def look(levels):
        return (math.inf, 0) if levels == (1,) else (levels[0] / 10, 0)

    assert cheapest([[0.0, 0.1, 0.2]], look).node.levels == (0,)
    assert cheapest([[0.0, 0.1, 0.2]], lambda levels: None) is None


def test_the_limit_of_suppressed_rows_is_exact():
    table = pa.table({"q": ["a"] * 9 + ["b"]})
    assert generalize(table, ["q"], 2, suppress=0.1).suppressed == 1
    assert generalize(table, ["q"], 2, suppress=0.0999).suppressed == 0
    assert generalize(table, ["q"], 2, suppress="1/10").table["q"].to_pylist() == ["a"] * 9
    # A float means the decimal it shows: 0.29 of 100 rows are 29 rows, though the float is a little less.
    wide = pa.table({"q": ["a"] * 71 + [f"{n}" for n in range(29)]})
    assert generalize(wide, ["q"], 2, suppress=0.29).suppressed == 29


@pytest.mark.parametrize("way", [Hierarchy.flat(), Hierarchy.steps({"a": ["A"], "b": ["B"], "c": ["B"]})])
def test_closeness_is_to_the_rows_that_are_left(way):
    # Without "c" both classes are mixed as all that is left; with it, neither is, nor is anything above.
    table = pa.table({"q": list("aaaabbbbc"), "v": list("xxyyxxyyz")})
    done = generalize(table, {"q": way}, 2, t=0.05, sensitive="v", suppress="1/9")
    assert done.table["q"].to_pylist() == list("aaaabbbb")
    assert measure(done.table, quasi="q", sensitive="v").t == 0
    kept = generalize(table, {"q": way}, 2, t=0.05, sensitive="v", suppress=0)
    assert kept.table["q"].to_pylist() == ["*"] * 9


def test_a_column_that_stays_exact_keeps_its_type():
    table = pa.table({"age": [1, 1, 2, 2], "town": ["a", "b", "a", "b"], "x": [0.5, None, 1.5, 2.5]})
    done = generalize(table, {"age": Hierarchy.intervals(10), "town": None}, 2, suppress=0)
    assert done.table.schema.field("age").type == pa.int64()
    assert done.table["town"].to_pylist() == ["*"] * 4
    assert done.table["x"].to_pylist() == [0.5, None, 1.5, 2.5]
    assert done.lost == {"age": 0.0, "town": 1.0}


def test_hierarchies_are_made_for_numbers_days_and_zip_codes():
    table = pa.table(
        {
            "age": [17, 90],
            "born": [datetime.date(1950, 1, 1), datetime.date(2000, 1, 1)],
            "seen": [datetime.datetime(2020, 1, 1, 12), None],
            "Zip Code": [2139, 94110],
            "score": [0.0, 1.0],
            "rank": [1, 9],
            "code": ["0101", "0202"],
            "town": ["Aix", "Bern"],
            "one": [5, 5],
        }
    )
    made = suggest(table, table.column_names)
    assert made["age"] == Hierarchy.intervals(5, 10, 20, 40)
    assert made["born"] == Hierarchy.dates()
    assert made["seen"] == Hierarchy.dates(times=True)
    assert made["Zip Code"] == Hierarchy.prefixes(5)
    assert made["score"] == Hierarchy.intervals("0.1", "0.2", "0.4", "0.8")
    assert made["rank"] == Hierarchy.intervals(2, 4)
    assert made["code"] == Hierarchy.prefixes(4)
    assert made["town"] == made["one"] == Hierarchy.flat()
    assert made["Zip Code"].labels([2139, 94110], 3) == ["02***", "94***"]


def test_a_csv_file_gives_the_same_table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("zip,age,note\n02139,31,a\n02138,35,\n02139,62,b\n02141,68,c\n", encoding="utf-8")
    done = generalize(str(path), ["zip", "age"], 2, suppress=0)
    assert done.table["zip"].to_pylist() == ["021**"] * 4
    assert done.table["note"].to_pylist() == ["a", None, "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"hierarchies": ["weight"], "k": 2}, 'no column "weight"'),
        ({"hierarchies": {}, "k": 2}, "at least one quasi-identifier"),
        ({"hierarchies": {"town": {"x": ["Aix"]}}, "k": 2}, 'Column "town": The hierarchy does not cover'),
        (
            {"hierarchies": {"town": Hierarchy.intervals(5)}, "k": 2},
            'Column "town": Intervals are for numbers',
        ),
        ({"hierarchies": {"age": Hierarchy.dates()}, "k": 2}, 'Column "age": Months and years are of days'),
        (
            {"hierarchies": {"town": Hierarchy.prefixes(2)}, "k": 2},
            'Column "town": A hierarchy of 2 characters',
        ),
        ({"hierarchies": {"town": 5}, "k": 2}, 'Column "town" needs a Hierarchy'),
        ({"hierarchies": ["age"], "k": 2, "suppress": 1.5}, "suppress is a share"),
        ({"hierarchies": ["age"], "k": 9}, "k is 9, but the table has only 3 rows"),
        ({"hierarchies": ["age"], "k": 1, "t": 0, "sensitive": "age"}, "named twice"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, said):
    table = pa.table({"age": [17171, 2, 3], "town": ["Aix", "Secretville", "Bern"]})
    with pytest.raises(InvalidParameter, match=said) as refused:
        generalize(table, **arguments)
    assert "17171" not in str(refused.value)
    assert "Secretville" not in str(refused.value)


def test_labels_that_part_again_further_up_are_refused():
    class Odd(type(Hierarchy.flat())):
        @property
        def levels(self):
            return ("exact", "one", "two", "*")

        def inner(self, values, level):
            return ["same"] * len(values) if level == 1 else [str(value) for value in values]

    with pytest.raises(InvalidParameter, match='Column "age": Values that share a label at level 1'):
        generalize(pa.table({"age": [1, 2]}), {"age": Odd()}, 1)


def test_too_many_combinations_are_refused_before_any_is_tried():
    table = pa.table({f"c{place}": [0, 2**40] for place in range(12)})
    with pytest.raises(InvalidParameter, match="combinations of levels"):
        generalize(table, table.column_names, 2)
