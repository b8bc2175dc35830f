"""Both ends of released values, for the noise alone or over all rows, and what a kind of interval assumes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational
from sfumato.plan.answers.boxes import Box
from sfumato.plan.answers.covering import LeftOut
from sfumato.plan.answers.estimate import Estimates
from sfumato.plan.prices.estimands import cuts
from sfumato.plan.prices.extras import QuantileSet
from sfumato.plan.questions.aggregates import Estimator
from sfumato.plan.questions.cut import Cut
from sfumato.plan.questions.declared import Declared
from sfumato.plan.questions.nodes import Measured
from sfumato.plan.questions.profile import Profile
from sfumato.plan.questions.sensitivity import rows_in_group
from sfumato.plan.questions.slots import Slot
from sfumato.plan.questions.tail import Tail

if TYPE_CHECKING:
    from sfumato.plan.prices.quoting import Quote
    from sfumato.session.unreadable import Unread

__all__ = ["Intervals", "Known", "left_out"]

Known: TypeAlias = Profile | Declared
"""What is known about how many rows units have: bought, or declared."""

_FITTED = "fitted"


def left_out(
    quote: Quote,
    known: Known | Tail | None,
    groups: Profile | None = None,
    unread: Unread | None = None,
) -> LeftOut | None:
    """What limits left out at most, and cells that could not be read; None where nothing is known of it.

    Args:
        quote: What was asked.
        known: What is known about rows of units.
        groups: A profile of the groups of the question.
        unread: What is known about cells that could not be read.
    """
    limits = _by_limits(quote, known, groups)
    if unread is None or not unread.by:
        return limits
    whole = {f"a{place}" for place, cut in enumerate(cuts(quote.plan)) if not cut.adds and not cut.takes}
    return _WithUnread(_unknown, _unknown, frozenset(), limits=limits, whole=frozenset(whole), unread=unread)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _WithUnread(LeftOut):
    """What limits left out, and beside it the rows of cells that could not be read.

    Attributes:
        limits: What limits left out at most; None: nothing is known of it.
        whole: The aggregates that limits cannot cut.
        unread: How many such cells there are.
    """

    limits: LeftOut | None
    whole: frozenset[str]
    unread: Unread

    def of(self, name: str, cut: Cut, risk: float) -> float:
        """How many parts of an aggregate were left out at most: each kind has half of the risk."""
        if not risk or name not in self.unread.by:
            return self._cut(name, cut, risk)
        return self._cut(name, cut, risk / 2) + self.unread.most(name, risk / 2)

    def _cut(self, name: str, cut: Cut, risk: float) -> float:
        if name in self.whole:
            return 0.0 if risk else math.inf
        return math.inf if self.limits is None else self.limits.of(name, cut, risk)


def _unknown(risk: float) -> float:
    del risk
    return math.inf


def _by_limits(quote: Quote, known: Known | Tail | None, groups: Profile | None) -> LeftOut | None:
    """What limits left out at most; None where nothing is known of it, or more than limits cut.

    All bounds hold at once: those of one profile, for all limits, fail together. Where there are two of them,
    half of a risk is for the one of rows, a quarter for the units of groups and a quarter for their groups.
    """
    measured = quote.measured
    nothing = known is None and groups is None
    if nothing or measured.levels or any(each.per != "row" for each in measured.measurements):
        return None
    recipe = quote.recipe
    return LeftOut(
        partial(_rows_left_out, measured, known, groups),
        partial(_groups_left_out, measured, known, groups),
        frozenset(
            f"a{place}"
            for place, aggregate in enumerate(recipe.aggregates)
            if isinstance(aggregate, Estimator) or aggregate.extra < 0
        ),
        {
            f"a{place}": partial(_rows_left_out, extra.measured, known, groups)
            for place, slot in enumerate(recipe.aggregates)
            if known is not None
            and isinstance(slot, Slot)
            and slot.extra >= 0
            and isinstance(extra := recipe.extras[slot.extra], QuantileSet)
        },
    )


def _rows_left_out(
    measured: Measured, known: Known | Tail | None, groups: Profile | None, risk: float
) -> float:
    """More rows than limits left out of all groups, but for a probability of `risk`.

    Where a unit counts in k of its groups, with r rows in each at most, there are two bounds. Of n rows it
    keeps min(n, r, k) at least (`Bounding.surely`). And a unit in no more than k groups loses at most
    max(0, n − r): either a group of it has r rows that count, or all of them do. One in more keeps k rows, so
    it loses at most n − k ≤ max(0, n − r) + r − k where r > k: all lose at most what a limit of r cuts, and
    r − k for each unit in more than k groups. A condition takes rows and groups of a unit away, and no more
    of either are counted then.
    """
    if known is None:
        return math.inf
    unit, keyed = measured.unit, bool(measured.keys)
    surely = measured.bounding.surely(unit, keyed=keyed)
    if groups is None:
        return known.most_cut(surely, risk)
    least, each = known.most_cut(surely, risk / 2), rows_in_group(unit)
    if not measured.bounding.few_groups or not keyed or each <= unit.max_groups:
        return least
    beyond = (each - unit.max_groups) * groups.most_units(unit.max_groups, risk / 4)
    return min(least, known.most_cut(each, risk / 2) + beyond)


def _groups_left_out(
    measured: Measured, known: Known | Tail | None, groups: Profile | None, risk: float
) -> float:
    """More groups of units than are cut; a unit is in no more groups than it has rows."""
    limit = measured.unit.max_groups
    if groups is None:
        return math.inf if known is None else known.most_cut(limit, risk)
    cut = groups.most_cut(limit, risk / 4)
    return cut if known is None else min(cut, known.most_cut(limit, risk / 2))


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """The intervals of a release, by kind.

    Attributes:
        quote: What was asked.
        estimates: What was answered, with intervals for the noise, and those that cover all rows.
        known: What is known about rows of units; None: nothing.
        groups: What is known about groups of units; None: nothing.
        unread: What is known about cells that could not be read; None: nothing.
    """

    quote: Quote
    estimates: Estimates
    known: Known | None
    groups: Profile | None = None
    unread: Unread | None = None

    def ends(self, kind: str) -> Callable[[str, Rational], Box]:
        """What gives both ends of a column at a confidence.

        Raises:
            InvalidParameter: for another kind; or `fitted` where no profile shows enough of its tail.
        """
        if kind == _FITTED:
            tail = self._tail()
            bounds = None if tail is None else left_out(self.quote, tail, self.groups, self.unread)
            return self.estimates.covering if bounds is None else self.estimates.given(bounds).covering
        kinds = {"covering": self.estimates.covering, "noise": self.estimates.interval}
        if kind not in kinds:
            raise InvalidParameter(f'kind is "covering", "noise" or "fitted", not {str(kind)[:40]!r}.')
        return kinds[kind]

    def assumes(self, kind: str = _FITTED) -> str:
        """What intervals of this kind assume, in words; empty where that is nothing."""
        if kind == "noise" or not self._cut:
            return ""
        tail = self._tail() if kind == _FITTED else None
        if tail is not None:
            return tail.assumes(self._owner)
        if isinstance(self.known, Declared) and left_out(self.quote, self.known) is not None:
            return f"Intervals over all rows hold {self.known.within(self._owner)}."
        return ""

    @property
    def within(self) -> str:
        """For which tables intervals over all rows hold, to go on with a sentence."""
        if self.known is not None:
            return f" {self.known.within(self._owner)}"
        if self.groups is None or self.quote.measured.groups is not None:
            return ""  # there are no more groups than are listed
        return f" where no {self._owner} is in more than {self.groups.ceiling:,} groups{self.groups.advice}"

    @property
    def _owner(self) -> str:
        return str(self.quote.rows.owner)

    @property
    def _cut(self) -> bool:
        """Whether limits may leave something out of a column."""
        return any(self.estimates.cut(name) for name in self.estimates.intervals)

    def _tail(self) -> Tail | None:
        """The tail that fitted intervals rest on; None: nothing is cut, or all is declared."""
        if not self._cut:
            return None
        if self.known is None or left_out(self.quote, self.known) is None:
            raise InvalidParameter(
                'kind="fitted" needs a profile of how many rows units have, and no such profile bounds this '
                'answer: release it with profile=True, or take kind="covering", which assumes nothing.'
            )
        if isinstance(self.known, Declared):
            return None
        tail = Tail.of(self.known)
        if tail is None:
            raise InvalidParameter(
                'kind="fitted" needs a profile that shows its tail: five units or more for each 1/epsilon of '
                "its counts with more rows than the third of its rungs, and none too many further up. Take "
                'kind="covering", which assumes nothing, or buy a profile for more.'
            )
        return tail
