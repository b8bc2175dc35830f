"""What a transaction begins with: all that a statement could depend on is set for it alone."""

from __future__ import annotations

__all__ = ["beginning"]

_SETTINGS = {
    "search_path": "pg_catalog, pg_temp",  # no schema of a user can put a function or operator before ours
    "standard_conforming_strings": "on",
    "row_security": "off",  # a policy that applies is an error, not a choice of rows
    "DateStyle": "'ISO, YMD'",
    "IntervalStyle": "'postgres'",
    "TimeZone": "'UTC'",
    "extra_float_digits": "1",
    "bytea_output": "'hex'",
    "transform_null_equals": "off",
    "constraint_exclusion": "off",  # what a constraint says of rows is not asked
    "enable_partition_pruning": "off",
    "enable_indexscan": "off",  # an index of an older collation may lack rows
    "enable_indexonlyscan": "off",
    "enable_bitmapscan": "off",
    "enable_tidscan": "off",
    "jit": "off",
    "idle_in_transaction_session_timeout": "'10min'",
}
_LATER = {180_000: {"enable_self_join_elimination": "off"}}  # it trusts unique indexes


def beginning(
    version: int, threads: int | None, memory: str | None, timeout: float | None, *, writes: bool = False
) -> str:
    """The statements, which hold behind a pooler, too; the transaction sees one state of all tables.

    Args:
        version: The server's.
        threads: How many processes a statement may use.
        memory: How much memory one step of it may use.
        timeout: How many seconds it may take.
        writes: Whether a table is made in it.
    """
    settings = dict(_SETTINGS)
    for since, later in _LATER.items():
        settings |= later if version >= since else {}
    if threads is not None:
        settings["max_parallel_workers_per_gather"] = str(threads - 1)
    if memory is not None:
        settings["work_mem"] = f"'{memory}'"
    settings["statement_timeout"] = str(0 if timeout is None else round(timeout * 1000) + 1000)
    sets = "; ".join(f"SET LOCAL {name} = {value}" for name, value in settings.items())
    mode = "READ WRITE" if writes else "READ ONLY"
    return f"BEGIN ISOLATION LEVEL REPEATABLE READ {mode}; {sets}"
