"""One suite for all engines: an engine joins by an entry in ENGINES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlglot import parse_one

from sfumato.engines import Engine, engine

ENGINES: dict[str, dict[str, Any]] = {"duckdb": {"threads": 2, "memory": "1GB"}}


@pytest.fixture(params=sorted(ENGINES))
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Engine]]:
    """Makes engines of one kind with options, and closes them."""
    made: list[Engine] = []

    def build(**options: Any) -> Engine:
        made.append(engine(request.param, **{**ENGINES[request.param], **options}))
        return made[-1]

    yield build
    for each in made:
        each.close()


@pytest.fixture
def one(make: Callable[..., Engine]) -> Engine:
    """An engine with ordinary limits."""
    return make()


@pytest.fixture
def rows() -> Callable[..., list[tuple[Any, ...]]]:
    """Runs SQL text (in the engine's dialect) and gives plain rows."""

    def fetch(on: Engine, text: str) -> list[tuple[Any, ...]]:
        table = on.fetch(parse_one(text, dialect=on.dialect.writer))
        return [tuple(row.values()) for row in table.to_pylist()]

    return fetch
