"""Two slots of one small file, written in turns and in place: whatever is cut off, one of them is whole."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.ledger.files import BINARY

__all__ = ["padded", "slots_of", "write_slot"]

_SLOT = 512  # bytes: a sector of most disks, and more than any content has


def slots_of(content: bytes) -> tuple[bytes, bytes] | None:
    """The two slots that a file holds; None if it is not such a file."""
    return (content[:_SLOT], content[_SLOT:]) if len(content) == 2 * _SLOT else None


def padded(text: str) -> bytes:
    """A line of text, as long as a slot."""
    line = text.encode("ascii").ljust(_SLOT - 1) + b"\n"
    if len(line) != _SLOT:
        raise ValueError("too long for a slot")
    return line


def write_slot(path: Path, which: int, line: bytes) -> None:
    """Puts a line into slot 0 or 1, durably; the other one is not touched.

    Raises:
        OSError: if it cannot be written; then the slot may be torn.
    """
    file = os.open(path, os.O_WRONLY | BINARY)
    try:
        os.lseek(file, which * _SLOT, os.SEEK_SET)
        if os.write(file, line) != _SLOT:
            raise OSError("a short write")
        # The file's length never changes, so that its content is all there is to sync.
        os.fdatasync(file) if hasattr(os, "fdatasync") else os.fsync(file)
    finally:
        os.close(file)
