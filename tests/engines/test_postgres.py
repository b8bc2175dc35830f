"""PostgreSQL's own: who may read what, what is refused, and what a read says when it fails."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import threading
import time
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from sqlglot import exp

import sfumato as sf
from neighbours import examine
from postgres_engine import FilledPostgres, PostgresStore, given, server, shared, superuser
from same_questions import compare_queries
from sfumato.engines import DuckDB, Engine
from sfumato.engines.base import UNIT_COLUMN, Source
from sfumato.engines.postgres import Postgres, asking, columns, failures, transactions
from sfumato.engines.postgres import engine as running
from sfumato.engines.postgres.dialect import POSTGRES
from sfumato.engines.postgres.door import is_plain
from sfumato.errors import EngineFailed, SourceUnusable, TimedOut
from sfumato.plan.expressions.tree import Column, call, literal
from sfumato.sql.write import expressions
from sfumato.sql.write.expressions import lower_expression
from sfumato.sql.write.pieces import column, count, named, select, table
from sfumato.testing import exact
from sfumato.testing.engines import engine_faults
from transcripts import visits, wrong_lines

SECRET = "canary-9931"
ROWS = pa.table({"user": [1, 1, 2], "s": ["a", SECRET, "B"], "x": [1.5, 2.0, None]})


@pytest.fixture
def one():
    shared()
    with Postgres(timeout=60) as made:
        yield made


def ask(engine: Postgres) -> int:
    return engine.fetch(exp.Select().select(named(count(), "n")).from_(table("t"))).column(0)[0].as_py()


def refused(engine: Postgres, source: str, match: str, kind: str = "text", name: str = "s") -> None:
    with pytest.raises(SourceUnusable, match=match) as caught:
        engine.attach("t", source, {name: kind})
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET not in str(error)
    assert os.environ["PGPASSWORD"] not in str(error)


def made(sql: str) -> str:
    """The address of what a statement makes under the name `{}`."""
    name = f"made_{time.monotonic_ns()}"
    superuser().execute(sql.format(name))
    return f"{shared()}::public.{name}"


def test_a_password_in_an_address_is_refused_and_never_shown(one):
    with_password = shared().replace("@", f":{SECRET}@") + "::public.t"
    refused(one, with_password, "has a password in it")
    refused(one, f"{shared()}?password={SECRET}::public.t", "has a password in it")
    refused(one, f"{shared()}?options=-c::public.t", "which is not allowed")
    declared = sf.PrivateTable("t", source=with_password, unit=sf.PrivacyUnit.row(), schema={"s": sf.Text()})
    assert SECRET not in repr(declared)
    with pytest.raises(SourceUnusable) as caught, sf.Session(declared, budget=sf.Budget(1), engine="duckdb"):
        pass
    assert SECRET not in str(caught.value)


def test_what_cannot_be_opened_is_refused_before_it_is_paid(one, monkeypatch):
    source = given(ROWS)
    refused(one, shared() + "::public.absent", "does not exist")
    refused(one, shared() + "::absent.t", "does not exist")
    refused(one, "postgresql://nobody@127.0.0.1:1/none::t", "cannot be reached")
    refused(one, source.replace("/test_", "/absent_"), "no such database")
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with Postgres() as other:
        refused(other, source, "PGPASSWORD or PGPASSFILE")
        monkeypatch.setattr(failures, "_REASONS", ())  # as if the server spoke another language
        refused(other, source, "check the role, its password")
        refused(other, "postgresql://nobody@127.0.0.1:1/none::t", "cannot be reached")


def test_only_plain_tables_that_may_be_read_are_attached(one):
    base = given(ROWS).rpartition(".")[2]
    refused(one, made(f"CREATE VIEW {{}} AS SELECT * FROM {base}"), "is a view")
    secured = made(f"CREATE TABLE {{}} AS SELECT * FROM {base}").rpartition(".")[2]
    superuser().execute(f"ALTER TABLE {secured} ENABLE ROW LEVEL SECURITY")
    superuser().execute("DROP ROLE IF EXISTS reader")
    superuser().execute(f"CREATE ROLE reader LOGIN PASSWORD '{os.environ['PGPASSWORD']}'")
    superuser().execute(f"GRANT SELECT ON {secured} TO reader")
    as_reader = shared().replace("sfumato@", "reader@")
    with Postgres() as other:
        refused(other, f"{as_reader}::public.{base}", "grant it SELECT")
        refused(other, f"{as_reader}::public.{secured}", "row security")
    computed = made("CREATE TABLE {} (x double precision, s double precision GENERATED ALWAYS AS (1 / x))")
    refused(one, computed, "computed as rows are read", "float")
    refused(one, made(f"CREATE MATERIALIZED VIEW {{}} AS SELECT * FROM {base} WITH NO DATA"), "never filled")
    one.attach("t", made(f"CREATE MATERIALIZED VIEW {{}} AS SELECT * FROM {base}"), {"s": "text"})
    assert ask(one) == 3
    for name in ("pg_catalog.pg_statistic", "pg_toast.pg_toast_1255", "information_schema.tables"):
        refused(one, f"{shared()}::{name}", "is of the server itself")


DOMAINS = {
    "boolean": ("boolean", "true", True),
    "double precision": ("float", "2.5", 2.5),
    "date": ("date", "0044-03-15 BC", None),
    "numeric(9, 2)": ("float", "2.50", 2.5),
    "text": ("text", "a", "a"),
}


def test_a_domain_is_read_as_its_base_type(one):
    """Forms ask for the type of what they are given, and a domain is a type of its own."""
    for base, (kind, value, read) in DOMAINS.items():
        name = f"made_{time.monotonic_ns()}"
        superuser().execute(f"CREATE DOMAIN {name} AS {base}; CREATE DOMAIN {name}_2 AS {name}")
        found = []
        for native in (base, f"{name}_2"):
            source = made(f"CREATE TABLE {{}} AS SELECT CAST('{value}' AS {native}) AS x")
            one.attach("t", source, {"x": kind}, unit="x")
            wanted = [
                column("x"),
                POSTGRES.fill(POSTGRES.shown, column("x")),
                POSTGRES.chosen_by(column("x")),
            ]
            wanted += [POSTGRES.chosen_by(column(UNIT_COLUMN))]
            rows = one.fetch(select([(f"c{i}", each) for i, each in enumerate(wanted)], table("t")))
            found.append([cells.cast(pa.string()) if i else cells for i, cells in enumerate(rows.columns)])
            assert read is None or rows.column(0).to_pylist() == [read]
        assert found[0] == found[1], base


def test_a_table_that_changed_is_not_read(one):
    source = given(ROWS)
    one.attach("t", source, {"s": "text"})
    assert ask(one) == 3
    superuser().execute(f"ALTER TABLE {source.rpartition('.')[2]} ALTER COLUMN x TYPE text")
    with pytest.raises(EngineFailed, match="changed its columns"):
        ask(one)


def test_a_read_has_all_of_its_settings_whatever_the_catalog_was_asked_with(one, monkeypatch):
    one.attach("t", given(ROWS), {"s": "text"})
    wrong: list[tuple[str, ...]] = []

    def run(connection: Any, tables: Any) -> Any:
        seen = asking.look(connection, tables)
        for name, value in transactions._SETTINGS.items():
            ((now,),) = connection.execute(f"SELECT pg_catalog.current_setting('{name}')").fetchall()
            if now != value.strip("'"):
                wrong.append((name, value, now))
        return seen

    monkeypatch.setattr(running, "look", run)
    assert ask(one) == 3
    assert wrong == []


def test_names_with_quotes_and_backslashes_are_looked_for_as_they_are(one):
    name = 'it\'\'s a \\ ""name"" %s'
    superuser().execute(f'CREATE TABLE "{name}" (s text)'.encode())
    one.attach("t", f'{shared()}::public."{name}"', {"s": "text"})
    assert ask(one) == 0
    superuser().execute(f'ALTER TABLE "{name}" ADD COLUMN x int'.encode())
    with pytest.raises(EngineFailed, match="changed its columns"):
        ask(one)


def test_partitions_and_long_names_are_read(one):
    name = "c" * 63
    source = made(f'CREATE TABLE {{}} (k int, "{name}" text) PARTITION BY LIST (k)')
    parent = source.rpartition(".")[2]
    superuser().execute(f"CREATE TABLE {parent}_a PARTITION OF {parent} FOR VALUES IN (1)")
    superuser().execute(f"INSERT INTO {parent} SELECT 1, 'x' FROM generate_series(1, 5)")
    one.attach("t", source, {name: "text"}, unit=name, pointers=[name])
    assert ask(one) == 5


def test_functions_and_operators_of_users_are_not_reached(one):
    one.attach("t", given(ROWS), {"s": "text", "x": "float"})
    superuser().execute(
        "CREATE OR REPLACE FUNCTION public.md5(text) RETURNS text LANGUAGE sql AS 'SELECT ''no'''"
    )
    superuser().execute("ALTER ROLE sfumato SET search_path = public, pg_catalog")
    try:
        with Postgres() as fresh:
            fresh.attach("t", given(ROWS), {"s": "text"})
            digest = select([("d", POSTGRES.chosen_by(column("s")))], table("t"))
            assert "no" not in fresh.fetch(digest).column(0).to_pylist()
    finally:
        superuser().execute("ALTER ROLE sfumato RESET search_path")
        superuser().execute("DROP FUNCTION public.md5(text)")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_sleep(1)",
        'SELECT "pg_sleep"(1)',
        'SELECT "a" FROM "t"; DROP TABLE "t"',
        'SELECT "a" -- x',
        'SELECT "a" /* x */',
        "SELECT E'\\'' FROM \"t\"",
        'SELECT U&"\\0061"',
        "SELECT $$x$$",
        "SELECT current_user",
        "SELECT now()",
        "SELECT random()",
        "COPY (SELECT 1) TO '/tmp/x'",
        "EXPLAIN SELECT 1",
        'SELECT "a"::regclass',
        'SELECT * FROM "t" TABLESAMPLE SYSTEM (1)',
        "SELECT set_config('a', 'b', false)",
        'SELECT "a" FOR UPDATE',
        "SELECT 'a'\x00",
    ],
)
def test_the_door_knows_its_words(text):
    assert not is_plain(text)


def test_catalogs_are_not_reached_whatever_the_tree_says(one):
    one.attach("t", given(ROWS), {"s": "text"})
    for name, schema in (("pg_class", None), ("pg_authid", "pg_catalog"), ("tables", "information_schema")):
        node = exp.Table(this=exp.to_identifier(name, quoted=True), db=schema and exp.to_identifier(schema))
        with pytest.raises(EngineFailed, match="nothing else"):
            one.fetch(exp.Select().select(named(count(), "n")).from_(node))


def slow(engine: Postgres) -> exp.Select:
    """A read that takes long: a cross join of a table with itself, several times."""
    engine.attach("t", given(pa.table({"s": ["a"] * 3000})), {"s": "text"})
    query = exp.Select().select(named(count(), "n")).from_(table("t", "a"))
    return query.join(table("t", "b"), join_type="cross").join(table("t", "c"), join_type="cross")


def test_a_read_that_takes_too_long_ends():
    shared()
    with Postgres(timeout=0.5) as engine:
        statement = slow(engine)
        with pytest.raises(TimedOut):
            engine.fetch(statement)
        engine.timeout = 60
        assert ask(engine) == 3000


def test_a_server_that_goes_away_during_a_read_is_said(one):
    statement = slow(one)

    def kill() -> None:
        time.sleep(1)
        superuser().execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'sfumato' AND state = 'active'"
        )

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(EngineFailed, match="price stays paid") as caught:
        one.fetch(statement)
    killer.join()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert ask(one) == 3000


def test_a_read_that_the_server_ends_stays_charged_and_the_ledger_verifies(tmp_path):
    source = given(ROWS)
    private = sf.PrivateTable(
        "t", source=source, unit=sf.PrivacyUnit("user", max_groups=1), schema={"x": sf.Float(0, 8)}
    )
    holder = psycopg.connect(shared())

    def kill() -> None:
        for _ in range(200):
            ended = superuser().execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'sfumato' AND wait_event_type = 'Lock'"
            )
            if ended.fetchall():
                return
            time.sleep(0.05)

    place = tmp_path / "t.ledger"
    with holder, sf.Session(private, budget=sf.Budget(10), ledger=place) as session:
        question = session.sql("SELECT SUM(x) AS s FROM t")
        question.quote(epsilon=1)
        holder.execute(f"LOCK TABLE {source.rpartition('.')[2]} IN ACCESS EXCLUSIVE MODE")
        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(EngineFailed, match="price stays paid") as caught:
            question.release(epsilon=1)
        killer.join()
        holder.rollback()
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert session.balance().spent == 1
        question.release(epsilon=1)
        assert session.balance().spent == 2
        superuser().execute(f"ALTER TABLE {source.rpartition('.')[2]} ALTER COLUMN x TYPE text")
        with pytest.raises(EngineFailed, match="changed its columns"):
            session.sql("SELECT COUNT(x) AS s FROM t").release(epsilon=1)
        assert session.balance().spent == 3
        session.ledger.verify()


def test_a_session_pays_from_a_server():
    server()
    private = sf.PrivateTable(
        "t", source=given(ROWS), unit=sf.PrivacyUnit("user", max_groups=1), schema={"x": sf.Float(0, 8)}
    )
    with sf.Session(private, budget=sf.Budget(10)) as session:
        assert isinstance(session._engine, Postgres)
        session.sql("SELECT COUNT(*) AS n, SUM(x) AS s FROM t").release(epsilon=1)
        assert session.balance().spent == 1


def test_the_transcript_of_the_documentation_is_what_is_printed():
    assert wrong_lines("PostgreSQL", given(visits())) == []


def test_cells_that_could_not_be_read_are_counted():
    days = ["2024-02-29", "9.1.24", "", " ", None, "2024-02-30", "soon"] * 40
    rows = pa.table({"user": list(range(len(days))), "day": days, "n": [1.5, math.nan] * (len(days) // 2)})
    schema = {"day": sf.Date("2024-01-01", "2024-12-31"), "n": sf.Int(0, 9)}
    private = sf.PrivateTable("t", source=given(rows), unit=sf.PrivacyUnit("user"), schema=schema)
    with sf.Session(private, budget=sf.Budget(10**4)) as session:
        assert session.unread("t") == {"day", "n"}
        for name, cells in (("day", 120), ("n", 140)):
            session.unreadable("t", name, 100)
            assert exact(session.asked_unread["t", name][0])[0].to_pydict() == {"cells": [cells]}
        release = session.sql("SELECT COUNT(*) AS c FROM t WHERE day >= DATE '2024-01-01'").release(epsilon=1)
        assert release.unread is not None
        assert set(release.unread.counts) == {"day"}


def spelt(draw: random.Random) -> str:
    """A moment or a time of day as ISO 8601 writes it."""
    day = (
        f"{draw.choice((1, 1969, 2024, 9999)):04}-{draw.randint(1, 13):02}-{draw.choice((1, 29, 30, 31)):02}"
    )
    seconds = draw.choice(("", ":00", ":59", ":60", ":07.", ":59.9999999", ":01.5"))
    clock = f"{draw.choice(('0', '9', '09', '23', '24'))}:{draw.choice(('00', '59', '60'))}{seconds}"
    zone = draw.choice(("", "", "Z", "+02", "-05:30", "+0545", "-00"))
    return draw.choice((day, f"{day} {clock}{zone}", f"{day}T{clock}{zone}", clock))


def test_texts_are_the_moments_that_duckdb_reads_or_none():
    draw = random.Random(5)
    texts = list(dict.fromkeys(spelt(draw) for _ in range(1500)))
    torn = ["now", "today", "allballs", "epoch", "infinity", "J2451187", "", " 10:00 "]
    for text in texts:
        place = draw.randrange(len(text))
        torn.append(text[:place] + draw.choice("0123456789:-+ TZ.é") + text[place + draw.randrange(2) :])
    found = []
    for made in (DuckDB(threads=1), FilledPostgres()):
        with made:
            kinds = {"s": "text", "moment": "timestamp", "clock": "time"}
            made.attach("t", pa.table(dict.fromkeys(kinds, pa.array([*texts, *torn]))), kinds)
            rows = made.fetch(select([(name, column(name)) for name in kinds], table("t"))).to_pylist()
            found.append({row["s"]: (row["moment"], row["clock"]) for row in rows})
    for text in texts:
        assert found[1][text] == found[0][text], text
    for text in torn:
        assert all(its in (None, mine) for mine, its in zip(found[0][text], found[1][text], strict=True)), (
            text
        )
    assert sum(moment is not None for moment, _ in found[1].values()) > 200
    assert sum(clock is not None for _, clock in found[1].values()) > 20


def below_b(engine: Postgres) -> int:
    """How many texts are below b: by their bytes A, Y, Z and a, and not ä."""
    condition = exp.LT(this=column("s"), expression=exp.Literal.string("b"))
    return engine.fetch(select([("n", count())], table("t"), condition)).column(0)[0].as_py()


def orders() -> dict[str, str]:
    """Tables of the same texts, whose columns have other orders than that of their bytes."""
    superuser().execute("DO $$ BEGIN CREATE TYPE mood AS ENUM ('b', 'ä', 'a', 'Z', 'Y', 'A'); "
                        "EXCEPTION WHEN duplicate_object THEN NULL; END $$")  # fmt: skip
    types = {"enum": "mood", "padded": "char(3)", "default": "text"}
    if server().locale is not None:
        locale = f"(provider = libc, locale = '{server().locale}')"
        superuser().execute(f"CREATE COLLATION IF NOT EXISTS people {locale}")
        types["collated"] = "text COLLATE people"
    sources = {}
    for name, native in types.items():
        sources[name] = made(f"CREATE TABLE {{}} (s {native})")
        into = sources[name].rpartition(".")[2]
        superuser().execute(f"INSERT INTO {into} VALUES ('A'), ('Y'), ('a'), ('Z'), ('ä'), ('b')")
    return sources


def test_text_is_compared_by_its_bytes_whatever_order_a_column_has(one):
    for name, source in orders().items():
        one.attach("t", source, {"s": "text"}, unit="s")
        assert below_b(one) == 4, name


def test_a_locale_collation_is_found(one, monkeypatch):
    if server().locale is None:
        pytest.skip("no locale but C can be made on this machine")
    sources = orders()
    monkeypatch.setattr(columns, "_C", "")
    one.attach("t", sources["default"], {"s": "text"})
    assert below_b(one) != 4
    assert compare_queries(FilledPostgres, "locale", 200, ids=["bytes", "decimal"], stop=True).different != []


_LARGE = (1.7976931348623157e308, -1.7976931348623157e308, 9e307, 0.0, 5e-324, math.inf, -math.inf, None)
LARGE = pa.table({"x": pa.array(_LARGE, pa.float64())})


def beside_constants(engine: Engine, source: Source) -> list[str]:
    """Sums and differences of doubles at the ends of their range and constants of all sizes."""
    engine.attach("t", source, {"x": "float"})
    numbers = (100, -0.5, 9.9e289, -9.9e289, 1e290, 1.7e308, -1.7e308)
    calls = [
        call(name, *sides)
        for name in ("add", "subtract")
        for number in numbers
        for sides in ((Column("x"), literal(number)), (literal(number), Column("x")))
    ]
    shown = [(f"c{place}", lower_expression(each, engine.dialect)) for place, each in enumerate(calls)]
    return sorted(map(repr, engine.fetch(select([("x", column("x")), *shown], table("t"))).to_pylist()))


def test_sums_with_constants_never_raise_and_are_those_of_duckdb(one):
    with DuckDB() as first:
        assert beside_constants(one, given(LARGE)) == beside_constants(first, LARGE)


def test_large_constants_are_no_small_ones(one, monkeypatch):
    monkeypatch.setattr(expressions, "_SMALL", math.inf)
    with pytest.raises(EngineFailed):
        beside_constants(one, given(LARGE))


PLANTED = {
    "a product that raises": {"times": "{0} * {1}", "forms": {**POSTGRES.forms, "multiply": "{0} * {1}"}},
    "a sum that wraps": {"sum": "CAST(MOD(SUM({0}), 2147483648) AS BIGINT)"},
}


FOUND = {
    "whole numbers rounded to the nearest": {"whole": "CAST({0} AS BIGINT)"},
    "a cast that raises": {"casts": {**POSTGRES.casts, "integer": "CAST({0} AS BIGINT)"}},
    "a sum of 64 bits that raises": {"sum": "CAST(SUM({0}) AS BIGINT)"},
    "a sum of 64 bits that wraps": {
        "sum": f"CAST(MOD(SUM({{0}}) + {3 * 2**63}, {2**64}) - {2**63} AS BIGINT)"
    },
}


@pytest.mark.parametrize("bug", sorted(FOUND))
def test_what_raises_or_wraps_is_found(bug):
    shared()

    class Broken(FilledPostgres):
        dialect = dataclasses.replace(POSTGRES, **FOUND[bug])

    assert engine_faults(Broken, checks=["dialect"]) != []


@pytest.mark.parametrize("bug", sorted(PLANTED))
def test_planted_bugs_are_found(bug):
    shared()
    broken = dataclasses.replace(POSTGRES, **PLANTED[bug])
    found = examine("planted", 60, plain=True, stop=True, store=lambda: PostgresStore(broken))
    assert found.broken != []
