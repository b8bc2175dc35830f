"""How the numbers of a CSV file are written: which sign is before fractions, and which parts thousands.

`1.234` may be 1234 or a little more than 1. A column alone cannot tell which, and whoever reads it wrong is
wrong by a factor of a thousand with nothing to see. So that is taken from what can be read in one way only,
in the column or in the file, from the steward's own bounds, or asked of the steward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.engines._paths import literal
from sfumato.engines.csv_format import Csv
from sfumato.schema import ColumnType, Float

if TYPE_CHECKING:
    from sfumato.validation.reading import Cells
    from sfumato.validation.report import ColumnReport

__all__ = ["FORMS", "GAP", "PLAIN", "Signs", "is_written", "signs_of"]

GAP = r"[ \x{A0}\x{202F}]"  # blanks, also those that do not break
_BY_POINTS = rf"\d{{1,3}}(({GAP}|[.'’_])\d{{3}})+"
_INDIAN = r"\d{1,2}(,\d{2})+,\d{3}"
_BY_COMMAS = rf"(\d{{1,3}}(({GAP}|[,'’_])\d{{3}})+|{_INDIAN})"
PLAIN = rf"({_INDIAN}|\d{{1,3}}(({GAP}|[.,'’_])\d{{3}})+|\d+)([.,]\d+)?"
_ONE = r"[-+]?\d+[.,]\d+"  # one sign, and so no thousands for sure
_EITHER_POINT, _EITHER_COMMA = r"[-+]?[1-9]\d{0,2}\.\d{3}", r"[-+]?[1-9]\d{0,2},\d{3}"
_WRITTEN = {  # by a form what it is, and what it is not
    "points": (rf"[-+]?(\d*|{_BY_COMMAS})\.\d+([eE][-+]?\d+)?", rf"{_EITHER_POINT}"),
    "commas": (rf"[-+]?(\d*|{_BY_POINTS}),\d+([eE][-+]?\d+)?", rf"{_EITHER_COMMA}"),
    "many_points": (r"[-+]?\d{1,3}(\.\d{3}){2,}", None),
    "many_commas": (rf"[-+]?(\d{{1,3}}(,\d{{3}}){{2,}}|{_INDIAN})", None),
    "either_points": (_EITHER_POINT, None),
    "either_commas": (_EITHER_COMMA, None),
    "apart": (rf"[-+]?({_BY_POINTS}(,\d+)?|{_BY_COMMAS}(\.\d+)?)", _ONE),
}
FORMS = tuple(_WRITTEN)
"""The ways in which a number may be written; `Cells` has a count of each."""
_MOST = 0.95
_HALF = 0.5
_FEW = 1 - _MOST


def is_written(cell: str, form: str) -> str:
    """Whether a cell is a number that is written so."""
    what, other = _WRITTEN[form]
    is_so = f"regexp_full_match(trim({cell}), {literal(what)})"
    return is_so if other is None else f"({is_so} AND NOT regexp_full_match(trim({cell}), {literal(other)}))"


@dataclass(frozen=True, slots=True)
class Signs:
    """What the signs in the numbers of a file mean.

    Attributes:
        decimal: What is before fractions, as the file is best read.
        declared: What is declared.
        lost: Columns whose fractions that cannot read, since others are written otherwise.
        won: Those others.
        thousands: Columns with thousands apart.
        guessed: Those of them where only the semicolons of the file say so.
        undecided: Columns that may be read in two ways, with nothing to tell which.
        assumed: Columns that may be, and that are read as other columns are.
    """

    decimal: str = "."
    declared: str = "."
    lost: tuple[str, ...] = ()
    won: tuple[str, ...] = ()
    thousands: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    def read(self, name: str, cells: Cells) -> int:
        """How many cells of text are numbers, once the file is read so."""
        if name in (*self.lost, *self.undecided):
            return 0
        return cells.with_commas if self.decimal == "," else cells.with_points

    def fractions(self, name: str, cells: Cells) -> int:
        """How many cells are written with a fraction, once the file is read so."""
        if name in (*self.lost, *self.undecided):
            return 0
        if self.decimal == ",":
            return cells.commas + cells.either_commas
        return cells.points + cells.either_points

    def findings(self, either_commas: Sequence[str]) -> list[str]:
        """What of it the steward has to decide, in sentences.

        Args:
            either_commas: Columns of numbers such as 1,234.
        """
        found = []
        if self.lost:
            first = self.lost[0]
            mine, other = (
                ("points", "decimal commas") if self.decimal == "," else ("decimal commas", "points")
            )
            read = first if self.decimal == "," else f"REPLACE({first}, ',', '.')"
            found.append(
                f"{', '.join(self.lost)} {_has(self.lost)} {mine} and {', '.join(self.won)} {_has(self.won)} "
                f"{other}, and a file is read in one form: write numbers in one, or declare {first} as text "
                f"and ask for CAST({read} AS DOUBLE)."
            )
        points = [name for name in self.undecided if name not in either_commas]
        commas = [name for name in self.undecided if name in either_commas]
        if points:
            found.append(
                f"{', '.join(points)}: numbers like 1.234 may mean 1234 or 1.234. Decide before you declare "
                "them. For 1234 take the points out of the file; for 1.234 declare float with the bounds "
                "that you know."
            )
        if commas:
            found.append(
                f"{', '.join(commas)}: numbers like 1,234 may mean 1234 or 1.234. Decide before you declare "
                'them. For 1234 take the commas out of the file; for 1.234 write decimal = "," into its csv '
                "section."
            )
        if self.guessed:
            found.append(
                f"{', '.join(self.guessed)}: numbers like 1.234 are taken for 1234, since the file has "
                "semicolons. If they mean 1.234, declare float with the bounds that you know."
            )
        if self.assumed:
            sign = "comma" if self.decimal == "," else "point"
            number = f"1{self.decimal}234"
            found.append(
                f"{', '.join(self.assumed)}: numbers like {number} are read as 1.234, since other columns "
                f"have decimal {sign}s. If they mean 1234, take the {sign}s out of the file; if not, declare "
                "float with the bounds that you know."
            )
        return found


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def signs_of(
    declared: Mapping[str, ColumnType],
    columns: Sequence[ColumnReport],
    cells: Mapping[str, Cells],
    csv: Csv,
    delimiter: str,
) -> Signs:
    """What the signs mean, by what the numbers of a file and the text that looks like numbers show."""
    names = [column.name for column in columns if _is_number(declared[column.name], cells[column.name])]
    settled = [column.name for column in columns if _is_settled(declared[column.name], column)]
    own = {name: csv.decimal if name in settled else _sign(cells[name]) for name in names}
    is_comma = csv.decimal == ","
    open_points = [name for name in names if not own[name] and cells[name].either_points]
    open_commas = [name for name in names if not own[name] and cells[name].either_commas]
    points = tuple(name for name in names if own[name] == ".")
    shown = [name for name in names if own[name] == ","]
    commas = tuple(name for name in names if name in shown or (is_comma and name in open_commas))
    undecided: list[str] = []
    assumed: list[str] = []
    guessed: list[str] = []
    if commas and points:
        decimal = csv.decimal
        undecided = [] if is_comma else list(dict.fromkeys((*open_points, *open_commas)))
    elif commas or points:
        decimal = "," if commas else "."
        assumed = open_points if points else open_commas if shown else []
    elif is_comma:
        decimal = ","
    elif open_points and not open_commas and delimiter == ";":
        decimal, guessed = ",", open_points
    else:
        decimal = "."
        undecided = list(dict.fromkeys((*open_points, *open_commas)))
    lost, won = ((points, commas) if decimal == "," else (commas, points)) if commas and points else ((), ())
    apart = [
        name
        for name in names
        if cells[name].apart
        or (decimal == "," and own[name] != "." and cells[name].either_points)
        or (decimal == "." and own[name] != "," and name not in undecided and cells[name].either_commas)
    ]
    # Whoever has thousands apart is told to take them out, and nothing else helps before.
    lost = tuple(name for name in lost if name not in apart)
    return Signs(
        decimal,
        csv.decimal,
        lost,
        won if lost else (),
        tuple(name for name in apart if name not in undecided),
        tuple(guessed),
        tuple(undecided),
        tuple(name for name in assumed if name not in apart),
    )


def _is_number(kind: ColumnType, cells: Cells) -> bool:
    """Whether a column holds numbers: half of the cells of one that is declared so, else nearly all."""
    share = _HALF if kind.kind in ("integer", "float") else _MOST
    return cells.numeric > 0 and cells.numeric >= share * (cells.present - cells.nothing)


def _is_settled(kind: ColumnType, column: ColumnReport) -> bool:
    """Whether the steward's own bounds say that numbers mean what they are read as."""
    fits = column.outside == 0 and column.fitting > column.unread
    return isinstance(kind, Float) and kind.lower is not None and fits


def _sign(cells: Cells) -> str:
    """What is before the fractions of a column; empty where it cannot be told from it."""
    points = cells.points if cells.points >= _FEW * (cells.points + cells.either_points) else 0
    commas = cells.commas if cells.commas >= _FEW * (cells.commas + cells.either_commas) else 0
    points, commas = points + cells.many_commas, commas + cells.many_points
    return "," if commas > points else "." if points else ""
