"""Whether the first line of a CSV file holds the names of its columns: sure, asked, or not taken for it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from sfumato.cli.output import is_terminal, paragraph

if TYPE_CHECKING:
    from sfumato.catalog.looking import Naming

__all__ = ["named"]


def named(file: str, header: bool | None, *, quiet: bool) -> Naming:
    """How to name the columns of a file; in doubt the steward is asked, if there is a terminal.

    Args:
        file: Where it is.
        header: What the steward says: whether the first line is a header; None: nothing.
        quiet: Whether nobody can be asked.

    Raises:
        SourceUnusable: if the file is not there, or its first line is not UTF-8.
    """
    from sfumato.catalog.looking import naming_of

    return naming_of(file, header, lambda doubt: _answer(file, doubt, quiet=quiet))


def _answer(file: str, doubt: str, *, quiet: bool) -> bool:
    """What the steward says in a terminal; in a pipe nobody is asked, and it is no header."""
    if not _can_ask(quiet):
        return False
    import typer

    name = os.path.basename(file)
    paragraph(f"The first line of {name} may be somebody's row: {doubt}. It is not shown here.")
    return typer.confirm("Does it hold the names of the columns?", default=False)


def _can_ask(quiet: bool) -> bool:
    return not quiet and is_terminal() and sys.stdin.isatty()
