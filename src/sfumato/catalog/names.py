"""The name of a table, made from the name of its file, so that a query can write it without quotes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

__all__ = ["table_name"]

# Letters that Unicode does not take apart into a Latin letter and its accent.
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d"}
    | {"Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i"}
)
# Words that cannot stand after FROM without quotes.
_TAKEN_BY_SQL = """
    alter and as between create cross describe distinct drop else except fetch for force from glob grant
    having ilike inner insert install intersect into join lateral like not notnull on only or outer
    partitioned_by positional qualify regexp returning revoke rlike rollback select summarize
    tablesample then uncache union using values when where with xor
"""


def table_name(source: str, taken: Sequence[str] = ()) -> str:
    """A name for the table in that source: `data/visits-2024.csv.gz` → `visits_2024`, `Été.csv` → `Ete`."""
    place, _, inner = source.partition("::")
    if "://" in place:  # schema.table
        inner = inner.rpartition(".")[2]
    parts = [
        part for part in re.split(r"[/\\]", place) if part and not set(part) & set("*?[") and "=" not in part
    ]
    stem = inner or (parts[-1] if parts else "data")
    if not inner and "." in stem.lstrip("."):
        stem = stem.lstrip(".").partition(".")[0]
    name = re.sub(r"[^A-Za-z0-9_]+", "_", _plain(stem)).strip("_") or "data"
    if name[0].isdigit() or name.lower() in _TAKEN_BY_SQL.split():
        name = f"t_{name}"
    base, number = name, 2
    while name.lower() in {other.lower() for other in taken}:
        name, number = f"{base}_{number}", number + 1
    return name


def _plain(text: str) -> str:
    """Latin letters without their accents: é becomes e."""
    apart = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(character for character in apart if not unicodedata.combining(character))
