"""What runs the reads: one statement in, exact aggregates out. An engine has never heard of epsilon.

`DuckDB` runs inside the process. Another engine is one file and an entry point; `engine(name)` finds it.
"""

from sfumato.engines.base import UNIT_COLUMN, Engine, Source, SourceKind, engine, pointer_column
from sfumato.engines.duckdb import DuckDB

__all__ = ["UNIT_COLUMN", "DuckDB", "Engine", "Source", "SourceKind", "engine", "pointer_column"]
