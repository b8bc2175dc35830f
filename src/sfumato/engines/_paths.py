r"""Paths as names, never as patterns, and the values that the folders of partitioned files mean.

DuckDB expands `*`, `?` and `[` in every path that it is given. A folder such as `city=*` is a value that one
row can bring about, so that this row alone would make a reader read everybody's files again. So each path
is written as a pattern that matches itself alone. Values are taken from folders here and not by a reader:
readers stop at `?`, `\` or a second `=`, and fail where the text is not UTF-8.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote_to_bytes

__all__ = ["WILD", "can_be_named", "key_columns", "key_values", "listed", "literal", "pattern"]

WILD = "*?["
_MISSING = "__HIVE_DEFAULT_PARTITION__"


def pattern(path: str) -> str:
    """What DuckDB takes for this path and no other."""
    return path if "\\" in path else re.sub(r"([*?\[])", r"[\1]", path)


def can_be_named(path: str) -> bool:
    """Whether DuckDB has a way to write the path: it has none for one with a backslash and a pattern."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return "\\" not in path or not any(character in path for character in WILD)


def listed(paths: Iterable[str]) -> str:
    """Paths as a list in SQL."""
    return f"[{', '.join(literal(pattern(path)) for path in paths)}]"


def key_values(path: str, count: int) -> tuple[str | None, ...]:
    """The values of the last `count` folders `key=value` of a path, which Hive writes as parts of a URI.

    None for what is missing, and for what is not text in UTF-8 or has a zero in it.
    """
    folders = [part for part in Path(path).parts[:-1] if "=" in part]
    return tuple(_value(part.partition("=")[2]) for part in folders[len(folders) - count :])


def key_columns(paths: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The values of each key as SQL: that of a file is found by its place in the list that is read."""
    values = [key_values(path, len(keys)) for path in paths]
    return [
        f"CAST([{', '.join('NULL' if value is None else literal(value) for value in held)}] AS VARCHAR[])"
        f"[CAST(file_index AS BIGINT) + 1]"
        for held in zip(*values, strict=True)
    ]


def literal(text: str) -> str:
    """A text in quotes."""
    return "'" + text.replace("'", "''") + "'"


def _value(written: str) -> str | None:
    if written == _MISSING:
        return None
    try:
        value = unquote_to_bytes(os.fsencode(written)).decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in value else value
