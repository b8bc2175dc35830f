"""A table on its way into the catalog: what a steward has decided so far, and what forms say of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

from sfumato._dataclasses import dataclass
from sfumato.catalog import Decided, DraftTable, draft
from sfumato.catalog.looking import Naming
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.ledger import Budget
from sfumato.ledger.names import alike
from sfumato.random import token
from sfumato.schema import column_from_dict
from sfumato.schema.classify import ROLES, Role
from sfumato.server.grounds import Grounds, Wanted
from sfumato.server.page.forms import place_in

__all__ = ["DAYS", "OUT", "STEPS", "TYPES", "Draft", "Drafts", "Paid"]

STEPS = ("file", "whose", "columns", "bounds", "budget", "look")
"""The screens, in order."""
TYPES = ("text", "int", "float", "bool", "date", "timestamp", "time")
"""What a column of a file without types may be declared as."""
DAYS = {
    "2024-12-31": "",
    "31.12.2024": "%d.%m.%Y",
    "31/12/2024": "%d/%m/%Y",
    "12/31/2024": "%m/%d/%Y",
    "31-12-2024": "%d-%m-%Y",
}
"""How a file without types may write its days, by an example; the first is the usual way."""
OUT = "out"
"""What is said of a column that no question may name."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_MOST_ROWS, _MOST_VALUES, _LONG = 10**6, 10_000, 200


@dataclass(frozen=True, slots=True)
class Paid:
    """A first answer.

    Attributes:
        number: Its receipt.
        price: What it cost, the profile included; 0 where it was on record already.
    """

    number: int
    price: Fraction


