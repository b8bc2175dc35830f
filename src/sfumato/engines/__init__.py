"""What runs the reads: one statement in, exact aggregates out. An engine has never heard of epsilon.

`DuckDB` runs inside the process, `Postgres` on a server of PostgreSQL. Another engine is one file and an
entry point; `engine(name)` finds it.
"""

from typing import TYPE_CHECKING

from sfumato._lazy import lazy
from sfumato.engines.base import (
    UNIT_COLUMN,
    Engine,
    Source,
    SourceKind,
    check_address,
    engine,
    pointer_column,
)
from sfumato.engines.csv_format import Csv
from sfumato.engines.dialect import PORTABLE, Dialect, Digest

if TYPE_CHECKING:
    from sfumato.engines.duckdb import DuckDB
    from sfumato.engines.postgres import Postgres

__all__ = [
    "PORTABLE",
    "UNIT_COLUMN",
    "Csv",
    "Dialect",
    "Digest",
    "DuckDB",
    "Engine",
    "Postgres",
    "Source",
    "SourceKind",
    "check_address",
    "engine",
    "pointer_column",
]

__getattr__, __dir__ = lazy(globals(), {"duckdb": "DuckDB", "postgres": "Postgres"})
