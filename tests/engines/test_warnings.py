"""Where warnings are errors, reads go on, and only the one hint that DuckDB gives to the engine is hidden."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest
from sqlglot import exp

from sfumato.engines import DuckDB

pytestmark = pytest.mark.duckdb


def test_a_read_hides_one_hint_and_nothing_else() -> None:
    with warnings.catch_warnings(), DuckDB() as engine:
        engine.attach("t", pa.table({"a": [1, 2]}), {"a": "integer"})
        warnings.resetwarnings()
        warnings.simplefilter("error")
        statement = exp.select("a").from_("t")
        for _ in range(3):
            assert engine.fetch(statement.copy()).num_rows == 2
        assert len(warnings.filters) == 2
        with pytest.raises(UserWarning, match="extra copy"):
            warnings.warn("Arrow output on a DB-API result makes an extra copy of the rows", stacklevel=1)
