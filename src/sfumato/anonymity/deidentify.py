"""De-identification: leave out the columns that name people. The first thing to do, and never enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.anonymity.given import whole
from sfumato.anonymity.tables import columns_of, names_given, opened
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.render import text_table
from sfumato.schema.classify import Role, role_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Deidentified", "deidentify", "roles"]


@dataclass(frozen=True, slots=True, eq=False)
class Deidentified:
    """A table without the columns that name people.

    Attributes:
        table: All rows in their order, with the columns that stay in theirs.
        dropped: The columns that were left out.
        roles: What each column of the original probably is.
    """

    table: pa.Table
    dropped: tuple[str, ...]
    roles: dict[str, Role]

    @property
    def quasi(self) -> tuple[str, ...]:
        """The columns that stay and may be known to others: start here with `measure`."""
        return tuple(name for name in self.table.column_names if self.roles[name] == "quasi-identifier")

    @property
    def report(self) -> str:
        """What was removed and what stayed, at most 80 columns wide; no value of the data is in it."""
        gone = len(self.dropped)
        shown: dict[str, list[object]] = {
            "column": list(self.roles),
            "probably": list(self.roles.values()),
            "here": ["left out" if name in self.dropped else "kept" for name in self.roles],
        }
        left = f"{gone} of {len(self.roles)} columns left out."
        warning = (
            "The others can still single people out together; see uniqueness()."
            if self.quasi
            else "The others can still single people out if somebody knows them."
        )
        return "\n".join([left, warning, "", text_table(shown)])

    def __str__(self) -> str:
        return self.report


def deidentify(
    table: Source, *, identifiers: str | Sequence[str] | None = None, keep: str | Sequence[str] = ()
) -> Deidentified:
    """The table without its identifiers: those named, or by default those that `sfumato init` would suggest.

    Args:
        table: a path (CSV, Parquet, …), or an Arrow, pandas or Polars frame.
        identifiers: the columns to leave out; by default all whose name says that they point at one person.
        keep: columns to keep although their name says so.

    Privacy:
        None is claimed. Columns are judged by name and type alone; text can name people in any column, and
        what is left can be linked to other tables (`uniqueness` says how often).

    Raises:
        InvalidParameter: for a column that does not exist, or if no column would be left.
        SourceUnusable: if the table cannot be read.
    """
    named = None if identifiers is None else names_given(identifiers, "identifiers")
    spared = names_given(list(keep) if not isinstance(keep, str) else keep, "keep")
    read, shown, kinds = whole(table)
    by_name = _roles(kinds)
    names = read.column_names
    stay = {names[place] for place in columns_of(names, spared, shown)}
    gone = (
        {name for name, role in by_name.items() if role == "identifier"}
        if named is None
        else {names[place] for place in columns_of(names, named, shown)}
    )
    if named is not None and gone & stay:
        raise InvalidParameter(f'Column "{min(gone & stay)[:100]}" is to be left out and kept; name it once.')
    gone -= stay
    if len(gone) == len(names):
        raise InvalidParameter("Every column is an identifier, so nothing would be left; name those to keep.")
    dropped = tuple(name for name in names if name in gone)
    return Deidentified(read.drop_columns(list(dropped)), dropped, by_name)


def roles(table: Source) -> dict[str, Role]:
    """What each column probably is, by name and type: identifier, quasi-identifier, sensitive or plain."""
    with opened(table) as rows:
        return _roles(rows.kinds)


def _roles(kinds: Mapping[str, str]) -> dict[str, Role]:
    return {name: role_of(name, kind) for name, kind in kinds.items()}
