"""A table of PostgreSQL as statements see it: what the catalog says of it, and the SELECT of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.engines.base import (
    UNIT_COLUMN,
    is_kept,
    pointer_column,
    unread_column,
)
from sfumato.engines.postgres.address import Address
from sfumato.engines.postgres.columns import (
    Column,
    id_of,
    is_exact,
    is_unread,
    may_fail,
    pointer_of,
    quoted,
    value_of,
)
from sfumato.engines.postgres.dialect import POSTGRES
from sfumato.engines.postgres.strangers import sentence_of
from sfumato.engines.prepared import METADATA, Note, note_of, unreadable
from sfumato.engines.templates import with_doubles
from sfumato.errors import SourceUnusable
from sfumato.schema import Kind

__all__ = [
    "COLUMNS",
    "RELATION",
    "Relation",
    "Table",
    "check",
    "plan_table",
    "relation_of",
    "why_not",
]

RELATION = """
    WITH RECURSIVE parts AS (
        SELECT c.oid, c.relkind, c.relispopulated, pg_catalog.has_schema_privilege(n.oid, 'USAGE') AS entered
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        UNION ALL
        SELECT c.oid, c.relkind, c.relispopulated, parts.entered
        FROM parts JOIN pg_catalog.pg_inherits AS i ON i.inhparent = parts.oid
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    )
    SELECT oid::bigint, relkind::text, pg_catalog.row_security_active(oid),
        pg_catalog.has_table_privilege(oid, 'SELECT'), relispopulated,
        pg_catalog.obj_description(oid, 'pg_class'), entered
    FROM parts
"""
"""The table with the tables that its rows are in: partitions, and those that inherit from it."""

COLUMNS = """
    WITH RECURSIVE base AS (
        SELECT a.attnum, a.attname, a.attgenerated, a.atttypid AS type, a.atttypmod AS modifier
        FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
            AND pg_catalog.right(
                (pg_catalog.pg_identify_object(
                    'pg_catalog.pg_class'::regclass, a.attrelid, a.attnum
                )).identity,
                pg_catalog.length(pg_catalog.quote_ident(a.attname)) + 1
            ) = '.' || pg_catalog.quote_ident(a.attname)
        UNION ALL
        SELECT b.attnum, b.attname, b.attgenerated, t.typbasetype, t.typtypmod
        FROM base AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.type WHERE t.typtype = 'd'
    )
    SELECT b.attname::text, b.attgenerated::text, t.typname::text, t.typtype::text, b.modifier,
        t.typnamespace = 'pg_catalog'::regnamespace AND t.oid < 16384, b.attnum::int,
        t.typname = 'citext' AND t.typtype = 'b' AND EXISTS (
            SELECT 1 FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
            WHERE p.oid = t.typoutput AND l.lanname = 'internal' AND p.prosrc = 'textout'
        ) AND EXISTS (
            SELECT 1 FROM pg_catalog.pg_depend AS d
            JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'citext'
            WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
                AND d.refclassid = 'pg_catalog.pg_extension'::regclass
        )
    FROM base AS b JOIN pg_catalog.pg_type AS t ON t.oid = b.type WHERE t.typtype <> 'd' ORDER BY b.attnum
"""
"""Its columns, domains by their base types. Types below 16384 came with PostgreSQL itself.

The server says what a column is called now, whatever the transaction sees: one renamed since is none."""


@dataclass(frozen=True, slots=True)
class Relation:
    """What the catalog says of a table; the same as long as nobody alters it.

    Attributes:
        parts: It, and what its rows are in: id, kind, whether row security applies, whether it may be read
            and has been filled.
        columns: Its columns.
        note: What a prepared table says about itself; None: it was not prepared.
        strange: What a read of it would run that is a user's, as a sentence; empty: nothing.
        is_entered: Whether the role may use the schema that it is in.
    """

    parts: tuple[tuple[int, str, bool, bool, bool], ...]
    columns: tuple[Column, ...]
    note: str | None = None
    strange: str = ""
    is_entered: bool = True

    def is_as(self, other: Relation) -> bool:
        """Whether it is the same table with the same columns; the parts that rows are in may be others."""
        return (self.parts[:1], self.columns, self.note) == (other.parts[:1], other.columns, other.note)


@dataclass(frozen=True, slots=True)
class Table:
    """An attached table.

    Attributes:
        address: Where it is.
        relation: What the catalog said of it when it was attached.
        view: The SELECT that stands for it in statements.
        has_unit: Whether the ids of units are among its columns.
        unread: The declared columns of which it says which cells could not be read.
        exact: The declared columns that keep apart what the source does.
        is_prepared: Whether the ranks of rows are among its columns.
        grouping: The columns whose groups are ranked as well, as they are declared; empty: there are none.
    """

    address: Address
    relation: Relation
    view: exp.Select
    has_unit: bool
    unread: frozenset[str] = frozenset()
    exact: tuple[str, ...] = ()
    is_prepared: bool = False
    grouping: tuple[str, ...] = ()

    @property
    def oid(self) -> int:
        """The table's own id."""
        return self.relation.parts[0][0]


def check(relation: Relation, shown: str) -> None:
    """Refuse what is no plain table that this role may read whole.

    Raises:
        SourceUnusable: if it is missing, a view, foreign, or not to be read.
    """
    why = why_not(relation)
    if why:
        raise SourceUnusable(f"{shown}{why}")


