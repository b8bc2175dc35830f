"""What the counts mean for a steward: findings in sentences, and the lines of sfumato.toml to change.

Only types, formats and columns are changed. A bound, a list of values or a limit that is read off the data
would itself tell something about it, so that none is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.catalog.write import quoted, toml_key
from sfumato.engines.csv_format import Csv
from sfumato.schema import ColumnType, Int, Text
from sfumato.validation import patterns
from sfumato.validation.days import Days, Plan, plan_of
from sfumato.validation.numbers import Signs, signs_of
from sfumato.validation.reading import Cells
from sfumato.validation.report import Change, ColumnReport, Lines, Units

__all__ = ["advise"]

_MOST = 0.95  # of the cells of a column that must look like a type before it is advised


def advise(
    declared: Mapping[str, ColumnType],
    *,
    columns: Sequence[ColumnReport],
    cells: Mapping[str, Cells],
    days: Mapping[str, Days],
    refused: Sequence[str],
    csv: Csv | None,
    delimiter: str,
    is_csv: bool,
    missing: Mapping[str, str | None],
    repeated: Sequence[str],
    unfit: Mapping[str, str],
    units: Units | None,
    lines: Lines | None,
    roles: Mapping[str, str],
) -> tuple[tuple[str, ...], tuple[Change, ...]]:
    """The findings and the changes of one table.

    Args:
        declared: The columns as they are declared.
        columns: How many of their values fit.
        cells: What they look like; those that hardly any value fits as text.
        days: By column how days are written in it.
        refused: Numbers that the source has as text, which a session refuses.
        csv: How the file is declared to be written.
        delimiter: What separates its fields.
        is_csv: Whether it is a CSV file.
        missing: Columns that are not there, with the nearest one.
        repeated: Names of several columns.
        unfit: Columns that the source has in another type, with it.
        units: How many rows units have.
        lines: What the file shows as text.
        roles: The role of each column in sfumato.toml; those left out have none there.
    """
    if _is_another(declared, missing):
        return (*_of_lines(lines), "No column matches what is declared: is this the right file?"), ()
    findings = [*_of_lines(lines), *_of_names(missing, repeated), *_of_types(declared, refused, unfit)]
    for column in columns:
        findings += _of_column(column, cells[column.name], declared[column.name])
    findings += _of_blanks(columns, cells, trimmed=csv is not None and csv.trim)
    written = csv or Csv("t.csv")
    signs = signs_of(declared, columns, cells, written, delimiter) if is_csv else Signs()
    plan = plan_of(declared, days, written)
    findings += _of_units_of_numbers(columns, cells, declared, signs)
    findings += signs.findings([name for name in signs.undecided if cells[name].either_commas])
    findings += plan.findings
    findings += _of_units(units)
    changes = [
        Change("columns", toml_key(old), None if new is None else toml_key(new))
        for old, new in missing.items()
    ]
    types = _types(declared, columns, cells, plan, refused, unfit, signs, is_csv)
    if is_csv:
        changes += _formats(columns, cells, written, signs, plan)
    for name, new in types.items():
        declaration, role = declared[name].to_dict(), roles.get(name)
        old = declaration["type"]
        kept = {key: value for key, value in declaration.items() if _stays(key, str(old), new)}
        changes.append(
            Change(
                "columns",
                _line(name, declaration, role),
                _line(name, {**kept, "type": new}, role),
                f"{old} to {new}",
            )
        )
    return tuple(findings), tuple(changes)


def _is_another(declared: Mapping[str, ColumnType], missing: Mapping[str, str | None]) -> bool:
    """Whether none of several columns is there, and hardly one has another name."""
    gone = [missing[name] for name in declared if name in missing]
    return len(gone) == len(declared) > 1 and 2 * sum(near is not None for near in gone) < len(gone)


def _line(name: str, declaration: Mapping[str, object], role: str | None) -> str:
    """A column as sfumato.toml has it."""
    settings = {"type": declaration["type"], "role": role, **declaration}
    written = [
        f"{key} = {_toml(value, is_moment=key in ('start', 'end'))}"
        for key, value in settings.items()
        if value is not None and (key, value) != _USUAL
    ]
    return f"{toml_key(name)} = {{ {', '.join(written)} }}"


_USUAL = ("nullable", True)


def _toml(value: object, *, is_moment: bool = False) -> str:
    """A setting's value; days and times are written without quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return quoted(value) if isinstance(value, str) and not is_moment else str(value)


