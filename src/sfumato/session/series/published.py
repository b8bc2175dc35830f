"""`Published`: what there is of a series, as points, tables, differences and pictures; all of it is free."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, MissingExtra, QueryRefused
from sfumato.loss import PrivacyLoss
from sfumato.numeric.exact import Rational, as_integer
from sfumato.plan.expressions.linear import linear_form
from sfumato.plan.expressions.names import NotAList
from sfumato.plan.expressions.tree import Column, Expression, Literal, names_of
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.words import NOT_A_LIFETIME
from sfumato.plan.questions.bounding.base import several
from sfumato.plan.questions.sensitivity import is_exchange
from sfumato.render import definitions, shown
from sfumato.session.payload import Answer
from sfumato.session.release import Release
from sfumato.session.series.cohorts import Cohort, OfCohorts
from sfumato.session.series.finding import Finding, Group
from sfumato.session.series.picture import draw
from sfumato.session.series.points import Point
from sfumato.session.series.pricing import Of, Pricing, check_adds_up

if TYPE_CHECKING:
    from sfumato.ledger import Receipt
    from sfumato.plan.prices.plan import Plan

__all__ = ["Published"]

_CONFIDENCE = 0.95
_WIDTH = 80


class Published(NotAList):
    """The points of a series that are on record, and what follows from them: post-processing.

    Attributes:
        text: What was asked.
        pricing: Its steps, its price and its noise.
        receipt: Of the debit that paid for it; None: it is not paid for yet.
    """

    _not_a_list = "The points are in a table: stream.table(), stream.to_pandas()."

    def __init__(self, text: str, pricing: Pricing) -> None:
        self.text, self.pricing = text, pricing
        self.receipt: Receipt | None = None
        self._points: Sequence[Point] = []
        self._joined: tuple[int, list[Cohort]] = 0, []

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
        check_adds_up(self.pricing.plan, kind, self.pricing.choice.plan.touches)
        return kind, None if window is None else as_integer(window, "window")

    def _released(self, step: int, of: Of, length: int | None) -> Release:
        weights = self.pricing.weights(step, of, length)
        return self._summed(step, weights, self._meaning(of, length), self._size(step))

    def _summed(self, step: int, weights: NDArray[Any], meaning: str, size: int) -> Release:
        """A sum of points with some weights, shown at a step, of the first groups."""
        units = [self._sum(place, weights, size) for place in range(len(self.pricing.noises))]
        cohorts = [cohort for cohort in self._cohorts() if cohort.groups and cohort.end <= size]
        # The oldest group has the widest noise (docs/proofs/continual.md, lemma 7).
        laws = [self.pricing.laws(weights, cohort.since) for cohort in cohorts] or [
            self.pricing.laws(weights)
        ]
        groups = [group for cohort in cohorts for group in cohort.groups]
        signed = bool((weights < 0).any())
        whole = self._release(step, units, laws[0], meaning, groups, signed=signed)
        return whole if len(cohorts) < 2 else OfCohorts(whole, cohorts, laws)

    def _release(
        self,
        step: int,
        units: Sequence[NDArray[Any]],
        laws: tuple[Noise, ...],
        meaning: str,
        groups: Sequence[Group],
        plan: Plan | None = None,
        *,
        signed: bool = False,
    ) -> Release:
        """Sums of points in steps of their grids as a release; of `groups`, where groups are found."""
        assert self.receipt is not None
        quote, finding = self.pricing.at(step, laws, plan), self.pricing.finding
        noisy = tuple(self._natural(place, each) for place, each in enumerate(units))
        answer = Answer(noisy, laws, quote.epsilon, quote.delta, "gaussian")
        if finding is not None:
            found = finding.with_time(groups, self.pricing.calendar.value(step))
            answer = replace(answer, groups=found, selection=quote.selection_price)
        return Release(quote, answer, self.receipt, free=True, bounds=(meaning,), signed=signed)

    def _size(self, step: int) -> int:
        """How many groups a point has."""
        return self._points[step].units[0].size

    def _cohorts(self) -> list[Cohort]:
        """The groups that joined together, in order; public ones were there from the beginning."""
        if self.pricing.finding is None:
            return [Cohort(0, 0, self._size(0))]
        seen, cohorts = self._joined
        for step in range(seen, len(self._points)):
            found = self._points[step].found
            if found or not step:
                begin = cohorts[-1].end if cohorts else 0
                cohorts = [*cohorts, Cohort(step, begin, begin + len(found), found)]
        self._joined = len(self._points), cohorts
        return cohorts

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
            QueryRefused: if something but counts, sums and what adds and scales them was asked for.
        """
        form, length = self._kind(of, window)
        first, last = self._place(earlier), self._place(later)
        if first >= last:
            raise InvalidParameter("A difference is between two steps: give the earlier one first.")
        report = self.pricing.plan.report
        sums = all(call.function in ("count", "sum") for call in report.child.aggregates)
        if not sums or not all(_adds_up(column.expression) for column in report.columns):
            raise QueryRefused(
                "Differences are between counts and sums.",
                'For averages of some steps ask for table("window").',
            )
        weights = self.pricing.weights(last, form, length)
        weights[: first + 1] -= self.pricing.weights(first, form, length)
        calendar = self.pricing.calendar
        meaning = f"By how much more than at {calendar.spoken(first)}."
        return self._summed(last, weights, meaning, self._size(first))

    def _sum(self, place: int, weights: NDArray[Any], size: int) -> NDArray[Any]:
        """The sum of some points of a measurement with whole weights, in steps of its grid.

        Of the first `size` groups, of which some points may have fewer.
        """
        total = np.zeros(size, object)
        for at in np.flatnonzero(weights).tolist():
            units = self._points[at].units[place][:size]
            total[: units.size] += units.astype(object) * int(weights[at])
        return total

    def _sums(self, of: Of, length: int | None) -> Iterator[list[NDArray[Any]]]:
        """The totals at each step, each made from the one before it."""
        reach = None if of == "running" else 1 if of == "steps" else length
        totals = [np.zeros(0, object) for _ in self.pricing.noises]
        for at, point in enumerate(self._points):
            gone = None if reach is None or at < reach else self._points[at - reach]
            for place, units in enumerate(point.units[: len(totals)]):
                total = units.astype(object)
                total[: totals[place].size] += totals[place]
                if gone is not None:
                    total[: gone.units[place].size] -= gone.units[place].astype(object)
                totals[place] = total
            yield list(totals)

    def _natural(self, place: int, units: NDArray[Any]) -> NDArray[Any]:
        """Steps of a measurement's grid as numbers."""
        scale = Fraction(2) ** self.pricing.noises[place].exponent * self.pricing.quote.units[place]
        return np.array([float(value * scale) for value in units.tolist()])

    def _meaning(self, of: Of, length: int | None) -> str:
        first, every = self.pricing.calendar.spoken(0), self.pricing.calendar.every
        few = self._few_in_words()
        if of == "steps":
            return f"Each step by itself, as its rows were when it was published.{few}"
        over = f"from {first} on" if of == "running" else f"over the last {length} steps ({every}s)"
        later = "" if self.pricing.finding is None else " A group is counted from the step on that found it."
        return (
            f"Totals {over}: rows as they were when each step was published, within the limits of one step."
            f"{later}{few}"
        )

    def _few_in_words(self) -> str:
        """What of a unit is left out where it counts in few steps; empty where it counts in all."""
        most = self.pricing.most
        if most is None:
            return ""
        whose, first = self.pricing.plan.rows.unit.column, several(most, "step")
        return (
            f" Each {whose} counts in the first {first} in which they have rows, and in none after: later "
            "points count newcomers above all."
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

        Groups that are found have rows from that step on, after those that were found before.

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
        meaning, tables = self._meaning(form, length), list[pa.Table]()
        cohorts = [cohort for cohort in self._cohorts() if cohort.groups] or self._cohorts()[:1]
        laws = [self.pricing.all_laws(len(self), form, length, cohort.since) for cohort in cohorts]
        for step, totals in enumerate(self._sums(form, length)):
            plan = self.pricing.step_plan(step)
            for cohort, law in zip(cohorts, laws, strict=True):
                if cohort.since <= step:
                    units = [total[cohort.begin : cohort.end] for total in totals]
                    release = self._release(step, units, next(law), meaning, cohort.groups, plan)
                    tables.append(release.to_arrow(errors=errors, confidence=confidence, kind=kind))
        return pa.concat_tables(table.replace_schema_metadata(None) for table in tables)

    def to_pandas(self, of: Of | None = None, *, window: int | None = None, **more: Any) -> Any:
        """The same as a data frame of pandas."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise MissingExtra(
                "pandas is not installed: pip install pandas, or use table() (Arrow)."
            ) from None
        return self.table(of, window=window, **more).to_pandas()

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
        unit = pricing.plan.rows.declared
        touches = pricing.choice.plan.touches
        calendar, last = pricing.calendar, pricing.horizon - 1
        both = ", with the one in its place" if is_exchange(unit) else ""
        counts = "is" if pricing.most is None else "counts"
        about = (
            f"{counts} in one step"
            if touches == 1
            else f"{counts} in up to {touches} steps{both}, and the noise is for all of them"
        )
        ends = f"{calendar.spoken(0)} to {calendar.spoken(last)}"
        price = f"epsilon {shown(float(self.epsilon))}, delta {shown(float(self.delta))}"
        lines = {
            "series": f"{pricing.horizon} steps ({calendar.every}), {ends}",
            "price": f"{price}, once for all points",
            "protects": f"{unit}, which {about}",
            "noise": str(pricing.choice),
        }
        if unit.window is not None:
            lines["lifetime"] = f"{NOT_A_LIFETIME}."
        if pricing.most is not None:
            lines["counts"] = self._few_in_words().strip()
        if pricing.finding is not None:
            lines["groups"] = _found_in_words(pricing.finding, pricing.plan.rows.owner or "row", self.epsilon)
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


class _Form(NamedTuple):
    """What is added to sums and counts, and whether it is all there is: see `linear_form`."""

    constant: Fraction
    fixed: bool

    def scaled(self, factor: Fraction) -> _Form:
        return self._replace(constant=self.constant * factor)

    def plus(self, other: _Form) -> _Form:
        return _Form(self.constant + other.constant, self.fixed and other.fixed)


def _adds_up(expression: Expression) -> bool:
    """Whether the difference of two values of this is the same of the differences; or it has no number."""
    if not any(name.startswith("a") for name in names_of(expression)):
        return True

    def leaf(part: Column | Literal) -> _Form | None:
        if isinstance(part, Column):
            return _Form(Fraction(0), False) if part.name.startswith("a") else None
        if isinstance(part.value, bool) or not isinstance(part.value, int | float):
            return None
        return _Form(Fraction(part.value), True) if abs(part.value) < math.inf else None

    form = linear_form(expression, leaf)
    return form is not None and not form.constant


def _found_in_words(finding: Finding, owner: str, epsilon: Fraction) -> str:
    """When groups appear, by the threshold of what finds them."""
    selection = finding.selection
    about, sure = selection.least(Fraction(1, 2)), selection.least(Fraction(99, 100))
    return (
        f"not public: one appears once about {about} units ({owner}) are in it in one step, nearly surely "
        f"with {sure}, and has points from then on; finding them takes {selection.epsilon / epsilon} of the "
        "price"
    )
