"""Any test on another engine: `pytest --on spark tests/sql`.

Sessions that name no engine and read what is in memory, or Parquet files, get that engine, and so do
statements that are run by `rows_below`. What does not hold there is in `GAPS`, and strictly so: a test that
is listed and passes fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine_gaps import mark_gaps

if TYPE_CHECKING:
    import duckdb
    from sqlglot import exp

    from sfumato.engines.dialect import Dialect

__all__ = ["MAKERS", "SUITE", "is_portable", "rows_below"]

SUITE = (
    *("sql/test_aggregates.py", "sql/test_levels.py", "sql/test_lower.py", "sql/test_meaning.py"),
    *("sql/test_shape_meaning.py", "sql/test_tpch.py"),
    *("session/test_auto_bounds.py", "session/test_choices.py", "session/test_coarse_groups.py"),
    *("session/test_exact_rows.py", "session/test_google.py", "session/test_group_profile.py"),
    *("session/test_huge_constants.py", "session/test_level_shapes.py", "session/test_limiting.py"),
    *("session/test_long_keys.py", "session/test_meant.py", "session/test_means.py"),
    *("session/test_other_keys.py", "session/test_profile.py", "session/test_quantile_release.py"),
    *("session/test_refused_unpaid.py", "session/test_replay.py", "session/test_row_reads.py"),
    *("session/test_rows_wanted.py", "session/test_session.py", "session/test_text_rows.py"),
    *("session/test_times.py", "session/test_two_rounds.py", "session/test_unknown_keys.py"),
    "session/test_windows.py",
)
"""The files whose tests ask questions that any engine answers."""


def _postgres() -> Any:
    from postgres_engine import FilledPostgres, shared

    shared()
    return FilledPostgres()


def _spark() -> Any:
    import spark

    made = spark.started()
    for name, value in spark.INTERPRETED.items():
        made._spark.conf.set(name, value)
    attach = made.attach

    def attached(name: str, source: Any, *more: Any, **options: Any) -> None:
        in_memory = type(source).__module__.startswith("pyarrow")
        attach(name, spark.untimed(source) if in_memory else source, *more, **options)

    made.attach = attached
    return made


def _postgres_store() -> Any:
    from postgres_engine import PostgresStore, shared

    shared()
    return PostgresStore()


def _spark_store() -> Any:
    import spark

    return spark.SparkStore()


_STORES: dict[str, Callable[[], Any]] = {"postgres": _postgres_store, "spark": _spark_store}
MAKERS: dict[str, Callable[[], Any]] = {"postgres": _postgres, "spark": _spark}


def is_portable(source: Any) -> bool:
    """Whether the tests can give a source to any engine: rows in memory, or one Parquet file."""
    if isinstance(source, str | Path):
        return str(source).endswith(".parquet") and Path(source).is_file()
    return type(source).__module__.startswith("pyarrow")


_on: list[_On] = []


def rows_below(
    connection: duckdb.DuckDBPyConnection, make: Callable[[Dialect], exp.Expr], tables: Iterable[str]
) -> list[tuple[Any, ...]]:
    """What a statement gives: on a connection of DuckDB, or on the engine that tests run on.

    Args:
        connection: Has the tables.
        make: The statement in a dialect.
        tables: What it may name; another engine gets them from the connection.
    """
    from sfumato.engines.dialect import DUCKDB

    if not _on:
        return connection.execute(DUCKDB.text(make(DUCKDB))).fetchall()
    store = _STORES[_on[0].name]()
    for name in tables:
        store.fill(name, connection.sql(f'SELECT * FROM "{name}"').to_arrow_table())
    _on[0].reads += 1
    _, rows = store.execute(store.text(make(store.dialect)))
    return [tuple(int(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in rows]


def pytest_addoption(parser):
    parser.addoption("--on", choices=sorted(MAKERS), help="run what names no engine on this one")


def pytest_configure(config):
    name = config.getoption("--on")
    if name is not None:
        _on.append(_On(name))
        config.pluginmanager.register(_on[0])


class _On:
    """Puts an engine below all sessions, and counts the tests that read on it."""

    def __init__(self, name: str) -> None:
        self.name, self.reads, self.tests, self.reading = name, 0, 0, 0
        from sfumato.session import session

        before = session._opened

        def opened(engine: Any, tables: Sequence[Any]) -> Any:
            if engine is None and all(is_portable(table.source) for table in tables):
                return self._counted(MAKERS[name]())
            return before(engine, tables)

        session._opened = opened

    def _counted(self, made: Any) -> Any:
        fetch = made.fetch

        def counted(*arguments: Any, **options: Any) -> Any:
            self.reads += 1
            return fetch(*arguments, **options)

        made.fetch = counted
        return made

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        for item in items:
            mark_gaps(item, self.name)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        before = self.reads
        try:
            return (yield)
        finally:
            self.tests += 1
            self.reading += self.reads > before

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.write_line(
            f"{self.reading:,} of {self.tests:,} tests read on {self.name}, {self.reads:,} reads"
        )
