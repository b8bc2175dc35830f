"""The rows of a prepared table as a statement: clustered by unit, numbered as a keyed hash says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from sqlglot import exp

from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, RANK_COLUMN, UNIT_COLUMN
from sfumato.engines.dialect import Dialect, Digest
from sfumato.engines.forms import group_form, one_form
from sfumato.engines.scans import quoted
from sfumato.schema import Kind

__all__ = ["OUT_OF_ORDER", "by_windows", "canonical", "group_rank", "place", "rank", "statement"]

_LAST = 2**32 - 1  # the rank of all rows beyond, which no limit admits: narrow numbers are filtered faster

_RANKS = (UNIT_COLUMN, RANK_COLUMN, GROUP_COLUMN, PLACE_COLUMN)
_UNIT, _RANK = quoted(UNIT_COLUMN), quoted(RANK_COLUMN)

OUT_OF_ORDER = "sfumato: rows of one unit tie, or are not in order"
"""What `statement` fails with where its order does not decide the ranks; `by_windows` always does."""


def statement(
    name: str, kinds: Mapping[str, Kind], salt: bytes, dialect: Dialect, groups: Sequence[str] = ()
) -> str:
    """The SELECT over an attached table whose rows a prepared file has, in their order.

    Without a grouping rows are sorted once, by unit and hash, and numbered as they come; the whole rows are
    too wide a key to sort by. It fails with `OUT_OF_ORDER` where that does not do.

    Privacy:
        Claim: where it does not fail, the ranks are those of `by_windows`. Reason: each row is compared with
        the one before it, as that row's neighbour in the same stream: its unit is greater, or it is the same
        unit with a greater hash, or with the same hash and the same columns. So rows are in the order of unit
        and hash, those of one unit are side by side, and rows that tie are the same row. A row's number
        less that of the first row of its unit is then its place by hash and columns. Condition: windows
        without a partition or an order see the rows in one order, all of them the same.
    """
    if groups:
        return by_windows(name, kinds, salt, dialect, groups)
    columns = [f"c{i}" for i in range(len(kinds))]
    shown = [
        f"{dialect.text(one_form(_column(column), kind, dialect))} AS c{i}"
        for i, (column, kind) in enumerate(kinds.items())
    ]
    unit = quoted(UNIT_COLUMN)
    rows = f"SELECT {', '.join([f'{unit} AS u', *shown])} FROM {quoted(name)} WHERE {unit} IS NOT NULL"
    lot = _lot(dialect.digest, [_number(salt), "u", *columns])
    ordered = f"SELECT * FROM (SELECT *, {lot} AS h FROM ({rows}) AS r) AS s ORDER BY u, h"
    before = [f"lag({column}) OVER () AS b_{column}" for column in ("u", "h", *columns)]
    seen = f"SELECT *, row_number() OVER () AS n, {', '.join(before)} FROM ({ordered}) AS o"
    alike = " AND ".join(["b_h = h", *(f"b_{column} IS NOT DISTINCT FROM {column}" for column in columns)])
    first = (
        f"CASE WHEN b_u IS NULL OR b_u < u THEN n WHEN b_u = u AND (b_h < h OR ({alike})) THEN 0 "
        f"ELSE error('{OUT_OF_ORDER}') END"
    )
    starts = f"SELECT *, {first} AS f FROM ({seen}) AS t"
    number = "n - max(f) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) + 1"
    result = [f"u AS {unit}", *(f"c{i} AS {quoted(column)}" for i, column in enumerate(kinds))]
    return f"SELECT {', '.join(result)}, {_narrow(number)} AS {quoted(RANK_COLUMN)} FROM ({starts}) AS p"


def by_windows(
    name: str,
    kinds: Mapping[str, Kind],
    salt: bytes,
    dialect: Dialect,
    groups: Sequence[str] = (),
    *,
    narrow: str = "UINTEGER",
    ordered: bool = True,
) -> str:
    """The same SELECT for any rows, by a window for each rank, in the SQL of any engine.

    Args:
        name: The attached table.
        kinds: Its declared columns.
        salt: What the digest is keyed with.
        dialect: The engine's.
        groups: The columns of the grouping that it is prepared for.
        narrow: The type of ranks.
        ordered: Whether the rows of the whole are put in their order.
    """
    names = {column: _spelled(column, dialect) for column in (*kinds, *_RANKS)}
    columns = [names[column] for column in kinds]
    shown = [
        f"{dialect.text(one_form(_column(column), kind, dialect))} AS {names[column]}"
        for column, kind in kinds.items()
    ]
    unit, ranks = names[UNIT_COLUMN], names[RANK_COLUMN]
    rows = f"SELECT {', '.join([unit, *shown])} FROM {_spelled(name, dialect)} WHERE {unit} IS NOT NULL"
    listed = ", ".join([unit, *columns])
    rank_sql = rank(columns, _number(salt), dialect.digest, unit)
    if not groups:
        ranked = f"SELECT {listed}, {_narrow(rank_sql, narrow)} AS {ranks} FROM ({rows}) AS r"
        return f"SELECT * FROM ({ranked}) AS s ORDER BY {unit}, {ranks}" if ordered else ranked
    keys = [canonical(column, kinds[column], dialect) for column in groups]
    group = group_rank(keys, _number(salt, b"ranks of groups"), dialect.digest, unit)
    whole = f"SELECT {listed}, {rank_sql} AS {ranks}, {group} AS {names[GROUP_COLUMN]} FROM ({rows}) AS r"
    numbers = {
        RANK_COLUMN: ranks,
        GROUP_COLUMN: names[GROUP_COLUMN],
        PLACE_COLUMN: place(keys, unit, ranks),
    }
    cut = [f"{_narrow(sql, narrow)} AS {names[column]}" for column, sql in numbers.items()]
    ranked = f"SELECT {', '.join([listed, *cut])} FROM ({whole}) AS q"
    return f"SELECT * FROM ({ranked}) AS s ORDER BY {unit}, {ranks}" if ordered else ranked


def _spelled(name: str, dialect: Dialect) -> str:
    """A name that stands for itself, as the engine writes it."""
    return exp.to_identifier(name, quoted=True).sql(dialect=dialect.writer)


def _narrow(number: str, native: str = "UINTEGER") -> str:
    return f"CAST(LEAST({number}, {_LAST}) AS {native})"


def rank(columns: Sequence[str], salt: str, digest: Digest, unit: str = _UNIT) -> str:
    """SQL for the rank of a row among those of its unit.

    Args:
        columns: All columns that there are beside the unit, quoted.
        salt: SQL for a BIGINT.
        digest: What chooses.
        unit: The column of ids, quoted.
    """
    hashed = _lot(digest, [salt, unit, *columns])
    return f"row_number() OVER (PARTITION BY {unit} ORDER BY {_in_order([hashed, *columns])})"


def group_rank(keys: Sequence[str], salt: str, digest: Digest, unit: str = _UNIT) -> str:
    """SQL for the rank of a row's group among the groups of its unit: the same for all rows of the group.

    Args:
        keys: SQL for the columns of the grouping in their canonical form.
        salt: SQL for a BIGINT.
        digest: What chooses.
        unit: The column of ids, quoted.
    """
    hashed = _lot(digest, [salt, unit, *keys])
    return f"dense_rank() OVER (PARTITION BY {unit} ORDER BY {_in_order([hashed, *keys])})"


def _in_order(values: Sequence[str]) -> str:
    """One order on every engine: what is missing comes last."""
    return ", ".join(f"{value} NULLS LAST" for value in values)


def _lot(digest: Digest, values: Sequence[str]) -> str:
    return digest.sql(len(values)).format(*values)


def place(keys: Sequence[str], unit: str = _UNIT, ranks: str = _RANK) -> str:
    """SQL for the rank of a row among those of its unit and group, in the order of the ranks of rows."""
    return f"row_number() OVER (PARTITION BY {', '.join([unit, *keys])} ORDER BY {ranks})"


def canonical(column: str, kind: Kind, dialect: Dialect) -> str:
    """SQL for a column of a grouping, by its name, as an open GROUP BY has it."""
    return dialect.text(group_form(_column(column), kind, dialect))


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def _number(salt: bytes, use: bytes = b"ranks of rows") -> str:
    """63 bits of a salt for one use, as SQL."""
    bits = int.from_bytes(hashlib.sha256(use + salt).digest()[:8], "big") >> 1
    return f"CAST({bits} AS BIGINT)"
