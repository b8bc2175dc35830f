"""Whether the first line of a CSV file holds the names of its columns: sure, asked, or not taken for it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.cli.output import is_terminal, paragraph

if TYPE_CHECKING:
    from sfumato.engines import Csv

__all__ = ["Naming", "named"]


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
    """

    names: tuple[str, ...] | None = None
    header: bool = True
    delimiter: str | None = None
    reason: str = ""
    remark: str = ""

    def source(self, file: str) -> str | Csv:
        """The source as an engine reads it."""
        from sfumato.engines import Csv

        if self.names is None:
            return file
        delimiter = None if self.header else self.delimiter
        return Csv(file, header=self.header, names=self.names, delimiter=delimiter)


def named(file: str, header: bool | None, *, quiet: bool) -> Naming:
    """How to name the columns of a file.

    Args:
        file: Where it is.
        header: What the steward says: whether the first line is a header; None: nothing.
        quiet: Whether nobody can be asked.

    Privacy:
        Nothing of the first line is returned as a name, shown or written unless the steward says that it is a
        header, or `schema.headers` has no doubt. Otherwise columns are called c1, c2 and so on.

    Raises:
        SourceUnusable: if the file is not there, or its first line is not UTF-8.
    """
    from sfumato.engines._csv import first_lines
    from sfumato.engines.base import engine_of
    from sfumato.schema.headers import doubt_about, unique_names

    if engine_of([file]) != "duckdb":
        return Naming()
    lines = first_lines(file)
    if lines is None:
        return Naming()
    first = lines[0]
    doubt = "the files have different first lines" if len(set(lines)) > 1 else doubt_about(first.names)
    is_header = header if header is not None else doubt is None or _answer(file, doubt, quiet=quiet)
    if not is_header:
        names = tuple(f"c{place}" for place in range(1, len(first.names) + 1))
        if header is False:
            return Naming(names, False, first.delimiter, remark=_ROW)
        reason = f"The first line was taken for a row: {doubt}. If it holds names, run init with --header."
        return Naming(names, False, first.delimiter, reason, f"{_ROW} {_ELSE}")
    names = unique_names(first.names)
    if names == first.names:
        return Naming(delimiter=first.delimiter)
    return Naming(names, True, first.delimiter, _ANEW, _ANEW)


_ROW = "The first line counts as a row; write names that you know instead of c1, c2, …, here and below."
_ELSE = "If it holds names, run init with --header."
_ANEW = "Names of the header that are blank, repeated or have blanks around them are written anew."


def _answer(file: str, doubt: str | None, *, quiet: bool) -> bool:
    """What the steward says in a terminal; in a pipe nobody is asked, and it is no header."""
    if not _can_ask(quiet):
        return False
    import typer

    name = os.path.basename(file)
    paragraph(f"The first line of {name} may be somebody's row: {doubt}. It is not shown here.")
    return typer.confirm("Does it hold the names of the columns?", default=False)


def _can_ask(quiet: bool) -> bool:
    return not quiet and is_terminal() and sys.stdin.isatty()