@dataclass(slots=True)
class Draft:
    """What is decided of one file.

    Attributes:
        file: Where it is.
        uploaded: Whether it was sent here, and goes if it is not registered.
        naming: How its columns are named.
        table: The table so far.
        unit: A column's name or `row`, once that is decided.
        epsilon: Of the budget, once that is decided.
        delta: The same.
        dataset: Whose budget it draws on instead of one of its own.
        reached: How many screens were passed.
        registered: Whether it is in the catalog.
        paid: First answers, by what was seen of them before they were paid.
        turn: One at a time registers it, or pays.
        word: What its forms hold, so that none is taken for a decision on another file.
    """

    file: Path
    uploaded: bool
    naming: Naming
    table: DraftTable
    unit: str | None = None
    epsilon: str = ""
    delta: str = ""
    dataset: str | None = None
    reached: int = 1
    registered: bool = False
    paid: dict[str, Paid] = field(default_factory=dict)
    turn: threading.Lock = field(default_factory=threading.Lock)
    word: str = field(default_factory=token)

    @property
    def wanted(self) -> Wanted:
        """All of it, where all is decided."""
        assert self.unit is not None
        return Wanted(self.table, self.unit, self.epsilon, self.delta, self.dataset)

    @property
    def asked(self) -> list[str]:
        """The columns that questions may name."""
        return [
            name
            for name in self.table.columns
            if self.table.type(name) is not None
            and not self.table.of(name).is_left_out(self.table.role(name))
        ]

    def passed(self, step: str) -> None:
        """Goes on from a screen."""
        self.reached = max(self.reached, STEPS.index(step) + 1)

    def take_unit(self, sent: Mapping[str, str]) -> None:
        """Whose privacy is protected, and as how many rows somebody counts.

        Raises:
            SfumatoError: if that cannot be.
        """
        if self.table.untyped and self.naming.doubt:
            raise InvalidParameter("Say first whether the first line holds the names of the columns.")
        columns, said = list(self.table.columns), sent.get("unit", "")
        if said == "row":
            unit, rows = "row", None
        elif (place := place_in(said, len(columns))) is not None:
            unit, rows = columns[place], _rows(sent.get("rows", ""))
        else:
            raise InvalidParameter("Choose whose privacy is protected.")
        table = replace(self.table, max_rows=rows)
        draft([table], unit=unit)  # what cannot be is refused here
        self.table, self.unit = table, unit
        self.passed("whose")

    def take_columns(self, sent: Mapping[str, str], taken: list[str]) -> None:
        """The name of the table, what each column is, and how the file writes numbers and days.

        Raises:
            InvalidParameter: if that cannot be.
        """
        name = sent.get("name", "").strip()
        if not _NAME.fullmatch(name):
            raise InvalidParameter(
                "The name of a table has letters, digits and _, and begins with a letter: visits_2024."
            )
        if name.lower() in {each.lower() for each in taken}:
            raise InvalidParameter(f"There is a table or a budget {name} already; choose another name.")
        before, plain, decided = self.table, replace(self.table, decided={}), dict[str, Decided]()
        for place, column in enumerate(plain.columns):
            known, made = before.of(column), _classified(plain, column, sent, place)
            if made is not None and (made.type or plain.type(column)) == before.type(column):
                made = replace(made, bounds=known.bounds, values=known.values)
            decided[column] = known if made is None else made
        self.table = _with(_written(plain, sent), decided, name=name)
        if not self.asked:
            self.table = before
            raise InvalidParameter("Keep at least one column that questions may name.")
        self.passed("columns")

    def take_bounds(self, sent: Mapping[str, str]) -> None:
        """Between which numbers and days columns are, and which values categories have.

        Raises:
            InvalidParameter: if that cannot be; the message names the column.
        """
        decided, columns = dict(self.table.decided), list(self.table.columns)
        for column in self.asked:
            place, known = columns.index(column), self.table.of(column)
            word = self.table.type(column)
            try:
                bounds = _bounds(word, sent.get(f"low{place}", ""), sent.get(f"high{place}", ""))
                values = _values(sent.get(f"values{place}", "")) if word == "text" else ()
                if values:
                    column_from_dict({"type": "enum", "values": list(values)})
            except InvalidParameter as error:
                raise InvalidParameter(f"{column[:60]}: {error}") from None
            decided[column] = replace(known, bounds=bounds, values=values)
        self.table = _with(self.table, decided)
        self.passed("bounds")

    def take_budget(self, sent: Mapping[str, str], datasets: list[str]) -> None:
        """What all answers together may cost, or whose budget pays.

        Raises:
            InvalidParameter: if that cannot be.
        """
        said = sent.get("dataset", "")
        if said:
            if said not in datasets:
                raise InvalidParameter("There is no such budget; choose one of the list.")
            self.dataset = said
            self.passed("budget")
            return
        choice = sent.get("choice", "")
        epsilon = (sent.get("epsilon", "") if choice in ("", "other") else choice).strip()
        delta = sent.get("delta", "").strip() or "0"
        if len(epsilon) > 40 or len(delta) > 40:
            raise InvalidParameter("epsilon and delta are short numbers, such as 1 and 1e-6.")
        Budget(epsilon, delta)
        self.epsilon, self.delta, self.dataset = epsilon, delta, None
        self.passed("budget")

    def drop(self) -> None:
        """Removes a file that was sent here and is in no catalog."""
        with self.turn:
            if self.uploaded and not self.registered:
                self.file.unlink(missing_ok=True)


class Drafts:
    """One for each steward, in memory: gone with the process, and with the files that were sent for it."""

    def __init__(self) -> None:
        self._drafts: dict[str, Draft] = {}
        self._lock = threading.Lock()

    def of(self, name: str) -> Draft | None:
        """A steward's, if there is one."""
        with self._lock:
            return self._drafts.get(alike(name))

    def begin(self, name: str, file: Path, grounds: Grounds, *, uploaded: bool) -> Draft:
        """A new one; what was there before goes.

        Raises:
            SfumatoError: if the file cannot be a table; if it was sent here, it is removed.
        """
        try:
            naming, table = grounds.looked(file, None)
        except SfumatoError:
            if uploaded:
                file.unlink(missing_ok=True)
            raise
        made = Draft(file, uploaded, naming, table)
        with self._lock:
            old = self._drafts.pop(alike(name), None)
            self._drafts[alike(name)] = made
        if old is not None:
            old.drop()
        return made

    def forget(self, name: str) -> None:
        """Drops one."""
        with self._lock:
            old = self._drafts.pop(alike(name), None)
        if old is not None:
            old.drop()

    def clear(self) -> None:
        """Drops all."""
        with self._lock:
            left, self._drafts = list(self._drafts.values()), {}
        for each in left:
            each.drop()


