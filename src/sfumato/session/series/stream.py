"""`Stream`: a series that is published point by point, as steps of time close."""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerUnusable, MissingExtra, QueryRefused
from sfumato.ledger import Memo
from sfumato.loss import PrivacyLoss
from sfumato.numeric.exact import Rational, as_integer
from sfumato.plan.expressions.names import NotAList
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.sensitivity import is_exchange
from sfumato.render import definitions, shown
from sfumato.session.payload import Answer
from sfumato.session.release import Release
from sfumato.session.series.calendar import Value
from sfumato.session.series.picture import draw
from sfumato.session.series.points import Courses, Point
from sfumato.session.series.pricing import Of, Pricing, calendar_in, choice_of, stepped, time_key, touches_of

if TYPE_CHECKING:
    from sfumato.ledger import Receipt
    from sfumato.plan.prices.quoting import Quote
    from sfumato.session.query import Query
    from sfumato.session.session import Session

__all__ = ["Stream", "opened"]

_CONFIDENCE = 0.95
_WIDTH = 80


def opened(
    session: Session,
    query: Query,
    *,
    horizon: int,
    start: Any,
    epsilon: Rational,
    delta: Rational | None,
    of: Of,
    window: int | None,
    zone: str,
) -> Stream:
    """The series of a question: as it is on record, or new and unpaid; see `Session.stream`."""
    if query.explain:
        raise QueryRefused("EXPLAIN asks for the quote alone.", "Leave EXPLAIN out, and print the stream.")
    plan = query.plan
    report = plan.report
    if (
        report.having is not None
        or report.order
        or report.limit is not None
        or report.offset
        or report.windows
    ):
        raise QueryRefused(
            "A series has the same columns and groups in each step.",
            "Leave HAVING, ORDER BY, LIMIT and window functions out, and filter the table of the series.",
        )
    steps = as_integer(horizon, "horizon")
    place = time_key(plan)
    calendar = calendar_in(plan, place, start, zone)
    calendar.value(steps)  # refuses what ends beyond all calendars
    time = report.child.keys[place].expression
    choice = choice_of(touches_of(plan.rows.unit, time, calendar.every, steps), steps, of, window)
    named = delta is not None or query.names_delta
    if not named and not session.dataset_of(report).budget.delta:
        raise InvalidParameter(
            "The noise of a series needs a delta, and the budget has none: have one added, such as 1e-6."
        )
    first = query.about(stepped(plan, place, calendar, 0))
    quote = first.quoted_once(epsilon, delta=delta, mechanism="gaussian")
    if quote.extras or quote.selections:
        raise QueryRefused(
            "A series is of counts, sums and what follows from them, such as averages.",
            "Leave quantiles, COUNT(DISTINCT …), extremes and shares of units that limits touch out.",
        )
    pricing = Pricing(plan, place, calendar, steps, of, window, quote, choice)
    if named:
        return Stream(session, query.text or "", pricing)
    return Stream(
        session,
        query.text or "",
        pricing,
        at_delta=lambda paid: first.quoted_once(epsilon, delta=paid, mechanism="gaussian"),
    )


