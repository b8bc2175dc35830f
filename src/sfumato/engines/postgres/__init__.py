"""Reads on a server of PostgreSQL, where the tables are: `engine.Postgres`."""

from sfumato.engines.postgres.engine import Postgres

__all__ = ["Postgres"]