def _stays(key: str, old: str, new: str) -> bool:
    """Whether a setting of a column has a meaning for its new type: bounds of numbers for numbers."""
    if key in ("lower", "upper"):
        return {old, new} <= {"int", "float"}
    return key in ("type", "nullable")


def _of_lines(lines: Lines | None) -> list[str]:
    found = []
    place = "" if lines is None or not lines.file else f" of {lines.file}"
    if lines is not None and lines.broken:
        rows = "its row is" if lines.broken == 1 else "their rows are"
        found.append(
            f"{_many(lines.broken, 'line')} not in UTF-8, probably in {lines.encoding}: {rows} left "
            "out, and a session of yours refuses the file. "
            f"The first is line {lines.first:,}{place}; save the file as UTF-8."
        )
    if lines is not None and lines.uneven:
        found.append(
            f"{_many(lines.uneven, 'record')} of another number of fields than there are columns: left out "
            f"of every answer. The first ends at line {lines.first:,}{place}; look for separators and quotes."
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


def _of_column(column: ColumnReport, cells: Cells, kind: ColumnType) -> list[str]:
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
    return found


def _of_blanks(columns: Sequence[ColumnReport], cells: Mapping[str, Cells], *, trimmed: bool) -> list[str]:
    padded = {
        column.name: cells[column.name].padded
        for column in columns
        if cells[column.name].padded and not trimmed and patterns.PADDED not in column.patterns
    }
    if not padded:
        return []
    return [f'{", ".join(padded)}: {_many(sum(padded.values()), "value")} between blanks, as in " x".']


def _of_units_of_numbers(
    columns: Sequence[ColumnReport],
    cells: Mapping[str, Cells],
    declared: Mapping[str, ColumnType],
    signs: Signs,
) -> list[str]:
    """Numbers that no setting reads, among them those in text: nearly all of its cells have a unit."""
    unread = [
        column.name
        for column in columns
        if any(form in column.patterns for form in _UNPLAIN)
        or column.name in signs.thousands
        or (isinstance(declared[column.name], Text) and _is_unplain(cells[column.name]))
    ]
    if not unread:
        return []
    plain, other = ("1874,64", "€1.874,64") if signs.decimal == "," else ("1874.64", "€1,874.64")
    texts = [name for name in unread if isinstance(declared[name], Text)]
    then = f", and declare {' and '.join(texts)} as int or float" if texts else ""
    return [
        f"{', '.join(unread)}: numbers with a unit, in brackets, or with thousands apart, cannot be read. "
        f"Take signs, units and separators of thousands out of the file{then}: {plain}, not {other}."
    ]


_UNPLAIN = (patterns.WITH_UNIT, patterns.THOUSANDS, patterns.BRACKETS)


def _is_unplain(cells: Cells) -> bool:
    """Whether text is numbers, and some of them have a unit, or brackets."""
    return cells.units > 0 and _mostly(cells, cells.units + cells.numeric)


def _of_units(units: Units | None) -> list[str]:
    if units is None:
        return []
    found = []
    if units.unnamed:
        found.append(f"{units.column}: {_many(units.unnamed, 'row')} of no unit, which no question counts.")
    if above := units.cut(units.ceiling)[0]:
        found.append(
            f"{units.column}: {above:,} unit{'s have' if above > 1 else ' has'} more than {units.ceiling:,} "
            "rows, the ceiling on which every bound over all rows rests: such bounds may be wrong. Declare a "
            "larger ceiling: it is public, so take a round number above what is possible, not one read off "
            "the data."
        )
    for kind, n in units.alike.items():
        found.append(
            f"{units.column}: {_many(n, 'id')} the same as another but for {kind}. If they are one person, "
            "that person is protected as several: write ids in one form."
        )
    return found


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}" + (" is" if n == 1 else " are")


