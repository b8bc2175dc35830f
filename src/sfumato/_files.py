"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Put a file where another may be: whoever reads it sees the old one or the new one, never a part.

    Args:
        path: Where to write it; what is there is replaced.
        content: All of it.

    Raises:
        OSError: if it cannot be written; what was there stays, and nothing is left beside it.
    """
    place = Path(path)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
        draft = Path(folder) / "draft"
        draft.write_bytes(content)
        draft.replace(place)
