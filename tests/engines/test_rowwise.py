"""What a row gives to an answer is decided by that row, whatever the file says about its columns as a whole.

Parquet statistics leave out NaN, and a footer may simply be wrong. An engine that believes it drops or keeps
the rows of some people because of the values of others. So answers over files are held to the same questions
over each row alone.
"""

from __future__ import annotations

import csv
import functools
import itertools
import math
import struct

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from sqlglot import exp, parse_one

import sfumato.engines.duckdb as engine_of_duckdb
from sfumato.errors import EngineFailed

NAN, INF = math.nan, math.inf
COLUMNS = {"x": "float", "n": "integer"}
CASES = {
    "NaN": [1.0] * 6 + [NAN] * 5,
    "NaN and one more": [1.0] * 6 + [NAN] * 5 + [10.0],
    "NaN alone": [NAN] * 4,
    "zeros": [-0.0] * 5 + [0.0, 1.0, -1.0],
    "negative zeros": [-0.0] * 5,
    "everything": [1.0, NAN, None, INF, -INF, -0.0, 0.0, 2.0, 10.0, 1e30, None, NAN, 3.0, 1.0, -7.5],
    "nulls": [None] * 5 + [1.0],
}
FILTERS = (
    "x > 5",
    "x >= 5",
    "x <> 1",
    "NOT x <= 5",
    "NOT x > 5",
    "x IN (0, 1, 2)",
    "NOT x IN (1, 2)",
    "x BETWEEN 2 AND 1e300",
    "x - 1 > 5",
    "x = x",
    "x = 0",
    "isnan(x)",
    "NOT isnan(x)",
    "isfinite(x)",
    "x IS NULL",
    "x < -1e308",
    "x > -1e-9 AND x < 0.5",
    "LEAST(x, 3) = 3",
    "n > 2",
    "NOT n IN (1, 2)",
)
CLAMP = (
    "CASE WHEN x BETWEEN 0 AND 4 THEN CAST(TRUNC(x * 16) AS BIGINT) "
    "WHEN x < 0 THEN 0 WHEN x > 4 AND NOT isnan(x) THEN 64 END"
)
WHOLE = "CASE WHEN n BETWEEN 0 AND 4 THEN n WHEN n < 0 THEN 0 WHEN n > 4 THEN 4 END"
SUMS = {
    f"COALESCE(SUM({CLAMP}), 0)": f"COALESCE({CLAMP}, 0)",
    f"COALESCE(SUM({WHOLE}), 0)": f"COALESCE({WHOLE}, 0)",
    "COUNT(x)": "CASE WHEN x IS NULL THEN 0 ELSE 1 END",
    "COUNT(*)": "1",
}
"""Sums, and what each is of one row."""
GROUPS = {
    "FLOOR(LEAST(x, 3))": "CAST(FLOOR(LEAST(x, 3)) AS DOUBLE)",
    "x > 5": "CAST(CAST(x > 5 AS INTEGER) AS DOUBLE)",  # PostgreSQL makes no double of a truth value
    "n": "CAST(n AS DOUBLE)",
    "n % 3": "CAST(n % 3 AS DOUBLE)",
    "CASE WHEN x > 5 THEN 1 WHEN isnan(x) THEN 2 END": (
        "CAST(CASE WHEN x > 5 THEN 1 WHEN isnan(x) THEN 2 END AS DOUBLE)"
    ),
}
"""What is grouped by, and the number that shows it."""
JOINED = """
    SELECT COUNT(*) FROM (SELECT {0} AS u FROM "{1}" WHERE NOT {0} IS NULL) AS r
    JOIN (SELECT {0} AS u, COUNT(*) AS w FROM "{1}" WHERE NOT {0} IS NULL GROUP BY u) AS s USING (u)
"""


_LACKING = {"isfinite(x)", "csv", "dataset", "duckdb", "feather"}
UNKNOWN = {"duckdb": set(), "datafusion": _LACKING, "postgres": _LACKING}
"""What an engine has no function for, or does not take as a source."""


def _table(values, kind=None):
    whole = [None if i % 5 == 4 else i % 4 for i in range(len(values))]
    return pa.table({"x": pa.array(values, kind or pa.float64()), "n": pa.array(whole, pa.int64())})


