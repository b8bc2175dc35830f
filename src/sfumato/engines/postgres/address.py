"""Addresses of tables: `postgresql://role@host/database::schema.table`. Passwords are in the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines.base import Source, shown_source
from sfumato.errors import MissingExtra, SourceUnusable

__all__ = ["SCHEMES", "Address", "locate", "psycopg"]

SCHEMES = frozenset({"postgresql", "postgres"})
_ALLOWED = {
    *("host", "hostaddr", "port", "dbname", "user", "connect_timeout", "target_session_attrs"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslnegotiation", "channel_binding"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
    *("gssencmode", "krbsrvname", "require_auth", "min_protocol_version", "max_protocol_version"),
}
# What an address could have is no bare name: it may be a password.
_PART = r'(?:[^".@/?&=:#]+|"(?:[^"]|"")+")'
_TABLE = re.compile(rf"(?:({_PART})\.)?({_PART})")
_FORM = "write postgresql://role@host/database::schema.table"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a table is.

    Attributes:
        server: What a connection is made with; without a password.
        schema: The schema.
        table: The table.
    """

    server: Mapping[str, Any]
    schema: str
    table: str

    @property
    def shown(self) -> str:
        """The table in a message."""
        return f'The table "{self.schema[:63]}.{self.table[:63]}" in PostgreSQL'


def psycopg() -> Any:
    """The driver.

    Raises:
        MissingExtra: if it is not installed.
    """
    try:
        import psycopg as driver
    except ImportError:
        raise MissingExtra("Tables in PostgreSQL need psycopg: pip install 'sfumato[postgres]'.") from None
    return driver


def locate(source: Source) -> Address:
    """The address of a source.

    Raises:
        SourceUnusable: if it is none, holds a password, or is of the server's own catalog.
    """
    text = source if isinstance(source, str) else ""
    server, mark, table = text.rpartition("::")
    scheme = server.partition("://")[0].lower()
    shown = shown_source(source)
    if not mark or scheme not in SCHEMES or "://" not in server:
        raise SourceUnusable(f"{shown} cannot be opened in PostgreSQL; {_FORM}.")
    named = _TABLE.fullmatch(table)
    parts = _parsed(server)
    if parts is None or named is None:
        raise SourceUnusable(f"{shown} cannot be read as an address; {_FORM}.")
    if {"password", "passfile"} & parts.keys():
        raise SourceUnusable(f"{shown} has a password in it; leave it out and set PGPASSWORD or PGPASSFILE.")
    strange = sorted(parts.keys() - _ALLOWED)
    if strange:
        raise SourceUnusable(f"{shown} sets {strange[0][:40]}, which is not allowed; leave it out.")
    schema = _name(named[1] or "public")
    if schema.startswith("pg_") or schema == "information_schema":
        raise SourceUnusable(
            f"{shown} is of the server itself, and tells of other tables; name a table of yours."
        )
    return Address(parts, schema, _name(named[2]))


def _parsed(server: str) -> dict[str, Any] | None:
    driver = psycopg()
    try:
        return dict(driver.conninfo.conninfo_to_dict(server))
    except driver.Error:
        return None


def _name(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