def _with(table: DraftTable, decided: Mapping[str, Decided], name: str | None = None) -> DraftTable:
    said = {column: each for column, each in decided.items() if each != Decided()}
    return replace(table, decided=said, name=table.name if name is None else name)


def _written(table: DraftTable, sent: Mapping[str, str]) -> DraftTable:
    """With how numbers and days are written, where that was said; times stand after the day, if at all."""
    if not table.untyped:
        return table
    decimal, day = sent.get("decimal", ""), DAYS.get(sent.get("days", ""))
    if decimal in (".", ","):
        table = replace(table, decimal=decimal)
    if day is not None:
        table = replace(table, dates=(day, f"{day} %H:%M", f"{day} %H:%M:%S") if day else ())
    return table


def _rows(text: str) -> int | None:
    """As how many rows somebody counts; None: a profile chooses it."""
    said = text.strip()
    if not said:
        return None
    rows = place_in(said, _MOST_ROWS + 1)
    if not rows:
        raise InvalidParameter("The rows of one person are a whole number from 1 on; or leave it empty.")
    return rows


def _classified(table: DraftTable, column: str, said: Mapping[str, str], place: int) -> Decided | None:
    """What was said of a column; what is as it looks stays unsaid, so that the file says it was a guess."""
    what = said.get(f"what{place}", "")
    role: Role | None = next((each for each in ROLES if each == what), None)
    if role is None and what != OUT:
        return None
    word = said.get(f"type{place}", "") if table.untyped else ""
    other = word in TYPES and word != table.type(column)
    return Decided(
        type=word if other else None,
        role=None if role == table.role(column) else role,
        left_out=True if what == OUT else None,
    )


def _values(text: str) -> tuple[str, ...]:
    """The values of a category: one a line, or on one line with commas between."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        lines = [part.strip() for part in lines[0].split(",") if part.strip()]
    found = tuple(dict.fromkeys(lines))
    if len(found) > _MOST_VALUES or any(len(value) > _LONG for value in found):
        raise InvalidParameter(f"at most {_MOST_VALUES:,} values, each of at most {_LONG} letters.")
    return found


def _bounds(word: str | None, low: str, high: str) -> tuple[str, str] | None:
    """Two ends as TOML writes them; None: nobody knows."""
    ends = low.strip(), high.strip()
    if word not in ("int", "float", "date", "timestamp") or not any(ends):
        return None
    if not all(ends):
        raise InvalidParameter("give both ends, or leave both empty if you do not know them.")
    if word in ("date", "timestamp"):
        first, last = (_day(end) for end in ends)
        column_from_dict({"type": word, "start": first, "end": last})
        return first.isoformat(), last.isoformat()
    least, greatest = (_number(end) for end in ends)
    column_from_dict({"type": word, "lower": least, "upper": greatest})
    return _toml(least), _toml(greatest)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidParameter("a day is written like 2024-12-31.") from None


def _number(text: str) -> Decimal:
    try:
        found = Decimal(text.replace("_", "x"))
    except InvalidOperation:
        found = Decimal("nan")
    if not found.is_finite() or len(text) > 40 or abs(found.adjusted()) > 30:
        raise InvalidParameter("write a bound with a point, and nothing between thousands: 0 or 1000.5.")
    return found


def _toml(value: Decimal) -> str:
    return format(value, "f")
