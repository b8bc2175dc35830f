"""Randomized response: the value itself with a known probability, otherwise another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local.base import register
from sfumato.local.coins import Coins, Odds, nearest
from sfumato.local.domain import Domain
from sfumato.local.examples import Example
from sfumato.local.support import SupportRandomizer, price
from sfumato.loss import ResponseLoss
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_fraction, probability
from sfumato.numeric.figures import PRECISION, ball, upper
from sfumato.numeric.frozen import freeze, shown

__all__ = ["BinaryResponse", "KaryResponse", "examples"]

_BLOCK = 1 << 15  # people at a time, so that what is drawn for them stays in the cache


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class BinaryResponse(SupportRandomizer):
    """A yes or no that is flipped with probability 1/(e^ε + 1): one bit a report.

    Attributes:
        epsilon: The price of a report: as given, or ln(truth/(1 − truth)) rounded up by less than 2**-300.
        domain: The two values; truth values unless others are given.
        truth: The probability of the true answer, where that was given instead of epsilon.

    Privacy:
        Claim: one report is ε-DP between the two values, and `loss` is exactly that of the pair. Proof: each
        answer has probability p = e^ε/(e^ε + 1) under one value and 1 − p under the other; the coin is exact
        (`Coins`). Source: Warner 1965. The estimate of the share of the second value is
        (mean + p − 1)/(2p − 1): not that with p the probability of the untruth, as is sometimes printed.
    """

    wire: ClassVar[str] = "binary.1"
    epsilon: Fraction
    domain: Domain
    truth: Fraction | None
    p: float = field(compare=False)
    q: float = field(compare=False)
    gap: float = field(compare=False)
    _untrue: Coins = field(compare=False)

    def __init__(
        self,
        epsilon: Rational | None = None,
        domain: int | Sequence[Any] | Domain = (False, True),
        *,
        truth: Rational | None = None,
    ) -> None:
        """Fix the coin from the price, or from the probability of the true answer.

        Raises:
            InvalidParameter: unless one of them is given, or if there are not two values.
        """
        values = Domain(domain)
        if values.size != 2:
            raise InvalidParameter("A binary response is about two values; take KaryResponse for more.")
        if (epsilon is None) == (truth is None):
            raise InvalidParameter("Give epsilon, or the probability of the truth, and not both.")
        share = None
        if truth is not None:
            share = probability(truth, "truth")
            if share <= Fraction(1, 2):
                raise InvalidParameter("truth must exceed 1/2: below, an answer says what is not the case.")
            with ctx.workprec(PRECISION):
                exact = upper((ball(share) / (1 - ball(share))).log())
            figures = (float(share), float(1 - share), float(2 * share - 1))
            coins = Coins(1 - share)
        else:
            exact = price(0 if epsilon is None else epsilon)
            figures = _figures(exact, Odds(exact))
            coins = Coins(Odds(-exact))
        freeze(self, epsilon=exact, domain=values, truth=share, _untrue=coins)
        freeze(self, p=figures[0], q=figures[1], gap=figures[2])

    @classmethod
    def coins(cls) -> Self:
        """The classroom protocol: heads, the truth; tails, a second coin decides. p = 3/4, so ε = ln 3."""
        return cls(truth=Fraction(3, 4))

    def __repr__(self) -> str:
        given = self.epsilon if self.truth is None else None
        return shown("BinaryResponse", epsilon=given, domain=self.domain.to_json(), truth=self.truth)

    @property
    def loss(self) -> ResponseLoss:
        """What one report costs the one who gives it."""
        return ResponseLoss(self.epsilon, 2)

    @property
    def report_dtype(self) -> np.dtype[np.uint8]:
        """A byte: 0 for the first value, 1 for the second."""
        return np.dtype(np.uint8)

    def encode(self, values: Any) -> NDArray[np.uint8]:
        """One answer for each value.

        Raises:
            InvalidValue: for a value outside the domain; nothing was randomised then.
        """
        answers = self.domain.indices(values).astype(np.uint8)
        answers ^= self._untrue.toss(answers.size).view(np.uint8)
        return answers

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        if batch.size and batch.max() > 1:
            raise InvalidValue("A report of a binary response is 0 or 1.")

    def _supports(self, batch: NDArray[Any]) -> NDArray[np.int64]:
        ones = np.count_nonzero(batch)
        return np.array([batch.size - ones, ones], np.int64)

    def _parameters(self) -> dict[str, Any]:
        truth = {} if self.truth is None else {"truth": str(self.truth)}
        return {"domain": self.domain.to_json(), **truth}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote down.

        Raises:
            InvalidParameter: for anything else, such as an epsilon that is not that of the truth.
        """
        if "truth" not in data:
            return super().from_dict(data)
        if set(data) != {"kind", "epsilon", "domain", "truth"} or data["kind"] != cls.wire:
            raise InvalidParameter(f"The parameters of {cls.wire!r} are not complete or not known.")
        response = cls(domain=data["domain"], truth=data["truth"])
        if response.epsilon != as_fraction(data["epsilon"], "epsilon"):
            raise InvalidParameter("epsilon is not that of this probability of the truth.")
        return response


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class KaryResponse(SupportRandomizer):
    """Reports the value with probability e^ε/(e^ε + k − 1), else one of the k − 1 others at random.

    The best there is for few values or a large epsilon (k < 3e^ε + 2); for many values the others drown it.

    Attributes:
        epsilon: The price of a report.
        domain: The k values.

    Privacy:
        Claim: one report is ε-DP between any two values, and `loss` is exactly that of the pair. Proof: a
        report has probability p = e^ε/(e^ε + k − 1) if it is the value, else (1 − p)/(k − 1) = p·e^−ε; coin
        and choice are exact, and everybody draws an untruth whether it is used or not. Source: Kairouz, Oh,
        Viswanath 2016; Wang, Blocki, Li, Jha 2017 ("direct encoding").
    """

    wire: ClassVar[str] = "kary.1"
    epsilon: Fraction
    domain: Domain
    p: float = field(compare=False)
    q: float = field(compare=False)
    gap: float = field(compare=False)
    _true: Coins = field(compare=False)

    def __init__(self, epsilon: Rational, domain: int | Sequence[Any] | Domain) -> None:
        """Fix the coin from the price and the number of values.

        Raises:
            InvalidParameter: for an unusable epsilon or domain.
        """
        exact, values = price(epsilon), Domain(domain)
        odds = Odds(exact, Fraction(values.size - 1))
        freeze(self, epsilon=exact, domain=values, _true=Coins(odds))
        p, q, gap = _figures(exact, odds)
        freeze(self, p=p, q=q, gap=gap)

    def __repr__(self) -> str:
        return shown("KaryResponse", epsilon=self.epsilon, domain=self.domain.to_json())

    @property
    def loss(self) -> ResponseLoss:
        """What one report costs the one who gives it."""
        return ResponseLoss(self.epsilon, self.domain.size)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The narrowest unsigned type that holds a place in the domain."""
        return np.min_scalar_type(self.domain.size - 1)

    def encode(self, values: Any) -> NDArray[Any]:
        """The place of the value, or of another one, for each value.

        Raises:
            InvalidValue: for a value outside the domain; nothing was randomised then.
        """
        places, size = self.domain.indices(values), self.domain.size
        out = np.empty(places.size, self.report_dtype)
        for start in range(0, places.size, _BLOCK):
            block = places[start : start + _BLOCK]
            steps = random.integers(size - 1, block.size)
            steps += 1
            steps *= ~self._true.toss(block.size)
            steps += block
            steps -= size * (steps >= size)
            out[start : start + _BLOCK] = steps
        return out

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        if batch.size and int(batch.max()) >= self.domain.size:
            raise InvalidValue("A report is not a place in the domain.")

    def _supports(self, batch: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(batch, minlength=self.domain.size)


def _figures(epsilon: Fraction, odds: Odds) -> tuple[float, float, float]:
    """The floats p, q = p·e^−ε, and p − q = p(1 − e^−ε) without cancellation."""

    def times(factor: arb) -> arb:
        return odds() * factor

    return (
        nearest(odds),
        nearest(lambda: times((-ball(epsilon)).exp())),
        nearest(lambda: times(-(-ball(epsilon)).expm1())),
    )


def _example(name: str, randomizer: BinaryResponse | KaryResponse, left: Any, right: Any) -> Example:
    def pmf(side: Side) -> dict[int, float]:
        own = randomizer.domain.indices([left if side == "left" else right])[0]
        return {i: randomizer.p if i == own else randomizer.q for i in range(randomizer.domain.size)}

    return Example(name, randomizer, left, right, pmf=pmf, tight=0.9)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("binary response: coins", BinaryResponse.coins(), False, True),
        _example("binary response", BinaryResponse(2), True, False),
        _example("k-ary response: five values", KaryResponse("1.5", 5), 0, 4),
        _example("k-ary response: texts", KaryResponse(1, ["tea", "coffee", "water"]), "tea", "water"),
    )