def _write_csv(folder, table):
    with open(folder / "t.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows([["" if v is None else repr(v) for v in row.values()] for row in table.to_pylist()])
    return folder / "t.csv"


def _write(folder, table, **options):
    pq.write_table(table, folder / "t.parquet", **options)
    return folder / "t.parquet"


def _by_duckdb(folder, table, command):
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("held", table)
        connection.execute(command.format(folder=folder))


def _database(folder, table):
    _by_duckdb(folder, table, "CREATE TABLE t AS SELECT * FROM held")
    return folder / "t.duckdb"


def _parquet_of_duckdb(folder, table):
    _by_duckdb(folder, table, "COPY held TO '{folder}/t.parquet' (FORMAT parquet)")
    return folder / "t.parquet"


def _feather(folder, table):
    feather.write_feather(table, str(folder / "t.feather"))
    return folder / "t.feather"


WRITERS = {
    "parquet": _write,
    "parquet in small groups": lambda d, t: _write(d, t, row_group_size=3, write_page_index=True),
    "parquet of floats": lambda d, t: _write(d, t.set_column(0, "x", t["x"].cast(pa.float32()))),
    "parquet by DuckDB": _parquet_of_duckdb,
    "dataset": lambda d, t: ds.dataset(_write(d, t, row_group_size=3)),
    "arrow": lambda _, t: t,
    "feather": _feather,
    "csv": _write_csv,
    "duckdb": _database,
}


@functools.cache
def _questions(engine):
    """The names of questions that give a number, the statement that asks them, and one about groups."""
    asked = {each: f"SELECT COUNT(*) FROM t WHERE {each}" for each in FILTERS if each not in UNKNOWN[engine]}
    asked |= {each: f"SELECT {each} FROM t" for each in SUMS}
    asked |= {f"{each} where": f"SELECT {each} FROM t WHERE x IS NOT NULL" for each in SUMS}
    numbers = [f"SELECT {i} AS i, ({each}) AS v" for i, each in enumerate(asked.values())]
    groups = [
        f"SELECT {i} AS i, {number} AS k, COUNT(*) AS n FROM t GROUP BY {each}"
        for i, (each, number) in enumerate(GROUPS.items())
    ]
    return list(asked), *(parse_one(" UNION ALL ".join(each), dialect="duckdb") for each in (numbers, groups))


@functools.cache
def _question_alone(engine):
    """The same questions about a table of one row, which nothing but that row decides: a column each."""
    names = _questions(engine)[0]
    columns = [f"CASE WHEN {each} THEN 1 ELSE 0 END" for each in names if each in FILTERS]
    columns += [*SUMS.values(), *(f"CASE WHEN x IS NULL THEN 0 ELSE {each} END" for each in SUMS.values())]
    columns += GROUPS.values()
    shown = ", ".join(f"{each} AS c{i}" for i, each in enumerate(columns))
    return parse_one(f"SELECT {shown} FROM t", dialect="duckdb")


def _alone(one, table):
    """The answers over an attached table of one row."""
    names = _questions(one.dialect.name)[0]
    ((*numbers,),) = _rows(one, _question_alone(one.dialect.name), table)
    made = dict(zip(names, numbers, strict=False))
    keys = zip(GROUPS, numbers[len(names) :], strict=True)
    return made | {(group, "NaN" if key != key else key): 1 for group, key in keys}


def _rows(one, statement, table):
    """The rows of a statement about another table."""
    moved = statement.copy()
    for each in list(moved.find_all(exp.Table)):
        each.set("this", exp.to_identifier(table, quoted=True))
    for each in list(moved.find_all(exp.IsNan)):  # which engines say differently
        each.replace(exp.paren(one.dialect.nan_test(each.this.copy())))
    return [tuple(row.values()) for row in one.fetch(moved).to_pylist()]


def _answers(one, table="t"):
    """All the questions over an attached table: counts by filter, clamped sums, groups."""
    names, numbers, groups = _questions(one.dialect.name)
    made = {names[i]: value for i, value in _rows(one, numbers, table)}
    return made | {
        (list(GROUPS)[i], "NaN" if key != key else key): count for i, key, count in _rows(one, groups, table)
    }


def _sum(answers):
    total = {}
    for each in answers:
        for key, value in each.items():
            total[key] = total.get(key, 0) + value
    return {key: value for key, value in total.items() if value}


TOLD = pa.table({"x": [1.5, 2.5, 3.25, 2.5] * 3, "n": pa.array([1, 2, 3, 2] * 3, pa.int64())})
LYING = pa.concat_tables([TOLD[:1], pa.table({"x": [1e6], "n": [10**6]}), TOLD[2:]]).combine_chunks()
"""What is in a file whose footer tells of other rows."""


def _single(table):
    """Each row as a table, with its name."""
    return [(f"row {row.to_pylist()}", row) for row in (table.slice(i, 1) for i in range(table.num_rows))]


@pytest.fixture(scope="module")
def one_by_one(make_shared):
    """The answers over each row of a table alone, added up; equal rows are asked about once."""
    one = make_shared()
    tables = [*map(_table, CASES.values()), LYING]
    for name, row in dict(itertools.chain(*map(_single, tables))).items():
        one.attach(name, row, COLUMNS)  # all of them before the first read, in one instance
    answers = functools.cache(lambda name: _alone(one, name))
    first = _single(LYING)[0][0]
    assert _sum([answers(first)]) == _sum([_answers(one, first)])
    return lambda table: _sum([answers(name) for name, _ in _single(table)])


def _pairs(column):
    """How many pairs of rows a join of the column with itself by groups gives: each row finds its group."""
    return sum(value is not None for value in column.to_pylist())


RARE = {"NaN and one more", "negative zeros"}  # a value more or less than in another case


@pytest.mark.parametrize(
    "case", [pytest.param(each, marks=[pytest.mark.stats] if each in RARE else []) for each in CASES]
)
def test_answers_add_up_over_rows(one, one_by_one, rows, tmp_path, case):
    table = _table(CASES[case])
    expected = one_by_one(table)
    taken = [name for name in WRITERS if name not in UNKNOWN[one.dialect.name]]
    for name in taken:
        folder = tmp_path / name.replace(" ", "_")
        folder.mkdir()
        one.attach(name, WRITERS[name](folder, table), COLUMNS)
    for name in taken:
        assert _sum([_answers(one, name)]) == expected, name
        _check_joins(one, rows, name, table)


def _check_joins(one, rows, name, table):
    for column, key in (("x", one.dialect.ordered.format("x")), ("n", "n")):
        assert rows(one, JOINED.format(key, name)) == [(_pairs(table[column]),)], name


def _lying(folder, *, groups):
    """A file whose footer says that x is in 1.5 … 3.25 and n in 1 … 3; some pages hold other values."""
    options = {"row_group_size": 4} if groups else {}
    path = _write(folder, TOLD, compression="none", use_dictionary=False, **options)
    content = path.read_bytes()
    start = content.find(struct.pack("<dd", 1.5, 2.5))
    content = content[: start + 8] + struct.pack("<d", 1e6) + content[start + 16 :]
    start = content.find(struct.pack("<qq", 1, 2))
    content = content[: start + 8] + struct.pack("<q", 10**6) + content[start + 16 :]
    path.write_bytes(content)
    held = pq.read_table(path)
    assert held.to_pydict() == LYING.to_pydict()
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).statistics.max == 3.25
    assert pq.ParquetFile(path).metadata.row_group(0).column(1).statistics.max == 3
    return path, held


