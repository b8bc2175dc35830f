"""The engine of examples/engine as tests need it besides: over a folder, and in the search of neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from datafusion_dialect import DATAFUSION
from datafusion_engine import DataFusion, context, no_rows, readable
from sfumato.engines import Source
from sfumato.errors import EngineFailed

__all__ = ["DataFusionStore", "Served"]


class Served(DataFusion):
    """DataFusion over a folder, as over a server: `folder://name` is a table there."""

    schemes = frozenset({"folder"})

    def __init__(self, *, url: str, threads: int = 1) -> None:
        super().__init__(threads=threads)
        self.url = url

    def _rows(self, source: Source) -> tuple[pa.Table, str]:
        scheme, _, name = str(source).partition("://")
        return super()._rows(Path(self.url, f"{name}.parquet") if scheme == "folder" else source)


class DataFusionStore:
    """DataFusion as what the search for broken sensitivities runs its statements on."""

    dialect = DATAFUSION
    quotes = '"'

    def __init__(self) -> None:
        self._context = context()

    def text(self, statement: Any) -> str:
        """A statement as the engine reads it."""
        return self.dialect.text(statement)

    def fill(self, name: str, rows: pa.Table) -> None:
        """A table, whose floats have one NaN, as those of attached ones have."""
        columns = [f'{readable(field.name, field.type)} AS "{field.name}"' for field in rows.schema]
        batches = rows.to_batches() or [no_rows(rows.schema)]
        self._context.register_record_batches(f'"{name} source"', [batches])
        view = self._context.sql(f'SELECT {", ".join(columns)} FROM "{name} source"')
        self._context.register_view(f'"{name}"', view)

    def execute(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names and rows of a result."""
        found: pa.Table | None = None
        try:
            found = self._context.sql(text).to_arrow_table()
        except BaseException:  # DataFusion raises bare ones
            found = None
        if found is None:
            raise EngineFailed("DataFusion")
        return found.column_names, list(zip(*(each.to_pylist() for each in found.columns), strict=True))
