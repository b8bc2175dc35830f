"""Prepared tables: ranks follow from a unit's own rows, files are whole or absent, claims hold on them."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import stat
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import parse_one

import sfumato as sf
from sfumato.engines import _preparing, ranking, running
from sfumato.engines import prepare as preparing
from sfumato.engines.base import RANK_COLUMN, UNIT_COLUMN
from sfumato.engines.dialect import DUCKDB
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepare import prepare
from sfumato.engines.prepared import METADATA
from sfumato.errors import Cancelled, InvalidParameter, SourceUnusable
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.questions.bounding.prepared import Prepared
from sfumato.plan.questions.sensitivity import sensitivities
from sfumato.session.query import Query
from sfumato.session.reading import align
from sfumato.sql.read.parse import parse
from sfumato.sql.write.lower import lower
from sfumato.testing.statistics import assert_discrete, discrete_finding

pytestmark = pytest.mark.duckdb  # prepared files

SCHEMA = {
    "country": sf.Enum("FR", "DE", "IT"),
    "amount": sf.Float(0, 10),
    "age": sf.Int(0, 99),
    "day": sf.Date(),
}
KINDS = {name: kind.kind for name, kind in SCHEMA.items()}
UNIT = sf.PrivacyUnit("user", max_groups=2, max_rows=3)
SALT = b"a salt of tests"
SUBSETS = dict.fromkeys(itertools.combinations(range(6), 3), 1 / 20)
CANARY = "canary-4711"


def table_of(source, unit=UNIT, schema=None):
    return sf.PrivateTable("visits", source=source, unit=unit, schema=SCHEMA if schema is None else schema)


def some_rows(seed=1, users=30):
    """Rows of users with 1 to 9 of them, values that tie and values that no order tells apart included."""
    draw = random.Random(seed)
    return [
        {
            "user": user,
            "country": draw.choice(["FR", "DE", "IT", "XX", None]),
            "amount": draw.choice([0.0, -0.0, math.nan, -math.nan, 3.25, 1e300, None]),
            "age": draw.choice([1, 2, None]),
            "day": None,
        }
        for user in range(users)
        for _ in range(draw.randint(1, 9))
    ]


def frame(rows, unit=None):
    types = {"user": unit or pa.int64(), "country": pa.string(), "amount": pa.float64(), "age": pa.int64()}
    types["day"] = pa.date32()
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


def ranks(path, kinds=None):
    """What each unit has, with the ranks, as text: NaN would differ from itself."""
    kinds = KINDS if kinds is None else kinds
    with DuckDB(threads=2) as engine:
        engine.attach("t", path, kinds, unit="user")
        found = engine.fetch(parse_one("SELECT * FROM t", dialect="duckdb")).to_pylist()
    units = defaultdict(list)
    for row in found:
        units[row[UNIT_COLUMN]].append((row[RANK_COLUMN], *(repr(row[name]) for name in kinds)))
    return {unit: sorted(rows) for unit, rows in units.items()}


def prepared(tmp_path, rows, name="p", **options):
    options = {"salt": SALT, **options}
    return ranks(prepare(table_of(frame(rows)), tmp_path / f"{name}.duckdb", **options).path)


def test_rows_are_ranked_from_one_on_and_nothing_else_changes(tmp_path):
    rows = some_rows()
    found = prepared(tmp_path, rows)
    assert sum(map(len, found.values())) == len(rows)
    for unit, lines in found.items():
        assert [line[0] for line in lines] == list(range(1, len(lines) + 1))
        mine = [row for row in rows if row["user"] == unit]
        same = {"-0.0": "0.0", "-nan": "nan"}
        shown = [[same.get(text := repr(row[name]), text) for name in KINDS] for row in mine]
        assert sorted(shown) == sorted(list(line[1:]) for line in lines)


def test_ranks_follow_from_the_rows_of_the_unit_alone(tmp_path):
    rows = some_rows()
    whole = prepared(tmp_path, rows)
    for removed in (0, 7, 29):
        less = prepared(tmp_path, [row for row in rows if row["user"] != removed], f"without {removed}")
        assert less == {unit: lines for unit, lines in whole.items() if unit != removed}
    for number, threads in enumerate((1, 2, 4)):
        shuffled = list(rows)
        random.Random(number).shuffle(shuffled)
        assert prepared(tmp_path, shuffled, f"shuffled {number}", threads=threads) == whole
    assert prepared(tmp_path, rows, "another salt", salt=b"another") != whole


def test_a_unit_keeps_its_ranks_whatever_comes_before_it(tmp_path):
    # A dense code, such as the place of the unit among all, would shift when a unit is removed.
    rows = [{**row, "user": 2} for row in some_rows(users=9)]
    alone = prepared(tmp_path, rows, "alone")
    many = prepared(tmp_path, [*some_rows(seed=5, users=2), *rows], "many")
    assert alone[2] == many[2]


def _first_three(expression: str, salts: int) -> list[tuple[int, ...]]:
    """For each unit and salt which of six rows have ranks 1, 2, 3."""
    text = f"""
        SELECT u, s, list(x ORDER BY x) FROM (
            SELECT "{UNIT_COLUMN}" AS u, s, x, {expression} AS r
            FROM (SELECT unnest(range(200)) AS "{UNIT_COLUMN}"), (SELECT unnest(range({salts})) AS s),
                 (SELECT unnest(range(6)) AS x)
        ) WHERE r <= 3 GROUP BY u, s
    """
    return [tuple(row[2]) for row in duckdb.sql(text).fetchall()]


def _of_salts(expression: str) -> str:
    return expression.replace("PARTITION BY", "PARTITION BY s,")


def test_which_rows_come_first_is_uniform_over_subsets():
    assert_discrete(_first_three(_of_salts(ranking.rank(['"x"'], "s", DUCKDB.digest)), 100), SUBSETS)


def test_a_hash_that_is_taken_once_is_not_uniform():
    once = _of_salts(ranking.rank(['"x"'], "s", DUCKDB.digest)).replace("hash(hash(", "(hash(")
    assert discrete_finding(_first_three(once, 100), SUBSETS).p < 1e-9


def test_which_rows_of_a_file_come_first_is_uniform_over_subsets(tmp_path):
    rows = pa.table({"user": [u for u in range(3000) for _ in range(6)], "age": [*range(6)] * 3000})
    table = table_of(rows, schema={"age": sf.Int(0, 9)})
    for number in range(3):
        path = prepare(table, tmp_path / f"{number}.duckdb", salt=bytes([number])).path
        found = ranks(path, {"age": "integer"}).values()
        assert_discrete([tuple(sorted(int(line[1]) for line in unit[:3])) for unit in found], SUBSETS)


IDS = {
    "text": (["a", "A", "a ", "é", "e\u0301"], pa.string()),
    "floats": ([0.5, 1e300, -1.0, math.inf, 2.0], pa.float64()),
    "large integers": ([2**63 - 1, -(2**63), 0, 1, 2**53 + 1], pa.int64()),
    "decimals": (
        [Decimal("0.1"), Decimal("0.10001"), Decimal(1), Decimal(2), Decimal(3)],
        pa.decimal128(20, 5),
    ),
    "bytes": ([b"a", b"\0", b"", b"b", b"\xff"], pa.binary()),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_units_are_handed_on_unchanged(tmp_path, kind):
    values, of = IDS[kind]
    rows = [{**row, "user": values[i % 5]} for i, row in enumerate(some_rows())]
    found = ranks(prepare(table_of(frame(rows, of)), tmp_path / "p.duckdb").path)
    assert set(found) == set(values)


def test_rows_without_a_unit_are_left_out(tmp_path):
    rows = [{**row, "user": None if i % 3 == 0 else row["user"]} for i, row in enumerate(some_rows())]
    assert sum(map(len, prepared(tmp_path, rows).values())) == sum(row["user"] is not None for row in rows)


def test_a_declared_unit_column_is_there_beside_the_ids(tmp_path):
    schema = {**SCHEMA, "user": sf.Text()}
    path = prepare(table_of(frame(some_rows()), schema=schema), tmp_path / "p.duckdb").path
    found = ranks(path, {**KINDS, "user": "text"})
    assert all(line[-1] == repr(str(unit)) for unit, lines in found.items() for line in lines)
    assert set(ranks(path)) == set(found)


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb", "prepared"])
def test_any_source_can_be_prepared(tmp_path, kind):
    rows = [{**row, "amount": 1.0} for row in some_rows()]
    whole = frame(rows)
    if kind == "parquet":
        pq.write_table(whole, tmp_path / "s.parquet")
    elif kind == "csv":
        lines = [",".join("" if row[name] is None else str(row[name]) for name in row) for row in rows]
        (tmp_path / "s.csv").write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
    elif kind == "prepared":
        prepare(table_of(whole), tmp_path / "s.duckdb", salt=b"other")
    else:
        with duckdb.connect(str(tmp_path / "s.duckdb")) as connection:
            connection.from_arrow(whole).create("visits")
    (source,) = (each for each in tmp_path.iterdir() if each.stem == "s")
    found = ranks(prepare(table_of(str(source)), tmp_path / "p.duckdb", salt=SALT).path)
    if kind != "csv":  # where the ids are text
        assert found == prepared(tmp_path, rows, "from memory")
    assert sum(map(len, found.values())) == len(rows)


def test_a_prepared_file_is_known_by_its_note_and_not_by_its_name(tmp_path):
    rows = frame(some_rows())
    path = prepare(table_of(rows), tmp_path / "p.duckdb").path
    moved = path.rename(tmp_path / "any other name.ddb")
    with duckdb.connect(str(tmp_path / "visits.prepared.duckdb")) as connection:
        connection.from_arrow(rows.append_column(RANK_COLUMN, [[1] * rows.num_rows])).create("visits")
    with DuckDB() as engine:
        engine.attach("t", moved, KINDS, unit="user")
        engine.attach("u", f"{moved}::visits", KINDS, unit="USER")
        engine.attach("v", tmp_path / "visits.prepared.duckdb", KINDS, unit="user")
        engine.attach("w", moved, KINDS)
        assert [engine.is_prepared(name) for name in ("t", "U", "v", "w", "x")] == [True, True, *[False] * 3]
        assert engine.schema(moved) == {
            "user": "integer", "country": "text", "amount": "float", "age": "integer", "day": "date",
        }  # fmt: skip
        columns = engine.fetch(parse_one("SELECT * FROM w LIMIT 0", dialect="duckdb")).column_names
        assert columns == list(KINDS)


def test_the_names_of_ranks_are_kept():
    with DuckDB() as engine, pytest.raises(SourceUnusable, match="kept for ranks"):
        engine.attach("t", frame(some_rows()), {RANK_COLUMN.upper(): "integer"}, unit="user")


def test_the_note_holds_no_data_and_not_the_salt(tmp_path):
    rows = [{**row, "country": CANARY} for row in some_rows()]
    path = prepare(table_of(frame(rows)), tmp_path / "p.duckdb", salt=SALT).path
    with duckdb.connect(str(path), read_only=True) as connection:
        ((text,),) = connection.execute(f'SELECT note FROM "{METADATA}"').fetchall()
    note = json.loads(text)
    assert set(note) == {"format", "table", "unit", "columns", "salt", "apart", "digest"}
    assert note["columns"] == KINDS
    assert CANARY not in text
    assert SALT.hex() not in text


def _listing(folder):
    return sorted(each.name for each in folder.iterdir())


def test_the_file_is_for_its_owner_and_leaves_nothing_beside_it(tmp_path):
    made = prepare(table_of(frame(some_rows())), tmp_path / "p.duckdb")
    assert _listing(tmp_path) == ["p.duckdb"]
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert (made.table, made.unit, made.columns) == ("visits", "user", tuple(KINDS))
    assert made.bytes == os.path.getsize(made.path)


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    target = tmp_path / "p.duckdb"
    prepared(tmp_path, some_rows())
    before = target.read_bytes()
    monkeypatch.setattr(preparing, "statement", lambda *_, **__: f"SELECT CAST('{CANARY}' AS INTEGER)")
    with pytest.raises(SourceUnusable, match="could not be prepared") as failure:
        prepare(table_of(frame(some_rows())), target, force=True)
    assert CANARY not in str(failure.value)
    assert failure.value.__cause__ is failure.value.__context__ is None
    assert target.read_bytes() == before
    assert _listing(tmp_path) == ["p.duckdb"]


def test_a_source_that_changes_meanwhile_gives_no_file(tmp_path, monkeypatch):
    pq.write_table(frame(some_rows()), tmp_path / "s.parquet")
    whole = preparing.statement

    def meddling(*arguments):
        os.utime(tmp_path / "s.parquet", ns=(1, 1))
        return whole(*arguments)

    class Late:
        """Text that touches the source once it is used."""

        def __format__(self, _):
            return meddling("visits", KINDS, SALT)

    monkeypatch.setattr(preparing, "statement", lambda *_, **__: Late())
    with pytest.raises(SourceUnusable, match="could not be prepared"):
        prepare(table_of(str(tmp_path / "s.parquet")), tmp_path / "p.duckdb")
    assert _listing(tmp_path) == ["s.parquet"]


def test_an_interruption_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise Cancelled("…")

    monkeypatch.setattr(_preparing, "run", interrupted)
    with pytest.raises(Cancelled, match="what was written so far is removed"):
        prepare(table_of(frame(some_rows())), tmp_path / "p.duckdb")
    assert _listing(tmp_path) == []


def test_what_cannot_be_prepared_is_refused(tmp_path):
    rows = frame(some_rows())
    with pytest.raises(InvalidParameter, match="nothing to prepare"):
        prepare(table_of(rows, sf.PrivacyUnit.row()), tmp_path / "p.duckdb")
    with pytest.raises(InvalidParameter, match="named in another table"):
        prepare(table_of(rows, sf.PrivacyUnit.via("users", on="age")), tmp_path / "p.duckdb")
    with pytest.raises(InvalidParameter, match=r"ends in \.duckdb or \.ddb"):
        prepare(table_of(rows), tmp_path / "p.parquet")
    with pytest.raises(InvalidParameter, match="no folder"):
        prepare(table_of(rows), tmp_path / "missing" / "p.duckdb")
    with pytest.raises(InvalidParameter, match="salt must be bytes"):
        prepare(table_of(rows), tmp_path / "p.duckdb", salt="text")
    with pytest.raises(SourceUnusable, match='no column "user"'):
        prepare(table_of(rows.drop_columns(["user"])), tmp_path / "p.duckdb")
    assert _listing(tmp_path) == []


def test_the_file_that_a_table_is_read_from_is_never_written_over(tmp_path):
    path = prepare(table_of(frame(some_rows())), tmp_path / "p.duckdb").path
    before = path.read_bytes()
    os.symlink(path, tmp_path / "link.duckdb")
    for name in ("p.duckdb", "link.duckdb"):
        with pytest.raises(InvalidParameter, match="read from that file"):
            prepare(table_of(str(path)), tmp_path / name, force=True)
    assert path.read_bytes() == before


QUERIES = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT country, COUNT(*) AS n, SUM(amount) AS s FROM visits GROUP BY country",
    "SELECT country, COUNT(age) AS n FROM visits WHERE amount < 5 GROUP BY country",
)


def _read(table, text):
    question = replace(measured_of(parse(text, {"visits": table}), table), bounding=Prepared())
    with DuckDB(threads=2) as engine:
        engine.attach("visits", table.source, KINDS, unit="user")
        assert engine.is_prepared("visits")
        return question, align(engine.fetch(lower(question, {"visits": table}, engine.dialect)), question)


@pytest.mark.parametrize("text", QUERIES)
def test_one_unit_moves_what_is_read_by_no_more_than_is_claimed(tmp_path, text):
    rows = [{**row, "user": row["user"] // 5} for row in some_rows(users=20)]  # few units of many rows
    everyone = sorted({row["user"] for row in rows})
    claims, answers, reached = (), {}, 0
    for left_out in (None, *everyone):
        path = tmp_path / f"{left_out}.duckdb"
        prepare(table_of(frame([row for row in rows if row["user"] != left_out])), path, salt=SALT)
        question, answers[left_out] = _read(table_of(str(path)), text)
        claims = sensitivities(question)
    for left_out in everyone:
        for whole, less, claim in zip(answers[None], answers[left_out], claims, strict=True):
            change = [abs(a - b) for a, b in zip(whole, less, strict=True)]
            assert sum(change) <= claim.l1
            assert sum(each * each for each in change) <= claim.l2_squared
            reached += sum(change) == claim.l1
    assert reached or "WHERE" in text


def test_at_most_max_rows_rows_of_a_unit_count_and_no_fewer_without_need(tmp_path):
    rows = [{**row, "country": "FR"} for row in some_rows()]
    path = prepare(table_of(frame(rows)), tmp_path / "p.duckdb").path
    _, ((count,),) = _read(table_of(str(path)), QUERIES[0])
    sizes = Counter(row["user"] for row in rows)
    assert count == sum(min(size, UNIT.max_rows) for size in sizes.values()) < len(rows)


def test_a_session_answers_from_a_prepared_file(tmp_path):
    rows = [{**row, "amount": 2.5} for row in some_rows(users=300)]
    path = prepare(table_of(frame(rows)), tmp_path / "p.duckdb").path
    kept = Counter(line[1] for lines in ranks(path).values() for line in lines[: UNIT.max_rows])
    with sf.Session(table_of(path), budget=sf.Budget(10**6)) as session:
        report = session.sql(QUERIES[1]).report
        ranked = replace(report, child=replace(report.child, bounding=Prepared()))
        release = Query(session, ranked).release(epsilon=10**4)
        for row in release.table.to_pylist():
            assert row["n"] == kept[repr(row["country"])]
            assert row["s"] == pytest.approx(2.5 * row["n"], abs=0.1)
        # What ranks cannot answer is asked of the same rows as if nothing were prepared.
        users = session.sql("SELECT COUNT(DISTINCT user) AS n FROM visits").release(epsilon=10**4)
        assert users.table["n"].to_pylist() == [300]


def test_how_far_it_has_come_is_told(tmp_path, monkeypatch):
    """Parts from 0 to 1, of a file whose length the engine knows; nothing else changes."""
    monkeypatch.setattr(running, "_SLICE", 0.002)
    rows = 100_000
    pq.write_table(pa.table({"user": range(rows), "age": [7] * rows}), tmp_path / "rows.parquet")
    table = table_of(tmp_path / "rows.parquet", sf.PrivacyUnit("user"), {"age": sf.Int(0, 99)})
    told = []
    made = prepare(table, tmp_path / "a.duckdb", salt=SALT, progress=told.append)
    assert any(0 < done < 1 for done in told)
    assert all(0 <= done <= 1 for done in told)
    assert made.bytes == prepare(table, tmp_path / "b.duckdb", salt=SALT).bytes
