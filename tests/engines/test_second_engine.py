"""Another engine, by the kit alone: DataFusion answers what DuckDB answers, or refuses before it is paid."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Sequence
from importlib.metadata import EntryPoint

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from datafusion_dialect import DATAFUSION
from datafusion_engine import DataFusion, context
from float_keys import compare_keys
from neighbours import examine, examine_form
from query_mutants import MUTANTS
from random_shapes import FORMS
from second_engine import DataFusionStore, Served
from sfumato.catalog import Catalog
from sfumato.cli.opening import open_session
from sfumato.engines import base
from sfumato.engines.dialect import DUCKDB, Dialect
from sfumato.errors import QueryRefused, SourceUnusable
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.tree import Expression
from sfumato.sql.write.expressions import lower_expression
from sfumato.testing import check_engine, exact
from sfumato.testing.calls import CALLS, SCHEMA, accepted, check, inside, nasty

REFUSED = sorted(frozenset().union(*DATAFUSION.refused.values()))
SUPPORTED = sorted(set(FUNCTIONS) - set(REFUSED))
TABLES = {"nasty": nasty(), "inside": inside()}
ALL = dataclasses.replace(DATAFUSION, common=None)


@pytest.fixture(scope="module")
def both():
    first, second = duckdb.connect(config={"threads": 1}), context()
    for name, rows in TABLES.items():
        first.register(name, rows)
        second.register_record_batches(name, [rows.to_batches()])
    return {DUCKDB.name: first.sql, DATAFUSION.name: second.sql}


def listed(expressions: Sequence[Expression], dialect: Dialect) -> str:
    """What one SELECT gives for all of them."""
    texts = [dialect.text(lower_expression(each, dialect)) for each in expressions]
    return ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))


def answers(both, shown: str, dialect: Dialect, table: str) -> list[pa.ChunkedArray]:
    return both[dialect.name](f"SELECT {shown} FROM {table}").to_arrow_table().columns


def values(column: pa.ChunkedArray) -> list[object]:
    return (column.cast(pa.int32()) if pa.types.is_date32(column.type) else column).to_pylist()


def same(first: object, second: object) -> bool:
    if isinstance(first, bool) or isinstance(second, bool) or None in (first, second):
        return first is second
    if isinstance(first, int | float) and isinstance(second, int | float):
        return first == second or (math.isnan(first) and math.isnan(second))
    return first == second


def differing(both, expressions: Sequence[Expression], dialect: Dialect) -> list[Expression]:
    """Those that are not the same in DuckDB and in this dialect; all of them if one makes it fail."""
    found, ours, theirs = set[int](), listed(expressions, DUCKDB), listed(expressions, dialect)
    for table in TABLES:
        mine = answers(both, ours, DUCKDB, table)
        try:
            its = answers(both, theirs, dialect, table)
        except Exception:  # DataFusion raises bare ones
            return list(expressions)
        for place, columns in enumerate(zip(mine, its, strict=True)):
            if not all(map(same, *map(values, columns))):
                found.add(place)
    return [expressions[place] for place in sorted(found)]


def has_form(expression: Expression) -> bool:
    try:
        lower_expression(expression, DATAFUSION)
    except QueryRefused:
        return False
    return True


def as_a_file(folder):
    numbers = itertools.count()

    def given(rows: pa.Table) -> str:
        path = folder / f"{next(numbers)}.parquet"
        pq.write_table(rows, path)
        return str(path)

    return given


def test_it_keeps_what_statements_rely_on():
    check_engine(DataFusion)


def test_it_does_so_with_files_and_several_threads(tmp_path):
    check_engine(lambda: DataFusion(threads=3), as_a_file(tmp_path))


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_refuses_would_not_be_the_same(both, name):
    assert any(differing(both, [each], ALL) for each, _ in accepted(name, 80))


@pytest.mark.parametrize("name", SUPPORTED)
def test_what_it_has_is_the_same(both, name):
    found = accepted(name, 25, only=has_form)
    assert differing(both, [each for each, _ in found], DATAFUSION) == []


@pytest.mark.parametrize("name", SUPPORTED)
def test_results_lie_within_the_facts(both, name):
    found = accepted(name, 10, seed=1, only=has_form)
    shown = listed([expression for expression, _ in found], DATAFUSION)
    columns = answers(both, shown, DATAFUSION, "inside")
    for column, (expression, facts) in zip(columns, found, strict=True):
        check(column, facts, expression)


def test_every_function_has_calls():
    assert set(CALLS) == set(FUNCTIONS)
    assert set(SCHEMA) == set(TABLES["nasty"].column_names)


def test_zeros_of_both_signs_are_one_key_and_so_are_all_nan():
    """Of a choice by digest other fractions have other texts there, so that nothing is chosen."""
    found = compare_keys(DataFusion(), "few", 60, chosen=False)
    assert found.different == []
    assert found.answered >= 25


def rows_of(seed: int) -> pa.Table:
    draw = random.Random(seed)
    odd = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 2.5, 7.25]
    cells = [
        (
            draw.choice([None, *range(30)]),
            draw.choice(["FR", "DE", "XX", None]),
            draw.choice([*odd, draw.uniform(-3, 12)]),
            draw.randrange(6),
        )
        for _ in range(500)
    ]
    types = (pa.int64(), pa.string(), pa.float64(), pa.int64())
    columns = [pa.array(values, kind) for values, kind in zip(zip(*cells, strict=True), types, strict=True)]
    return pa.table(columns, names=["user", "country", "x", "b"])


QUERIES = (
    "SELECT country, COUNT(*) AS n, SUM(x) AS s, AVG(b) AS a FROM t GROUP BY country",
    "SELECT COUNT(*) AS n, SUM(x * b) AS s FROM t WHERE x / b < 3 OR country IS NULL",
    "SELECT b, COUNT(DISTINCT user) AS n FROM t GROUP BY b",
    "SELECT country, VARIANCE(x) AS v FROM t WHERE ABS(x) > 0.5 GROUP BY country",
    "SELECT AVG(CASE WHEN b > 2 THEN x ELSE b END) AS a FROM t",
    "SELECT COUNT(*) AS n FROM (SELECT user, SUM(x) AS s FROM t GROUP BY user) AS w WHERE s > 3",
)

UNITS = (sf.PrivacyUnit.row(), sf.PrivacyUnit("user", max_groups=2, max_rows=4))


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("unit", UNITS, ids=["rows", "users"])
def test_questions_are_answered_alike_before_noise(text, unit):
    if unit.column is None and "user" in text:
        text = QUERIES[0]
    schema = {"country": sf.Enum("FR", "DE"), "x": sf.Float(0, 8), "b": sf.Int(0, 5)}
    table = sf.PrivateTable("t", source=rows_of(3), unit=unit, schema=schema)
    found = []
    for engine in (None, DataFusion()):
        with sf.Session(table, budget=sf.Budget(10), engine=engine) as session:
            found.append(exact(session.sql(text)))
    assert found[0] == found[1]


SERVED = """
[engine]
name = "served"
url = "{url}"
[datasets.d]
epsilon = 2
[tables.t]
source = "{source}"
unit = "row"
dataset = "d"
columns.b = {{ type = "int", lower = 0, upper = 5 }}
"""


def test_a_catalog_names_it_with_its_address_and_its_sources(tmp_path, monkeypatch):
    point = EntryPoint("served", "second_engine:Served", "sfumato.engines")
    monkeypatch.setattr(base, "entry_points", lambda group: [point] if group == point.group else [])
    (tmp_path / "server").mkdir()
    pq.write_table(rows_of(2), tmp_path / "server" / "visits.parquet")
    file = tmp_path / "sfumato.toml"
    file.write_text(SERVED.format(url=tmp_path / "server", source="folder://visits"))
    with open_session(Catalog.read(file, environ={}), "d") as session:
        assert isinstance(session._engine, Served)
        assert session.sql("SELECT SUM(b) AS s FROM t").release(epsilon=1).table.num_rows == 1
    file.write_text(SERVED.format(url=tmp_path / "server", source="elsewhere://visits"))
    with (
        pytest.raises(SourceUnusable, match="is remote"),
        open_session(Catalog.read(file, environ={}), "d"),
    ):
        pass


def test_a_function_without_a_form_is_refused_before_it_is_paid():
    table = sf.PrivateTable(
        "t", source=rows_of(1), unit=sf.PrivacyUnit("user", max_groups=2), schema={"x": sf.Float(0, 8)}
    )
    with sf.Session(table, budget=sf.Budget(10), engine=DataFusion()) as session:
        asked = session.sql("SELECT SUM(ROUND(x, 1)) AS s FROM t")
        with pytest.raises(QueryRefused, match="ROUND has no proven form in datafusion"):
            asked.release(epsilon=1)
        assert session.balance().spent == 0
        session.sql("SELECT SUM(x) AS s FROM t").release(epsilon=1)
        assert session.balance().spent == 1


def test_joins_windows_and_choices_run_there():
    rows, numbered = rows_of(5), "SELECT x, ROW_NUMBER() OVER (PARTITION BY user ORDER BY x) AS r FROM t"
    unit, schema = sf.PrivacyUnit("user", max_groups=1, max_rows=3), {"x": sf.Float(0, 8), "b": sf.Int(0, 5)}
    tables = [
        sf.PrivateTable(name, source=rows, unit=unit, schema=schema, dataset="d") for name in ("t", "s")
    ]
    names = sf.PublicTable("n", source=pa.table({"k": list(range(6)), "w": list("abcabc")}), key=["k"],
                           schema={"k": sf.Int(), "w": sf.Text()})  # fmt: skip
    with sf.Session(*tables, names, budget=sf.Budget(10**3), engine=DataFusion()) as session:
        for text, options in (
            ("SELECT n.w, COUNT(*) AS c FROM t JOIN n ON t.b = n.k GROUP BY n.w", {}),
            ("SELECT COUNT(*) AS c FROM t JOIN s ON t.user = s.user AND t.b = s.b", {}),
            ("SELECT b, COUNT(*) AS c FROM t GROUP BY b", {"bounding": "choose"}),
            (f"SELECT COUNT(*) AS c FROM ({numbered}) AS w WHERE r = 1", {}),
            ("SELECT COUNT(*) AS c FROM (SELECT x FROM t UNION ALL SELECT x FROM s) AS w", {}),
        ):  # fmt: skip
            assert session.sql(text).release(epsilon=1, **options).table.num_rows >= 1


def test_no_unit_moves_a_query_further_than_claimed():
    found = examine("second", 60, plain=True, store=DataFusionStore)
    assert found.broken == []
    assert found.accepted >= 20
    assert found.reached >= 10


@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"auto bounds"}))
def test_no_unit_moves_a_question_of_any_form_further_than_claimed(form):
    found = examine_form(form, "second", 5, store=DataFusionStore)
    assert found.broken == []
    assert found.accepted >= 2


@pytest.mark.stats
@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"auto bounds"}))
def test_no_unit_moves_many_questions_of_any_form_further_than_claimed(form):
    found = examine_form(form, "many", 20, store=DataFusionStore)
    assert found.broken == []
    assert found.accepted >= 5


def test_bounds_that_are_bought_need_a_logarithm_that_it_has_not():
    found = examine_form("auto bounds", "second", 8, store=DataFusionStore)
    assert (found.broken, found.accepted) == ([], 0)


@pytest.mark.parametrize("name", ["no upper clamp", "rows not weighed", "claim of one row"])
def test_planted_bugs_are_found_there_too(name):
    with MUTANTS[name].planted():
        found = examine("second", 120, plain=True, stop=True, store=DataFusionStore)
    assert any(MUTANTS[name].by in each for each in found.broken)
