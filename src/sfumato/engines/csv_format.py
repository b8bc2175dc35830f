"""`Csv`: how a CSV source is written, where its header does not tell: names, separators, numbers, days.

All of it is declared and none is guessed from rows: what a row holds never decides how another one is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines._paths import literal
from sfumato.engines.kinds import seconds
from sfumato.errors import InvalidParameter
from sfumato.render import is_text
from sfumato.schema import Kind

__all__ = ["DELIMITERS", "Csv"]

DELIMITERS = (",", ";", "\t", "|")
_PARTS = re.compile(r"%(.)", re.DOTALL)
_KNOWN = frozenset("aAbBdfHIjmMpSyY")
_HOUR = {"H", "I"}
_DAY = ({"d"}, {"m", "b", "B"}, {"Y", "y"})  # what a day needs, one of each


@dataclass(frozen=True, slots=True, init=False)
class Csv:
    """A CSV source that is not written in the usual way: `Csv("visits.csv", dates=["%d.%m.%Y"])`.

    Attributes:
        path: A path, glob, folder or list of paths, as a source is otherwise.
        header: Whether the first line has the names of columns. Without it `names` are needed.
        names: The names of the columns, all of them, in order; they go over those of a header.
        delimiter: What separates fields: a comma, semicolon, tab or bar. Unless given, the one that is most
            frequent in the header; a comma where there is none, a tab in a .tsv file.
        decimal: What separates the fraction of a number: "." or ",".
        dates: How days are written, such as `"%d.%m.%Y"`, tried in order; unless given as 2024-12-31.
            Timestamps are read by those of them that have hours, such as `"%d.%m.%Y %H:%M"`.
        trim: Whether blanks around text are left out. Ids of units are always read as they stand.

    Privacy:
        Each cell is read by itself and by what is declared here: no row decides how another is read, how many
        columns there are, or an error.
    """

    path: Any
    header: bool
    names: tuple[str, ...] | None
    delimiter: str | None
    decimal: str
    dates: tuple[str, ...]
    trim: bool

    def __init__(
        self,
        path: str | Path | Iterable[str | Path],
        *,
        header: bool = True,
        names: Iterable[str] | None = None,
        delimiter: str | None = None,
        decimal: str = ".",
        dates: str | Iterable[str] = (),
        trim: bool = False,
    ) -> None:
        """Check the settings.

        Raises:
            InvalidParameter: if one of them is invalid.
        """
        if type(header) is not bool or type(trim) is not bool:
            raise InvalidParameter("csv: header and trim are true or false.")
        if not header and names is None:
            raise InvalidParameter('csv: without a header give the names of all columns: names = ["id", …].')
        if delimiter is not None and delimiter not in DELIMITERS:
            raise InvalidParameter('csv: delimiter is ",", ";", "|" or a tab.')
        if decimal not in (".", ","):
            raise InvalidParameter('csv: decimal is "." or ",".')
        put = object.__setattr__
        put(self, "path", path if isinstance(path, str | Path) else list(path))
        put(self, "header", header)
        put(self, "names", None if names is None else _names(names))
        put(self, "delimiter", delimiter)
        put(self, "decimal", decimal)
        put(self, "dates", _dates((dates,) if isinstance(dates, str) else tuple(dates)))
        put(self, "trim", trim)

    def cast(self, column: str, kind: Kind) -> str | None:
        """SQL for a field in the canonical type of the kind, or None where it is read as in any CSV file.

        Args:
            column: The field, quoted.
            kind: What it was declared to hold.
        """
        if kind == "text" and self.trim:
            return f"trim({column})"
        if kind in ("integer", "float") and self.decimal == ",":
            # Both signs change places, so that 1.5 is not a number where 1,5 is one.
            target = "BIGINT" if kind == "integer" else "DOUBLE"
            return f"TRY_CAST(translate({column}, ',.', '.,') AS {target})"
        if kind == "date" and self.dates:
            day = f"TRY_CAST(try_strptime({column}, [{', '.join(map(literal, self.dates))}]) AS DATE)"
            # DuckDB takes words such as "epoch" for days, and 24 for a year where %Y is asked for.
            is_day = f"regexp_matches({column}, '[0-9]') AND year({day}) BETWEEN 1000 AND 9999"
            return f"CASE WHEN {is_day} THEN {day} END"
        if kind == "timestamp" and (
            forms := [form for form in self.dates if _HOUR & {*_PARTS.findall(form)}]
        ):
            moment = f"try_strptime({column}, [{', '.join(map(literal, forms))}])"
            is_day = f"regexp_matches({column}, '[0-9]') AND year({moment}) BETWEEN 1000 AND 9999"
            return seconds(f"CASE WHEN {is_day} THEN {moment} END")
        return None


def _names(names: Iterable[str]) -> tuple[str, ...]:
    listed = tuple(names)
    fits = [isinstance(name, str) and name.strip() and is_text(name) for name in listed]
    if isinstance(names, str) or not listed or not all(fits):
        raise InvalidParameter('csv: names is a list of names, such as ["id", "city"]; none may be blank.')
    folded = [name.casefold() for name in listed]
    if len(set(folded)) != len(folded):
        raise InvalidParameter("csv: two names are the same, or differ in upper and lower case alone.")
    return listed


def _dates(formats: tuple[str, ...]) -> tuple[str, ...]:
    for form in formats:
        parts = _PARTS.findall(form) if isinstance(form, str) else []
        if not set(parts) <= _KNOWN or not all(needed & set(parts) for needed in _DAY):
            raise InvalidParameter(
                'csv: dates are formats with a day, a month and a year, such as "%d.%m.%Y" or "%m/%d/%y".'
            )
    return formats