def _mostly(cells: Cells, n: int) -> bool:
    """Whether so many are nearly all cells of a column but words for nothing."""
    return n > 0 and n >= _MOST * (cells.present - cells.nothing)


def _formats(
    columns: Sequence[ColumnReport], cells: Mapping[str, Cells], csv: Csv, signs: Signs, plan: Plan
) -> list[Change]:
    """Lines of the section `csv`."""
    changes = []
    if signs.decimal != csv.decimal:
        is_comma = signs.decimal == ","
        line = 'decimal = ","'
        changes.append(Change("csv", None if is_comma else line, line if is_comma else None))
    if plan.dates:
        old = None if not csv.dates else f"dates = {_listed(csv.dates)}"
        changes.append(Change("csv", old, f"dates = {_listed(plan.dates)}"))
    padded = any(patterns.PADDED in column.patterns or cells[column.name].padded for column in columns)
    if padded and not csv.trim:
        changes.append(Change("csv", None, "trim = true"))
    return changes


def _listed(forms: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{form}"' for form in forms) + "]"


def _types(
    declared: Mapping[str, ColumnType],
    columns: Sequence[ColumnReport],
    cells: Mapping[str, Cells],
    plan: Plan,
    refused: Sequence[str],
    unfit: Mapping[str, str],
    signs: Signs,
    is_csv: bool,
) -> dict[str, str]:
    """By column the type to declare instead."""
    words = {
        "integer": "int",
        "float": "float",
        "boolean": "bool",
        "text": "text",
        "date": "date",
        "timestamp": "timestamp",
        "time": "time",
    }
    new = {name: words[kind] for name, kind in unfit.items() if kind in words}
    new |= dict.fromkeys(refused, "text")
    for column in columns:
        kind, found = declared[column.name], cells[column.name]
        if column.name in new or not is_csv or not found.present:
            continue
        name = column.name
        if kind.kind in ("date", "timestamp") and name in plan.types:
            new[name] = plan.types[name]
            continue
        like = _looks(found, signs.read(name, found), plan.types.get(name))
        if isinstance(kind, Int) and _has_fractions(column, found, signs):
            new[name] = "float"
        elif isinstance(kind, Text) and not found.zeros and like:
            new[name] = like
        elif kind.kind != "text" and 2 * _unexplained(column, signs) > _meant(column):
            new[name] = like or "text"
    return {name: word for name, word in new.items() if word != declared[name].to_dict()["type"]}


def _meant(column: ColumnReport) -> int:
    """How many cells hold something."""
    return column.rows - column.empty - column.patterns.get(patterns.MISSING, 0)


def _has_fractions(column: ColumnReport, cells: Cells, signs: Signs) -> bool:
    """Whether whole numbers are declared, and there are others, as the file is to be read."""
    comes = patterns.DECIMAL_COMMAS if signs.decimal == "," else patterns.DECIMAL_POINTS
    seen = cells.rounded or column.patterns.get(comes, 0)
    return bool(seen and signs.fractions(column.name, cells))


def _unexplained(column: ColumnReport, signs: Signs) -> int:
    """How many values are not read for which no format and no word for nothing is the reason."""
    known = [
        n
        for phrase, n in column.patterns.items()
        if phrase in (patterns.MISSING, patterns.EITHER, *_UNPLAIN)
        or (phrase in (patterns.DECIMAL_COMMAS, patterns.DECIMAL_POINTS) and column.name not in signs.lost)
    ]
    return column.unread - sum(known)


def _looks(cells: Cells, numbers: int, days: str | None) -> str | None:
    """The type that nearly all cells of a column look like, but words for nothing.

    Args:
        cells: What they look like.
        numbers: How many are numbers, as the file is to be read.
        days: The type that they have as days, if any.
    """
    if days is not None:
        return days
    likely = {"int": cells.whole if numbers else 0, "float": numbers, "bool": cells.truths}
    return next((word for word, n in likely.items() if _mostly(cells, n)), None)
