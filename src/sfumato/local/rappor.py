"""RAPPOR: a permanent response that is kept, and reports that are randomised from it again each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.local import _bits
from sfumato.local.base import register
from sfumato.local.coins import Coins, Odds, nearest
from sfumato.local.domain import Domain
from sfumato.local.examples import Example, unpacked
from sfumato.local.packed import PackedRandomizer
from sfumato.local.support import price
from sfumato.local.unary import drawn, law_of_bits
from sfumato.loss import PureLoss
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer, probability
from sfumato.numeric.figures import PRECISION, ball, upper
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Rappor", "examples"]


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Rappor(PackedRandomizer):
    """Basic RAPPOR: one bit for each value of the domain, randomised once for good and again at each report.

    `permanent` turns every bit round with probability f/2 = 1/(e^(ε/2) + 1), the own one like the others; the
    device keeps the outcome and never makes another for that value. `report` may be called on it any number
    of times: a bit of the report is 1 with probability `one` where the permanent bit is 1, `zero` where it is
    0. `encode` does both, for one report. Without `one` and `zero` it is one-time RAPPOR: the permanent
    response is the report.

    Attributes:
        epsilon: The price of everything ever reported about a value.
        domain: The values.
        one: P(1) of a reported bit whose permanent bit is 1; None: one-time.
        zero: P(1) of a reported bit whose permanent bit is 0; None: one-time.

    Privacy:
        Claim: the permanent response, and so any number of reports made from it, is ε-DP between any two
        values (`loss`); the first so many of these alone cost `loss_of(reports)`, exactly, which is less.
        Proof: two values change the law of two independent permanent bits, each by e^(ε/2) at most; reports
        are post-processing. Given the value, the reports about one bit are a mixture of two products, and
        their likelihood ratio grows with how many of them are 1: it is largest where all of them are 1
        (the own bit) or 0 (the other), where `loss_of` takes it. Condition: one permanent response for a
        value; a new one at each report would add up. Source: Erlingsson, Pihur, Korolova 2014, Theorems 1
        and 2, for one hash function. All coins are exact.
    """

    wire: ClassVar[str] = "rappor.1"
    epsilon: Fraction
    domain: Domain
    one: Fraction | None
    zero: Fraction | None
    p: float = field(compare=False)
    q: float = field(compare=False)
    gap: float = field(compare=False)
    _own: Coins = field(compare=False)
    _others: Coins = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        domain: int | Sequence[Any] | Domain,
        *,
        one: Rational | None = None,
        zero: Rational | None = None,
    ) -> None:
        """Fix the permanent coins from the price, and those of a report; Google's were 3/4 and 1/2.

        Raises:
            InvalidParameter: for an unusable epsilon or domain, or unless both of `one` and `zero` are given,
                zero below one, or neither.
        """
        exact, values = price(epsilon), Domain(domain)
        if (one is None) != (zero is None):
            raise InvalidParameter(
                "Give both one and zero for reports from a permanent response, or neither."
            )
        ends = Fraction(1), Fraction(0)
        if one is not None and zero is not None:
            ends = probability(one, "one"), probability(zero, "zero")
            if ends[0] <= ends[1]:
                raise InvalidParameter("one must exceed zero, or reports say what is not the case.")
        kept = ends if one is not None else (None, None)
        freeze(self, epsilon=exact, domain=values, one=kept[0], zero=kept[1])
        own, others = Odds(exact / 2), Odds(-exact / 2)
        freeze(self, _own=Coins(own), _others=Coins(others))
        freeze(self, p=nearest(lambda: _mixed(own(), *ends)), q=nearest(lambda: _mixed(others(), *ends)))
        freeze(self, gap=nearest(lambda: ball(ends[0] - ends[1]) * ball(exact / 4).tanh()))

    def __repr__(self) -> str:
        return shown(
            "Rappor", epsilon=self.epsilon, domain=self.domain.to_json(), one=self.one, zero=self.zero
        )

    @property
    def loss(self) -> PureLoss:
        """What all reports from one permanent response cost together, however many there are."""
        return PureLoss(self.epsilon)

    def loss_of(self, reports: int) -> PureLoss:
        """What so many reports from one permanent response cost together, rounded up; 1: a single report."""
        count = as_integer(reports, "reports")
        if self.one is None or self.zero is None:
            return self.loss
        with ctx.workprec(PRECISION):
            true = Odds(self.epsilon / 2)()
            ones = _tilt(true, ball(self.one), ball(self.zero), count)
            zeros = _tilt(true, ball(1 - self.zero), ball(1 - self.one), count)
            return PureLoss(min(upper(ones + zeros), self.epsilon))

    def encode(self, values: Any) -> NDArray[np.uint8]:
        """One report for each value, from a permanent response that is made and thrown away.

        To report again about the same value, keep what `permanent` gives and call `report` on it.

        Raises:
            InvalidValue: for a value outside the domain; nothing was randomised then.
        """
        return self.report(self.permanent(values))

    def permanent(self, values: Any) -> NDArray[np.uint8]:
        """The response that a device makes once for its value, and keeps: packed bits like a report.

        Raises:
            InvalidValue: for a value outside the domain; nothing was randomised then.
        """
        return drawn(self.domain.indices(values), self.domain.size, self._own, self._others)

    def report(self, kept: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A report from each permanent response; call it as often as reports are wanted.

        Raises:
            InvalidValue: for anything that `permanent` does not give.
        """
        states, bits = self._checked(kept), self.domain.size
        if self.one is None or self.zero is None:
            return states.copy()
        ones, zeros = Coins(self.one), Coins(self.zero)
        out = np.empty_like(states)
        starts = _bits.blocks(len(out), max(1, out.shape[1]))
        for start in starts:
            rows, state = out[start : start + starts.step], states[start : start + starts.step]
            low = zeros.packed(rows.size).reshape(rows.shape)
            high = ones.packed(rows.size).reshape(rows.shape)
            rows[:] = low ^ (state & (low ^ high))  # high where the state has 1
            _bits.trim(rows, bits)
        return out

    def _parameters(self) -> dict[str, Any]:
        ends = {} if self.one is None else {"one": str(self.one), "zero": str(self.zero)}
        return {"domain": self.domain.to_json(), **ends}


