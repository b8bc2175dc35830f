"""What is due of a release file: found and refused as a whole, before the first of it is paid."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.errors import InvalidParameter
from sfumato.publishing.entries import Entry, Published
from sfumato.publishing.outlook import Outlook, outlooks
from sfumato.publishing.questions import Question, calendar_for, values_for
from sfumato.publishing.series import Series
from sfumato.publishing.wanted import ReleaseFile, Wanted, about
from sfumato.purchase import Forecast
from sfumato.session import Session

__all__ = ["Agenda", "Opener"]

Opener: TypeAlias = Callable[[str, Mapping[str, Any] | None], Session]
"""From a text and its parameters to a session over the tables that it names."""


class Agenda:
    """The releases of a file, with what is due of each.

    Attributes:
        entries: In the order of the file.

    Privacy:
        Claim: publishing gives away nothing but answers that a session sells, each paid for by its own debit
        before it is read; which windows are read, what is refused and what is said depends on the file, the
        clock and the record, and on no row. What was published is taken from the record, never read again.
    """

    def __init__(self, entries: list[Entry], forecasts: dict[str, Forecast]) -> None:
        self.entries, self._forecasts = entries, forecasts

    @classmethod
    def of(
        cls, file: ReleaseFile, opened: Opener, now: datetime.datetime, published: Mapping[str, int]
    ) -> Agenda:
        """What is due at a time, if all of it can be asked and paid for.

        Args:
            file: What to publish.
            opened: Opens the session that a text is asked in.
            now: The time that it is, with its zone.
            published: By release, how many windows its files have by now.

        Raises:
            QueryRefused: for a text that cannot be asked; nothing was spent.
            InvalidParameter: for steps that cannot be, or where nothing is over yet; nothing was spent.
            BudgetExceeded: if not all of it fits; nothing was spent.
        """
        if now.tzinfo is None:
            raise InvalidParameter("--now needs a time zone, such as 2026-03-01T00:00Z.")
        entries = []
        for wanted in file.wanted:
            with about(wanted.where):
                entries.append(_entry(wanted, opened, now, published.get(wanted.name, 0)))
        forecasts = dict[str, Forecast]()
        for entry in entries:
            due = forecasts.setdefault(entry.dataset, Forecast(entry.session.ledger, entry.dataset))
            with about(entry.wanted.where):
                entry.foresee(due)
        for due in forecasts.values():
            due.check()
        if not any(entry.over for entry in entries):
            first = min(entries, key=lambda entry: str(entry.calendar.value(1)))
            raise InvalidParameter(
                f"Nothing is over yet: the first {first.calendar.every} of {first.wanted.name} begins with "
                f"{first.calendar.spoken(0)}, and is still open. Nothing was read or spent."
            )
        return cls(entries, forecasts)

    @property
    def cost(self) -> dict[str, tuple[Fraction, Fraction]]:
        """By dataset, the epsilon and delta that are paid for all that is due."""
        return {
            dataset: (
                sum((entry.cost[0] for entry in self.entries if entry.dataset == dataset), Fraction(0)),
                sum((entry.cost[1] for entry in self.entries if entry.dataset == dataset), Fraction(0)),
            )
            for dataset in self._forecasts
        }

    def outlook(self) -> dict[str, Outlook]:
        """By release, how long it can go on once all that is due is paid."""
        return outlooks(self.entries, self._forecasts)

    def publish(self) -> list[Published]:
        """Pay for, read and record all that is due, one release after the other.

        Raises:
            EngineFailed: if a read fails: what was recorded before it stays, and the next run goes on.
        """
        for entry in self.entries:
            entry.publish()
        return [entry.published() for entry in self.entries]


def _entry(wanted: Wanted, opened: Opener, now: datetime.datetime, published: int) -> Entry:
    if wanted.kind == "series":
        return Series(wanted, opened(wanted.sql, None), now, published)
    values = values_for(wanted, calendar_for(wanted), 0)
    return Question(wanted, opened(wanted.sql, values), now, published)
