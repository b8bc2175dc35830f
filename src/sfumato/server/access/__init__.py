"""Who may do what: accounts, their tokens, and logins over HTTP and PostgreSQL's protocol."""

from __future__ import annotations

from sfumato.server.access.scram import Exchange, ScramKeys, ScramVerifier, end_point, mechanisms

__all__ = ["Exchange", "ScramKeys", "ScramVerifier", "end_point", "mechanisms"]
