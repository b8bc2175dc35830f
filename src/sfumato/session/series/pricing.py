"""What a series costs, and the noise of its points: worked out beforehand, from public facts alone."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.continual import Choice, Continual, Factorisation, candidates
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.mechanisms import AdaptiveSelection, Gaussian
from sfumato.numeric.moments import DAY, as_moment, seconds_of
from sfumato.numeric.zones import offsets_of
from sfumato.plan.expressions.tree import call, literal
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.nodes import Key, Where
from sfumato.plan.questions.paid_windows import windows_between
from sfumato.plan.questions.sensitivity import is_exchange
from sfumato.plan.questions.sources import is_own
from sfumato.plan.questions.windowing import is_shifted, is_time_of
from sfumato.session.series.calendar import Calendar, calendar_of, every_of, meets
from sfumato.session.series.finding import Finding
from sfumato.session.series.roster import hiding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sfumato.plan.expressions.tree import Expression
    from sfumato.plan.prices.plan import Plan
    from sfumato.plan.prices.quoting import Quote
    from sfumato.plan.questions.nodes import Measured
    from sfumato.plan.questions.sources import Source
    from sfumato.schema import Kind, PrivacyUnit, Windows
    from sfumato.session.session import Session

__all__ = [
    "Of",
    "Pricing",
    "Together",
    "calendar_in",
    "check_adds_up",
    "choice_of",
    "stepped",
    "steps_of",
    "time_key",
    "touches_of",
    "windows_met",
]

Of: TypeAlias = Literal["running", "window", "steps"]

_HIDING = Fraction(1, 128)  # of the price of the numbers, where units count in few steps


def time_key(plan: Plan) -> int:
    """The place of the key that says in which step a row is.

    Raises:
        QueryRefused: if there is none, or more than one could be it.
    """
    node = plan.report.child
    columns = plan.rows.where(node.predicate)
    timed = [
        place
        for place, key in enumerate(node.keys)
        if every_of(key.expression, columns) not in (None, "number")
    ]
    if not timed:
        timed = [
            place for place, key in enumerate(node.keys) if every_of(key.expression, columns) == "number"
        ]
    if len(timed) == 1:
        return timed[0]
    many = "no key that is a time" if not timed else "several keys that could be the time of a step"
    raise QueryRefused(
        f"A series has a point for each step of time, and this question has {many}.",
        "Group by one date, such as GROUP BY day or GROUP BY DATE_TRUNC('month', day).",
    )


def stepped(plan: Plan, place: int, calendar: Calendar, step: int, many: int = 1) -> Plan:
    """The question about one step, or about each of several: its rows are theirs, by the statement.

    Args:
        plan: The question as it was asked.
        place: Which of its keys is time.
        calendar: The steps.
        step: The first step that it is about.
        many: About how many, one after the other.

    Raises:
        QueryRefused: for several levels of groups.
    """
    node = plan.report.child
    values = tuple(calendar.value(at) for at in range(step, step + many))
    keys = tuple(Key(key.expression, values) if at == place else key for at, key in enumerate(node.keys))
    if node.combinations is not None or node.levels:
        raise QueryRefused("A series has one level of groups.", "Leave ROLLUP, CUBE and listed pairs out.")
    # Said twice: a condition leaves the rows of other steps out before they are put into groups.
    time, (first, last) = node.keys[place].expression, (literal(values[0]), literal(values[-1]))
    if many == 1:
        within = call("equal", time, first)
    else:
        within = call("and", call("greater_equal", time, first), call("less_equal", time, last))
    if node.predicate is not None:
        within = call("and", node.predicate, within)
    # Groups that are not public are found in some step, and their units are counted in later ones, too.
    return plan.asking(keys=keys, child=Where(node.source, within), counted=True)


def check_adds_up(plan: Plan, of: Of, touches: int) -> None:
    """Refuse totals of numbers of units: who comes in two steps is one, and would be counted twice.

    Args:
        plan: The question.
        of: Of which totals.
        touches: In how many steps neighbours can differ: where each unit is in one alone, they add up.

    Raises:
        QueryRefused: with what would work.
    """
    units = any(call.function == "count_distinct" for call in plan.report.child.aggregates)
    alone = touches <= (2 if is_exchange(plan.rows.declared) else 1)
    if units and of != "steps" and not alone:
        whose = plan.rows.owner or "unit"
        raise QueryRefused(
            f"Numbers of different {whose}s do not add up over steps: who comes in two steps is one, and "
            "would be counted twice.",
            'Ask for each step by itself (of="steps"), or count each in its first step alone (max_steps=1).',
        )


def reads_rows_alone(plan: Plan) -> bool:
    """Whether no row has a say in what another one counts: rows are units, so that no limits hold them."""
    return plan.rows.unit.is_row


def steps_of(
    unit: PrivacyUnit,
    source: Source,
    time: Expression,
    every: str,
    horizon: int,
    kind: Kind | None = None,
    most: int | None = None,
) -> int:
    """In how many steps one unit can count, at most.

    Args:
        unit: Whose privacy is protected, as it is declared (`Rows.declared`).
        source: Where the rows come from.
        time: What says in which step a row is.
        every: How long steps are.
        horizon: How many there are.
        kind: Of the column that decides windows; None: not known.
        most: In how many a unit counts, where that was said (`Roster`); None: in all that it has rows in.

    Privacy:
        A row is in one step, if its own columns say in which. Where a public table says it, a row can be in
        all steps, since that table may say something else whenever it is read. The only row that a unit has
        in a question that makes one of all of its rows is in one step of each state of the table, and may be
        in any of them, as more rows come: such a unit can be in all steps. The rows of a unit's window are in
        the steps that meet the window, if both are decided by the same column; those of a unit without
        windows, and where time is something else, can be in all of them. Steps of timestamps end by the
        clocks of the column, in UTC, and windows by those of the unit's zone: `meets` counts both.
    """
    if unit.is_row:
        return 1 if is_own(time, source) else horizon
    least = horizon if most is None else min(most, horizon)
    if unit.window is None or not is_time_of(unit, time):
        return least
    offsets = offsets_of(unit.zone) if is_shifted(unit, kind or "timestamp") else None
    return min(meets(unit.window, every, offsets), least)


def touches_of(unit: PrivacyUnit, inside: int, horizon: int) -> int:
    """In how many steps neighbours can differ, at most.

    Args:
        unit: Whose privacy is protected.
        inside: In how many steps one unit can count (`steps_of`).
        horizon: How many steps there are.

    Privacy:
        Those that one unit can count in; where one unit takes the place of another, those of both.
    """
    return min(2 * inside if is_exchange(unit) else inside, horizon)


def windows_met(session: Session, plan: Plan, place: int, calendar: Calendar, horizon: int) -> Windows | None:
    """The windows of time that the steps of a series have days in, where the budget is for each.

    Where its steps are of another time than windows are, those that its condition names.

    Raises:
        QueryRefused: if it names none.
    """
    each, unit = session.dataset_of(plan.report).budget.each, plan.rows.unit
    if each is None or not is_time_of(unit, plan.report.child.keys[place].expression):
        return session.windows_of(plan.report)
    table = session.tables[plan.report.child.table]
    begin, end = (seconds_of(as_moment(calendar.value(step))) for step in (0, horizon))
    if table.schema[str(unit.time)].kind == "date":
        begin, end = begin // DAY, end // DAY
    return windows_between(each, table, begin, end - 1)


@dataclass(frozen=True, slots=True)
class Together:
    """One question about several steps.

    Attributes:
        question: The question.
        place: Which of its keys is time.
        shape: How many values each key has.
    """

    question: Measured
    place: int
    shape: tuple[int, ...]

    @property
    def many(self) -> int:
        """How many steps."""
        return self.shape[self.place]

    def steps(self, columns: Sequence[NDArray[Any]]) -> list[list[NDArray[Any]]]:
        """What was read for each measurement, step by step, as the question about one step has it."""
        apart = [np.moveaxis(column.reshape(self.shape), self.place, 0) for column in columns]
        return [[column[step].ravel() for column in apart] for step in range(self.many)]


@dataclass(frozen=True)
class Pricing:
    """A series with its price.

    Attributes:
        plan: The question as it was asked.
        place: Which of its keys is time.
        calendar: Its steps.
        horizon: How many there are at most.
        of: What the noise is chosen for: running totals, totals of some last steps, or each step.
        length: Over how many steps those totals go; None: over all so far.
        quote: Of the first step, at the price of all of them.
        choice: How the noise of the steps hangs together.
        most: In how many steps a unit counts: the first in which it has rows; None: in all of them.
    """

    plan: Plan
    place: int
    calendar: Calendar
    horizon: int
    of: Of
    length: int | None
    quote: Quote
    choice: Choice
    most: int | None = None

    @cached_property
    def noises(self) -> tuple[Continual, ...]:
        """The noise of each measurement over all steps.

        Privacy:
            Claim: all points together carry `quote.loss`. Each measurement is a stream of its own part of the
            price, for the most that a unit moves it within one step (`plan.questions.sensitivity`) and for as
            many steps as a unit can be in (`touches_of`); ρ adds up over measurements, as in `price`. Groups
            that are found have noise from the step on in which they are, and one unit moves no more of them
            than it can be in, over all steps (`plan.prices.bundle`). Where units count in few steps, a small
            part of each price is for hiding how many do (`hiding`).
        """
        mechanisms, finding = self.quote.mechanisms, self.finding
        assert all(isinstance(mechanism, Gaussian) for mechanism in mechanisms)
        groups = len(self.quote.measured.combinations) if finding is None else 0
        moved = None
        if finding is not None:
            moved = finding.selection.groups * (2 if finding.selection.exchange else 1)
        return tuple(
            Continual(
                self.choice.plan,
                rho=mechanism.rho if self.most is None else mechanism.rho * (1 - _HIDING),
                sensitivity=mechanism.sensitivity,
                groups=groups,
                moved=moved,
            )
            for mechanism in mechanisms
            if isinstance(mechanism, Gaussian)
        )

    @cached_property
    def hiding(self) -> Continual | None:
        """The noise of how many units count in each step, where they count in few; None: they do in all.

        Privacy:
            Claim: with `noises`, ρ adds up to that of `quote.loss`. One unit changes the number by 1, in as
            many steps as it counts in.
        """
        if self.most is None:
            return None
        price = sum(
            (mechanism.rho for mechanism in self.quote.mechanisms if isinstance(mechanism, Gaussian)),
            Fraction(0),
        )
        return hiding(self.horizon, self.choice.plan.touches, price * _HIDING)

    @property
    def streams(self) -> tuple[Continual, ...]:
        """All noise of a point: that of its numbers, and of how many units count."""
        return self.noises if self.hiding is None else (*self.noises, self.hiding)

    @cached_property
    def finding(self) -> Finding | None:
        """How groups are found; None: they are public."""
        selection = self.quote.selection
        if selection is None:
            return None
        assert not isinstance(selection, AdaptiveSelection)  # each step is read once
        return Finding(selection, self.quote.recipe.key_order[self.place])

    @property
    def fingerprint(self) -> str:
        """Of the series at any price: under which it is found again."""
        facts = [
            "series 1",
            self.quote.fingerprint,
            [str(self.calendar.start), self.calendar.every],
            self.horizon,
            [self.of, self.length],
            self.choice.plan.touches,
        ]
        facts += [] if self.most is None else [f"first {self.most} steps of a unit"]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def on_record(self, plan: Mapping[str, Any]) -> Pricing:
        """The same with the noise that was chosen when it was paid for; a later version may choose better."""
        known = Factorisation.of_record(plan)
        if known == self.choice.plan:
            return self
        length = 1 if self.of == "steps" else self.length
        return replace(self, choice=Choice("as on record", known, known.mean_square(length)))

    @property
    def noise(self) -> str:
        """A digest of all that decides the noise, but the secret."""
        told = [noise.fingerprint for noise in self.streams]
        if self.finding is not None:
            told.append(repr(self.finding.selection))
        if self.most is not None:
            told.append("names 2")  # of units; earlier ones were called by the text that a type has
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def step_plan(self, step: int) -> Plan:
        """The question about one step."""
        return stepped(self.plan, self.place, self.calendar, step)

    def together(self, step: int, many: int) -> Together | None:
        """One question about each of several steps; None where steps have to be asked one by one.

        Privacy:
            Claim: what it gives for a step are the integers that `step_plan` gives. Rows are units here, so
            that nothing holds one row within limits because of another one; each is in the group of its own
            step; and what is measured is the same as in each step by itself.
        """
        if many < 2 or self.finding is not None or not reads_rows_alone(self.plan):
            return None
        (question,) = stepped(self.plan, self.place, self.calendar, step, many).recipe.questions
        (first,) = self.step_plan(step).recipe.questions
        if question.measurements != first.measurements or question.bounding != first.bounding:
            return None
        at = self.quote.recipe.key_order[self.place]
        return Together(question, at, tuple(len(key.values or ()) for key in question.keys))

    def weights(self, step: int, of: Of, length: int | None) -> np.ndarray:
        """What each step up to one counts in a total."""
        weights = np.zeros(step + 1)
        begin = 0 if of == "running" else step if of == "steps" else max(step + 1 - (length or 1), 0)
        weights[begin:] = 1
        return weights

    def laws(self, weights: np.ndarray, since: int = 0) -> tuple[Noise, ...]:
        """The law of the noise of a sum of points, for each measurement, in natural units.

        Args:
            weights: What each step counts.
            since: The step with which a group joined the series.
        """
        return self._laws([noise.deviation(weights, since=since) for noise in self.noises])

    def all_laws(self, count: int, of: Of, length: int | None, since: int = 0) -> Iterator[tuple[Noise, ...]]:
        """Those of the totals at each step from `since` on, worked out together where that is quicker."""
        steps = range(since, count)
        window = None if of == "running" else 1 if of == "steps" else length
        try:
            every = [noise.deviations(window, since=since) for noise in self.noises]
        except InvalidParameter:  # too many steps to list
            yield from (self.laws(self.weights(step, of, length), since) for step in steps)
        else:
            yield from (self._laws([float(each[step]) for each in every]) for step in steps)

    def _laws(self, deviations: Sequence[float]) -> tuple[Noise, ...]:
        """The laws of noise with these deviations, of whole units of each measurement."""
        quote, found = self.quote, list[Noise]()
        measured = quote.measured.measurements
        for deviation, unit, law, one in zip(deviations, quote.units, quote.noises, measured, strict=True):
            half = 0.5 if one.whole else 0.0
            scale = math.nextafter(deviation * float(unit), math.inf)
            found.append(Noise("gaussian", scale, half, law.whole, half))
        return tuple(found)

    def quoted(self, step: int, of: Of, length: int | None = None) -> Quote:
        """The quote of a total at one step, with the noise that it has."""
        return self.at(step, self.laws(self.weights(step, of, length)))

    def at(self, step: int, laws: tuple[Noise, ...], plan: Plan | None = None) -> Quote:
        """The quote of something that is shown at one step, with its noise; `plan` is that of the step."""
        return replace(self.quote, plan=self.step_plan(step) if plan is None else plan, noises=laws)


def choice_of(touches: int, horizon: int, of: Of, length: int | None) -> Choice:
    """How the noise of the steps should hang together, by expected error."""
    if of not in ("running", "window", "steps"):
        raise InvalidParameter('of is "running", "window" or "steps".')
    if (of == "window") != (length is not None):
        raise InvalidParameter('of="window" goes with the number of steps, such as window=7.')
    return candidates(horizon, touches=touches, want=of, window=length)[0]


def calendar_in(plan: Plan, place: int, start: object, zone: str) -> Calendar:
    """The steps of a question's time."""
    node = plan.report.child
    return calendar_of(node.keys[place].expression, plan.rows.where(node.predicate), start, zone)
