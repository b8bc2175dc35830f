"""The bolt of a prepared table: a constraint by which the server takes no new rows and changes none.

A check that is false holds for no row that is written; that it is `NOT VALID` leaves out the rows that were
there before. It can be dropped and made anew, which gives it another number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["BOLT", "Bolt", "bolts_of"]

Bolt = tuple[int, ...]
"""Numbers of a table, its file and its bolt."""

BOLT = 'CONSTRAINT "sfumato: a prepared table is not written to" CHECK (FALSE) NOT VALID'

_BOLTS = """
    SELECT c.oid::bigint, pg_catalog.pg_relation_filenode(c.oid)::bigint, k.oid::bigint, k.xmin::text::bigint
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_constraint AS k ON k.conrelid = c.oid
    WHERE c.oid = ANY(%s) AND k.contype = 'c'
        AND pg_catalog.pg_get_constraintdef(k.oid) = 'CHECK (false) NOT VALID'
        AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid)
    ORDER BY 1, 3 LIMIT 100
"""


def bolts_of(connection: Any, tables: Sequence[int]) -> tuple[Bolt, ...] | None:
    """The bolts of tables, by their numbers, as this transaction sees them; None if one has none.

    Privacy:
        Claim: between two transactions that see the same bolts, no row of the tables was added or changed,
        as long as the columns are the same; rows may be gone. Reason: INSERT, UPDATE, MERGE, COPY and
        replication all check a constraint, for every role and in every mode; one that is dropped and made
        anew has another number and another transaction (`xmin`); what rewrites a table gives it another file.
        Conditions: nobody writes to the catalogs of the server themselves, which only a superuser may. A
        table from which others inherit, which have rows of their own, has no bolt here.
    """
    found = [tuple(map(int, row)) for row in connection.execute(_BOLTS, (list(tables),)).fetchall()]
    return tuple(found) if {bolt[0] for bolt in found} == set(tables) and tables else None
