"""One suite for all engines: an engine joins by an entry in ENGINES.

Tests that take `one` or `make` run on each of them: they ask for what `Engine` promises. What is DuckDB's own
(its files, its lock, its settings, its limits) has the mark `duckdb`. Where an engine takes less than another
one, a list in the test says what, and what is not on it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlglot import parse_one

from datafusion_engine import DataFusion
from postgres_engine import FilledPostgres, shared
from sfumato.engines import DuckDB, Engine


def _postgres(**options: Any) -> Engine:
    shared()  # starts the server, or skips
    return FilledPostgres(**options)


ENGINES: dict[str, Callable[..., Engine]] = {
    "datafusion": DataFusion,
    "duckdb": lambda **options: DuckDB(**{"threads": 2, "memory": "1GB", **options}),
    "postgres": _postgres,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test once for each engine that it is about."""
    if "which" in metafunc.fixturenames:
        own = metafunc.definition.get_closest_marker("duckdb")
        metafunc.parametrize("which", ["duckdb"] if own else sorted(ENGINES), scope="module")


def _engines(which: str) -> Iterator[Callable[..., Engine]]:
    made: list[Engine] = []

    def build(**options: Any) -> Engine:
        made.append(ENGINES[which](**options))
        return made[-1]

    yield build
    for each in made:
        each.close()


@pytest.fixture
def make(which: str) -> Iterator[Callable[..., Engine]]:
    """Makes engines of one kind with options, and closes them."""
    yield from _engines(which)


@pytest.fixture(scope="module")
def make_shared(which: str) -> Iterator[Callable[..., Engine]]:
    """The same for the tests of a module together: an instance of DuckDB takes longer than most reads."""
    yield from _engines(which)


@pytest.fixture
def one(make: Callable[..., Engine]) -> Engine:
    """An engine with ordinary limits."""
    return make()


@pytest.fixture
def rows() -> Callable[..., list[tuple[Any, ...]]]:
    """Runs SQL text (as DuckDB writes it, NaN apart) and gives plain rows."""

    def fetch(on: Engine, text: str) -> list[tuple[Any, ...]]:
        text = text.replace("isnan(x)", on.dialect.is_nan.replace("{0}", "x"))
        table = on.fetch(parse_one(text, dialect="duckdb"))
        return [tuple(row.values()) for row in table.to_pylist()]

    return fetch