@pytest.mark.parametrize("groups", [False, True])
def test_a_footer_that_lies_changes_nothing(one, one_by_one, rows, tmp_path, groups):
    path, held = _lying(tmp_path, groups=groups)
    expected = one_by_one(held)
    sources = {"file": path, "dataset": ds.dataset(path)}
    taken = [name for name in sources if name not in UNKNOWN[one.dialect.name]]
    for name in taken:
        one.attach(name, sources[name], COLUMNS)
    for name in taken:
        assert _sum([_answers(one, name)]) == expected
        _check_joins(one, rows, name, held)


def test_ids_beyond_the_statistics_keep_their_own_weight(one, rows, tmp_path):
    path, _ = _lying(tmp_path, groups=True)
    one.attach("t", path, COLUMNS)
    text = "SELECT u, w FROM (SELECT n AS u, COUNT(*) AS w FROM t GROUP BY u) AS s ORDER BY u"
    assert rows(one, text) == [(1, 3), (2, 5), (3, 3), (1_000_000, 1)]


def _differences(one, one_by_one, folder):
    """How many answers over a few files are not those over their rows."""
    wrong = 0
    table = _table(CASES["NaN"])
    (folder / "lying").mkdir()
    for path, held in ((_write(folder, table), table), _lying(folder / "lying", groups=True)):
        expected = one_by_one(held)
        one.attach("t", path, COLUMNS)
        try:
            wrong += _sum([_answers(one)]) != expected
        except EngineFailed:  # of all rows together, so that is a difference too
            wrong += 1
    return wrong


