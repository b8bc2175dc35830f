"""What only a process of its own may do: where the command line runs inside another program, it does not."""

from __future__ import annotations

import gc

__all__ = ["all_is_loaded", "all_is_over", "is_ours"]

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


def all_is_over() -> None:
    """Say that our own process ends: what stayed is let go, for commands that load DuckDB before the rest."""
    if _OURS:
        gc.unfreeze()
