"""`Stream`: a series that is published point by point, as steps of time close."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerUnusable, QueryRefused
from sfumato.ledger import Memo
from sfumato.numeric.exact import Rational, as_integer, read_fraction
from sfumato.plan.prices.bundle import fingerprint_of
from sfumato.session.series.calendar import Value, refuse_zone
from sfumato.session.series.points import Courses, Point
from sfumato.session.series.pricing import (
    Of,
    Pricing,
    calendar_in,
    check_adds_up,
    choice_of,
    stepped,
    steps_of,
    time_key,
    touches_of,
    windows_met,
)
from sfumato.session.series.published import Published
from sfumato.session.series.record import OnRecord
from sfumato.session.states import state_of
from sfumato.session.vault import units_fingerprint

if TYPE_CHECKING:
    from sfumato.ledger import Dataset, Receipt, Right
    from sfumato.plan.prices.quoting import Quote
    from sfumato.schema import Windows
    from sfumato.session.query import Query
    from sfumato.session.session import Session

__all__ = ["Stream", "opened"]

_NO_FEW = "Each row is in one step: leave max_steps out, or name a unit with many rows."
_MADE_ROWS = (
    "This question makes one row of all rows of each {0}, which does not say in which steps the {0} was: "
    "leave max_steps out, or ask about the rows."
)
_CELLS = 20_000  # numbers of each measurement that one statement reads at once, of all its steps


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
    max_steps: int | None,
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
    if calendar.every != "number":
        refuse_zone(zone, report.child.source, [time], session.tables)
    unit, columns = plan.rows.declared, plan.rows.columns
    kind = columns[unit.time].kind if unit.time is not None and unit.time in columns else None
    most = None if max_steps is None else as_integer(max_steps, "max_steps")
    if most is not None and plan.rows.unit.is_row:
        raise InvalidParameter(_NO_FEW if unit.is_row else _MADE_ROWS.format(plan.rows.owner or "unit"))
    inside = steps_of(unit, report.child.source, time, calendar.every, steps, kind, most)
    touches = touches_of(unit, inside, steps)
    check_adds_up(plan, of, touches)
    choice = choice_of(touches, steps, of, window)
    named = delta is not None or query.names_delta
    if not named and not session.dataset_of(report).budget.delta:
        raise InvalidParameter(
            "The noise of a series needs a delta, and the budget has none: have one added, such as 1e-6."
        )
    windows = windows_met(session, plan, place, calendar, steps)
    plan = plan.asking(steps=most)
    first = query.about(stepped(plan, place, calendar, 0), windows)

    def quoted(paid: Rational | None) -> Quote:
        return first.quoted_once(epsilon, delta=paid, mechanism="gaussian", steps=inside)

    quote = quoted(delta)
    if quote.extras:
        raise QueryRefused(
            "A series is of counts, sums and what follows from them, such as averages.",
            "Leave quantiles, COUNT(DISTINCT …), extremes and shares of units that limits touch out.",
        )
    pricing = Pricing(plan, place, calendar, steps, of, window, quote, choice, most)
    if named:
        return Stream(session, query.text or "", pricing, windows=windows)
    return Stream(
        session,
        query.text or "",
        pricing,
        windows=windows,
        at_delta=quoted,
    )


class Stream(Published):
    """A series of private answers, one for each step of time, paid for once.

    Privacy:
        Claim: all points that are ever shown, and which groups they show, carry `loss`, for histories of the
        table that differ by one unit: whenever its rows come, change or go, a point counts of them what is
        there when it is read, within the limits of one step, and each step is read for one point. A unit is
        in as many steps as `touches` says at most; what moves to another step once its own was read is
        another row there, or in another window of another unit, with a loss of its own. Points are recorded
        in order before they are shown (`ledger.series`), each with the noise that its place and its rows
        decide (`Courses`). Proof: docs/proofs/continual.md.
    """

    def __init__(
        self,
        session: Session,
        text: str,
        pricing: Pricing,
        *,
        windows: Windows | None = None,
        at_delta: Callable[[Fraction], Quote] | None = None,
    ) -> None:
        """As it is on record, or new.

        Args:
            session: Whose tables and ledger.
            text: What was asked.
            pricing: Its price and noise.
            windows: In which windows of time it is paid, where the budget is for each.
            at_delta: The quote with another delta, where none was named: what the budget spares gets less,
                and a series that is paid for goes on with what it was paid with.
        """
        super().__init__(text, pricing)
        self._session, self._at_delta, self.windows = session, at_delta, windows
        self._dataset = session.dataset_of(pricing.plan.report).name
        self.receipt = self._on_record()
        self._points = self._record = OnRecord(self._loaded)
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
            pricing = replace(pricing, quote=self._at_delta(read_fraction(str(memo["delta"]))))
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
        """Take in how many points are on record by now."""
        if self.receipt is not None:
            self._record.follow(self._session.ledger.series.length(self.receipt))

    def _loaded(self, first: int, end: int) -> list[bytes]:
        assert self.receipt is not None
        return self._session.ledger.series.points(self.receipt, first, end)

    def advance(self, to: Value | str | None = None, *, now: datetime.datetime | None = None) -> int:
        """Publish the points of all steps that are over, and say how many those were.

        The first time, the whole series is paid for before anything is read. Each point counts the rows of
        its step alone. Where rows are units and groups are public, steps that are due together are read
        together: a year that is caught up on is one read, and gives what its days give one by one.

        Args:
            to: Go no further than this step, which must be over.
            now: The time that it is, with its zone; by default the machine's.

        Raises:
            InvalidParameter: for a step that is still open, or a clock that went back; nothing was spent.
            BudgetExceeded: if the series does not fit, or has all its points; nothing was spent.
            EngineFailed: if a read fails: the points before it are on record, and others are read next time.
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

    def check(self) -> None:
        """Make the statements of the first and the last step, so that what cannot be asked is refused unpaid.

        Raises:
            QueryRefused: if something has no form in the engine's language.
        """
        vault, pricing = self._session.vault, self.pricing
        for step in (0, self.horizon - 1):
            questions = pricing.step_plan(step).recipe.questions
            vault.check(questions, pricing.plan.rows, windows=self.windows)
            if pricing.most is not None:
                vault.check_units(questions[0], self.windows)

    def _pay(self) -> None:
        if self.receipt is not None:
            return
        session, pricing = self._session, self.pricing
        self.check()
        quote = pricing.quote
        unnamed = () if self._at_delta is None else ("delta",)
        table, about = quote.measured.table, state_of(session.tables, quote.measured.table)
        memo = Memo(
            "series", self.text, quote.epsilon, quote.delta, "gaussian", table, unnamed=unnamed, state=about
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
            }
            | ({} if pricing.most is None else {"max_steps": pricing.most}),
            points=self.horizon,
            windows=self.windows,
            known=session.dataset_of(pricing.plan.report),
        ).receipt

    def _take(self, due: int) -> None:
        assert self.receipt is not None
        series = self._session.ledger.series
        known = self._session.dataset_of(self.pricing.plan.report)
        if self._courses is None or self._courses.next != len(self._points):
            self._courses = Courses(
                self.pricing.streams,
                series.secret(self.receipt),
                self._points,
                self.pricing.finding,
                self.pricing.most,
            )
        try:
            while len(self._points) < due:
                step = len(self._points)
                if not self._take_together(step, due - step, known):
                    self._take_one(step, known)
        except BaseException:
            self._courses = None  # it may be a point ahead of the record
            raise

    def _take_together(self, step: int, many: int, known: Dataset) -> bool:
        """The points of the next steps, read by one statement; False: steps are read one by one."""
        assert self.receipt is not None
        assert self._courses is not None
        groups = len(self.pricing.quote.measured.combinations)
        together = self.pricing.together(step, min(many, _CELLS // max(groups, 1)))
        if together is None:
            return False
        questions = (together.question,)
        right = self._session.ledger.series.right(
            self.receipt, step, (fingerprint_of(questions),), known=known, many=together.many
        )
        read = self._session.vault.read(questions, right)
        for exact in together.steps(read.columns):
            self._keep(right, self._courses.release(exact))
        return True

    def _take_one(self, step: int, known: Dataset) -> None:
        """The point of the next step."""
        assert self.receipt is not None
        assert self._courses is not None
        vault, courses = self._session.vault, self._courses
        (question,) = self.pricing.step_plan(step).recipe.questions
        roster = courses.roster
        reads = question.fingerprint if roster is None else units_fingerprint(question)
        right = self._session.ledger.series.right(self.receipt, step, (reads,), known=known)
        if roster is None:
            reading = vault.read((question,), right)
        else:
            reading = vault.of_some_units(question, right, roster.admit)
        if self.pricing.finding is None:
            self._keep(right, courses.release(reading.columns))
        else:
            self._keep(right, courses.release_found(reading))

    def _keep(self, right: Right, point: Point) -> None:
        """Records the next point; from then on it may be shown."""
        self._session.ledger.series.record(right, len(self._points), point.to_bytes())
        self._record.append(point)