@pytest.mark.duckdb
@pytest.mark.parametrize("optimiser", [None, "statistics_propagation", "filter_pushdown"])
def test_an_optimiser_that_trusts_statistics_is_noticed(make, one_by_one, tmp_path, monkeypatch, optimiser):
    kept = engine_of_duckdb._OPTIMIZERS | ({optimiser} if optimiser else set())
    monkeypatch.setattr(engine_of_duckdb, "_OPTIMIZERS", kept)
    assert (_differences(make(), one_by_one, tmp_path) > 0) == (optimiser is not None)


@pytest.mark.duckdb
def test_all_but_the_listed_optimisers_are_off(one):
    one.attach("t", _table([1.0]), COLUMNS)
    with one._connection.cursor() as cursor:
        query = "SELECT value FROM duckdb_settings() WHERE name = ?"
        off = set(cursor.execute(query, ["disabled_optimizers"]).fetchall()[0][0].split(","))
        known = {row[0] for row in cursor.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
        assert cursor.execute(query, ["enable_external_file_cache"]).fetchall() == [("false",)]
        assert cursor.execute(query, ["parquet_metadata_cache"]).fetchall() == [("false",)]
    assert known - off == {
        "build_side_probe_side",
        "column_lifetime",
        "common_aggregate",
        "common_subexpressions",
        "duplicate_groups",
        "expression_rewriter",
        "in_clause",
        "reorder_filter",
        "unused_columns",
    }


@pytest.mark.duckdb
def test_no_filter_reaches_a_scan(one, tmp_path):
    one.attach("t", _write(tmp_path, _table(CASES["NaN"])), COLUMNS)
    text = "EXPLAIN SELECT COUNT(*) FROM t WHERE x > 5 AND n IN (1, 2, 3) AND NOT x IS NULL"
    with one._connection.cursor() as cursor:
        plan = cursor.execute(text).fetchall()[0][1].upper()
    scan = plan.index("READ_PARQUET")
    assert "FILTER" in plan[:scan]
    assert "FILTERS" not in plan[scan:]


@pytest.mark.duckdb
def test_a_replaced_file_is_read_as_it_is_now(one, rows, tmp_path):
    one.attach("t", _write(tmp_path, _table([1.0] * 9)), COLUMNS)
    assert rows(one, "SELECT COUNT(*) FROM t WHERE x > 5") == [(0,)]
    _write(tmp_path, _table([10.0] * 7), row_group_size=2)
    assert rows(one, "SELECT COUNT(*), SUM(x) FROM t WHERE x > 5") == [(7, 70.0)]


@pytest.mark.duckdb
def test_a_file_that_changes_during_a_read_gives_no_answer(one, tmp_path, monkeypatch):
    path = _write(tmp_path, _table([1.0] * 9))
    one.attach("t", path, COLUMNS)
    one.attach("other", _feather(tmp_path, _table([1.0])), COLUMNS)
    states = iter([((1,),), ((2,),)])
    monkeypatch.setattr("sfumato.engines._tables.stamps_of", lambda paths: next(states))
    with pytest.raises(EngineFailed, match="changed while it was read"):
        one.fetch(parse_one("SELECT COUNT(*) FROM t"))


@pytest.mark.duckdb
def test_a_dataset_whose_files_changed_is_not_read(one, tmp_path):
    path = _write(tmp_path, _table([1.0] * 9))
    one.attach("t", ds.dataset(path), COLUMNS)
    assert one.fetch(parse_one("SELECT COUNT(*) AS n FROM t")).to_pydict() == {"n": [9]}
    _write(tmp_path, _table([10.0] * 700))
    with pytest.raises(EngineFailed, match="since it was attached"):
        one.fetch(parse_one("SELECT SUM(x) FROM t"))
