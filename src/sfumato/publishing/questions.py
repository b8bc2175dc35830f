"""A question of the file: asked about each window that is over, and paid for each time."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import count
from typing import Any

import pyarrow as pa

from sfumato.errors import BudgetExceeded, InvalidParameter, QueryRefused
from sfumato.ledger import Receipt
from sfumato.ledger.gates import Asked
from sfumato.numeric.zones import UTC
from sfumato.plan.expressions.tree import Call, Expression
from sfumato.plan.questions.nodes import Aggregate
from sfumato.publishing.entries import Published, moment_of, refuse_clock, refuse_unrecorded
from sfumato.publishing.wanted import FileUnusable, Wanted
from sfumato.purchase import Forecast
from sfumato.render import shown
from sfumato.schema import Windows
from sfumato.session import Query, Release, Session
from sfumato.session.series.calendar import Calendar, calendar_from, refuse_zone

__all__ = ["Question", "calendar_for", "values_for"]

_MARK = re.compile(r"[$:@](window|from|to)\b")
_BY_SECOND = ("minute", "hour")


def calendar_for(wanted: Wanted) -> Calendar:
    """The windows of a question.

    Raises:
        InvalidParameter: for a start at which no window begins, or an unknown time zone.
    """
    return calendar_from(wanted.start, wanted.every, wanted.zone, dates=wanted.every not in _BY_SECOND)


def values_for(wanted: Wanted, calendar: Calendar, step: int) -> dict[str, Any]:
    """The parameters of the text for one window: its start, and the end that belongs to the next one.

    Raises:
        InvalidParameter: if the text names no window, or its beginning alone.
    """
    named = set(_MARK.findall(wanted.sql))
    if not named:
        raise InvalidParameter(
            "The text says nothing of the window that it is about: write WHERE day >= $from AND day < $to, "
            "or DATE_TRUNC('month', day) = $window."
        )
    if "from" in named and "to" not in named:
        raise InvalidParameter(
            "$from without $to reads on into windows that are still open: add a condition such as day < $to."
        )
    values = {
        "window": calendar.value(step),
        "from": calendar.value(step),
        "to": calendar.value(step + 1),
    }
    return {name: values[name] for name in sorted(named)}


class Question:
    """A question about each window; see `Entry`."""

    missed = 0

    def __init__(self, wanted: Wanted, session: Session, now: datetime.datetime, published: int) -> None:
        """Find its windows and its price.

        Args:
            wanted: What the file says of it.
            session: Over the tables that it reads.
            now: What time it is.
            published: How many windows its files have by now.

        Raises:
            QueryRefused: if the text cannot be asked.
            InvalidParameter: for windows that cannot be, or a clock that went back.
        """
        session = session.growing()
        self.wanted, self.session = wanted, session
        self.calendar = calendar_for(wanted)
        self.over, self.kept, self._published = self.calendar.closed(now), 0, published
        refuse_clock(wanted, self.calendar, self.over, published)
        self._queries: dict[int, Query] = {}
        first = self._query(0)
        if first.explain:
            raise QueryRefused("EXPLAIN asks for the quote alone.", "Leave EXPLAIN out.")
        self._refuse_zone()
        self.dataset = session.dataset_of(first.report).name
        self._quote = first.quote(wanted.epsilon, delta=wanted.delta)
        if self._quote.first:
            table, price = self._quote.measured.table, shown(float(wanted.epsilon))
            raise InvalidParameter(
                f"The limits of {table} are left to a profile that is not there yet: buy it once with "
                f"sfumato profile {table} --epsilon {price}."
            )
        self._by_windows = first.windows is not None
        self._new = 0
        self._releases: list[Release] = []

    def _query(self, step: int) -> Query:
        """The question about one window: read once, and asked when it is priced and when it is bought."""
        if step not in self._queries:
            values = values_for(self.wanted, self.calendar, step)
            self._queries[step] = self.session.sql(self.wanted.sql, values)
        return self._queries[step]

    def _refuse_zone(self) -> None:
        """Refuse a zone if what differs from window to window is asked of timestamps, which are in UTC."""
        if self.wanted.zone == UTC:
            return
        one, other = (self._query(step).report.child for step in (0, 1))
        moved = _parts(one) ^ _parts(other)
        if one.source != other.source:  # the window is named inside of a subquery
            moved = _parts(one) | _parts(other)
        refuse_zone(self.wanted.zone, one.source, moved, self.session.tables)

    def foresee(self, due: Forecast) -> None:
        """Say what is going to be paid, and refuse what could not be answered.

        Raises:
            FileUnusable: for an answer on record that was read before its window was over.
            BudgetExceeded: as soon as the first of many windows do not fit, however many there are.
        """
        wanted = self.wanted
        for step in range(self.over):
            query, debits = self._query(step), due.debits
            quote = query.quote(wanted.epsilon, delta=wanted.delta)
            kept = due.expect(query.purchase(quote, quote.epsilon))
            if kept is not None and step >= self._published:
                self._refuse_early(step, kept.receipt)
            self._new += due.debits - debits
            if step + 1 == self._published:
                refuse_unrecorded(wanted, step + 1 - self._new, self._published)
            if self._published <= step + 1 < self.over:  # the last one is checked with all other releases
                try:
                    due.check_on_the_way()
                except BudgetExceeded as error:
                    raise BudgetExceeded(f"{error} {self._many(step)}") from None
        self.kept = self.over - self._new

    def _refuse_early(self, step: int, read: Receipt) -> None:
        """Refuse an answer that was bought when its window was still open: more rows may have come since.

        Raises:
            FileUnusable: with what can be done; nothing was spent.
        """
        if read.time >= moment_of(self.calendar, step + 1):
            return
        raise FileUnusable(
            f"{self.wanted.where}: what is on record of {self.calendar.spoken(step)} was read before that "
            f"{self.calendar.every} was over (receipt {read.number}, {read.time:%Y-%m-%d %H:%M} UTC), and "
            "more rows may have come since. To buy it anew, declare another version or state of the table, "
            "or give another epsilon."
        )

    def _many(self, last: int) -> str:
        """For what so much is asked, where not all windows were looked at."""
        return (
            f"This is for {self.wanted.where} up to {self.calendar.spoken(last)} alone, and {self.over:,} "
            f"{self.calendar.every}s of it are over: choose a smaller epsilon, longer windows (every) or a "
            "later start."
        )

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that are paid for the windows that are due."""
        return self._quote.epsilon * self._new, self._quote.delta * self._new

    def paid_in(self, step: int) -> Windows | None:
        """In which windows of time the dataset pays for one of its own, where its budget is for each."""
        return self._query(step).windows if self._by_windows else None

    def publish(self) -> None:
        """Ask about each window that is over; those on record are free."""
        wanted = self.wanted
        for step in range(len(self._releases), self.over):
            self._releases.append(self._query(step).release(wanted.epsilon, delta=wanted.delta))

    def coming(self) -> Iterator[tuple[datetime.datetime, Asked]]:
        """The price of each window that is still to come, at its end."""
        for step in count(self.over):
            try:
                end = moment_of(self.calendar, step + 1)
            except (InvalidParameter, OverflowError):
                return  # the calendar ends there
            yield end, Asked(self._quote.loss, windows=self.paid_in(step))

    def published(self) -> Published:
        """What there is of it by now."""
        releases, calendar, quote = self._releases, self.calendar, self._quote
        many = len(releases)
        paid = [release.receipt.purpose for release in releases]
        price = f"epsilon {shown(float(quote.epsilon))}"
        price += f", delta {shown(float(quote.delta))}" if quote.delta else ""
        spent = sum((each.epsilon or Fraction(0) for each in paid), Fraction(0))
        together = "" if many < 2 else f"; together epsilon {shown(float(spent))} for the {many} so far"
        head = _free("window", quote.report)
        public = (column.name for column in quote.columns if column.public)
        return Published(
            wanted=self.wanted,
            dataset=self.dataset,
            every=calendar.every,
            windows=many,
            first=calendar.spoken(0) if many else "",
            last=calendar.spoken(many - 1) if many else "",
            epsilon=spent,
            delta=sum((each.delta or Fraction(0) for each in paid), Fraction(0)),
            receipts=tuple(release.receipt.number for release in releases),
            states=tuple(release.state for release in releases if release.state),
            protects=str(quote.measured.unit),
            price=f"{price} for each {calendar.every}{together}",
            method=quote.why,
            columns=quote.estimands,
            notes=quote.notes,
            table=self._table(head) if many else None,
            keys=(head, *public),
        )

    def _table(self, head: str) -> pa.Table:
        parts = []
        for step, release in enumerate(self._releases):
            rows = release.to_arrow(errors=True).replace_schema_metadata(None)
            window = pa.array([self.calendar.value(step)] * rows.num_rows, _kind(self.calendar))
            parts.append(rows.add_column(0, head, window))
        return pa.concat_tables(parts, promote_options="permissive")


def _parts(asked: Aggregate) -> frozenset[Expression]:
    """What decides which rows count, and for what."""
    calls = (part for call in asked.aggregates for part in (call.argument, call.other))
    keys = (key.expression for key in asked.keys)
    return _terms(asked.predicate) | {part for part in (*calls, *keys) if part is not None}


def _terms(predicate: Expression | None) -> frozenset[Expression]:
    """The conditions that all must hold."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return frozenset[Expression]().union(*map(_terms, predicate.arguments))
    return frozenset(() if predicate is None else (predicate,))


def _kind(calendar: Calendar) -> pa.DataType:
    return pa.timestamp("s") if calendar.every in _BY_SECOND else pa.date32()


def _free(name: str, report: Any) -> str:
    taken = {column.name.lower() for column in report.columns} | {bar.name.lower() for bar in report.bars}
    while name in taken:
        name += "_"
    return name
