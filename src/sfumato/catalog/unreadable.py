"""Why a file that somebody gave first is no table: a spreadsheet, or nothing in it."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.errors import SourceUnusable

__all__ = ["explained", "refuse"]

_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
# How files of Excel, LibreOffice and Numbers begin, whatever their names: as ZIP or as an OLE document.
_OFFICE = (b"PK\x03\x04", bytes.fromhex("d0cf11e0a1b11ae1"))
_BLANK = 1 << 16  # bytes; a longer file is not taken for an empty one


@contextmanager
def explained(file: str) -> Iterator[None]:
    """Gives the refusal of a file its reason, where that is one that a newcomer meets first.

    Args:
        file: The file that is opened inside.

    Privacy:
        Looks at a file that was refused already, at its name and whether it begins like a spreadsheet or has
        nothing but blanks. Nothing of it is told.

    Raises:
        SourceUnusable: as it came, or with a better reason.
    """
    try:
        yield
    except SourceUnusable:
        refuse(file)
        raise


def refuse(file: str) -> None:
    """Refuses a file that is a spreadsheet, or has nothing in it.

    Raises:
        SourceUnusable: if it is one of them.
    """
    reason = _reason(file)
    if reason is not None:
        raise SourceUnusable(f'The source "{file[:200]}" {reason}') from None


def _reason(file: str) -> str | None:
    if not os.path.isfile(file):
        return None
    start = _start(file)
    if file.lower().endswith(_SPREADSHEETS) or (start is not None and start.startswith(_OFFICE)):
        return (
            "is a spreadsheet. Open it in its program, save it as CSV (Excel calls it CSV UTF-8), and give "
            "the new file."
        )
    if start is not None and len(start) <= _BLANK and not start.decode("utf-8-sig", "replace").strip():
        return "is empty. A CSV file has a line of column names, and the rows below it; save it again."
    return None


def _start(file: str) -> bytes | None:
    """The first bytes of a file; None where it cannot be read."""
    try:
        with gzip.open(file, "rb") if file.lower().endswith(".gz") else open(file, "rb") as stream:
            return stream.read(_BLANK + 1)
    except (OSError, EOFError, zlib.error):
        return None
