"""PostgreSQL: a right that is missing is found before anything is paid; one taken away costs one question."""

from __future__ import annotations

import itertools
import os
import time

import pytest

import sfumato as sf
from postgres_engine import shared, superuser
from sfumato.engines.postgres import engine as module
from sfumato.engines.postgres.engine import _REFUSED
from sfumato.errors import EngineFailed, SourceUnusable

_numbers = itertools.count()


def run(*statements: str) -> None:
    for statement in statements:
        superuser().execute(statement)


@pytest.fixture(scope="module")
def place():
    """A schema with a table, and the address of it as a role that may read it and nothing else."""
    address, name = shared(), f"hidden_{os.getpid()}_{time.monotonic_ns()}"
    run(
        f"CREATE SCHEMA {name}",
        f"CREATE TABLE {name}.t AS SELECT g % 7 AS u, 1.5::float8 * g AS x FROM generate_series(1, 50) AS g",
        f"CREATE ROLE {name} LOGIN PASSWORD '{os.environ['PGPASSWORD']}'",
    )
    host = address.partition("@")[2]
    yield name, f"postgresql://{name}@{host}::{name}.t"
    run(f"DROP SCHEMA {name} CASCADE", f"DROP OWNED BY {name}", f"DROP ROLE {name}")


RIGHTS = {
    "the schema": ("USAGE ON SCHEMA {0}", "grant it USAGE on the schema"),
    "the table": ("SELECT ON {0}.t", "grant it SELECT on the table"),
}


def opened(source: str) -> sf.Session:
    unit, schema = sf.PrivacyUnit("u", max_groups=3), {"x": sf.Float(0, 80)}
    return sf.Session(sf.PrivateTable("t", source=source, unit=unit, schema=schema), budget=sf.Budget(10))


def asked(session: sf.Session) -> list[str]:
    """What is said to three questions, one after another, that nobody has asked before."""
    said = []
    for _ in range(3):
        question = session.sql(f"SELECT SUM(x) AS a FROM t WHERE x > {next(_numbers)}")
        error: Exception | None = None
        try:
            question.release(epsilon=1)
        except (EngineFailed, SourceUnusable) as caught:
            error = caught
        assert error is None or error.__context__ is error.__cause__ is None
        said.append("" if error is None else str(error))
    return said


@pytest.fixture
def granted(place):
    for right, _ in RIGHTS.values():
        run(f"GRANT {right.format(place[0])} TO {place[0]}")
    return place


@pytest.mark.parametrize("what", sorted(RIGHTS))
def test_each_right_that_is_missing_is_said_before_anything_is_paid(granted, what):
    name, source = granted
    opened(source).close()
    right, said = RIGHTS[what]
    run(f"REVOKE {right.format(name)} FROM {name}")
    with pytest.raises(SourceUnusable, match=said):
        opened(source)


@pytest.mark.parametrize("what", sorted(RIGHTS))
def test_a_right_that_is_taken_away_costs_one_question(granted, what):
    name, source = granted
    with opened(source) as session:
        assert asked(session) == ["", "", ""]
        run(f"REVOKE {RIGHTS[what][0].format(name)} FROM {name}")
        first, *later = asked(session)
        assert "price stays paid" in first
        assert all("Nothing was paid" in each for each in later)
        assert session.balance().spent == 4


def test_what_goes_wrong_though_nothing_was_found_is_found_once(granted, monkeypatch):
    """Of rights that the catalog was not asked for, of names; what is about one question stops no other."""
    for code, paid in (("42501", 1), ("3F000", 1), ("54001", 3), ("55P03", 3)):
        with opened(granted[1]) as session:
            monkeypatch.setattr(module, "parse_fault", lambda *_, code=code: code)
            assert (asked(session)[0] == _REFUSED) is (paid == 1)
            assert session.balance().spent == paid
        monkeypatch.undo()


def test_functions_of_the_server_that_may_not_be_called_are_found_once(granted):
    """The server looks at that right when it runs a statement, not when it reads it."""
    called = "EXECUTE ON FUNCTION pg_catalog.sum(bigint), pg_catalog.sum(numeric), pg_catalog.count()"
    run(f"REVOKE {called} FROM PUBLIC")
    try:
        with opened(granted[1]) as session:
            said = asked(session)
        assert said[0] == _REFUSED
        assert all("Nothing was paid" in each for each in said[1:])
    finally:
        run(f"GRANT {called} TO PUBLIC")


def test_a_trigger_on_logins_is_refused_while_it_is_on(granted):
    name = granted[0]
    run(
        f"CREATE FUNCTION {name}.noted() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN NULL; END $$",
        f"CREATE EVENT TRIGGER {name}_login ON login EXECUTE FUNCTION {name}.noted()",
    )
    try:
        with pytest.raises(SourceUnusable, match=r"event trigger.* on logins.* disable it"):
            opened(granted[1])
        run(f"ALTER EVENT TRIGGER {name}_login DISABLE")
        with opened(granted[1]) as session:
            assert asked(session) == ["", "", ""]
            run(f"ALTER EVENT TRIGGER {name}_login ENABLE ALWAYS")
            assert ["price stays paid" in each for each in asked(session)] == [True, False, False]
    finally:
        run(f"DROP EVENT TRIGGER {name}_login")
