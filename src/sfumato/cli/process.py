"""What only a process of its own may do: where the command line runs inside another program, it does not."""

from __future__ import annotations

import gc

__all__ = ["all_is_loaded", "is_ours"]

_OURS = False


def is_ours() -> None:
    """Say that this process runs one command and ends."""
    global _OURS
    _OURS = True


def all_is_loaded() -> None:
    """Say that what is in memory stays: our own process does not search it for garbage again, nor at its end.

    To be called before DuckDB is loaded, which complains of whatever it finds left at the end.
    """
    if _OURS:
        gc.freeze()
