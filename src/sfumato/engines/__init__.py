"""What runs the reads: one statement in, exact aggregates out. An engine has never heard of epsilon.

`DuckDB` runs inside the process. Another engine is one file and an entry point; `engine(name)` finds it.
"""

from typing import TYPE_CHECKING

from sfumato._lazy import lazy
from sfumato.engines.base import UNIT_COLUMN, Engine, Source, SourceKind, engine, pointer_column
from sfumato.engines.csv_format import Csv
from sfumato.engines.dialect import Dialect, Digest

if TYPE_CHECKING:
    from sfumato.engines.duckdb import DuckDB

__all__ = [
    "UNIT_COLUMN",
    "Csv",
    "Dialect",
    "Digest",
    "DuckDB",
    "Engine",
    "Source",
    "SourceKind",
    "engine",
    "pointer_column",
]

__getattr__, __dir__ = lazy(globals(), {"duckdb": "DuckDB"})
