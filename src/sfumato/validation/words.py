"""A validation as text of 80 columns: a table of columns, pictures of limits, findings, a diff."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from sfumato.catalog.write import toml_key
from sfumato.validation.report import LADDER, Change, TableReport, Units, Validation

__all__ = ["told"]

_WIDE = 80
_BAR, _SHORT = 16, 12
_FEW = 3  # changes of one sort that are shown with the old line, each
_VERSION = (
    "Give the table another version with these: under the same one, questions that were answered before are "
    "answered from record, as the file was read then."
)
_LAST = 10_000  # the largest limit that is drawn
HEAD = (
    "For the steward alone. What follows are exact counts of rows: not private, paid for by nobody, kept "
    "nowhere. Do not pass it on."
)


def told(validation: Validation) -> str:
    """The whole report."""
    parts = [textwrap.fill(HEAD, _WIDE)]
    for table in validation.tables:
        parts += ["", *_table(table)]
    return "\n".join(parts)


def _table(table: TableReport) -> list[str]:
    name = f"{table.name} · {table.source} · {table.rows:,} row{'' if table.rows == 1 else 's'}"
    lines = [name, "━" * min(len(name), _WIDE), ""]
    if table.columns:
        lines += _columns(table)
    if table.units is not None and table.units.count:
        lines += ["", *_units(table.units)]
    lines += ["", *_findings(table.findings)]
    if table.changes:
        lines += ["", *_diff(table.name, table.changes)]
    return lines


def _columns(table: TableReport) -> list[str]:
    wide = min(max(len("column"), *(len(column.name) for column in table.columns)), 18)
    kind = min(max(len("declared"), *(len(column.declared) for column in table.columns)), 15)
    heads = f"{'fits':<{_BAR + 6}} {'empty':>5} {'unread':>6} {'outside':>7}"
    head = f"{'column':<{wide}}  {'declared':<{kind}}  {heads}"
    lines = [head, "─" * len(head)]
    for column in table.columns:
        shares = [_share(n, column.rows) for n in (column.empty, column.unread, column.outside)]
        lines.append(
            f"{_short(column.name, wide):<{wide}}  {_short(column.declared, kind):<{kind}}  "
            f"{_bar(column.fitting, column.rows, _BAR)} {_share(column.fitting, column.rows):>5} "
            f"{shares[0]:>5} {shares[1]:>6} {shares[2]:>7}"
        )
    return lines


def _units(units: Units) -> list[str]:
    total = sum(rows * n for rows, n in units.rows.items())
    most = max(units.rows)
    limit = units.max_rows
    drawn = {step for step in LADDER if step <= min(_above(most), _LAST)}
    steps = sorted(drawn | ({limit} if limit else set()))
    average = f"{total / units.count:.1f} rows on average, {most:,} at most"
    counted = f"{units.count:,} unit{'' if units.count == 1 else 's'}"
    head = f"{'rows':>16}  {'units with so many':<22}  {'limit':>6}  {'rows beyond it: cut':<20}".rstrip()
    lines = [
        *textwrap.wrap(f"Rows of a unit ({units.column}): {counted}, {average}.", _WIDE),
        "",
        head,
        "─" * 70,
    ]
    below = 0
    for step in steps:
        held = sum(n for rows, n in units.rows.items() if below < rows <= step)
        _, cut = units.cut(step)
        span = f"{step:,}" if step == below + 1 else f"{below + 1:,} to {step:,}"
        mark = " ◂ max_rows" if step == limit else ""
        lines.append(
            f"{span:>16}  {_bar(held, units.count, _SHORT)} {_share(held, units.count):>6}{'':<3}  "
            f"{step:>6,}  {_bar(cut, total, _SHORT)} {_share(cut, total):>6}{mark}"
        )
        below = step
    if most > below:
        held = sum(n for rows, n in units.rows.items() if rows > below)
        lines.append(
            f"{f'above {below:,}':>16}  {_bar(held, units.count, _SHORT)} {_share(held, units.count):>6}"
        )
    if units.groups:
        lines += ["", *_groups(units)]
    return lines


def _groups(units: Units) -> list[str]:
    k = units.max_groups
    wide = min(max(len(name) for name in units.groups), 20)
    left = units.grouped - len(units.groups)
    others = f" ({len(units.groups)} of {units.grouped} columns; the others were not counted)" if left else ""
    head = f"Units in more groups of a column than max_groups = {k}, and groups beyond it{others}:"
    lines = [*textwrap.wrap(head, _WIDE), ""]
    for name, held in units.groups.items():
        count, pairs = sum(held.values()), sum(groups * n for groups, n in held.items())
        above, cut = units.groups_cut(name, k)
        lines.append(
            f"{_short(name, wide):>{wide + 2}}  {_bar(above, count, _BAR)} "
            f"{_share(above, count):>6} of units, {_share(cut, pairs):>6} of groups"
        )
    return lines


def _above(most: int) -> int:
    return next((step for step in LADDER if step >= most), _LAST)


def _findings(findings: Sequence[str]) -> list[str]:
    if not findings:
        return ["Every value fits what is declared."]
    lines = ["Found:"]
    for finding in findings:
        lines += textwrap.wrap(
            finding, _WIDE, initial_indent="  • ", subsequent_indent="    ", break_long_words=False
        )
    return lines


def _diff(name: str, changes: Sequence[Change]) -> list[str]:
    lines = ["To change in sfumato.toml; bounds, values and limits stay yours to decide:", ""]
    for section in sorted({change.section for change in changes}, reverse=True):
        lines.append(f"  [tables.{toml_key(name)}.{section}]")
        here = [change for change in changes if change.section == section]
        many = {what for what, n in Counter(change.what for change in here).items() if what and n > _FEW}
        for change in here:
            if change.what not in many:
                pairs = (("-", change.old and _short(change.old, _WIDE - 2)), ("+", change.new))
                lines += [f"{sign} {text}" for sign, text in pairs if text]
        for what in sorted(many):
            new = [change.new for change in here if change.what == what and change.new]
            lines += [f"  {len(new)} columns from {what}; these lines in the place of theirs:"]
            lines += [f"+ {line}" for line in new]
    return [*lines, "", *textwrap.wrap(_VERSION, _WIDE)]


def _bar(part: int, whole: int, wide: int) -> str:
    """A bar of a share; anything above nothing is seen."""
    filled = 0 if not part or not whole else max(1, round(wide * part / whole))
    if part < whole:
        filled = min(filled, wide - 1)
    return "█" * filled + "·" * (wide - filled)


def _share(part: int, whole: int) -> str:
    """A share in percent that shows the least and the most there is: <0.1 % is not 0 %.

    It is rounded, not cut: shares that are shown side by side add up to 100 %, but for what is lost to that.
    """
    if not part or not whole:
        return "0 %"
    if part == whole:
        return "100 %"
    percent = 100 * part / whole
    if percent < 0.1:
        return "<.1 %"
    if percent > 99.5:
        return ">99 %"
    return f"{percent:.1f} %" if percent < 9.95 else f"{round(percent)} %"


def _short(text: str, wide: int) -> str:
    return text if len(text) <= wide else text[: wide - 1] + "…"
