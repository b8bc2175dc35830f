"""What both kinds of releases have in common: windows that are over, a price, a table in the end."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Protocol

import pyarrow as pa

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.ledger.gates import Asked
from sfumato.numeric.moments import as_moment
from sfumato.publishing.wanted import FileUnusable, Wanted
from sfumato.purchase import Forecast
from sfumato.schema import Windows
from sfumato.session import Session
from sfumato.session.series.calendar import Calendar, zone_of

__all__ = [
    "ClockWentBack",
    "Entry",
    "NotOnRecord",
    "Published",
    "moment_of",
    "refuse_clock",
    "refuse_unrecorded",
]

_BARS = 3  # columns after a number: its error, and the two ends of its range


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """A release as it stands.

    Attributes:
        wanted: What the file says of it.
        dataset: Whose budget paid.
        every: How long its steps are.
        windows: How many are published.
        first: The first of them, as text; empty: there is none.
        last: The last.
        epsilon: What all of them cost.
        delta: Its other half.
        receipts: The numbers of the debits, in order.
        protects: Whose data is protected, in words.
        price: What it costs, in words.
        method: Which noise, in words.
        columns: What each column estimates, in words.
        notes: On what the numbers rest.
        table: All rows with `_error`, `_low` and `_high`; None: nothing is published.
        keys: The columns that are public: the window, and the keys of groups.
        states: Of a table that grows, the newest state that was declared when each debit was made.
    """

    wanted: Wanted
    dataset: str
    every: str
    windows: int
    first: str
    last: str
    epsilon: Fraction
    delta: Fraction
    receipts: tuple[int, ...]
    protects: str
    price: str
    method: str
    columns: Mapping[str, str]
    notes: tuple[str, ...]
    table: pa.Table | None
    keys: tuple[str, ...]
    states: tuple[str, ...] = ()

    @property
    def figures(self) -> tuple[int, ...]:
        """The places of the columns that are numbers with noise: an error and two ends follow each."""
        names = () if self.table is None else tuple(self.table.column_names)
        found, place = list[int](), 0
        while place < len(names) - _BARS:
            barred = names[place] not in self.keys and names[place + 1].startswith(f"{names[place]}_error")
            found += [place] if barred else []
            place += 1 + _BARS * barred
        return tuple(found)

    def values(self, place: int) -> list[Any]:
        """The cells of a column."""
        assert self.table is not None
        return list(self.table.column(place).to_pylist())


class Entry(Protocol):
    """A release of the file over the session that answers it.

    Attributes:
        wanted: What the file says of it.
        session: Over the tables that it reads.
        dataset: Whose budget pays.
        calendar: Its windows.
        over: How many of them are over, and within the horizon.
        kept: How many of these are on record; the rest is due.
    """

    wanted: Wanted
    session: Session
    dataset: str
    calendar: Calendar
    over: int
    kept: int

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that are paid for what is due."""
        ...

    @property
    def missed(self) -> int:
        """How many windows are over that it can never publish, being past its horizon."""
        ...

    def foresee(self, due: Forecast) -> None:
        """Say what is going to be paid, and refuse what could not be answered."""
        ...

    def paid_in(self, step: int) -> Windows | None:
        """In which windows of time the dataset pays for one of its own, where its budget is for each."""
        ...

    def publish(self) -> None:
        """Pay, read and record what is due."""
        ...

    def published(self) -> Published:
        """What there is of it by now."""
        ...

    def coming(self) -> Iterator[tuple[datetime.datetime, Asked]]:
        """What it is going to pay for windows that are not over yet, and when."""
        ...


def moment_of(calendar: Calendar, step: int) -> datetime.datetime:
    """When a step begins."""
    return as_moment(calendar.value(step)).replace(tzinfo=zone_of(calendar.zone)).astimezone(datetime.UTC)


class ClockWentBack(FileUnusable):
    """A window is published that is not over by the clock."""

    headline = "The clock went back; nothing was spent."


class NotOnRecord(FileUnusable):
    """The files have windows that the ledger does not."""

    headline = "What is published is not on record; nothing was spent."


def refuse_unrecorded(wanted: Wanted, kept: int, published: int) -> None:
    """Refuse to pay again for windows that the files have.

    The ledger may be another one, the table declared anew, or the series chosen otherwise by another version
    of Sfumato: whatever it is, nobody meant to buy all of it twice.

    Raises:
        NotOnRecord: if not all of them are on record; nothing was spent.
    """
    if kept < published:
        raise NotOnRecord(
            f"{wanted.where}: its files have {published:,} windows, and the ledger has {kept:,} of them as "
            "they would be asked for now. Put the ledger and the declaration back, or give the release "
            "another name to buy it anew."
        )


def refuse_clock(wanted: Wanted, calendar: Calendar, over: int, published: int) -> None:
    """Refuse a time before the end of what is published.

    Raises:
        ClockWentBack: if it is; nothing was spent.
    """
    if over < published:
        try:
            last = calendar.spoken(published - 1)
        except InvalidParameter:  # no such file was ever written
            last = f"number {published:,}"
        raise ClockWentBack(
            f"{wanted.where}: the {calendar.every} {last} is published, and by the clock it is not over. Set "
            "the clock, or give a later --now."
        )
