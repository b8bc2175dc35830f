"""A prepared table in PostgreSQL: made by one statement in one transaction, beside the table it is made of.

It has the ids of units, the declared columns in their canonical types and the ranks, as a prepared file has.
What it is says the comment on the table (`engines.prepared`); that it stays so, its bolt (`bolt`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import sqlglot
from sqlglot import exp

from sfumato.engines._preparing import FAILED, Prepared, Wanted, ran
from sfumato.engines.base import Source
from sfumato.engines.postgres.address import Address, locate, psycopg
from sfumato.engines.postgres.asking import locking, look, parse_fault, relation_at
from sfumato.engines.postgres.bolt import BOLT
from sfumato.engines.postgres.columns import quoted
from sfumato.engines.postgres.dialect import POSTGRES
from sfumato.engines.postgres.door import is_plain
from sfumato.engines.postgres.engine import Postgres
from sfumato.engines.postgres.relations import Relation, Table, plan_table
from sfumato.engines.postgres.statements import named_in, text_of
from sfumato.engines.prepared import METADATA
from sfumato.engines.ranking import by_windows
from sfumato.errors import InvalidParameter, SourceUnusable

__all__ = ["write"]

_NAME = "sfumato"
_LONGEST = 63  # bytes of a name; PostgreSQL cuts off the rest
_PLACE = ("host", "hostaddr", "port", "dbname")
_SENTENCES = {
    "42P07": "is there already; name another one.",
    "42501": "may not be made by this role; grant it USAGE and CREATE on the schema, SELECT on the source.",
    "3F000": "has no schema to be in; create the schema first.",
    "2BP01": "is there already, and others depend on it; name another one.",
}
"""What is said of the table to be made, by the code of the server's error."""


def write(wanted: Wanted, path: Source, *, force: bool, limits: Mapping[str, Any]) -> Prepared:
    """Make a prepared table of a table in PostgreSQL, in the same database.

    Args:
        wanted: What is to be prepared.
        path: The address of the new table, with the role that makes it: it reads the source, too.
        force: Whether to put it in the place of one that was prepared before.
        limits: Those of the engine.

    Privacy:
        As of `engines.prepare.prepare`: the statement is the one of `engines.ranking`, in this dialect, and
        windows have an order that no two rows share unless they are the same row. Nobody sees the table
        before it is whole: it is made, bolted and described in one transaction. Beside its owner, the role
        that the source is read as may read it, and nobody by our doing. Event triggers of the database on
        statements that make tables run here, as for every table; this is steward's work, and answers nobody.

    Raises:
        InvalidParameter: if the address is not one in the source's database, or is taken.
        SourceUnusable: if the rows cannot be read, or the table cannot be made.
    """
    source, target = _places(wanted, path)
    with Postgres(**limits) as engine:
        read = replace(source, server=target.server)
        planned = plan_table(read, engine._described(read), wanted.kinds, unit=wanted.unit, pointers=())
        text = _statement(wanted, planned)
        note = wanted.note(planned.exact, POSTGRES.digest)
        held: list[Any] = []
        make = _maker(target, planned, text, note, _reader(source, target), force=force)

        def work() -> int | str:
            connection = engine._connection(target.server, held)
            connection.execute(";".join([engine._beginning(connection, writes=True), locking([planned])]))
            return _tried(lambda: make(connection))

        def interrupt() -> None:
            for connection in held:
                with contextlib.suppress(Exception):
                    connection.cancel_safe(timeout=5)

        try:
            done = ran(work, interrupt, engine.timeout)
        finally:
            engine._give_back(held, keep=False)
    if done is None:
        raise SourceUnusable(f"{source.shown} {FAILED}")
    if isinstance(done, str):
        raise InvalidParameter(f"{target.shown} {done}")
    return wanted.made(str(path), done)


