"""Rows for a fit: what a text asks for, every type from every source as integers, and whose rows differ."""

from __future__ import annotations

import datetime
import math
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from datafusion_engine import DataFusion
from sfumato.engines import DuckDB
from sfumato.errors import AccessDenied, InvalidParameter, QueryRefused, SfumatoError
from sfumato.ledger import Ledger
from sfumato.loss import PureLoss
from sfumato.session import row_ways as module
from sfumato.session.rows_wanted import Coded, Scaled, rows_wanted
from sfumato.sql.write import rows as written

DAY = datetime.date
SCHEMA = {
    "whole": sf.Int(-5, 90),
    "real": sf.Float(-10, 10),
    "money": sf.Float(0, 100),
    "truth": sf.Bool(),
    "day": sf.Date("2020-01-01", "2024-12-31"),
    "word": sf.Enum("a", "ß", "long one"),
    "grade": sf.Enum(1, 2, 5),
    "free": sf.Text(),
}
VALUES = {
    "whole": [0, 3, -5, 90, -6, 91, 2**53, -(2**53), None],
    "real": [0.0, -0.0, 0.1, -9.99, 10.0, 10.5, math.nan, math.inf, -math.inf, 1e308, 5e-324, None],
    "money": [*map(Decimal, ("0.00", "12.34", "99.99", "100.00", "-1.00", "12345678.99")), None],
    "truth": [True, False, None],
    "day": [DAY(2020, 1, 1), DAY(2024, 12, 31), DAY(1969, 7, 20), DAY(9999, 12, 31), DAY(2022, 6, 1), None],
    "word": ["a", "ß", "long one", "unlisted", "A", "", None],
    "grade": [1, 2, 5, 3, -1, None],
    "free": ["x", "y", "", "x ", None],
}
TYPES = {
    "whole": pa.int64(),
    "real": pa.float64(),
    "money": pa.decimal128(12, 2),
    "truth": pa.bool_(),
    "day": pa.date32(),
    "word": pa.string(),
    "grade": pa.int32(),
    "free": pa.string(),
}
WAYS = {
    "row": Scaled(0, 1000, 1000),
    "whole": Scaled(-5, 90, 2**14),
    "real": Scaled(-10, 10, 2**15),
    "money": Scaled(0.1, 99.7, 2**14),
    "truth": Coded([False, True]),
    "day": Scaled(18262, 20088, 2**14),
    "word": Coded(["a", "ß", "long one"]),
    "grade": Coded([5, 2]),
    "free": Coded(["y", "x"]),
}


@cache
def columns(seed=1, size=60):
    draws = random.Random(seed)
    return {name: [draws.choice(values) for _ in range(size)] for name, values in VALUES.items()}


def arrow(given, engine=DuckDB):
    size = len(next(iter(given.values())))
    made = {"row": pa.array(range(size), pa.int64())}
    made |= {name: pa.array(values, TYPES[name]) for name, values in given.items()}
    if engine is DataFusion:  # which takes no decimals
        made["money"] = made["money"].cast(pa.float64())
    return pa.table(made)


def as_parquet(table, folder):
    pq.write_table(table, folder / "rows.parquet", row_group_size=7)
    return str(folder / "rows.parquet")


def as_csv(table, folder):
    pa.csv.write_csv(table, folder / "rows.csv")
    return str(folder / "rows.csv")


SOURCES = {
    "arrow": lambda table, _: table,
    "pieces": lambda table, _: pa.concat_tables([table.slice(at, 7) for at in range(0, table.num_rows, 7)]),
    "parquet": as_parquet,
    "csv": as_csv,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
}


def people(source, unit=None, **more):
    schema = {"row": sf.Int(0, 1000), **SCHEMA}
    return sf.PrivateTable("people", source=source, unit=unit or sf.PrivacyUnit.row(**more), schema=schema)


def read(session, text="people", ways=None):
    wanted = rows_wanted(session, text)
    taken = wanted.taking(WAYS if ways is None else ways)
    taken.check()
    right = session.ledger.debit("people", PureLoss(1), fingerprint="fit", reads=(taken.fingerprint,))
    return taken.read(right)


