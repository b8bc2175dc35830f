"""PostgreSQL: no function of a user runs for a read, no cell makes one fail, tables may change under it."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
import time
import traceback
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from postgres_engine import FilledPostgres, given, shared, superuser
from sfumato.engines import DuckDB
from sfumato.engines.postgres import Postgres
from sfumato.engines.postgres.columns import LONGEST
from sfumato.errors import EngineFailed, SfumatoError, SourceUnusable, TimedOut
from sfumato.sql.write.pieces import column, select, table
from sfumato.testing import exact

SECRET = "hunter2SECRET"


@pytest.fixture
def one():
    shared()
    with Postgres(timeout=120) as made:
        yield made


def run(*statements: str) -> None:
    for statement in statements:
        superuser().execute(statement)


def named(start: str) -> str:
    return f"{start}_{time.monotonic_ns()}"


def address(name: str) -> str:
    return f"{shared()}::public.{name}"


def declared(name: str, schema: dict[str, Any], unit: sf.PrivacyUnit | None = None) -> sf.PrivateTable:
    return sf.PrivateTable("t", source=address(name), unit=unit or sf.PrivacyUnit.row(), schema=schema)


def cells(engine: Postgres | DuckDB, source: Any, kind: str) -> list[Any]:
    engine.attach("t", source, {"x": kind})
    read = engine.fetch(select([("x", column("x"))], table("t"))).column(0)
    return (read.cast(pa.int32()) if kind == "date" else read).to_pylist()


def swapping(name: str) -> None:
    """A function that calls every grade another one."""
    run(
        f"CREATE FUNCTION {name}_shown(x {name}) RETURNS text IMMUTABLE LANGUAGE sql "
        "AS $$ SELECT CASE WHEN x = 'A' THEN 'B' ELSE 'A' END $$",
        f"CREATE CAST ({name} AS text) WITH FUNCTION {name}_shown({name}) AS IMPLICIT",
    )


def test_the_cast_of_an_enum_is_not_run(one):
    grade = named("grade")
    run(f"CREATE TYPE {grade} AS ENUM ('A', 'B')", f"CREATE DOMAIN {grade}_d AS {grade}")
    run(
        f"CREATE TABLE {grade}_t (x {grade}, y {grade}_d)",
        f"INSERT INTO {grade}_t VALUES ('A', 'A'), (NULL, NULL)",
    )
    swapping(grade)
    assert cells(one, address(f"{grade}_t"), "text") == ["A", None]
    one.attach("t", address(f"{grade}_t"), {"x": "text", "y": "text"}, unit="y")
    rows = one.fetch(select([("y", column("y")), ("u", column("sfumato unit"))], table("t"))).to_pylist()
    assert rows == [{"y": "A", "u": "A"}, {"y": None, "u": None}]


def test_a_type_that_is_only_called_citext_is_not_read(one):
    space = named("s")
    run(f"CREATE SCHEMA {space}", f"CREATE TYPE {space}.citext AS (a text)")
    run(f"CREATE TABLE {space}.t (x {space}.citext)")
    with pytest.raises(SourceUnusable, match="cannot be read as text"):
        one.attach("t", f"{shared()}::{space}.t", {"x": "text"})


def test_casts_and_functions_beside_those_of_postgres_are_refused(one):
    source = given(pa.table({"x": [1, 2]}))
    run("CREATE FUNCTION public.odd(bigint) RETURNS text LANGUAGE sql AS 'SELECT ''no'''")
    planted = {
        "cast of its own": (
            "CREATE CAST (bigint AS text) WITH FUNCTION public.odd(bigint)",
            "DROP CAST (bigint AS text)",
        ),
        'function "concat"': (
            "CREATE FUNCTION pg_catalog.concat(bigint) RETURNS text LANGUAGE sql AS 'SELECT ''no'''",
            "DROP FUNCTION pg_catalog.concat(bigint)",
        ),
        'operator "<"': (
            "CREATE OPERATOR pg_catalog.< (LEFTARG = text, RIGHTARG = boolean, FUNCTION = starts_odd)",
            "DROP OPERATOR pg_catalog.< (text, boolean)",
        ),
    }
    run("CREATE FUNCTION public.starts_odd(text, boolean) RETURNS boolean LANGUAGE sql AS 'SELECT $2'")
    try:
        for match, (make, drop) in planted.items():
            run(make)
            try:
                with pytest.raises(SourceUnusable, match=match):
                    one.attach("t", source, {"x": "integer"})
            finally:
                run(drop)
        one.attach("t", source, {"x": "integer"})
    finally:
        run("DROP FUNCTION public.odd(bigint)", "DROP FUNCTION public.starts_odd(text, boolean)")


def peeking(name: str) -> None:
    """A function that fails once there is a row in another table."""
    run(
        f"CREATE TABLE {name}_other (x int)",
        f"CREATE FUNCTION {name}_peek(a int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN "
        f"IF EXISTS (SELECT 1 FROM public.{name}_other WHERE x = 77) THEN RAISE EXCEPTION 'boo'; END IF; "
        "RETURN a; END $$",
    )


EXPRESSIONS = {
    "index": "CREATE INDEX {0}_i ON {0} ((x + {0}_peek(1)))",
    "index of a part": "CREATE INDEX {0}_i ON {0}_part ((x + {0}_peek(1)))",
    "index on some rows": "CREATE INDEX {0}_i ON {0} (x) WHERE x > {0}_peek(1)",
    "index that calls it by an operator": "CREATE INDEX {0}_i ON {0} ((x OPERATOR(public.@@+) 1))",
    "statistics": "CREATE STATISTICS {0}_s ON (x + {0}_peek(1)), y FROM {0}",
}


@pytest.mark.parametrize("what", sorted(EXPRESSIONS))
def test_functions_that_run_while_a_read_is_planned_are_refused_before_it_is_paid(one, what):
    name = named("planned")
    peeking(name)
    run(
        f"CREATE TABLE {name} (x int, y int)",
        f"CREATE TABLE {name}_part (CHECK (x > 0)) INHERITS ({name})",
        f"CREATE INDEX ON {name} ((x + abs(y))) WHERE x > 0",
        f"CREATE STATISTICS ON (x + abs(y)), y FROM {name}",
        f"CREATE FUNCTION {name}_two(a int, b int) RETURNS int IMMUTABLE LANGUAGE sql "
        f"AS $$ SELECT a + public.{name}_peek(b) $$",
        f"CREATE OPERATOR public.@@+ (LEFTARG = int, RIGHTARG = int, FUNCTION = {name}_two)",
    )
    try:
        assert cells(one, address(name), "integer") == []
        run(EXPRESSIONS[what].format(name), f"INSERT INTO {name}_other VALUES (77)")
        with pytest.raises(SourceUnusable, match=r"of a user.* drop"):
            one.attach("u", address(name), {"x": "integer"})
        with pytest.raises(EngineFailed, match="no longer one that may be read") as caught:
            one.fetch(select([("x", column("x"))], table("t")))
        assert caught.value.__context__ is None
    finally:
        run("DROP OPERATOR public.@@+ (int, int) CASCADE")


def test_a_key_of_partitions_that_calls_a_function_is_refused(one):
    name = named("keyed")
    peeking(name)
    run(f"CREATE TABLE {name} (x int) PARTITION BY RANGE ((x + {name}_peek(1)))")
    with pytest.raises(SourceUnusable, match="partitioned calls a function"):
        one.attach("t", address(name), {"x": "integer"})


KINDS = ("text", "date", "timestamp")


def test_one_long_cell_makes_no_read_fail(one):
    """Patterns raise on 268 million characters, BTRIM on 134 million, and the text of bytes on half a GiB."""
    name = named("long")
    run(f"CREATE TABLE {name} (id bytea, x text)")
    run(f"INSERT INTO {name} VALUES ('a', 'yes'), ('b', '2024-01-01'), ('c', '10:00')")
    run(f"INSERT INTO {name} SELECT convert_to(repeat('a', 540000000), 'UTF8'), repeat('a', 268500000)")
    for kind in KINDS:
        read = cells(one, address(name), kind)
        assert len(read) == 4
        assert read[3] is None
        assert read[:3].count(None) == (0 if kind == "text" else 2)
    schema = {"x": sf.Date("2020-01-01", "2025-01-01")}
    with sf.Session(
        declared(name, schema, sf.PrivacyUnit("id", max_groups=1)), budget=sf.Budget(10**4)
    ) as session:
        assert session.unread("t") == {"x"}
        query = session.sql("SELECT COUNT(x) AS n, COUNT(*) AS m FROM t")
        query.release(epsilon=100)
        session.unreadable("t", "x", 100)
        assert exact(session.asked_unread["t", "x"][0])[0].to_pydict() == {"cells": [2]}


def test_text_is_as_long_as_is_said(one):
    texts = ["a" * LONGEST, "a" * (LONGEST + 1), "ü" * (LONGEST // 2), "ü" * (LONGEST // 2) + "a", "", None]
    source = given(pa.table({"x": texts}))
    short = [text if text is None or len(text.encode()) <= LONGEST else None for text in texts]
    assert cells(one, source, "text") == short
    one.attach("t", source, {"x": "text"}, unit="x")
    assert one.fetch(select([("u", column("sfumato unit"))], table("t"))).column(0).to_pylist() == short


def test_json_that_grows_as_text_makes_no_read_fail(one):
    name = named("json")
    run(f"CREATE TABLE {name} (x jsonb)")
    run(f"""INSERT INTO {name} VALUES ('{{"a": [1, "ü"]}}'), ('1e131071'), (NULL), ('"b"')""")
    for many in (8, 9000):
        run(f"INSERT INTO {name} SELECT jsonb_agg('1e131071'::numeric) FROM generate_series(1, {many})")
    read = cells(one, address(name), "text")
    assert [read[0], *read[2:]] == ['{"a": [1, "ü"]}', None, '"b"', None, None]
    assert cells(one, address(name), "date") == [None] * 6


def test_a_new_partition_costs_no_question():
    name = named("parted")
    run(f"CREATE TABLE {name} (d date, x int) PARTITION BY RANGE (d)")
    run(f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')")
    run(f"INSERT INTO {name} SELECT '2024-01-05', i % 9 FROM generate_series(1, 100) AS i")
    with sf.Session(declared(name, {"x": sf.Int(0, 9)}), budget=sf.Budget(1000)) as session:
        count = session.sql("SELECT COUNT(*) AS n FROM t")
        assert exact(count)[0].to_pydict() == {"n": [100]}
        run(f"CREATE TABLE {name}_2 PARTITION OF {name} FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')")
        run(f"INSERT INTO {name} VALUES ('2024-02-05', 1)")
        assert exact(session.sql("SELECT COUNT(x) AS n FROM t"))[0].to_pydict() == {"n": [101]}
        session.sql("SELECT COUNT(x) AS n FROM t WHERE x > 1").release(epsilon=1)
        assert session.balance().spent == 1


@pytest.mark.parametrize("change", ["columns", "row security", "foreign"])
def test_once_a_table_has_changed_no_other_question_is_paid(change):
    name = named("changing")
    run(f"CREATE TABLE {name} (d int, x int) PARTITION BY RANGE (d)")
    run(f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (9)")
    changes = {
        "columns": f"ALTER TABLE {name} ALTER COLUMN x TYPE text",
        "row security": f"ALTER TABLE {name}_1 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "foreign": "CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere; "
        f"CREATE FOREIGN TABLE {name}_2 PARTITION OF {name} FOR VALUES FROM (10) TO (19) SERVER nowhere",
    }
    reader = named("reader")
    run(
        f"CREATE ROLE {reader} LOGIN PASSWORD '{os.environ['PGPASSWORD']}'",
        f"GRANT SELECT ON {name} TO {reader}",
    )
    private = sf.PrivateTable(
        "t",
        source=address(name).replace("sfumato@", f"{reader}@"),
        unit=sf.PrivacyUnit.row(),
        schema={"x": sf.Int(0, 9)},
    )
    try:
        with sf.Session(private, budget=sf.Budget(1000)) as session:
            session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1)
            later = session.sql("SELECT COUNT(*) AS n FROM t WHERE x > 2")
            run(changes[change])
            with pytest.raises(EngineFailed, match="stays paid"):
                session.sql("SELECT COUNT(*) AS n FROM t WHERE x > 1").release(epsilon=1)
            assert session.balance().spent == 2
            for question in (later, None):
                with pytest.raises(SourceUnusable, match="open a new session") as caught:
                    (question or session.sql("SELECT COUNT(*) AS n FROM t WHERE x > 3")).release(epsilon=1)
                assert "stays paid" not in str(caught.value)
            assert session.balance().spent == 2
            session.ledger.verify()
    finally:
        run(f"DROP TABLE {name} CASCADE", "DROP FOREIGN DATA WRAPPER IF EXISTS nowhere CASCADE")


def test_an_engine_whose_table_changed_serves_a_new_session():
    name = named("again")
    run(f"CREATE TABLE {name} (x int)")
    private = declared(name, {"x": sf.Int(0, 9)})
    with Postgres() as engine:
        with sf.Session(private, budget=sf.Budget(10), engine=engine) as session:
            run(f"ALTER TABLE {name} ADD COLUMN y int")
            with pytest.raises(EngineFailed, match="changed its columns"):
                session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1)
        with sf.Session(private, budget=sf.Budget(10), engine=engine) as session:
            session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1)


WAITING = {
    "a rewritten table": ("TABLE", "ALTER TABLE {0} ALTER COLUMN x TYPE date USING x::date"),
    "a rewritten part": ("PARTED", "ALTER TABLE {0} ALTER COLUMN x TYPE date USING x::date"),
    "names that change places": (
        "TABLE",
        "ALTER TABLE {0} RENAME x TO z; ALTER TABLE {0} RENAME y TO x; ALTER TABLE {0} RENAME z TO y",
    ),
    "those of a materialized view": (
        "VIEW",
        "ALTER MATERIALIZED VIEW {0} RENAME x TO z; ALTER MATERIALIZED VIEW {0} RENAME y TO x; "
        "ALTER MATERIALIZED VIEW {0} RENAME z TO y",
    ),
}


LOCKED = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'sfumato' AND wait_event_type = 'Lock'"


def waits(engine: Postgres, name: str, change: str) -> list[Any]:
    """What a read gives, or raises, that waits for a change of its table."""
    found: list[Any] = []

    def read() -> None:
        try:
            found.extend(engine.fetch(select([("x", column("x"))], table("t"))).column(0).to_pylist())
        except SfumatoError as error:
            found.append(error)

    with psycopg.connect(shared()) as other:
        other.execute(change.format(name))
        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(200):
            if superuser().execute(LOCKED).fetchall():
                break
            time.sleep(0.05)
        other.commit()
        reader.join()
    return found


@pytest.mark.parametrize("what", sorted(WAITING))
def test_a_table_that_changes_while_a_read_waits_is_not_read(one, what):
    how, change = WAITING[what]
    name = named("waiting")
    if how == "PARTED":
        run(f"CREATE TABLE {name} (k int, x text, y text) PARTITION BY LIST (k)")
        run(
            f"CREATE TABLE {name}_1 PARTITION OF {name} DEFAULT",
            f"INSERT INTO {name} VALUES (1, '2024-01-01', 'b')",
        )
    else:
        rows = "SELECT '2024-01-01'::text AS x, 'b'::text AS y"
        run(f"CREATE {'MATERIALIZED VIEW' if how == 'VIEW' else 'TABLE'} {name} AS {rows}")
    assert cells(one, address(name), "date" if "rewritten" in what else "text")[0] is not None
    (failed,) = waits(one, name, change)
    assert isinstance(failed, EngineFailed)
    assert "changed its columns" in str(failed)


@pytest.mark.parametrize("how", ["TABLE", "MATERIALIZED VIEW"])
def test_a_read_sees_what_was_written_while_it_waited(one, how):
    name, rows = named("filled"), named("rows")
    run(f"CREATE TABLE {rows} AS SELECT 1::bigint AS x", f"CREATE {how} {name} AS SELECT x FROM {rows}")
    assert cells(one, address(name), "integer") == [1]
    run(f"UPDATE {rows} SET x = 2")
    again = (
        "REFRESH MATERIALIZED VIEW {0}"
        if "VIEW" in how
        else f"TRUNCATE {{0}}; INSERT INTO {{0}} SELECT x FROM {rows}"
    )
    assert waits(one, name, again) == [2]


def test_a_read_that_waits_too_long_for_a_table_ends(one):
    name = named("held")
    run(f"CREATE TABLE {name} AS SELECT 1::bigint AS x")
    assert cells(one, address(name), "integer") == [1]
    one.timeout = 0.5
    with psycopg.connect(shared()) as other:
        other.execute(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(TimedOut):
            one.fetch(select([("x", column("x"))], table("t")))
        other.rollback()
    one.timeout = 60
    assert one.fetch(select([("x", column("x"))], table("t"))).column(0).to_pylist() == [1]


def test_a_reader_that_may_only_select_reads_and_locks():
    name, reader = named("granted"), named("reader")
    run(
        f"CREATE TABLE {name} (k int, x int) PARTITION BY LIST (k)",
        f"CREATE TABLE {name}_1 PARTITION OF {name} DEFAULT",
    )
    run(f"INSERT INTO {name} VALUES (1, 1)")
    run(
        f"CREATE ROLE {reader} LOGIN PASSWORD '{os.environ['PGPASSWORD']}'",
        f"GRANT SELECT ON {name} TO {reader}",
    )
    run(f"ALTER ROLE {reader} SET default_transaction_read_only = on")
    with Postgres() as engine:
        assert cells(engine, address(name).replace("sfumato@", f"{reader}@"), "integer") == [1]


SEPARATORS, YEARS = (
    ("-", "-", "-", "/", " ", "\\", "."),
    ("2021", "0001", "1", "0", "0000", "-1", "-0044", "12021", "05"),
)
MONTHS, DAYS = ("3", "03", "12", "2", "003", "13", "00"), ("4", "04", "29", "31", "004", "0")
PARTS = ("0", "00", "1", "10", "23", "24", "59", "60", "", "010", "7")
FRACTIONS = ("", "", "", ".", ".5", ".000", ".0000001", ".1234567")
ZONES = (
    "",
    "",
    "Z",
    " Z",
    "+02",
    "-05:30",
    "+0545",
    "+02:00:01",
    "+2",
    "+02:0",
    "+020",
    " +02",
    " UTC",
    "  ",
)
ZONES += (" Europe/Paris", " x y", " ", "\t", " \n", "Z ", "+02 ", "z", " -", "+1559:00")
BLANKS = ("", "", "", " ", "\t", "\n ", "\x0b", "\r\n", "x", "\u00a0")
WORDS = (
    "inf",
    "-inf",
    "inf ",
    " Infinity\n",
    "-infinity\t",
    "+inf",
    "\tepoch ",
    "-EPOCH",
    "epoch x",
    "today",
    "",
)


def spelt_day(draw: random.Random) -> str:
    """A day as somebody may have written it, with what may be around it; then some of its letters changed."""
    between = draw.choice(SEPARATORS)
    text = draw.choice(BLANKS) + between.join(map(draw.choice, (YEARS, MONTHS, DAYS)))
    text += draw.choice(("", "", "", "", " (BC)", " (bc)", "(BC)", " BC"))
    if draw.random() < 0.7:
        clock = ":".join(draw.choice(PARTS) for _ in range(draw.randint(1, 4)))
        text += (
            draw.choice((" ", "T", " ", "\t", "", "t", "T "))
            + clock
            + draw.choice(FRACTIONS)
            + draw.choice(ZONES)
        )
    text += draw.choice(BLANKS)
    for _ in range(draw.choice((0, 0, 1, 2))):
        place = draw.randrange(len(text) + 1)
        text = text[:place] + draw.choice("0123456789-:T Z+./\t\\()") + text[place + draw.randrange(2) :]
    return text


ODD = re.compile(r"[+-][0-9][0-9]:(?![0-9])")
"""DuckDB reads this in two ways, by what is in memory behind it."""
EARLY = re.compile(r"\s*-0*[0-9]{4}|.*[0-9]{4}.*\(", re.DOTALL)
"""Days that may be before the first of PostgreSQL, 4714-11-24 BC."""


def test_texts_are_the_days_that_duckdb_reads():
    draw = random.Random(7)
    texts = list(dict.fromkeys([*WORDS, *(spelt_day(draw) for _ in range(20_000))]))
    texts = [text for text in texts if not ODD.search(text) and not EARLY.match(text)]
    rows = pa.table({"x": texts})
    with DuckDB(threads=1) as first, FilledPostgres() as second:
        found = [cells(engine, rows, "date") for engine in (first, second)]
    different = [(text, *pair) for text, *pair in zip(texts, *found, strict=True) if pair[0] != pair[1]]
    assert different == []
    assert sum(day is not None for day in found[0]) > 300


PLACES = (
    "postgresql://u:x@{}@127.0.0.1:1/db::t",
    "postgresql://u:x::{}@h/db",
    "postgresql://u:x/{}@127.0.0.1:1/db::t",
    "postgresql://u@127.0.0.1:1/db?password=a:{}::t",
    "postgresql://u@127.0.0.1:1/db?pass%77ord={}::t",
    "postgresql://u@127.0.0.1:1/db?sslpassword=a:{}::t",
    "postgresql://u@127.0.0.1:1,u:{}@127.0.0.1:2/db::t",
    "postgresql://u@127.0.0.1:1/db?scram_client_key={}::t",
    "https://h/f.parquet?X-Amz-Signature={}",
)


@pytest.mark.parametrize("place", PLACES)
def test_no_password_is_shown_by_tables_and_sessions(place):
    source = place.format(SECRET)
    private = sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit.row(), schema={"x": sf.Int(0, 1)})
    assert SECRET not in repr(private)
    with pytest.raises(SfumatoError) as caught:
        sf.Session(private, budget=sf.Budget(1))
    assert SECRET not in "".join(traceback.format_exception(caught.value, chain=True)[-1:])
    assert caught.value.__context__ is None


def test_no_password_is_shown_by_commands(tmp_path):
    for place in PLACES[:4:3]:
        command = [sys.executable, "-m", "sfumato", "init", place.format(SECRET)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert SECRET not in done.stdout + done.stderr
