"""TOML as plain data: whatever cannot be read is one kind of error, with a sentence that says why."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

__all__ = ["NotToml", "parsed", "text_of_file"]


class NotToml(ValueError):
    """A text is no TOML, or more than can be read; its message says which."""


def parsed(text: str) -> dict[str, Any]:
    """What a text holds, with decimal numbers as they are written.

    Raises:
        NotToml: if it is not TOML, or a whole number or the depth of its lists is beyond what Python reads.
    """
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"is not valid TOML: {error}") from None
    except ValueError:
        raise NotToml("has a number with too many digits") from None
    except RecursionError:
        raise NotToml("has lists or tables that lie too deep in one another") from None


def text_of_file(path: Path) -> str:
    """The text of a file.

    Raises:
        FileNotFoundError: if there is none.
        OSError: if it cannot be read, is not UTF-8, or has a path that no file can have.
    """
    try:
        return path.read_bytes().decode()
    except ValueError:  # not UTF-8, or a path with a NUL
        raise OSError("no text") from None