def lists(found):
    """The columns of what was read, None where nothing is."""
    return [
        [None if gone else value for value, gone in zip(column.tolist(), missing.tolist(), strict=True)]
        for column, missing in zip(found.columns, found.missing, strict=True)
    ]


def meant(value, way):
    """The integer that a value is to be read as, worked out by itself."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(way, Coded):
        return way.values.index(value) if value in way.values else None
    number = float((value - DAY(1970, 1, 1)).days if isinstance(value, DAY) else value)
    lower, upper = np.float64(way.lower), np.float64(way.upper)
    held = min(max(number, lower), upper)
    return min(int(np.floor((held - lower) * (way.steps / (upper - lower)) + 0.5)), way.steps)


def check_values(source, engine=None):
    given = columns()
    with sf.Session(people(source), budget=sf.Budget(100), engine=engine) as session:
        found = read(session)
    assert found.units is None
    rows, *others = lists(found)
    assert sorted(rows) == list(range(60))
    for (name, way), values in zip(list(WAYS.items())[1:], others, strict=True):
        expected = {row: meant(given[name][row], way) for row in rows}
        assert dict(zip(rows, values, strict=True)) == expected, name


@pytest.mark.parametrize("kind", SOURCES)
def test_every_type_from_every_source_is_read_as_what_it_means(kind, tmp_path):
    check_values(SOURCES[kind](arrow(columns()), tmp_path))


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_a_second_engine_reads_the_same(kind, tmp_path):
    check_values(SOURCES[kind](arrow(columns(), DataFusion), tmp_path), DataFusion())


def test_rounding_down_does_not_pass(monkeypatch):
    literal = module.literal
    monkeypatch.setattr(module, "literal", lambda value: literal(0.0 if value == 0.5 else value))
    with pytest.raises(AssertionError):
        check_values(arrow(columns()))


@pytest.mark.parametrize("engine", [DuckDB, DataFusion])
@pytest.mark.parametrize("unit", [None, sf.PrivacyUnit("row", max_rows=2)])
def test_an_empty_table_gives_no_rows(unit, engine):
    empty = arrow({name: [] for name in VALUES}, engine)
    with sf.Session(people(empty, unit), budget=sf.Budget(100), engine=engine()) as session:
        found = read(session, ways={name: WAYS[name] for name in VALUES})
    assert found.size == 0
    assert {column.dtype for column in found.columns} == {np.dtype(np.int16), np.dtype(np.int32)}
    assert (found.units is None) == (unit is None)


# ── whose rows


def owned(draws, many=7):
    """Rows of people, some of whom have many, with ids that only look alike."""
    ids = [0.0, -0.0, 1.0, 2.5, -2.5, 1e300, math.inf][:many]
    rows = []
    for who in ids:
        rows += [
            (who, draws.choice([None, 1, 1, 2, 50]), draws.choice([None, math.nan, 1.0, 7.5, 99.0]))
            for _ in range(draws.randint(1, 6))
        ]
    return rows


def pieces(rows, ledger, engine, max_rows, adjacency="add-remove"):
    """What was read of each unit."""
    kinds = {"id": pa.float64(), "whole": pa.int64(), "real": pa.float64()}
    held = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds.values())]
    table = pa.table(held, list(kinds))
    unit = sf.PrivacyUnit("id", max_rows=max_rows, adjacency=adjacency)
    schema = {name: SCHEMA[name] for name in ("whole", "real")}
    made = sf.PrivateTable("people", source=table, unit=unit, schema=schema)
    ways = {"whole": WAYS["whole"], "real": WAYS["real"]}
    with sf.Session(made, budget=sf.Budget(100), ledger=ledger, engine=engine()) as session:
        found = read(session, "SELECT whole, real FROM people WHERE whole IS NULL OR whole < 40", ways)
    whose = {}
    for number, *values in zip(found.units.tolist(), *lists(found), strict=True):
        whose.setdefault(number, []).append(tuple(values))
    assert sorted(whose) == list(range(len(whose)))
    return Counter(frozenset(Counter(each).items()) for each in whose.values())


def check_neighbours(engine, seed):
    draws = random.Random(seed)
    max_rows = draws.choice([1, 2, 3])
    rows = owned(draws)
    with Ledger.open(None) as ledger:  # one ledger: neighbours share the salt
        everybody = pieces(rows, ledger, engine, max_rows)
        for unit in everybody:
            assert sum(many for _, many in unit) <= max_rows
        for out in {row[0] for row in rows}:
            others = pieces([row for row in rows if row[0] != out], ledger, engine, max_rows)
            assert others <= everybody
            assert (everybody - others).total() <= 1


@pytest.mark.parametrize("engine", [DuckDB, DataFusion])
def test_neighbours_differ_in_one_units_rows(engine):
    for seed in range(2):
        check_neighbours(engine, seed)


def test_units_that_are_numbered_by_their_rows_do_not_pass(monkeypatch):
    real = written.exp

    class Careless:
        def __getattr__(self, name):
            return getattr(real, "RowNumber" if name == "DenseRank" else name)

    monkeypatch.setattr(written, "exp", Careless())
    with pytest.raises(AssertionError):
        check_neighbours(DuckDB, 0)


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_what_a_caller_must_know_of_units_is_told(adjacency):
    unit = sf.PrivacyUnit("row", max_rows=4, adjacency=adjacency)
    with sf.Session(people(arrow(columns()), unit), budget=sf.Budget(1)) as session:
        wanted = rows_wanted(session, "people")
        assert (wanted.exchange, wanted.has_units, wanted.max_rows) == (adjacency == "exchange", True, 4)
        each = rows_wanted(session, "SELECT row, COUNT(*) AS n, MAX(real) AS most FROM people GROUP BY row")
        assert (each.exchange, each.has_units, each.max_rows) == (adjacency == "exchange", False, 1)
        assert [column.name for column in each.columns] == ["n", "most"]
    with sf.Session(people(arrow(columns()), adjacency=adjacency), budget=sf.Budget(1)) as session:
        wanted = rows_wanted(session, "people")
        assert (wanted.exchange, wanted.has_units, wanted.max_rows) == (adjacency == "exchange", False, 1)


# ── what is asked


@pytest.fixture(scope="module")
def session():
    cities = sf.PublicTable(
        "cities", source=pa.table({"name": ["x", "y"], "size": [10, 20]}), key="name",
        schema={"name": sf.Enum("x", "y"), "size": sf.Int(0, 100)},
    )  # fmt: skip
    unit = sf.PrivacyUnit("row", max_rows=2)
    with sf.Session(people(arrow(columns()), unit), cities, budget=sf.Budget(1000)) as made:
        yield made


def test_what_is_public_of_columns_is_known(session):
    wanted = rows_wanted(session, "SELECT * FROM people WHERE whole > 20 AND word <> 'a'")
    told = {
        column.name: (column.kind, column.lower, column.upper, column.values) for column in wanted.columns
    }
    days = [Fraction((DAY(*ends) - DAY(1970, 1, 1)).days) for ends in ((2020, 1, 1), (2024, 12, 31))]
    assert told == {
        "whole": ("number", 21, 90, None),
        "real": ("number", -10, 10, None),
        "money": ("number", 0, 100, None),
        "truth": ("category", None, None, (False, True)),
        "day": ("number", *days, None),
        "word": ("category", None, None, ("ß", "long one")),
        "grade": ("category", None, None, (1, 2, 5)),
        "free": ("category", None, None, None),
    }
    assert (wanted.table, wanted.dataset) == ("people", "people")


SAME = [
    ("people", "SELECT * FROM people"),
    ("SELECT whole, word FROM people", "select p.whole, p.word as word from people p"),
    ("SELECT whole FROM people WHERE real > 1", "SELECT whole FROM (SELECT * FROM people WHERE real > 1)"),
    (
        "SELECT whole FROM people WHERE real > 1 AND truth",
        "SELECT whole FROM people WHERE truth AND real > 1",
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_rows_have_one_fingerprint(session, one, other):
    prints = set()
    for text in (one, other):
        wanted = rows_wanted(session, text)
        prints.add(wanted.taking({column.name: WAYS[column.name] for column in wanted.columns}).fingerprint)
    assert len(prints) == 1


def test_whatever_the_rows_depend_on_is_in_the_fingerprint(session):
    text = "SELECT whole, word FROM people WHERE real > 1"
    ways = {"whole": Scaled(0, 1, 8), "word": Coded(["a"])}
    others = [
        ("SELECT whole, word FROM people WHERE real > 2", ways),
        ("SELECT whole, word FROM people", ways),
        ("SELECT whole + 1 AS whole, word FROM people WHERE real > 1", ways),
        *(
            (text, ways | more)
            for more in (
                {"whole": Scaled(0, 2, 8)}, {"whole": Scaled(-1, 1, 8)}, {"whole": Scaled(0, 1, 9)},
                {"whole": Coded([1])}, {"word": Coded(["ß"])}, {"word": Coded(["a", "ß"])},
            )
        ),
        (text, {"word": Coded(["a"])}),
        (text, dict(reversed(ways.items()))),
    ]  # fmt: skip
    prints = [rows_wanted(session, each).taking(way).fingerprint for each, way in [(text, ways), *others]]
    assert len(set(prints)) == len(prints)
    table = session.tables["people"]
    for changed in (
        sf.PrivateTable("people", source=table.source, unit=table.unit, schema=table.schema, version="2"),
        people(table.source, sf.PrivacyUnit("row", max_rows=3)),
        people(table.source),
    ):
        with sf.Session(changed, budget=sf.Budget(1)) as other:
            assert rows_wanted(other, text).taking(ways).fingerprint not in prints


def test_expressions_joins_windows_and_rows_of_units_are_read(session):
    texts = {
        "SELECT real * 2 AS twice, truth FROM people WHERE whole > 1": ["twice", "truth"],
        "SELECT p.whole, c.size FROM people p JOIN cities c ON p.free = c.name": ["whole", "size"],
        "SELECT a.whole, b.real FROM people a JOIN people b ON a.row = b.row": ["whole", "real"],
        "SELECT whole, LAG(real) OVER (PARTITION BY row ORDER BY day) AS before FROM people": [
            "whole",
            "before",
        ],
        "SELECT row, AVG(real) AS m, COUNT(*) AS n FROM people GROUP BY row HAVING COUNT(*) > 0": ["m", "n"],
        "WITH old AS (SELECT * FROM people WHERE whole > 5) SELECT word FROM old": ["word"],
    }
    for text, names in texts.items():
        wanted = rows_wanted(session, text)
        assert [column.name for column in wanted.columns] == names
        ways = {
            name: Scaled(0, 9, 9)
            if wanted.column(name).kind == "number"
            else Coded(wanted.column(name).values)
            for name in names
        }
        assert read(session, text, ways).size >= 0


def test_selections_ask_for_the_same_rows(session):
    selection = session.table("people").filter(sf.col("whole") > 20).with_columns(twice=sf.col("real") * 2)
    names = ", ".join(VALUES)
    text = f"SELECT {names}, real * 2 AS twice FROM people WHERE whole > 20"
    one, other = rows_wanted(session, selection), rows_wanted(session, text)
    assert one.columns == other.columns
    ways = {"twice": Scaled(-20, 20, 64), "word": WAYS["word"]}
    assert one.taking(ways).fingerprint == other.taking(ways).fingerprint
    with pytest.raises(QueryRefused, match="grouped"):
        rows_wanted(session, session.table("people").group_by("word"))


REFUSED = {
    "SELECT whole FROM people LIMIT 5": "LIMIT is not for",
    "SELECT whole FROM people LIMIT 5 OFFSET 2": "is not for",
    "SELECT whole FROM people ORDER BY whole": "ORDER BY is not for",
    "SELECT AVG(whole) AS m FROM people": "reads single rows",
    "SELECT word, AVG(whole) AS m FROM people GROUP BY word": "over several people",
    "SELECT DISTINCT word FROM people": "DISTINCT",
    "SELECT row FROM people": "whose the rows are",
    "SELECT nothing FROM people": "no declared column",
    "SELECT whole FROM nobody": "no table",
    "SELECT size FROM cities": "public",
    "SELECT a.whole FROM people a, people b": "different people",
    "SELECT COUNT(*) OVER () AS n FROM people": "PARTITION BY",
    "SELECT whole FROM people WHERE whole": "condition",
    "SELECT RANDOM() AS r FROM people": "RANDOM",
    "EXPLAIN SELECT whole FROM people": "no price",
    "INSERT INTO people VALUES (1)": "nothing is written",
    "SELECT whole FROM people; SELECT real FROM people": "several statements",
    "SELECT whole FROM people WHERE real > (SELECT AVG(real) FROM people)": "subquery inside",
    "": "no query",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_rows_of_single_units_is_refused_and_nothing_is_spent(session, text):
    before = session.balance().spent
    with pytest.raises(QueryRefused, match=REFUSED[text]):
        rows_wanted(session, text)
    assert session.balance().spent == before


WRONG = [
    ({}, InvalidParameter), ({"nothing": Scaled(0, 1, 2)}, QueryRefused),
    *(({"whole": Scaled(lower, upper, steps)}, InvalidParameter)
      for lower, upper, steps in ((1, 0, 2), (0, math.inf, 2), (math.nan, 1, 2), (-1e308, 1e308, 2),
                                  (0, 1, 0), (0, 1, 2**32), (0, 1, 1.5))),
    ({"word": Scaled(0, 1, 2)}, QueryRefused), ({"word": Coded([])}, QueryRefused),
    ({"word": Coded([1])}, InvalidParameter), ({"word": Coded(["a", "a"])}, InvalidParameter),
    ({"word": Coded([None])}, InvalidParameter), ({"word": Coded(list(map(str, range(1001))))}, QueryRefused),
    ({"whole": Coded(["1"])}, InvalidParameter), ({"whole": Coded([1.5])}, InvalidParameter),
    ({"whole": Coded([1, 1.0])}, InvalidParameter), ({"real": Coded([math.nan])}, InvalidParameter),
    ({"truth": Coded([2])}, InvalidParameter), ({"day": Coded(["no day"])}, InvalidParameter),
    ({"whole": Coded([True])}, InvalidParameter),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_wrong_bounds_and_categories_are_refused_before_anything_is_paid(session, place):
    ways, error = WRONG[place]
    wanted, before = rows_wanted(session, "people"), session.balance().spent
    with pytest.raises(error):
        wanted.taking(ways).check()
    assert session.balance().spent == before


def test_categories_may_be_written_as_other_types_of_the_same_values(session):
    wanted = rows_wanted(session, "people")
    for name, one, other in (
        ("truth", [False, True], [0, 1.0]),
        ("whole", [1, 2], [np.int64(1), 2.0]),
        ("day", [DAY(2020, 1, 1)], ["2020-01-01"]),
        ("day", [DAY(2020, 1, 1)], [datetime.datetime(2020, 1, 1, 5)]),
        ("word", ["a"], [np.str_("a")]),
    ):
        prints = {wanted.taking({name: Coded(values)}).fingerprint for values in (one, other)}
        assert len(prints) == 1


def test_bounds_without_width_and_too_much_at_once(session):
    found = read(session, "SELECT real FROM people", {"real": Scaled(3, 3, 2**14)})
    given = [value for value in columns()["real"] if value is not None and not math.isnan(value)]
    assert [value for value in lists(found)[0] if value is not None] == [0] * len(given)
    wanted = rows_wanted(session, "people")
    many = {name: Coded([f"v{i}" for i in range(900)]) for name in ("word", "free")}
    wanted.taking(many).check()
    text = "SELECT " + ", ".join(f"free AS f{i}" for i in range(9)) + " FROM people"
    large = rows_wanted(session, text).taking({f"f{i}": many["free"] for i in range(9)})
    with pytest.raises(QueryRefused, match="too large"):
        large.check()


def test_only_a_right_to_these_rows_opens_them(session):
    wanted = rows_wanted(session, "people")
    one, other = (wanted.taking({"whole": Scaled(0, upper, 8)}) for upper in (1, 2))
    right = session.ledger.debit("people", PureLoss(1), fingerprint="x", reads=(one.fingerprint,))
    with pytest.raises(AccessDenied):
        other.read(right)
    one.read(right)
    with pytest.raises(AccessDenied):
        one.read(right)
    for wrong in (5, None, [wanted]):
        with pytest.raises(SfumatoError):
            rows_wanted(session, wrong)


def test_days_are_bounds():
    assert module.days("2020-01-01") == module.days(DAY(2020, 1, 1)) == 18262
    assert module.days(5) == 5
    assert module.days("five") == "five"
    assert module.days(pd.Timestamp("2020-01-01")) == 18262
