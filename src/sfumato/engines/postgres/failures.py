"""Why a server did not do what it was asked for, without a word of its own: those may hold data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["reason"]

_REFUSED = "the server refused; check the role, its password in PGPASSWORD or PGPASSFILE, and the database."
_REASONS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    (
        "the server refused the role or its password; give the password in PGPASSWORD or PGPASSFILE.",
        lambda text: "password" in text or "authentication" in text or "role" in text or "pg_hba" in text,
    ),
    ("there is no such database; correct the source.", lambda text: "database" in text),
)


def reason(error: Any) -> str:
    """Why it failed, without a word of the server's."""
    if error.sqlstate == "42501":
        return "this role may not; grant it USAGE on the schema and SELECT on the table."
    if error.sqlstate is None:
        text = str(error).lower()
        # A server may speak another language; whether it asked for a password is told in none.
        asked = error.pgconn is not None and (error.pgconn.needs_password or error.pgconn.used_password)
        other = _REFUSED if asked else "the server cannot be reached."
        return next((why for why, fits in _REASONS if fits(text)), other)
    return "the server refused; check the role and its rights."
