"""What a first sfumato.toml is made of: the names and types of a file's columns, and no row of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.catalog.names import table_name
from sfumato.catalog.unreadable import explained
from sfumato.catalog.write import DraftTable
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.engines import Csv

__all__ = ["Naming", "drafted", "naming_of", "refuse_wide"]

_PANDAS_INDEX = re.compile("__index_level_[0-9]+__")  # the numbers of rows that pandas writes along
_ROW = "The first line counts as a row; write names that you know instead of c1, c2, …, here and below."
_ELSE = "If it holds names, run init with --header."
_ANEW = "Names of the header that are blank, repeated or have blanks around them are written anew."


@dataclass(frozen=True, slots=True)
class Naming:
    """How the columns of a source are named.

    Attributes:
        names: Names that go over those of the file; None: its own.
        header: Whether the first line is a header.
        delimiter: What separates the fields of a CSV file.
        reason: Why it is so, in a sentence; empty where the file's own names are taken. For the steward's
            eyes: it may depend on a row.
        remark: The same for the file that is written, where nothing depends on a row.
        doubt: Why the first line was taken for a row, in a clause; empty where nobody had to guess. For the
            steward's eyes, too.
    """

    names: tuple[str, ...] | None = None
    header: bool = True
    delimiter: str | None = None
    reason: str = ""
    remark: str = ""
    doubt: str = ""

    def source(self, file: str) -> str | Csv:
        """The source as an engine reads it."""
        from sfumato.engines import Csv

        if self.names is None:
            return file
        delimiter = None if self.header else self.delimiter
        return Csv(file, header=self.header, names=self.names, delimiter=delimiter)


def naming_of(
    file: str,
    header: bool | None,
    asked: Callable[[str], bool] = lambda _: False,
    *,
    most: int | None = None,
) -> Naming:
    """How to name the columns of a file.

    Args:
        file: Where it is.
        header: What the steward says: whether the first line is a header; None: nothing.
        asked: Asks the steward whether it is one, in doubt, which it is told; by default it is none.
        most: How many columns it may have; None: any number.

    Privacy:
        Nothing of the first line is returned as a name, shown or written unless the steward says that it is a
        header, or `schema.headers` has no doubt. Otherwise columns are called c1, c2 and so on.

    Raises:
        SourceUnusable: if the file is not there, or its first line is not UTF-8.
        InvalidParameter: if it has too many columns.
    """
    from sfumato.engines._csv import first_lines
    from sfumato.engines.base import engine_of
    from sfumato.schema.headers import doubt_about, unique_names

    if engine_of([file]) != "duckdb":
        return Naming()
    with explained(file):
        lines = first_lines(file)
    if lines is None:
        return Naming()
    first = lines[0]
    if most is not None:
        refuse_wide(len(first.names), most)
    doubt = "the files have different first lines" if len(set(lines)) > 1 else doubt_about(first.names)
    is_header = header if header is not None else doubt is None or asked(doubt)
    if not is_header:
        names = tuple(f"c{place}" for place in range(1, len(first.names) + 1))
        if header is False:
            return Naming(names, False, first.delimiter, remark=_ROW)
        reason = f"The first line was taken for a row: {doubt}. If it holds names, run init with --header."
        return Naming(names, False, first.delimiter, reason, f"{_ROW} {_ELSE}", doubt or "")
    names = unique_names(first.names)
    if names == first.names:
        return Naming(delimiter=first.delimiter)
    return Naming(names, True, first.delimiter, _ANEW, _ANEW)


def refuse_wide(columns: int, most: int) -> None:
    """Refuses a table that has more columns than anybody could decide on one by one.

    Raises:
        InvalidParameter: if there are more.
    """
    if columns > most:
        raise InvalidParameter(
            f"The file has {columns:,} columns, and at most {most:,} can be decided on here: leave out those "
            "that nobody asks about, or declare it in a sfumato.toml with sfumato init."
        )


def drafted(
    file: str, naming: Naming, *, source: str, unit: str | None = None, taken: Sequence[str] = ()
) -> DraftTable:
    """A table for a file, as the engine that its address names tells its columns.

    Args:
        file: Where it is.
        naming: How its columns are named.
        source: The same place as sfumato.toml will say it.
        unit: A column that is kept whatever its name.
        taken: Names that other tables have.

    Raises:
        InvalidParameter: if it has no columns.
        SourceUnusable: if it cannot be opened.
    """
    from sfumato.engines import engine as open_engine
    from sfumato.engines.base import engine_of

    with closing(open_engine(engine_of([file]))) as engine:
        found = engine.schema(naming.source(file))
    columns = {
        column: kind
        for column, kind in found.items()
        if column == unit or not _PANDAS_INDEX.fullmatch(column)
    }
    if not columns:
        raise InvalidParameter(f"{file} has no columns.")
    return DraftTable(
        table_name(file, taken),
        source,
        columns,
        untyped=naming.delimiter is not None,
        names=naming.names,
        header=naming.header,
        delimiter=naming.delimiter,
        remark=naming.remark,
    )
