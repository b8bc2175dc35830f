"""Tables of catalogs: which of them Spark reads without asking a row whether the read may go on.

A line of CSV or JSON that cannot be parsed can make a read fail, by an option of the table; other systems
behind a catalog decide by themselves what they compute. Parquet, ORC, Delta and Iceberg have typed columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sfumato.errors import SourceUnusable

__all__ = ["check_format", "details_of", "is_table"]

_FORMATS = frozenset({"parquet", "orc", "delta", "iceberg"})
_FAILING = ("datetimerebasemode", "int96rebasemode", "ignorecorruptfiles", "ignoremissingfiles")
_START = "# Detailed Table Information"


def is_table(kind: object) -> bool:
    """Whether the type that a catalog gives is of a table: what a view computes could fail on a row."""
    return kind in ("MANAGED", "EXTERNAL")


def details_of(session: Any, path: str) -> dict[str, str]:
    """What a catalog says of a table, without its columns."""
    found = [tuple(row)[:2] for row in session.sql(f"DESCRIBE TABLE EXTENDED {path}").collect()]
    last = max((place for place, (name, _) in enumerate(found) if name == _START), default=len(found))
    return {str(name): str(value) for name, value in found[last:]}  # columns come first, whatever their names


def check_format(details: Mapping[str, str] | None, shown: str) -> str:
    """How a table is kept: one of those ways that are read.

    Raises:
        SourceUnusable: if that is another than those that are read, or an option lets a row end a read.
    """
    details = {} if details is None else details
    kept = details.get("Provider", "").lower()
    if kept == "hive":
        serde = details.get("Serde Library", "").lower()
        kept = next((name for name in ("parquet", "orc") if name in serde), kept)
    if kept not in _FORMATS:
        raise SourceUnusable(
            f"{shown} is not kept as Parquet, ORC, Delta or Iceberg, and a row could make a read of it fail; "
            "write it as one of them."
        )
    options = " ".join(value for name, value in details.items() if name.endswith("Properties")).lower()
    for option in _FAILING:
        if re.search(rf"\b{option}=", options):
            raise SourceUnusable(
                f"{shown} has the option {option}, by which a row or a file could change a read; drop it."
            )
    return kept