def _mixed(chance: arb, one: Fraction, zero: Fraction) -> arb:
    """P(1) of a reported bit whose permanent bit is 1 with this chance."""
    return chance * ball(one) + (1 - chance) * ball(zero)


def _tilt(true: arb, agrees: arb, differs: arb, count: int) -> arb:
    """The log of the likelihood ratio of a bit where all of `count` reports agree with it.

    `true` is the probability that the permanent bit is the real one, `agrees` and `differs` those of such a
    report if the permanent bit agrees with it and if not.
    """
    part = (differs / agrees) ** count  # below 1, so that nothing runs out of range
    return ((true + (1 - true) * part) / ((1 - true) + true * part)).log()


def _example(name: str, randomizer: Rappor, left: int, right: int) -> Example:
    def pmf(side: Side) -> Mapping[Any, float]:
        return law_of_bits(
            randomizer.p, randomizer.q, left if side == "left" else right, randomizer.domain.size
        )

    bits = unpacked(randomizer.domain.size)
    return Example(name, randomizer, left, right, read=bits, pmf=pmf, claim=randomizer.loss_of(1))


def _repeated(name: str, randomizer: Rappor, left: int, right: int, reports: int) -> Example:
    """How often each bit was 1 in so many reports from one permanent response: a sufficient statistic."""

    def encode(values: list[Any]) -> NDArray[np.int64]:
        kept, bits = randomizer.permanent(values), unpacked(randomizer.domain.size)
        seen = [bits(randomizer.report(kept)) for _ in range(reports)]
        return np.asarray(np.sum(seen, axis=0, dtype=np.int64))

    return Example(
        name, randomizer, left, right, encode=encode, claim=randomizer.loss_of(reports), tight=0.75
    )


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("RAPPOR: one-time", Rappor(2, 4), 0, 3),
        _example("RAPPOR: a single report", Rappor(3, 4, one="3/4", zero="1/2"), 1, 2),
        _example("RAPPOR: a single clear report", Rappor(2, 4, one="0.9", zero="0.05"), 1, 0),
        _repeated("RAPPOR: five reports", Rappor(2, 4, one="3/4", zero="1/4"), 0, 1, 5),
    )