def why_not(relation: Relation) -> str:
    """Why a table is not read, as the end of a sentence; empty if it is."""
    if not relation.parts:
        return " does not exist; correct the source."
    _, kind, _, readable, filled = relation.parts[0]
    if not relation.is_entered:
        return " may not be read by this role; grant it USAGE on the schema."
    if not readable:
        return " may not be read by this role; grant it SELECT on the table."
    if kind == "v":
        return (
            " is a view: it may call functions, and its rows may depend on one another. "
            "Name the table itself, or a materialized view."
        )
    if not filled:
        return " is a materialized view that was never filled; REFRESH MATERIALIZED VIEW fills it."
    if any(part[1] == "f" for part in relation.parts):
        return " has rows on another server; name a table that is on this one."
    if any(part[2] for part in relation.parts):
        return (
            " has row security: which rows this role sees may depend on others. "
            "Grant BYPASSRLS to the role, or name a table without policies."
        )
    return f": {relation.strange}" if relation.strange else ""


def plan_table(
    address: Address,
    relation: Relation,
    columns: Mapping[str, Kind],
    *,
    unit: str | None,
    pointers: Sequence[str],
) -> Table:
    """How statements see a table.

    The SELECT ends in `OFFSET 0`: the planner keeps what it knows of the table (keys, constraints, indexes,
    statistics) behind it, and so nothing but a row itself decides whether the row counts.

    Raises:
        SourceUnusable: if a column is missing, computed as it is read, or cannot have that kind or be an id,
            a name is kept, or the table was prepared for another declaration.
    """
    shown = address.shown
    for name in columns:
        if is_kept(name):
            raise SourceUnusable(f'{shown}: the name "{name[:100]}" is kept; rename that column.')
    known = {column.name: column for column in relation.columns}
    note = None if unit is None else _note(relation, known, columns, unit, pointers, shown)
    ids = UNIT_COLUMN if note is not None else unit
    pointed = {name: ids if note is not None and name == note.unit else name for name in pointers}
    for name in (*columns, *([] if ids is None else [ids]), *map(str, pointed.values())):
        if name not in known:
            raise SourceUnusable(
                f'{shown} has no column "{name[:100]}"; correct the unit, the schema or the source.'
            )
        if known[name].generated == "v":
            raise SourceUnusable(
                f'{shown}: column "{name[:100]}" is computed as rows are read, and a row could make the read '
                "fail; store it (GENERATED ALWAYS AS … STORED)."
            )
    parts = [(name, value_of(known[name], kind, shown)) for name, kind in columns.items()]
    unread = {name: value for name, value in parts if columns[name] != "text" and may_fail(name, value)}
    parts += [(unread_column(name), is_unread(known[name], value)) for name, value in unread.items()]
    if ids is not None:
        parts.append((UNIT_COLUMN, id_of(known[ids], shown)))
    parts += [(pointer_column(name), pointer_of(known[str(at)], shown)) for name, at in pointed.items()]
    grouping = () if note is None else note.grouping(columns)
    if note is not None:
        parts += [(rank, quoted(rank)) for rank in (note.ranks if grouping else note.ranks[:1])]
    return Table(
        address,
        relation,
        _view(address, parts),
        unit is not None,
        frozenset(unread),
        tuple(
            name
            for name, kind in columns.items()
            if is_exact(known[name], kind) and (note is None or name in note.exact)
        ),
        note is not None,
        grouping,
    )


def _view(address: Address, parts: Sequence[tuple[str, str]]) -> exp.Select:
    select = ", ".join(f"{value} AS {quoted(name)}" for name, value in parts) or 'NULL AS "nothing"'
    text = f"SELECT {select} FROM {quoted(address.schema)}.{quoted(address.table)} OFFSET 0"
    view = with_doubles(sqlglot.parse_one(text, dialect=POSTGRES.writer))
    assert isinstance(view, exp.Select)
    for part in view.expressions:  # written once, not with each statement
        part.this.replace(exp.Var(this=POSTGRES.text(part.this)))
    return view


def _note(
    relation: Relation,
    known: Mapping[str, Column],
    columns: Mapping[str, Kind],
    unit: str,
    pointers: Sequence[str],
    shown: str,
) -> Note | None:
    """What a prepared table says of itself, if it serves what is declared; None: it was not prepared.

    Raises:
        SourceUnusable: if it was prepared by another version or for another declaration, or its columns are
            not what was written.
    """
    if relation.note is None:
        return None
    note = note_of(relation.note.removeprefix(METADATA))
    ranks = [] if note is None else [known.get(name) for name in (UNIT_COLUMN, *note.ranks)]
    # A computed column may give another value in each read.
    stored = all(column is not None and not column.generated for column in ranks)
    if note is None or not stored or any(column and column.type != "int8" for column in ranks[1:]):
        raise unreadable(shown)
    note.check(columns, unit, shown)
    for pointer in pointers:
        if pointer != note.unit and pointer not in note.exact:
            raise SourceUnusable(
                f'{shown} was prepared without "{pointer[:100]}" as its source has it, and other tables '
                "point to that column; name the source itself."
            )
    return note


def relation_of(
    parts: Sequence[Sequence[Any]], columns: Sequence[Sequence[Any]], strangers: Sequence[Sequence[Any]]
) -> Relation:
    """What the three queries gave; the table itself is first, the others in the order of their ids."""
    read = [(int(p[0]), str(p[1]), bool(p[2]), bool(p[3]), bool(p[4])) for p in parts]
    if not read:
        return Relation((), ())
    first, *others = read
    comment = parts[0][5] or ""
    note = str(comment) if str(comment).startswith(METADATA) else None
    known = tuple(Column(*row) for row in columns)
    return Relation((first, *sorted(others)), known, note, sentence_of(strangers), bool(parts[0][6]))
