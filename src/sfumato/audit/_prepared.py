"""Whether two prepared files rank their rows by one salt: if not, they differ in more than one unit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from sfumato.engines.dialect import EARLIER
from sfumato.engines.prepared import METADATA
from sfumato.engines.scans import quoted

__all__ = ["salt_of"]


def salt_of(source: Any) -> str | None:
    """The digest of the salt that a DuckDB file was prepared with, and what chose by it; None for others.

    Which rows of a unit count is decided when a table is prepared, by a hash of the salt. With a salt for
    each of two files, most units have other rows in them, though their sources are neighbours.
    """
    if not isinstance(source, str | Path):
        return None
    path = os.fspath(source).partition("::")[0]
    if not path.lower().endswith((".duckdb", ".ddb")) or not os.path.isfile(path):
        return None
    import duckdb

    with duckdb.connect() as connection:
        try:
            connection.execute(f"ATTACH '{path.replace(chr(39), chr(39) * 2)}' AS file (READ_ONLY)")
            ((note,),) = connection.execute(f"SELECT note FROM file.main.{quoted(METADATA)}").fetchall()
            said = json.loads(note)
            return f"{said['salt']} {said.get('digest', EARLIER)}"
        except Exception:  # not prepared, or not by this version: the session says so where it matters
            return None
