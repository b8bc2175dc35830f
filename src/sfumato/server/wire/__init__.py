"""The session behind PostgreSQL's wire protocol: `psql`, drivers and dashboards ask private questions.

It is written here, over asyncio and the standard library: what is needed of version 3 of the protocol is a
few hundred lines, and a login by SCRAM against verifiers that we keep, limits that hold before a message is
read, and errors with all their fields have to be ours.

| module | what it is |
| --- | --- |
| `messages` | what clients send, from bytes, within limits; `replies`: what is sent to them, as bytes |
| `types` | values as text and in binary, both ways, by PostgreSQL's numbers of types |
| `sqlstates` | errors as PostgreSQL has them |
| `settings` | what `SET` changes, and what a transaction puts back |
| `statements` | a text cut into statements, and what kind each is |
| `shapes` | the columns of an answer and the types of parameters, known before anything is paid |
| `catalog` | what clients look up, from the public schema; `rewriting`: their SQL |
| `catalog_tables` | which tables PostgreSQL's catalog has; `catalog_rows`, `catalog_functions` |
| `desk` | what one statement gives: a setting, a quote, a catalog's rows or a private answer |
| `kept` | what a connection keeps: prepared statements, cursors; `copying`: answers as lines of text |
| `login` | SCRAM, as the protocol wraps it |
| `extended` | prepared statements and portals |
| `connection` | one connection, from the first byte to the last |
| `front` | the port: `Front(session_of, login_of)` |
"""

from sfumato.server.wire.front import Front

__all__ = ["Front"]