def _places(wanted: Wanted, path: Source) -> tuple[Address, Address]:
    """Where the rows are, and where they go."""
    form = "postgresql://writer@host/database::schema.table"
    if not _is_address(wanted.table.source):
        raise InvalidParameter(
            f"{wanted.table.name} is not read from PostgreSQL; prepare it to a file that ends in .duckdb."
        )
    if not _is_address(path):
        raise InvalidParameter(
            f"{wanted.table.name} is in PostgreSQL, and so is its prepared table; say where, as in {form}."
        )
    source, target = locate(wanted.table.source), locate(path)
    if any(source.server.get(part) != target.server.get(part) for part in _PLACE):
        raise InvalidParameter(
            f"{target.shown} is in another database than its source; write the server and the database as "
            "the source has them."
        )
    if (source.schema, source.table) == (target.schema, target.table):
        raise InvalidParameter(f"{target.shown} is what the rows are read from; name another one.")
    if any(len(name.encode()) > _LONGEST for name in (target.schema, target.table)):
        raise InvalidParameter(f"{target.shown} has a name of more than {_LONGEST} bytes; shorten it.")
    return source, target


def _is_address(source: Source) -> bool:
    return isinstance(source, str) and "://" in source


def _reader(source: Address, target: Address) -> str | None:
    """The role that reads the source, if another one makes the table: it may then read that one, too."""
    role = source.server.get("user")
    return None if role in (None, target.server.get("user")) else str(role)


def _statement(wanted: Wanted, planned: Table) -> str:
    """The SELECT of the rows with their ranks, over the view of the source."""
    tables = {wanted.table.name.lower(): planned}
    ranked = by_windows(
        wanted.table.name, wanted.kinds, wanted.salt, POSTGRES, wanted.groups, narrow="BIGINT"
    )
    tree = sqlglot.parse_one(ranked, dialect=POSTGRES.writer)
    named = named_in(tree, tables) if isinstance(tree, exp.Select) else None
    text = "" if named is None else text_of(tree, tables, named)
    assert is_plain(text)
    return text


def _maker(
    target: Address, source: Table, text: str, note: str, reader: str | None, *, force: bool
) -> Callable[[Any], int | str]:
    """What makes the table and gives its size in bytes, or a sentence that says why it is not made."""
    place = f"{quoted(target.schema)}.{quoted(target.table)}"
    said = (METADATA + note).replace("'", "''")

    def make(connection: Any) -> int | str:
        if parse_fault(connection, _NAME, text):
            raise psycopg().DataError  # as all else that fails
        seen = look(connection, [source])
        if not seen.is_known:
            raise psycopg().DataError
        taken = _taken(relation_at(connection, target), force=force)
        if taken:
            return taken
        if seen.has_changed or seen.is_unfit:
            return "cannot be made: its source changed; try again."
        if force:
            connection.execute(f"DROP TABLE IF EXISTS {place}")
        connection.execute(f"CREATE TABLE {place} AS EXECUTE {_NAME}")
        connection.execute(f"ALTER TABLE {place} ADD {BOLT}")
        connection.execute(f"COMMENT ON TABLE {place} IS '{said}'")
        if reader is not None:
            connection.execute(f"GRANT SELECT ON {place} TO {quoted(reader)}")
        ((size,),) = connection.execute(
            "SELECT pg_catalog.pg_total_relation_size(%s::regclass)", (place,)
        ).fetchall()
        connection.execute("COMMIT")
        return int(size)

    return make


def _taken(there: Relation, *, force: bool) -> str:
    """Why a name cannot be taken; empty if it can."""
    if not there.parts or (force and there.note is not None):
        return ""
    if there.note is not None:
        return "is there already; --force (force=True) writes over it."
    return "is there already, and was not prepared; name another one."


def _tried(work: Callable[[], int | str]) -> int | str:
    """What it gives, or a sentence for an error of the server that has one."""
    driver, code = psycopg(), None
    try:
        return work()
    except driver.Error as error:
        code = error.sqlstate
        if code not in _SENTENCES:
            raise
    return _SENTENCES[str(code)]
