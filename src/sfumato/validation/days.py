"""How the days of a CSV file are written, and which list of formats reads all of its columns.

A file has one list, by which all of its columns are read. `3/4/2024` is a day in April or in March, and a
list with both forms reads it by the first: so the order of day and month is one for a file, or is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.engines._paths import literal
from sfumato.engines._tables import raw_column
from sfumato.engines.csv_format import Csv
from sfumato.engines.scans import quoted
from sfumato.schema import ColumnType

if TYPE_CHECKING:
    from sfumato.validation.reading import Reader

__all__ = ["FORMS", "ISO", "LIKE_DAYS", "Days", "Plan", "has_hours", "is_day", "plan_of", "read_days"]

ISO = "%Y-%m-%d"
_DATES = (
    *(ISO, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
    *("%d. %m. %Y", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y"),
    *("%b %d, %Y", "%B %d, %Y"),
)
_HOURS = (" %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S", ", %I:%M:%S %p")
_ISO_HOURS = ("T%H:%M", "T%H:%M:%S", "T%H:%MZ", "T%H:%M:%SZ", "T%H:%M:%S.%f", "T%H:%M:%S.%fZ", " %H:%M:%S.%f")
FORMS = (
    *_DATES,
    "%Y%m%d",
    *(day + hours for day, hours in itertools.product(_DATES, _HOURS)),
    *(ISO + hours for hours in _ISO_HOURS),
)
LIKE_DAYS = (
    r"(\d{1,4}(\. |[-./ ])(\d{1,2}|[A-Za-z]{3,9})(\. |[-./ ])\d{2,4}|[A-Za-z]{3,9} \d{1,2}, ?\d{4}|\d{8})"
    r"(,? ?T?\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[AaPp][Mm]|Z| ?[+-]\d\d(:?\d\d)?)?)?"
)
_SEEN = 2_000  # different cells that say which forms are counted
_MOST = 0.95


def has_hours(form: str) -> bool:
    """Whether a form reads a moment."""
    return "%H" in form or "%I" in form


def is_day(cell: str, form: str) -> str:
    """Whether a cell is a day written so."""
    year = f"year(try_strptime({cell}, {literal(form)}))"
    years = "1900 AND 2100" if form == "%Y%m%d" else "1000 AND 9999"  # digits may be any number
    return f"({year} BETWEEN {years} AND regexp_matches({cell}, '[0-9]'))"


@dataclass(frozen=True, slots=True)
class Days:
    """What the cells of a column are, as days: how many.

    Attributes:
        meant: Cells that hold something, but for words for nothing.
        forms: By form those that it reads.
        pairs: By a form with the day first, those that it reads or the same with the month first.
        days: Those that are days to a file for which no form is declared.
        moments: The same for moments.
        hours: Those with hours.
    """

    meant: int
    forms: Mapping[str, int]
    pairs: Mapping[str, int]
    days: int
    moments: int
    hours: int

    def mostly(self, n: int) -> bool:
        """Whether so many are nearly all."""
        return n > 0 and n >= _MOST * self.meant

    @property
    def order(self) -> str:
        """`dm` or `md`, as nearly all show that can be told; `both`; empty where there is no telling."""
        first = sum(self.forms.get(form, 0) for form in self.pairs)
        second = sum(self.forms.get(_turned(form), 0) for form in self.pairs)
        if max(first, second) < _MOST * sum(self.pairs.values()):
            return "both"
        return "" if first == second else "dm" if first > second else "md"

    @property
    def is_open(self) -> bool:
        """Whether it matters which of day and month is first, and its cells do not show it."""
        return bool(self.pairs) and not self.order

    def chosen(self, order: str, *, hours: bool = False) -> list[str]:
        """Forms that read it, the most common first, with days and months in one order."""
        found: list[str] = []
        for form, n in sorted(self.forms.items(), key=lambda pair: -pair[1]):
            is_turned = form in self.pairs if order == "md" else _turned(form) in self.pairs
            alike = {_shape(form)} & {_shape(other) for other in found}
            if n and not is_turned and not alike and (has_hours(form) or not hours):
                found.append(form)
        return found

    def covered(self, forms: Sequence[str]) -> int:
        """How many cells a list of forms reads, at most."""
        return sum(self.forms.get(form, 0) for form in dict.fromkeys(forms))


def _turned(form: str) -> str:
    """The same form with day and month in the other order."""
    return form.replace("%d", "%_").replace("%m", "%d").replace("%_", "%m")


def _shape(form: str) -> str:
    return form.replace("%m", "%d").replace("%B", "%b")


def read_days(reader: Reader, table: str, name: str, nothing: str) -> Days:
    """How days are written in a column of text.

    Args:
        reader: What runs it.
        table: The table, planned with `raw`.
        name: The column.
        nothing: The condition that a `cell` is a word for nothing.
    """
    cells = (
        f"SELECT trim({quoted(raw_column(name))}) AS cell, count(*) AS n FROM {quoted(table)} "
        f"WHERE {quoted(raw_column(name))} IS NOT NULL GROUP BY cell"
    )

    def counted(conditions: Sequence[str], source: str) -> list[int]:
        terms = ", ".join(f"coalesce(sum(n) FILTER (WHERE {condition}), 0)" for condition in conditions)
        (row,) = reader.rows(f"SELECT {terms} FROM ({source})")
        return list(map(int, row))

    # Counted plainly, since to plan as many conditions as there are forms takes long.
    tried = ", ".join(f"count(try_strptime(cell, {literal(form)}))" for form in FORMS)
    (some,) = reader.rows(f"SELECT {tried} FROM ({cells} ORDER BY hash(cell) LIMIT {_SEEN})")
    seen = [form for form, n in zip(FORMS, some, strict=True) if n]
    likely = list(dict.fromkeys(form for one in seen for form in (one, _turned(one)) if form in FORMS))
    first = [form for form in likely if _turned(form) in likely and form.index("%d") < form.index("%m")]
    conditions = [
        f"NOT ({nothing})",
        "TRY_CAST(cell AS DATE) IS NOT NULL AND regexp_matches(cell, '[0-9]')",
        "TRY_CAST(cell AS TIMESTAMPTZ) IS NOT NULL AND regexp_matches(cell, '[0-9]')",
        r"regexp_matches(cell, '\d:\d\d')",
        *(is_day("cell", form) for form in likely),
        *(f"({is_day('cell', form)} OR {is_day('cell', _turned(form))})" for form in first),
    ]
    meant, days, moments, hours, *counts = counted(conditions, cells)
    forms = {form: n for form, n in zip(likely, counts, strict=False) if n}
    pairs = {form: n for form, n in zip(first, counts[len(likely) :], strict=True) if n}
    return Days(meant, forms, pairs, days, moments, hours)


@dataclass(frozen=True, slots=True)
class Plan:
    """How the days of a file are to be read.

    Attributes:
        types: By column `date` or `timestamp`; `text` for what cannot be read along with the others.
        dates: The list to declare; empty where nothing is to change.
        findings: What is to be decided, in sentences.
    """

    types: Mapping[str, str]
    dates: tuple[str, ...]
    findings: tuple[str, ...]


def plan_of(declared: Mapping[str, ColumnType], days: Mapping[str, Days], csv: Csv) -> Plan:
    """How to read the columns of days of a file.

    Args:
        declared: The columns as declared; those that are no days are looked at as text.
        days: What they hold.
        csv: How the file is declared to be written.
    """
    wanted = {name: type_ for name, found in days.items() if (type_ := _type(declared[name], found))}
    here = {name: days[name] for name in wanted}
    order = _declared_order(csv, here) or _most([found.order for found in here.values()])
    findings, types = _of_orders(here, order), dict[str, str]()
    for name, found in here.items():
        is_told = found.pairs and (not order or found.order not in ("", order))
        # Where a day is declared whose order is another one, days would be read as others: text is true.
        types[name] = "text" if is_told and (order or not _is_days(declared[name])) else wanted[name]
        if is_told and not order and _is_days(declared[name]):
            types.pop(name)
    forms: list[str] = list(csv.dates)
    needy = {name: type_ for name, type_ in types.items() if type_ != "text"}
    for name, type_ in needy.items():
        found = here[name]
        chosen = found.chosen(order, hours=type_ == "timestamp")
        usual = found.days if type_ == "date" else found.moments
        if usual < found.covered(chosen):
            forms += [form for form in chosen if form not in forms]
    for name, type_ in needy.items():
        found = here[name]
        if type_ == "date" and forms:
            forms += [form for form in found.chosen(order) if form not in forms]
    for name, type_ in needy.items():
        found = here[name]
        if type_ == "timestamp" and any(map(has_hours, forms)):
            forms += [form for form in found.chosen(order, hours=True) if form not in forms]
    timed = [form for form in forms if has_hours(form)]
    for name, type_ in needy.items():
        found = here[name]
        read = forms if type_ == "date" else timed
        usual = found.days if type_ == "date" else found.moments
        if read and found.covered(read) < min(usual, _MOST * found.meant):
            if type_ == "date" and not timed and found.mostly(found.moments):
                types[name] = "timestamp"  # which is read without a form as long as none has hours
                continue
            types[name] = "text"
            findings.append(
                f"{name}: its moments have zones, which no form reads, and other columns need forms: write "
                "them as 2024-01-31T14:00:00Z."
            )
    new = tuple(forms) if set(forms) - set(csv.dates) else ()
    return Plan(types, new, tuple(findings))


def _type(kind: ColumnType, found: Days) -> str | None:
    """The type of a column of days: the declared one where it can be kept; None: it has none."""
    timed = found.covered(found.chosen(found.order, hours=True))
    read = max(found.days, found.covered(found.chosen(found.order)))
    if kind.kind in ("date", "timestamp"):
        fits = read if kind.kind == "date" else max(found.moments, timed)
        if 2 * fits > found.meant:
            return str(kind.kind)
    if not found.mostly(read) and not (found.order == "both" and found.pairs):
        return None
    is_moment = found.mostly(found.hours) and found.mostly(max(found.moments, timed))
    return "timestamp" if is_moment else "date"


def _is_days(kind: ColumnType) -> bool:
    return kind.kind in ("date", "timestamp")


def _declared_order(csv: Csv, here: Mapping[str, Days]) -> str:
    """The order of the first declared form that could be read in another one."""
    pairs = {form for found in here.values() for form in found.pairs}
    for form in csv.dates:
        if form in pairs:
            return "dm"
        if _turned(form) in pairs:
            return "md"
    return ""


def _most(orders: Sequence[str]) -> str:
    told = [order for order in orders if order in ("dm", "md")]
    return max(told, key=told.count) if told else ""


def _of_orders(here: Mapping[str, Days], order: str) -> list[str]:
    """What is to be said of columns whose days and months may be taken for one another."""
    found = []
    both = [name for name, days in here.items() if days.pairs and days.order == "both"]
    other = [name for name, days in here.items() if days.order in ("dm", "md") and days.order != order]
    unclear = [name for name, days in here.items() if days.is_open]
    if both:
        found.append(
            f"{', '.join(both)}: some have the day first and some the month, so that 3/4/2024 cannot be "
            "read: write them as 2024-01-31."
        )
    if other:
        words = ("day", "month") if order == "dm" else ("month", "day")
        found.append(
            f"{', '.join(other)}: the {words[1]} is first, and the {words[0]} is where the file is read: "
            "3/4/2024 would be read wrong. Write them as 2024-01-31, or in the one order."
        )
    if unclear and not order:
        form = next(iter(here[unclear[0]].pairs))
        found.append(
            f"{', '.join(unclear)}: days like 3/4/2024 may be in April or in March. Decide before you "
            f'declare them: dates = ["{form}"] in the csv section for the day first, '
            f'dates = ["{_turned(form)}"] for the month first.'
        )
    elif unclear and any(days.order in ("dm", "md") for days in here.values()):
        words = ("day", "in April") if order == "dm" else ("month", "in March")
        found.append(
            f"{', '.join(unclear)}: read with the {words[0]} first, as other columns of the file: 3/4/2024 "
            f"is {words[1]}."
        )
    return found
