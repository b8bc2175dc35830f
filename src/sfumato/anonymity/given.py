"""What the caller gave, read and checked: the table, its quasi-identifiers and its sensitive columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.anonymity.codes import Coded, encode
from sfumato.anonymity.tables import columns_of, names_given, opened
from sfumato.engines.base import Source, SourceKind
from sfumato.errors import InvalidParameter
from sfumato.schema.classify import role_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Given", "given", "whole"]


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A table with its quasi-identifiers and sensitive columns as codes, in the order they were named.

    Attributes:
        table: All of it.
        quasi: The quasi-identifiers.
        sensitive: The sensitive columns.
        naming: Columns that were not named, and whose names point at one person.
        overlooked: Columns that were not named, and that by their names others may know.
    """

    table: pa.Table
    quasi: tuple[Coded, ...]
    sensitive: tuple[Coded, ...]
    naming: tuple[str, ...]
    overlooked: tuple[str, ...]


def whole(table: Source) -> tuple[pa.Table, str, Mapping[str, SourceKind]]:
    """All rows and columns in their order, what to call the table in messages, and what its columns hold."""
    with opened(table) as rows:
        # So that each row of the result can be laid beside its row in the source.
        rows._cursor.execute("SET preserve_insertion_order = true")
        return rows.all(), rows.shown, rows.kinds


def given(table: Source, quasi: str | Sequence[str], sensitive: str | Sequence[str] | None) -> Given:
    """The table as codes.

    Raises:
        InvalidParameter: for a column that is not there or cannot be compared, or has two parts to play.
        SourceUnusable: if the table cannot be read.
    """
    wanted, secret = names_given(quasi, "quasi"), names_given(sensitive or [], "sensitive")
    if not wanted:
        raise InvalidParameter("Name at least one quasi-identifier: a column that others may know.")
    read, shown, kinds = whole(table)
    names = read.column_names
    own = [names[place] for place in columns_of(names, wanted, shown)]
    hidden = [names[place] for place in columns_of(names, secret, shown)]
    both = [name for name in hidden if name in own]
    if both or len(set(own)) < len(own):
        name = (both or own)[0][:100]
        raise InvalidParameter(
            f'Column "{name}" is named twice; it has one part, quasi-identifier or sensitive.'
        )
    rest = {name: role_of(name, kind) for name, kind in kinds.items() if name not in (*own, *hidden)}
    return Given(
        read,
        tuple(encode(read, name) for name in own),
        tuple(encode(read, name) for name in hidden),
        tuple(name for name, role in rest.items() if role == "identifier"),
        tuple(name for name, role in rest.items() if role == "quasi-identifier"),
    )
