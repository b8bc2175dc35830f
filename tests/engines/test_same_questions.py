"""One question, every engine: random questions have the same integers before noise as on DuckDB.

An engine joins by a line in `ENGINES`, and one in `IDS` for the types of ids by which it chooses other rows.
What its libraries compute otherwise is what its dialect lists as different.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

from float_keys import compare_keys
from native_columns import AS_ID, differences, rows
from postgres_engine import FilledPostgres, given, held, shared
from prepared_places import DuckDBPlace, PostgresPlace, portable_duckdb
from same_questions import IDS as ALL_IDS
from same_questions import (
    Compared,
    answer_of_no_groups,
    compare_prepared,
    compare_queries,
    compare_shapes,
    compare_unread,
)
from sfumato.engines import DuckDB, Engine
from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.dialect import PORTABLE
from sfumato.sql.write.pieces import bigint, column, select, table


def _postgres() -> Engine:
    shared()  # starts the server, or skips
    return FilledPostgres()


ENGINES: Mapping[str, Callable[[], Engine]] = {"postgres": _postgres}
SOURCES: Mapping[str, Callable[[], str]] = {"postgres": lambda: given(rows())}
"""The table of `native_columns` where an engine reads it."""
IDS: Mapping[str, frozenset[str]] = {"postgres": frozenset({"bytes", "decimal"})}
"""The digest reads their text. 1.50 is 1.5 in PostgreSQL, where ids of two tables may have other scales."""

OTHERWISE: Mapping[str, frozenset[str]] = {
    "postgres": frozenset(
        {
            *(f"decimal {digits} as {AS_ID}" for digits in ("5 2", "38 10", "38 38")),
            *(f"timestamp {unit} as {AS_ID}" for unit in ("us", "us UTC", "s")),  # before the year 1
            "moments as timestamp",
        }
    )
}
"""Columns of which it reads some values otherwise: of text, spellings that are NULL; of ids, the digest."""


def keeps_to(found: Compared, least: int) -> None:
    assert found.different == []
    assert found.answered >= least


@pytest.mark.parametrize("other", sorted(ENGINES))
def test_random_queries_have_the_same_integers(other):
    keeps_to(compare_queries(ENGINES[other], "few", 175, ids=IDS[other]), 100)


@pytest.mark.parametrize("other", sorted(ENGINES))
def test_random_questions_of_all_shapes_have_the_same_integers(other):
    keeps_to(compare_shapes(ENGINES[other], "few", 3, ids=IDS[other]), 50)


@pytest.mark.parametrize("many", [4, pytest.param(200, marks=pytest.mark.stats)])
def test_prepared_tables_have_the_same_integers(tmp_path, many):
    with portable_duckdb():
        places = DuckDBPlace(tmp_path), PostgresPlace(tmp_path)
        keeps_to(compare_prepared(places, "few", many, ids=IDS["postgres"], held=held), many)


@pytest.mark.stats
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("other", sorted(ENGINES))
def test_many_random_questions_have_the_same_integers(other, part):
    keeps_to(compare_queries(ENGINES[other], f"many {part}", 1000, ids=IDS[other]), 600)
    keeps_to(compare_shapes(ENGINES[other], f"many {part}", 20, ids=IDS[other]), 350)


@pytest.mark.parametrize("other", sorted(ENGINES))
def test_zeros_of_both_signs_are_one_key_and_so_are_all_nan(other):
    with ENGINES[other]() as engine:  # type: ignore[attr-defined]
        keeps_to(compare_keys(engine, "few", 60), 40)


@pytest.mark.parametrize("how_many", [12, pytest.param(400, marks=pytest.mark.stats)])
@pytest.mark.parametrize("other", sorted(ENGINES))
def test_the_same_cells_cannot_be_read(other, how_many):
    keeps_to(compare_unread(ENGINES[other], "cells", how_many), how_many)


@pytest.mark.parametrize("other", sorted(ENGINES))
@pytest.mark.parametrize("keys", ["g", "g, h"])
def test_where_no_group_is_found_the_answer_is_empty_and_not_lost(other, keys):
    with ENGINES[other]() as engine:  # type: ignore[attr-defined]
        found = answer_of_no_groups(engine, keys)
    assert (found.column_names, found.num_rows) == ([*keys.split(", "), "m", "d"], 0)


@pytest.mark.parametrize("other", sorted(ENGINES))
def test_columns_of_every_type_are_read_alike_at_their_ends_and_no_value_makes_a_read_fail(other):
    with ENGINES[other]() as engine:  # type: ignore[attr-defined]
        found, failed = differences(engine, SOURCES[other]())
    assert failed == []
    assert found.keys() == OTHERWISE[other], found
    told = [line for what, lines in found.items() if not what.endswith(AS_ID) for line in lines]
    assert all(line.endswith(", None") for line in told), told


@pytest.mark.parametrize("other", sorted(ENGINES))
def test_ids_have_the_same_digest_but_for_those_that_are_listed(other):
    for name, (native, make) in ALL_IDS.items():
        units, found = pa.table({"u": pa.array([make(i) for i in range(120)], native)}), []
        with DuckDB(threads=1) as first, ENGINES[other]() as second:
            for engine in (first, second):
                engine.attach("t", units, {}, unit="u")
                digest = engine.dialect.choosing_by(PORTABLE.name).chosen_by(bigint(7), column(UNIT_COLUMN))
                found.append(sorted(engine.fetch(select([("d", digest)], table("t"))).column(0).to_pylist()))
        assert (found[0] == found[1]) is (name not in IDS[other]), name