class Stream(NotAList):
    """A series of private answers, one for each step of time, paid for once.

    Attributes:
        text: What was asked.
        pricing: Its steps, its price and its noise.

    Privacy:
        Claim: all points that are ever shown carry `loss`, for histories of the table that differ by one
        unit: whenever its rows come, change or go, a point counts of them what is there when it is read,
        within the limits of one step, and each step is read for one point. A unit is in as many steps as
        `touches` says at most; what moves to another step once its own was read is another row there, or in
        another window of another unit, with a loss of its own. Points are recorded in order before they are
        shown (`ledger.series`), each with the noise that its place and its rows decide (`Courses`).
    """

    _not_a_list = "The points are in a table: stream.table(), stream.to_pandas()."

    def __init__(
        self,
        session: Session,
        text: str,
        pricing: Pricing,
        *,
        at_delta: Callable[[Fraction], Quote] | None = None,
    ) -> None:
        """As it is on record, or new.

        Args:
            session: Whose tables and ledger.
            text: What was asked.
            pricing: Its price and noise.
            at_delta: The quote with another delta, where none was named: what the budget spares gets less,
                and a series that is paid for goes on with what it was paid with.
        """
        self._session, self.text, self.pricing, self._at_delta = session, text, pricing, at_delta
        self._dataset = session.dataset_of(pricing.plan.report).name
        self.receipt: Receipt | None = self._on_record()
        self._points: list[Point] = []
        self._courses: Courses | None = None
        self._follow()

    def _on_record(self) -> Receipt | None:
        """The debit that paid for it, if it is paid."""
        ledger = self._session.ledger
        paid = ledger.series.begun(self._dataset, self.pricing.fingerprint, ledger.analyst)
        found = next((receipt for receipt in paid if self._is_of(receipt)), None)
        zone = self.pricing.calendar.zone if found is None else found.memo.get("zone")
        if zone != self.pricing.calendar.zone:
            raise InvalidParameter(
                f"This series is on record with steps that end in {zone}; nothing was spent. Give "
                f"zone={zone!r}, or another start for a new series."
            )
        return found

    def _is_of(self, receipt: Receipt) -> bool:
        """Whether a debit paid for this very series; its delta is taken over, where none was named."""
        memo, pricing = receipt.memo, self.pricing
        if self._at_delta is not None and memo.get("unnamed") == "delta" and receipt.loss != self.loss:
            pricing = replace(pricing, quote=self._at_delta(Fraction(str(memo["delta"]))))
        if receipt.loss != pricing.quote.loss:
            return False
        pricing = pricing.on_record(memo["plan"])
        if memo["noise"] != pricing.noise:
            raise LedgerUnusable(
                "This series was begun by another version of Sfumato, whose noise this one does not draw: go "
                "on with that version, or give another start for a new series. Nothing was spent."
            )
        self.pricing = pricing
        return True

    def _follow(self) -> None:
        """Take in the points that are on record by now."""
        if self.receipt is not None:
            series = self._session.ledger.series
            self._points += map(Point.from_bytes, series.points(self.receipt, len(self._points)))

    @property
    def loss(self) -> PrivacyLoss:
        """What the whole series costs."""
        return self.pricing.quote.loss

    @property
    def epsilon(self) -> Fraction:
        """The price of the whole series, exact."""
        return self.pricing.quote.epsilon

    @property
    def delta(self) -> Fraction:
        """Its other half."""
        return self.pricing.quote.delta

    @property
    def horizon(self) -> int:
        """How many points there can be."""
        return self.pricing.horizon

    def __len__(self) -> int:
        """How many points are published."""
        return len(self._points)

    def __bool__(self) -> bool:
        return True

    # ── publishing

    def advance(self, to: Value | str | None = None, *, now: datetime.datetime | None = None) -> int:
        """Publish the points of all steps that are over, and say how many those were.

        The first time, the whole series is paid for before anything is read. Each point reads the rows of its
        step alone.

        Args:
            to: Go no further than this step, which must be over.
            now: The time that it is, with its zone; by default the machine's.

        Raises:
            InvalidParameter: for a step that is still open, or a clock that went back; nothing was spent.
            BudgetExceeded: if the series does not fit, or has all its points; nothing was spent.
            EngineFailed: if a read fails: the points before it are on record, and it is read again next time.
        """
        self._session._check_open()
        due = self._due(to, now)
        ledger = self._session.ledger
        with ledger.turn(self._dataset, f"series {self.pricing.fingerprint}"):
            self.receipt = self.receipt or self._on_record()
            self._follow()
            begin = len(self._points)
            self._refuse(due, begin, by_clock=to is None)
            if due > begin:
                self._pay()
                self._take(due)
        return len(self._points) - begin

    def _due(self, to: Value | str | None, now: datetime.datetime | None) -> int:
        """How many points there should be."""
        calendar = self.pricing.calendar
        if isinstance(calendar.start, int):
            if to is None:
                raise InvalidParameter(
                    "Steps that are whole numbers are closed by you: say to=, the last one."
                )
            return calendar.step_of(to) + 1
        moment = datetime.datetime.now(datetime.UTC) if now is None else now
        if not isinstance(moment, datetime.datetime) or moment.tzinfo is None:
            raise InvalidParameter("now needs a time zone: datetime.now(tz=datetime.UTC).")
        closed = calendar.closed(moment)
        if to is None:
            return (
                min(closed, self.horizon)
                if closed > self.horizon and len(self._points) < self.horizon
                else closed
            )
        wanted = calendar.step_of(to) + 1
        if wanted > closed:
            raise InvalidParameter(
                f"The step {calendar.spoken(wanted - 1)} is still open in {calendar.zone}; nothing was read "
                "or spent. Rows may still come: publish it when it is over."
            )
        return wanted

    def _refuse(self, due: int, taken: int, *, by_clock: bool) -> None:
        calendar = self.pricing.calendar
        if due > self.horizon:
            raise BudgetExceeded(
                f"The series ends with {calendar.spoken(self.horizon - 1)}, its step {self.horizon}: nothing "
                "was read or spent. Begin another one for what comes after."
            )
        if due < taken and by_clock:
            raise InvalidParameter(
                f"The clock went back: {calendar.spoken(taken - 1)} is published, and by the clock it is not "
                "over. Nothing was read or spent; set the clock."
            )
        if not due and not taken:
            raise InvalidParameter(
                f"The first step, {calendar.spoken(0)}, is not over yet; nothing was read or spent."
            )

    def _pay(self) -> None:
        if self.receipt is not None:
            return
        session, pricing = self._session, self.pricing
        for step in (0, self.horizon - 1):
            session.vault.check(pricing.step_plan(step).recipe.questions, pricing.plan.rows)
        quote = pricing.quote
        unnamed = () if self._at_delta is None else ("delta",)
        table = quote.measured.table
        memo = Memo(
            "series", self.text, quote.epsilon, quote.delta, "gaussian", table, unnamed=unnamed
        ).to_dict()
        self.receipt = session.ledger.debit(
            self._dataset,
            self.loss,
            fingerprint=pricing.fingerprint,
            memo=memo
            | {
                "zone": pricing.calendar.zone,
                "noise": pricing.noise,
                "plan": pricing.choice.plan.record(),
            },
            points=self.horizon,
            known=session.dataset_of(pricing.plan.report),
        ).receipt

    def _take(self, due: int) -> None:
        assert self.receipt is not None
        series, vault = self._session.ledger.series, self._session.vault
        known = self._session.dataset_of(self.pricing.plan.report)
        if self._courses is None or self._courses.next != len(self._points):
            self._courses = Courses(self.pricing.noises, series.secret(self.receipt), self._points)
        for step in range(len(self._points), due):
            plan = self.pricing.step_plan(step)
            questions = plan.recipe.questions
            (question,) = questions
            right = series.right(self.receipt, step, (question.fingerprint,), known=known)
            try:
                point = self._courses.release(vault.read(questions, right).columns)
                series.record(right, step, point.to_bytes())
            except BaseException:
                self._courses = None  # it may be a point ahead of the record
                raise
            self._points.append(point)

    # ── what is published

    def point(self, step: int, of: Of | None = None, *, window: int | None = None) -> Release:
        """What is published of one step: its total so far, of some last steps, or of itself.

        Args:
            step: Its place, from 0; −1 is the last one.
            of: "running", "window" or "steps"; by default what the series was made for.
            window: For "window": over how many steps.
        """
        kind, length = self._kind(of, window)
        return self._released(self._place(step), kind, length)

    def _place(self, step: int) -> int:
        """The place of a point, which may be counted from the end."""
        places = range(len(self._points))
        if isinstance(step, bool) or not isinstance(step, int) or not -len(places) <= step < len(places):
            raise InvalidParameter(f"There is no such point: {len(places)} are published.")
        return places[step]

    def _kind(self, of: Of | None, window: int | None) -> tuple[Of, int | None]:
        if of is None and window is None:
            return self.pricing.of, self.pricing.length
        kind: Of = "window" if of is None else of
        if kind not in ("running", "window", "steps") or (kind == "window") != (window is not None):
            raise InvalidParameter('of is "running", "steps", or "window" with window=7.')
        return kind, None if window is None else as_integer(window, "window")

    def _released(self, step: int, of: Of, length: int | None) -> Release:
        return self._summed(step, self.pricing.weights(step, of, length), self._meaning(of, length))

    def _summed(self, step: int, weights: NDArray[Any], meaning: str) -> Release:
        """A sum of points with some weights, shown at a step."""
        pricing, receipt = self.pricing, self.receipt
        assert receipt is not None
        quote = replace(pricing.quote, plan=pricing.step_plan(step), noises=pricing.laws(weights))
        noisy = tuple(self._total(place, weights) for place in range(len(pricing.noises)))
        answer = Answer(noisy, quote.noises, quote.epsilon, quote.delta, "gaussian")
        return Release(quote, answer, receipt, free=True, bounds=(meaning,))

    def difference(
        self, earlier: int, later: int, of: Of | None = None, *, window: int | None = None
    ) -> Release:
        """By how much the total of a later step is larger than that of an earlier one, with an interval.

        Noise that both totals share cancels: the interval of a difference is narrower than two together.

        Args:
            earlier: The place of the one step, from 0; −1 is the last one.
            later: That of the other.
            of: Of which totals; by default of those that the series was made for.
            window: For "window": over how many steps.

        Raises:
            InvalidParameter: if there are no such points, or the first is not the earlier one.
            QueryRefused: if something but counts and sums was asked for.
        """
        form, length = self._kind(of, window)
        first, last = self._place(earlier), self._place(later)
        if first >= last:
            raise InvalidParameter("A difference is between two steps: give the earlier one first.")
        if any(call.function not in ("count", "sum") for call in self.pricing.plan.report.child.aggregates):
            raise QueryRefused(
                "Differences are between counts and sums.",
                'For averages of some steps ask for table("window").',
            )
        weights = self.pricing.weights(last, form, length)
        weights[: first + 1] -= self.pricing.weights(first, form, length)
        calendar = self.pricing.calendar
        return self._summed(last, weights, f"By how much more than at {calendar.spoken(first)}.")

    def _total(self, place: int, weights: NDArray[Any]) -> NDArray[Any]:
        """The sum of some points of a measurement with whole weights, in natural units."""
        groups = len(self._points[0].units[place])
        units = np.zeros(groups, object)
        for at in np.flatnonzero(weights).tolist():
            units = units + self._points[at].units[place].astype(object) * int(weights[at])
        noise, unit = self.pricing.noises[place], self.pricing.quote.units[place]
        scale = Fraction(2) ** noise.exponent * unit
        return np.array([float(value * scale) for value in np.asarray(units, object).tolist()])

    def _meaning(self, of: Of, length: int | None) -> str:
        first, every = self.pricing.calendar.spoken(0), self.pricing.calendar.every
        if of == "steps":
            return "Each step by itself, as its rows were when it was published."
        over = f"from {first} on" if of == "running" else f"over the last {length} steps ({every}s)"
        return (
            f"Totals {over}: rows as they were when each step was published, within the limits of one step."
        )

    def table(
        self,
        of: Of | None = None,
        *,
        window: int | None = None,
        errors: bool = True,
        confidence: Rational = _CONFIDENCE,
        kind: str = "covering",
    ) -> pa.Table:
        """All points that are published, one after the other, with intervals.

        Args:
            of: "running", "window" or "steps"; by default what the series was made for.
            window: For "window": over how many steps.
            errors: Whether to give half-widths and intervals too, as `Release.to_arrow` does.
            confidence: With which each interval holds, by itself.
            kind: Which intervals, as for `Release.interval`.
        """
        if not self._points:
            raise InvalidParameter("Nothing is published yet: advance() publishes the steps that are over.")
        form, length = self._kind(of, window)
        tables = [
            self._released(step, form, length).to_arrow(errors=errors, confidence=confidence, kind=kind)
            for step in range(len(self._points))
        ]
        return pa.concat_tables(table.replace_schema_metadata(None) for table in tables)

    def to_pandas(self, of: Of | None = None, *, window: int | None = None, **more: Any) -> Any:
        """The same as a data frame of pandas."""
        try:
            return self.table(of, window=window, **more).to_pandas()
        except ModuleNotFoundError:
            raise MissingExtra("pandas", "pandas") from None

    def plot(
        self,
        path: str | Path | None = None,
        column: str | Sequence[str] | None = None,
        *,
        of: Of | None = None,
        window: int | None = None,
        confidence: float = _CONFIDENCE,
    ) -> Any:
        """The series as a picture: a line for each column and group, with the band of its noise.

        Args:
            path: Where to write it, `.png` or `.svg`, if anywhere.
            column: Which columns, if not all.
            of: Of which totals.
            window: For "window": over how many steps.
            confidence: Of each interval by itself.
        """
        form, length = self._kind(of, window)
        table = self.table(form, window=length, confidence=confidence, kind="noise")
        names = {output.name: output.expression for output in self.pricing.plan.report.columns}
        keys = [name for name in names if f"{name}_low" not in table.column_names]
        values = [name for name in names if name not in keys]
        chosen = values if column is None else [column] if isinstance(column, str) else list(column)
        for name in chosen:
            if name not in values:
                has = ", ".join(values)
                raise InvalidParameter(f"There is no {str(name)[:40]!r} to plot; there is {has}.")
        time = next((name for name in keys if names[name] == Column(f"k{self.pricing.place}")), None)
        if time is None:
            raise InvalidParameter("The series does not show its time: SELECT the date, too.")
        return draw(
            table,
            time,
            [name for name in keys if name != time],
            chosen,
            title=self._meaning(form, length).partition(":")[0].removesuffix("."),
            note=f"Line: released values. Band: noise, at {confidence * 100:.6g} % confidence a point.",
            path=path,
        )

    @cached_property
    def _told(self) -> dict[str, str]:
        pricing = self.pricing
        unit = pricing.plan.rows.unit
        touches = pricing.choice.plan.touches
        calendar, last = pricing.calendar, pricing.horizon - 1
        both = ", with the one in its place" if is_exchange(unit) else ""
        about = (
            "in one step"
            if touches == 1
            else f"in up to {touches} steps{both}, and the noise is for all of them"
        )
        ends = f"{calendar.spoken(0)} to {calendar.spoken(last)}"
        price = f"epsilon {shown(float(self.epsilon))}, delta {shown(float(self.delta))}"
        lines = {
            "series": f"{pricing.horizon} steps ({calendar.every}), {ends}",
            "price": f"{price}, once for all points",
            "protects": f"{unit}, which is {about}",
            "noise": str(pricing.choice),
        }
        for of, length in (("steps", None), (pricing.of, pricing.length)):
            half = pricing.quoted(last, of, length).noises
            widths = ", ".join(shown(noise.quantile(Fraction(95, 100))) for noise in half)
            lines[f"± {of}"] = f"{widths} at the last step, with 95 %"
        return lines

    def __str__(self) -> str:
        told = {**self._told, "published": f"{len(self._points)} of {self.horizon} points"}
        if self.receipt is None:
            told["paid"] = "not yet: advance() pays for the whole before it reads"
        return "\n".join(definitions(told, width=_WIDTH))

    def __repr__(self) -> str:
        text = textwrap.shorten(self.text, 40)
        return f"<Stream {text!r}: {len(self._points)} of {self.horizon} points>"
