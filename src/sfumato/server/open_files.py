"""How many files the process may have open: each connection is one."""

from __future__ import annotations

import sys

__all__ = ["allow_many"]

_WANTED = 8_192  # both fronts, twice as many connections as are served, and what the tables need


def allow_many() -> None:
    """Raises the limit of this process to what the server may need, as far as the machine allows it."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = _WANTED if hard == unlimited else min(_WANTED, hard)
    if soft != unlimited and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
