"""What the counts mean for a steward: findings in sentences, and the lines of sfumato.toml to change.

Only types, formats and columns are changed. A bound, a list of values or a limit that is read off the data
would itself tell something about it, so that none is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.catalog.write import toml_key
from sfumato.engines.csv_format import Csv
from sfumato.schema import ColumnType, Int, Text
from sfumato.validation import patterns
from sfumato.validation.reading import Cells
from sfumato.validation.report import Change, ColumnReport, Lines, Units

__all__ = ["advise"]

_ISO = "%Y-%m-%d"
_MOST = 0.95  # of the cells of a column that must look like a type before it is advised


def advise(
    declared: Mapping[str, ColumnType],
    *,
    columns: Sequence[ColumnReport],
    cells: Mapping[str, Cells],
    refused: Sequence[str],
    csv: Csv | None,
    is_csv: bool,
    missing: Mapping[str, str | None],
    repeated: Sequence[str],
    unfit: Mapping[str, str],
    units: Units | None,
    lines: Lines | None,
) -> tuple[tuple[str, ...], tuple[Change, ...]]:
    """The findings and the changes of one table."""
    findings = [*_of_lines(lines), *_of_names(missing, repeated), *_of_types(declared, refused, unfit)]
    for column in columns:
        trimmed = csv is not None and csv.trim
        findings += _of_column(column, cells[column.name], declared[column.name], trimmed=trimmed)
    commas = [column.name for column in columns if column.patterns.get(patterns.DECIMAL_COMMAS)]
    points = [name for name, found in cells.items() if found.points]
    if is_csv and commas and points:
        findings.append(
            f"{commas[0]} has decimal commas and {points[0]} has points: write numbers in one form, since a "
            "file is read in one."
        )
    findings += _of_units(units)
    changes = [
        Change("columns", toml_key(old), None if new is None else toml_key(new))
        for old, new in missing.items()
    ]
    if is_csv:
        changes += _formats(declared, columns, cells, csv or Csv("t.csv"))
    for name, new in _types(declared, columns, cells, refused, unfit, is_csv).items():
        old = str(declared[name].to_dict()["type"])
        changes.append(Change("columns", _typed(name, old), _typed(name, new)))
    return tuple(findings), tuple(changes)


def _typed(name: str, word: str) -> str:
    return f'{toml_key(name)} = {{ type = "{word}", … }}'


def _of_lines(lines: Lines | None) -> list[str]:
    found = []
    if lines is not None and lines.broken:
        found.append(
            f"{_many(lines.broken, 'line')} not in UTF-8, probably in {lines.encoding}: their rows are left "
            "out, and a session of yours refuses the file. "
            f"The first is line {lines.first:,}; save the file as UTF-8."
        )
    if lines is not None and lines.uneven:
        found.append(
            f"{_many(lines.uneven, 'record')} of another number of fields than there are columns: left out "
            f"of every answer. The first ends at line {lines.first:,}; look for separators and quotes."
        )
    return found


def _of_names(missing: Mapping[str, str | None], repeated: Sequence[str]) -> list[str]:
    several = [
        f"{name}: the source has several columns of that name; give each one its own, in a CSV file with "
        "names in its csv section."
        for name in repeated
    ]
    return several + [
        f"{name}: the source has no such column" + (f"; {near} is the nearest." if near else ".")
        for name, near in missing.items()
    ]


def _of_types(
    declared: Mapping[str, ColumnType], refused: Sequence[str], unfit: Mapping[str, str]
) -> list[str]:
    held = {**unfit, **dict.fromkeys(refused, "text")}
    return [
        f"{name}: declared {declared[name].to_dict()['type']}, and the source has it as {kind}: refused."
        for name, kind in held.items()
    ]


def _of_column(column: ColumnReport, cells: Cells, kind: ColumnType, *, trimmed: bool) -> list[str]:
    found = []
    like = "; ".join(f"{n:,} {phrase}" for phrase, n in sorted(column.patterns.items(), key=lambda p: -p[1]))
    like = f" ({like})" if like else ""
    word = kind.to_dict()["type"]
    if column.unread:
        found.append(f"{column.name}: {_many(column.unread, 'value')} not readable as {word}, so NULL{like}.")
    if column.outside:
        where = "not in the list of values" if word == "enum" else "outside the bounds"
        found.append(
            f"{column.name}: {_many(column.outside, 'value')} {where}{'' if column.unread else like}."
        )
    if column.empty and not kind.nullable:
        found.append(f"{column.name}: {_many(column.empty, 'row')} without a value, and nullable is false.")
    if cells.rounded:
        found.append(f"{column.name}: {_many(cells.rounded, 'value')} rounded, since int has no fraction.")
    if cells.padded and not trimmed and patterns.PADDED not in column.patterns:
        found.append(f'{column.name}: {_many(cells.padded, "value")} between blanks, as in " x".')
    return found


def _of_units(units: Units | None) -> list[str]:
    if units is None:
        return []
    found = []
    if units.unnamed:
        found.append(f"{units.column}: {_many(units.unnamed, 'row')} of no unit, which no question counts.")
    for kind, n in units.alike.items():
        found.append(
            f"{units.column}: {_many(n, 'id')} the same as another but for {kind}. If they are one person, "
            "that person is protected as several: write ids in one form."
        )
    return found


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}" + (" is" if n == 1 else " are")


def _formats(
    declared: Mapping[str, ColumnType],
    columns: Sequence[ColumnReport],
    cells: Mapping[str, Cells],
    csv: Csv,
) -> list[Change]:
    """Lines of the section `csv`."""
    changes = []
    commas = [column for column in columns if column.patterns.get(patterns.DECIMAL_COMMAS)]
    points = any(cells[column.name].points for column in columns)
    if csv.decimal == "." and commas and not points:
        changes.append(Change("csv", None, 'decimal = ","'))
    dates = _dates([column for column in columns if declared[column.name].kind == "date"], csv)
    if dates:
        old = None if not csv.dates else f"dates = {_listed(csv.dates)}"
        changes.append(Change("csv", old, f"dates = {_listed(dates)}"))
    padded = any(patterns.PADDED in column.patterns or cells[column.name].padded for column in columns)
    if padded and not csv.trim:
        changes.append(Change("csv", None, "trim = true"))
    return changes


def _dates(columns: Sequence[ColumnReport], csv: Csv) -> list[str]:
    """The formats of days to declare; empty where nothing is to change."""
    new: list[str] = []
    iso = False
    for column in columns:
        left, iso = column.unread, iso or column.fitting + column.outside > 0
        counts = {form: column.patterns.get(f"days written {form}", 0) for form in patterns.DATES}
        for form, n in sorted(counts.items(), key=lambda pair: -pair[1]):
            if 0 < n <= left:
                new += [] if form in new else [form]
                left -= n
    if not new:
        return []
    return [*(csv.dates or ([_ISO] if iso else [])), *new]


def _listed(forms: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{form}"' for form in forms) + "]"


def _types(
    declared: Mapping[str, ColumnType],
    columns: Sequence[ColumnReport],
    cells: Mapping[str, Cells],
    refused: Sequence[str],
    unfit: Mapping[str, str],
    is_csv: bool,
) -> dict[str, str]:
    """By column the type to declare instead."""
    words = {
        "integer": "int",
        "float": "float",
        "boolean": "bool",
        "text": "text",
        "date": "date",
        "timestamp": "date",
    }
    new = {name: words[kind] for name, kind in unfit.items() if kind in words}
    new |= dict.fromkeys(refused, "text")
    for column in columns:
        kind, found = declared[column.name], cells[column.name]
        if column.name in new or not is_csv or not found.present:
            continue
        if isinstance(kind, Int) and found.rounded:
            new[column.name] = "float"
        elif isinstance(kind, Text) and not found.zeros and (word := _looks(found)):
            new[column.name] = word
        elif kind.kind != "text" and column.unread > _MOST * found.present and not _explained(column):
            new[column.name] = "text"
    return new


def _explained(column: ColumnReport) -> bool:
    """Whether a format or a word for nothing tells why most values are not read."""
    return 2 * max(column.patterns.values(), default=0) > column.unread


def _looks(cells: Cells) -> str | None:
    """The type that nearly all cells of a column of text look like."""
    likely = {"int": cells.whole, "float": cells.numbers, "date": cells.days, "bool": cells.truths}
    return next((word for word, n in likely.items() if n >= _MOST * cells.present), None)
