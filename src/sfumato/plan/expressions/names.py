"""Names as SQL takes them, for messages that can be followed to the letter."""

from __future__ import annotations

import re

__all__ = ["in_sql", "unused"]

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that mean something else where a column is meant.
_RESERVED = """
    all analyse analyze and any array as asc asymmetric between both case cast check collate column constraint
    create current_date current_user default deferrable desc describe distinct do else end except false fetch
    for foreign from group having in initially intersect into is lambda lateral leading like limit not null
    offset on only or order pivot pivot_longer pivot_wider placing primary qualify references returning select
    show some summarize symmetric table then to trailing true union unique unpivot using variadic when where
    window with
"""


def in_sql(name: str) -> str:
    """A column's name as a query must write it: in double quotes where it needs them."""
    if _BARE.fullmatch(name) and name.lower() not in _RESERVED.split():
        return name
    return '"' + name.replace('"', '""') + '"'


def unused(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken already; it is taken from then on."""
    candidate, number = name or "column", 2
    while candidate.lower() in taken:
        candidate, number = f"{name}_{number}", number + 1
    taken.add(candidate.lower())
    return candidate
