"""What a transaction asks beside its statement: which tables names were taken for, and what they are now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines.postgres.address import Address, psycopg
from sfumato.engines.postgres.bolt import Bolt, bolts_of
from sfumato.engines.postgres.columns import quoted
from sfumato.engines.postgres.relations import COLUMNS, RELATION, Relation, Table, relation_of, why_not
from sfumato.engines.postgres.strangers import STRANGERS

__all__ = [
    "GUARD",
    "OLDEST",
    "Guard",
    "Seen",
    "fault",
    "is_for_good",
    "locking",
    "look",
    "parse_fault",
    "relation_at",
    "unusable",
]

OLDEST = 170_000
"""The least version of a server."""

GUARD = "sfumato_guard"
"""Under which name a guard is known to the server."""

# LOCK takes no snapshot: what a transaction sees is then as new as its locks. Only tables can be locked so;
# of a materialized view no type can change, and for names `COLUMNS` asks what they are now.
_LOCK = "LOCK TABLE {} IN ACCESS SHARE MODE"
_LOCKED = """
    SELECT l.relation::bigint FROM pg_catalog.pg_locks AS l
    WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation'
        AND l.relation <> 'pg_catalog.pg_locks'::regclass
"""
_FOR_GOOD = frozenset({"42501", "42P01", "3F000"})
# Catalogs are indexed by numbers and by the bytes of names: no collation makes their indexes lack rows.
_BY_INDEX, _BY_ROWS = "SET LOCAL enable_indexscan = on", "SET LOCAL enable_indexscan = off"


class Guard:
    """A guard of a read, which is run unless it was found to hold in the state that the tables are in."""

    def __init__(self, text: str, tables: tuple[Table, ...], held: dict[str, tuple[Bolt, ...]]) -> None:
        self.text, self._tables, self._held = text, tables, held

    def holds(self, connection: Any) -> bool:
        """Whether it is 0 for what this transaction sees."""
        bolts = bolts_of(connection, sorted({table.oid for table in self._tables}))
        if bolts is not None and self._held.get(self.text) == bolts:
            return True
        if [tuple(row) for row in connection.execute(f"EXECUTE {GUARD}").fetchall()] != [(0,)]:
            return False
        if bolts is not None:
            self._held[self.text] = bolts
        return True


def parse_fault(connection: Any, name: str, text: str) -> str:
    """The code of what is wrong with a text; empty: the server keeps it under a name for this transaction."""
    return fault(connection.pgconn.prepare(name.encode(), text.encode()))


def fault(done: Any) -> str:
    """The code of what went wrong with a message; empty: nothing."""
    pq = psycopg().pq
    if done.status == pq.ExecStatus.COMMAND_OK:
        return ""
    return (done.error_field(pq.DiagnosticField.SQLSTATE) or b"XX000").decode()


def is_for_good(code: str | None) -> bool:
    """Whether what went wrong is of the role's rights and of names, and so would go wrong with each question.

    Else it is of the one question, or over at the next: locks, limits, a server without room.
    """
    return code in _FOR_GOOD


@dataclass(frozen=True, slots=True)
class Seen:
    """What a transaction is told of tables before it reads them.

    Attributes:
        is_known: Whether the server took all names of what it has read for these tables.
        has_changed: Whether one of them has other columns than when it was attached.
        is_unfit: Whether one of them would no longer be attached: a part of it is on another server, say.
    """

    is_known: bool
    has_changed: bool
    is_unfit: bool = False


def locking(tables: Sequence[Table]) -> str:
    """What locks tables before anything else of a transaction looks at them; empty if none can be."""
    places = [
        f"{quoted(table.address.schema)}.{quoted(table.address.table)}"
        for table in tables
        if table.relation.parts[0][1] in ("r", "p")
    ]
    return _LOCK.format(", ".join(places)) if places else ""


def look(connection: Any, tables: Sequence[Table]) -> Seen:
    """What the server says of tables, in one message: each answer that is waited for takes time."""
    asked, names = [_LOCKED, _BY_INDEX], list[object]()
    for table in tables:
        asked += [RELATION, COLUMNS, STRANGERS]
        names += [table.address.schema, table.address.table, table.oid, table.oid]
    cursor = psycopg().ClientCursor(connection)
    cursor.execute(";".join([*asked, _BY_ROWS]), names)
    locked, *found = _results(cursor)
    relations = [relation_of(*three) for three in zip(found[::3], found[1::3], found[2::3], strict=True)]
    known = {part[0] for relation in relations for part in relation.parts}
    return Seen(
        {oid for (oid,) in locked} <= known,
        not all(now.is_as(table.relation) for now, table in zip(relations, tables, strict=True)),
        any(why_not(now) for now in relations),
    )


def _results(cursor: Any) -> Iterator[list[Any]]:
    """The rows of each statement of a message that has rows."""
    more: object = True
    while more:
        if cursor.description is not None:
            yield cursor.fetchall()
        more = cursor.nextset()


def relation_at(connection: Any, address: Address) -> Relation:
    """What the catalog says of a table; of one that is not there, nothing."""
    parts = connection.execute(RELATION, (address.schema, address.table)).fetchall()
    columns, strangers = (
        connection.execute(query, (parts[0][0],)).fetchall() if parts else []
        for query in (COLUMNS, STRANGERS)
    )
    return relation_of(parts, columns, strangers)


def unusable(connection: Any) -> str:
    """Why a server is not one that was tried; empty if it is."""
    if connection.info.server_version < OLDEST:
        return "the server is older than PostgreSQL 17, which is needed."
    if connection.info.parameter_status("server_encoding") != "UTF8":
        return "the database is not in UTF8; dump it into one that is."
    return ""
