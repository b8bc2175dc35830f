"""What holds of prepared tables on every engine, and what PostgreSQL's have of their own."""

from __future__ import annotations

import os
from dataclasses import replace

import psycopg
import pytest

import sfumato as sf
from postgres_engine import given, shared, superuser
from prepared_places import (
    CITIES,
    COUNT,
    KINDS,
    LAWS,
    SALT,
    DuckDBPlace,
    Place,
    PostgresPlace,
    U,
    made,
    rows_of,
    table_of,
)
from sfumato.dossier.unopened import Unopened
from sfumato.engines.postgres import Postgres, asking, transactions
from sfumato.engines.postgres import prepare as preparing
from sfumato.engines.prepare import prepare
from sfumato.engines.prepared import salt_of
from sfumato.errors import EngineFailed, InvalidParameter, SourceUnusable

PLACES = {"duckdb": DuckDBPlace, "postgres": PostgresPlace}
BOLT = '"sfumato: a prepared table is not written to"'
APPENDED = f"INSERT INTO {{t}} SELECT * FROM {{t}} WHERE {U} = 2"
OF_DUCKDB = [law for law in sorted(LAWS) if law.endswith("those_of_duckdb")]


@pytest.mark.parametrize(
    ("law", "where"),
    [(law, where) for law in sorted(LAWS) for where in sorted(PLACES) if (law, where) not in
     [(law, "duckdb") for law in OF_DUCKDB]],
)  # fmt: skip
def test_law(law, where, tmp_path):
    LAWS[law](PLACES[where](tmp_path))


@pytest.fixture
def place(tmp_path) -> Place:
    return PostgresPlace(tmp_path)


def name_of(path: str) -> str:
    return path.rpartition("::")[2]


def count(session) -> int:
    measured = session.sql(COUNT).quote(epsilon=1).measured
    assert measured.bounding.name == "prepared"
    return int(session.vault._read(measured, 0).columns[0][0])


@pytest.fixture
def asked(place):
    """A session on a prepared table, and its address."""
    path = made(place)
    with place.engine() as engine:
        session = sf.Session(table_of(path), budget=sf.Budget(9), engine=engine)
        yield session, path
        session.close()


def test_nobody_writes_to_a_prepared_table(place):
    path = name_of(made(place))
    for text in (f"INSERT INTO {path} SELECT * FROM {path}", f"UPDATE {path} SET {U} = 1"):
        with pytest.raises(psycopg.errors.CheckViolation, match="a prepared table is not written to"):
            superuser().execute(text)


def test_a_guard_is_run_once_as_long_as_the_bolt_is_whole(asked, monkeypatch):
    session, path = asked
    whole = count(session)
    engine = session._attached.engine
    assert len(engine._held) == 1
    monkeypatch.setattr(asking, "GUARD", "no_such_statement")  # nothing asks it again
    assert count(session) == whole
    superuser().execute(f"VACUUM FULL {name_of(path)}")  # another file
    with pytest.raises(EngineFailed):
        count(session)


@pytest.mark.parametrize("bolted", [False, True])
def test_what_is_written_between_two_reads_is_found(asked, place, bolted):
    """Also where somebody takes the bolt off, and puts one on like it."""
    session, path = asked
    count(session)
    place.alter(path, APPENDED)
    if bolted:
        superuser().execute(f"ALTER TABLE {name_of(path)} ADD CONSTRAINT {BOLT} CHECK (FALSE) NOT VALID")
    for _ in range(2):
        with pytest.raises(EngineFailed, match="A prepared table is not as it was written"):
            count(session)


def test_without_a_bolt_every_read_is_guarded(asked, place):
    session, path = asked
    place.alter(path)
    whole = count(session)
    assert count(session) == whole
    assert session._attached.engine._held == {}


def test_rows_of_a_table_that_inherits_are_guarded_with_every_read(asked):
    session, path = asked
    name, child = name_of(path), f"{name_of(path)}_more"
    superuser().execute(f"CREATE TABLE {child} (LIKE {name})")
    superuser().execute(f"ALTER TABLE {name} DROP CONSTRAINT {BOLT}")
    superuser().execute(f"ALTER TABLE {child} INHERIT {name}")
    count(session)  # a part without rows changes nothing
    superuser().execute(f"INSERT INTO {child} SELECT * FROM {name}")
    with pytest.raises(EngineFailed, match="not as it was written"):
        count(session)
    superuser().execute(f"DELETE FROM {child}")
    superuser().execute(f"ALTER TABLE ONLY {name} ADD CONSTRAINT {BOLT} CHECK (FALSE) NO INHERIT NOT VALID")
    superuser().execute(f"UPDATE pg_constraint SET connoinherit = false WHERE conrelid = '{name}'::regclass")
    with Postgres() as fresh:
        again = sf.Session(table_of(path), budget=sf.Budget(9), engine=fresh)
        count(again)
        assert fresh._held == {}
        superuser().execute(f"INSERT INTO {child} SELECT * FROM {name}")
        with pytest.raises(EngineFailed, match="not as it was written"):
            count(again)
        again.close()


def meddling(monkeypatch, path):
    """Somebody writes to the table between its guard and the read."""
    holds = asking.Guard.holds

    def then_written(self, connection):
        held = holds(self, connection)
        superuser().execute(APPENDED.replace("{t}", name_of(path)))
        return held

    monkeypatch.setattr(asking.Guard, "holds", then_written)


