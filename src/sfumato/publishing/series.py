"""A series of the file: one debit, a point for each step that is over."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.ledger.gates import Asked
from sfumato.publishing.entries import Published, moment_of, refuse_clock, refuse_unrecorded
from sfumato.publishing.wanted import Wanted
from sfumato.purchase import Forecast
from sfumato.render import shown
from sfumato.schema import Windows
from sfumato.session import Session

__all__ = ["Series"]


class Series:
    """A published series; see `Entry`."""

    def __init__(self, wanted: Wanted, session: Session, now: datetime.datetime, published: int) -> None:
        """Find how far it is; `published` is how many points its files have.

        Raises:
            QueryRefused: if the text makes no series.
            InvalidParameter: for steps that no clock closes, a clock that went back, or
                a series that is published and not on record.
        """
        self.wanted, self.session, self._now = wanted, session, now
        self._stream = session.stream(
            wanted.sql,
            horizon=wanted.horizon,
            start=wanted.start,
            epsilon=wanted.epsilon,
            delta=wanted.delta,
            of=wanted.of,  # type: ignore[arg-type]
            window=wanted.window,
            zone=wanted.zone,
            max_steps=wanted.max_steps,
        )
        pricing = self._stream.pricing
        self.dataset = session.dataset_of(pricing.plan.report).name
        self.calendar = pricing.calendar
        if isinstance(self.calendar.start, int):
            raise InvalidParameter(
                "Its steps are whole numbers, of which no clock says when they are over: group by a date."
            )
        closed = self.calendar.closed(now)
        self.over, self.missed = min(closed, wanted.horizon), max(closed - wanted.horizon, 0)
        self.kept = len(self._stream)
        refuse_clock(wanted, self.calendar, self.over, self.kept)
        refuse_unrecorded(wanted, self.kept, published)
        self._paid = self._stream.receipt is not None

    @property
    def cost(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that are paid for what is due: all at first, and nothing ever after."""
        free = self._paid or not self.over
        return (Fraction(0), Fraction(0)) if free else (self._stream.epsilon, self._stream.delta)

    def foresee(self, due: Forecast) -> None:
        """Say what is going to be paid, and refuse what could not be answered."""
        if self._paid or not self.over:
            return
        self._stream.check()
        debits, stream = due.debits, self._stream
        due.expect_debit(stream.loss, stream.windows, fingerprint=stream.pricing.fingerprint)
        self._paid = due.debits == debits  # by another release of the file, which is the same

    def paid_in(self, step: int) -> Windows | None:
        """In which windows of time the dataset pays for one of its own, where its budget is for each."""
        del step  # all of them are paid at once
        return self._stream.windows

    def publish(self) -> None:
        """Pay if nothing is paid yet, and publish a point for each step that is over."""
        if self.over > len(self._stream):
            self._stream.advance(now=self._now)

    def coming(self) -> Iterator[tuple[datetime.datetime, Asked]]:
        """The price of the whole at the end of the first step, where it is still to come."""
        if not self._paid and not self.over:
            yield moment_of(self.calendar, 1), Asked(self._stream.loss, windows=self._stream.windows)

    def published(self) -> Published:
        """What there is of it by now."""
        stream, wanted, calendar = self._stream, self.wanted, self.calendar
        many = len(stream)
        pricing = stream.pricing
        touches, unit = pricing.choice.plan.touches, pricing.plan.rows.declared
        steps = "in one step" if touches == 1 else f"in up to {touches} steps, all of which are protected"
        last = stream.point(many - 1) if many else None
        table = stream.table() if many else None
        price = f"epsilon {shown(float(stream.epsilon))}, delta {shown(float(stream.delta))}"
        return Published(
            wanted=wanted,
            dataset=self.dataset,
            every=calendar.every,
            windows=many,
            first=calendar.spoken(0) if many else "",
            last=calendar.spoken(many - 1) if many else "",
            epsilon=stream.epsilon if many else Fraction(0),
            delta=stream.delta if many else Fraction(0),
            receipts=() if stream.receipt is None else (stream.receipt.number,),
            protects=f"{unit}, which {'is' if pricing.most is None else 'counts'} {steps}",
            price=f"{price}, once for all {wanted.horizon} steps",
            method=f"Gaussian, which hangs together over the steps ({pricing.choice})",
            columns=pricing.quote.estimands,
            notes=() if last is None else (*last.bounds, *pricing.quote.notes),
            table=table,
            keys=tuple(column.name for column in pricing.quote.columns if column.public),
        )
