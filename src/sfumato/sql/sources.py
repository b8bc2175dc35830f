"""The rows of a source as part of a statement: its columns by name, and `UNIT_COLUMN` with whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from sfumato.errors import InvalidParameter
from sfumato.plan.sources import Scan, Source

__all__ = ["lower_source"]


def lower_source(source: Source, tables: Mapping[str, Any], dialect: str) -> exp.Expr:
    """What stands in FROM.

    Args:
        source: Where the rows come from.
        tables: The tables by name, private and public.
        dialect: The engine's.
    """
    del tables, dialect
    if isinstance(source, Scan):
        return exp.Table(this=exp.to_identifier(source.table, quoted=True))
    raise InvalidParameter("This source has no statement yet.")