def test_the_guard_sees_the_rows_that_are_read(asked, place, monkeypatch):
    session, path = asked
    place.alter(path)
    whole = count(session)
    meddling(monkeypatch, path)
    assert count(session) == whole


def test_a_transaction_that_sees_two_states_is_found(asked, place, monkeypatch):
    """The twin of the test above."""
    session, path = asked
    place.alter(path)
    whole = count(session)
    meddling(monkeypatch, path)
    begins = transactions.beginning
    monkeypatch.setattr(
        "sfumato.engines.postgres.engine.beginning",
        lambda *args, **options: begins(*args, **options).replace("REPEATABLE READ", "READ COMMITTED"),
    )
    assert count(session) != whole


def test_a_table_that_is_altered_or_prepared_again_is_not_read(asked, place):
    session, path = asked
    count(session)
    made(place, rows_of(), path, force=True)
    with pytest.raises(EngineFailed, match="changed its columns"):
        count(session)


def test_a_failure_leaves_what_was_there_and_nothing_else(place, monkeypatch):
    path, target = made(place), place.target()
    before = superuser().execute(f"SELECT count(*), '{name_of(path)}'::regclass::oid FROM {name_of(path)}")
    monkeypatch.setattr(preparing, "BOLT", "CONSTRAINT x CHECK (1 / 0)")
    for where in (path, target):
        with pytest.raises(SourceUnusable, match="could not be prepared") as failure:
            made(place, rows_of(), where, force=True)
        assert failure.value.__cause__ is failure.value.__context__ is None
    after = superuser().execute(f"SELECT count(*), '{name_of(path)}'::regclass::oid FROM {name_of(path)}")
    assert after.fetchall() == before.fetchall()
    assert not place.is_there(target)


def test_places_that_do_not_fit_are_refused(place, tmp_path):
    table = table_of(place.source(rows_of()))
    here, other = shared(), shared().rpartition("/")[0] + "/postgres"
    for target, words in (
        (tmp_path / "p.duckdb", "is in PostgreSQL, and so is its prepared table"),
        (f"{other}::public.p", "in another database than its source"),
        (table.source, "is what the rows are read from"),
        (f"{here}::public.{'p' * 64}", "of more than 63 bytes"),
        (f"{here}::absent.p", "has no schema to be in"),
        (given(rows_of()), "was not prepared; name another one"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            prepare(table, target, force=True)
    with pytest.raises(InvalidParameter, match="is not read from PostgreSQL"):
        prepare(table_of(rows_of()), place.target())
    with pytest.raises(SourceUnusable, match="has a password in it"):
        prepare(table, f"{here.replace('@', ':x@')}::public.p")


def test_who_may_make_it_and_who_may_read_it(place):
    password = os.environ["PGPASSWORD"]
    for role in ("prep_reader", "prep_writer", "prep_other"):
        superuser().execute(f"DROP OWNED BY {role}" if _has(role) else "SELECT 1")
        superuser().execute(f"DROP ROLE IF EXISTS {role}")
        superuser().execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'")
    source = name_of(place.source(rows_of()))
    superuser().execute("CREATE SCHEMA IF NOT EXISTS ready")
    superuser().execute(f"GRANT SELECT ON {source} TO prep_reader, prep_writer")
    reads, writes, others = (
        shared().replace("sfumato@", f"prep_{who}@") for who in ("reader", "writer", "other")
    )
    table = table_of(f"{reads}::{source}")
    target = f"{writes}::ready.p{os.getpid()}"
    with pytest.raises(InvalidParameter, match="grant it USAGE and CREATE on the schema"):
        prepare(table, target)
    superuser().execute("GRANT USAGE ON SCHEMA ready TO prep_reader, prep_writer, prep_other")
    superuser().execute("GRANT CREATE ON SCHEMA ready TO prep_writer")
    with pytest.raises(SourceUnusable, match="grant it SELECT on the table"):
        prepare(table, target.replace("prep_writer", "prep_other"))
    path = prepare(table, target).path
    with Postgres() as engine:
        engine.attach("visits", path.replace("prep_writer", "prep_reader"), KINDS, unit="user")
        assert engine.is_prepared("visits")
    with Postgres() as engine, pytest.raises(SourceUnusable, match="grant it SELECT"):
        engine.attach("visits", f"{others}::{name_of(path)}", KINDS, unit="user")


def _has(role: str) -> bool:
    return bool(superuser().execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchall())


def test_its_salt_is_known_to_audits_and_its_ranks_to_quotes(place):
    source, path = place.source(rows_of()), made(place, group_by="city")
    assert salt_of(path) == salt_of(made(place))
    assert salt_of(path) != salt_of(made(place, salt=b"another"))
    assert salt_of(source) is None
    with Postgres() as inner:
        for table, bounding in ((table_of(path), "grouped"), (table_of(source), "reweight")):
            engine = Unopened(inner, public=[])
            session = sf.Session(table, budget=sf.Budget(1, "0.1"), engine=engine)
            assert (session.sql(CITIES).quote(epsilon=1).measured.bounding.name == "grouped") is (
                bounding == "grouped"
            )
            with pytest.raises(EngineFailed, match="not opened"):
                session.vault._read(session.sql(CITIES).quote(epsilon=1).measured, 0)
            session.close()


def test_a_prepared_table_can_be_prepared_again(place):
    first = made(place)
    again = place.prepare(replace(table_of(first), source=first), place.target(), salt=SALT, group_by="age")
    with Postgres() as engine:
        engine.attach("t", again, KINDS, unit="user")
        assert engine.grouping("t") == ("age",)
