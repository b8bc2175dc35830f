"""Both ends of released values, for the noise alone or over all rows, and what a kind of interval assumes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational
from sfumato.plan.answers.boxes import Box
from sfumato.plan.answers.covering import LeftOut
from sfumato.plan.answers.estimate import Estimates
from sfumato.plan.prices.extras import QuantileSet
from sfumato.plan.questions.aggregates import Estimator
from sfumato.plan.questions.declared import Declared
from sfumato.plan.questions.nodes import Measured
from sfumato.plan.questions.profile import Profile
from sfumato.plan.questions.slots import Slot
from sfumato.plan.questions.tail import Tail

if TYPE_CHECKING:
    from sfumato.plan.prices.quoting import Quote

__all__ = ["Intervals", "Known", "left_out"]

Known: TypeAlias = Profile | Declared
"""What is known about how many rows units have: bought, or declared."""

_FITTED = "fitted"


def left_out(quote: Quote, known: Known | Tail | None) -> LeftOut | None:
    """What limits left out at most; None where nothing is known of it, or more than limits cut."""
    measured = quote.measured
    if known is None or measured.levels or any(each.per != "row" for each in measured.measurements):
        return None
    recipe = quote.recipe
    return LeftOut(
        partial(known.most_cut, _surely(measured)),
        partial(known.most_cut, measured.unit.max_groups),
        frozenset(
            f"a{place}"
            for place, aggregate in enumerate(recipe.aggregates)
            if isinstance(aggregate, Estimator) or aggregate.extra < 0
        ),
        {
            f"a{place}": partial(known.most_cut, _surely(extra.measured))
            for place, slot in enumerate(recipe.aggregates)
            if isinstance(slot, Slot)
            and slot.extra >= 0
            and isinstance(extra := recipe.extras[slot.extra], QuantileSet)
        },
    )


def _surely(measured: Measured) -> int:
    """So many rows of each unit count at least, or all of them if it has fewer."""
    return measured.bounding.surely(measured.unit, keyed=bool(measured.keys))


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """The intervals of a release, by kind.

    Attributes:
        quote: What was asked.
        estimates: What was answered, with intervals for the noise, and those that cover all rows.
        known: What is known about rows of units; None: nothing.
    """

    quote: Quote
    estimates: Estimates
    known: Known | None

    def ends(self, kind: str) -> Callable[[str, Rational], Box]:
        """What gives both ends of a column at a confidence.

        Raises:
            InvalidParameter: for another kind; or `fitted` where no profile shows enough of its tail.
        """
        if kind == _FITTED:
            bounds = left_out(self.quote, self._tail())
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
        return "" if self.known is None else f" {self.known.within(self._owner)}"

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
                "its counts, with more rows than the third of its rungs. Take "
                'kind="covering", which assumes nothing, or buy a profile for more.'
            )
        return tail
