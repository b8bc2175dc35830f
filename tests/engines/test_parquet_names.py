"""The columns of a Parquet file, as its footer names them: those within others are not columns."""

import random
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.engines._parquet import _footers, _names

pytestmark = pytest.mark.duckdb
NAMES = ["a", "A", "list", "element", "schema", "key_value", 'ü"', ""]


def _type(rng, depth):
    kind = rng.choice(["number", "text", "list", "map", "struct"][: 5 if depth else 2])
    if kind == "list":
        return pa.list_(_type(rng, depth - 1))
    if kind == "map":
        return pa.map_(pa.string(), _type(rng, depth - 1))
    if kind == "struct":
        return pa.struct([(name, _type(rng, depth - 1)) for name in rng.sample(NAMES[:-1], 2)])
    return pa.int64() if kind == "number" else pa.string()


def test_the_names_of_columns_are_those_that_arrow_reads(tmp_path):
    rng, paths = random.Random(1), []
    for place in range(25):
        paths.append(str(tmp_path / f"{place}.parquet"))
        schema = pa.schema([(name, _type(rng, 3)) for name in rng.sample(NAMES, rng.randint(1, 6))])
        pq.write_table(schema.empty_table(), paths[-1])
    with duckdb.connect() as connection:
        held = _footers(connection, SimpleNamespace(paths=(*paths, *paths)))  # each twice
    assert {path: _names(held[path]) for path in paths} == {
        path: tuple(pq.read_schema(path).names) for path in paths
    }
