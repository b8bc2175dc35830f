"""Functions of users that the server would run for a read: found in the catalog, before anything is paid.

While a read is planned, PostgreSQL computes what is constant in the expressions of indexes, of statistics and
of partition keys, and so runs the functions in them. While it is run, a cast or a function that somebody put
beside those of PostgreSQL itself can take their place. Before a read, a trigger on logins runs for its
connection, and so once before it is found. Such a function can do anything: fail for one row of some table,
or give another answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["STRANGERS", "sentence_of"]

STRANGERS = """
    WITH RECURSIVE parts AS (
        SELECT %s::oid AS oid
        UNION ALL
        SELECT i.inhrelid FROM parts JOIN pg_catalog.pg_inherits AS i ON i.inhparent = parts.oid
    ), computed AS (
        SELECT 'pg_catalog.pg_class'::regclass AS class, x.indexrelid AS oid, 'index' AS sort
        FROM parts JOIN pg_catalog.pg_index AS x ON x.indrelid = parts.oid
        WHERE x.indexprs IS NOT NULL OR x.indpred IS NOT NULL
        UNION ALL
        SELECT 'pg_catalog.pg_statistic_ext'::regclass, s.oid, 'statistics'
        FROM parts JOIN pg_catalog.pg_statistic_ext AS s ON s.stxrelid = parts.oid
        WHERE s.stxexprs IS NOT NULL
        UNION ALL
        SELECT 'pg_catalog.pg_class'::regclass, p.partrelid, 'key'
        FROM parts JOIN pg_catalog.pg_partitioned_table AS p ON p.partrelid = parts.oid
    )
    SELECT f.sort, COALESCE(
        (SELECT c.relname FROM pg_catalog.pg_class AS c WHERE c.oid = f.oid AND f.sort <> 'statistics'),
        (SELECT s.stxname FROM pg_catalog.pg_statistic_ext AS s WHERE s.oid = f.oid AND f.sort = 'statistics')
    )::text
    FROM computed AS f
    WHERE EXISTS (
        SELECT 1 FROM pg_catalog.pg_depend AS d
        WHERE d.classid = f.class AND d.objid = f.oid AND d.refobjid >= 16384 AND (
            d.refclassid IN ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass)
            OR (f.sort = 'key' AND d.refclassid = 'pg_catalog.pg_opclass'::regclass)
        )
    )
    UNION ALL
    SELECT 'cast', pg_catalog.format_type(c.castsource, NULL) || ' AS '
        || pg_catalog.format_type(c.casttarget, NULL)
    FROM pg_catalog.pg_cast AS c
    WHERE c.oid >= 16384 AND c.castmethod = 'f' AND c.castsource < 16384 AND c.casttarget < 16384
    UNION ALL
    SELECT 'function', p.proname::text FROM pg_catalog.pg_proc AS p
    WHERE p.oid >= 16384 AND p.pronamespace = 'pg_catalog'::regnamespace AND EXISTS (
        SELECT 1 FROM pg_catalog.pg_proc AS own WHERE own.proname = p.proname AND own.oid < 16384
    )
    UNION ALL
    SELECT 'operator', o.oprname::text FROM pg_catalog.pg_operator AS o
    WHERE o.oid >= 16384 AND o.oprnamespace = 'pg_catalog'::regnamespace
    UNION ALL
    SELECT 'trigger', e.evtname::text FROM pg_catalog.pg_event_trigger AS e
    WHERE e.evtevent = 'login' AND e.evtenabled <> 'D' AND e.evtfoid >= 16384
    ORDER BY 1, 2 LIMIT 10
"""
"""What a read of a table would run, by its sort. Objects below 16384 came with PostgreSQL itself."""

_SENTENCES = {
    "index": (
        'the index "{}" calls a function or operator of a user, which the server may run while it plans a '
        "read; drop it, or name a copy of the table or a materialized view."
    ),
    "statistics": (
        'the statistics "{}" call a function or operator of a user, which the server may run while it plans '
        "a read; drop them, or name a copy of the table or a materialized view."
    ),
    "key": (
        'the key by which "{}" is partitioned calls a function or operator of a user, which the server may '
        "run while it plans a read; name a copy of the table or a materialized view."
    ),
    "cast": (
        "the database has a cast of its own between types of PostgreSQL, {}, which reads would run; drop it."
    ),
    "function": (
        'the database has a function "{}" of its own beside the one of PostgreSQL, which reads would run; '
        "drop it, or move it to another schema."
    ),
    "operator": (
        'the database has an operator "{}" of its own in the schema pg_catalog, which reads would run; drop '
        "it, or move it to another schema."
    ),
    "trigger": (
        'the database has an event trigger "{}" on logins, which runs a function of a user for each '
        "connection; disable it, or read a database without."
    ),
}


def sentence_of(strangers: Sequence[Sequence[Any]]) -> str:
    """What a read would run that is a user's, and what to do; empty if there is nothing."""
    if not strangers:
        return ""
    sort, name = strangers[0]
    return _SENTENCES[str(sort)].format(str(name)[:100])
