"""Randomized response: each person answers for themselves, truthfully with a known probability."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from typing import Any, overload

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import ResponseLoss
from sfumato.mechanisms._coins import Coin
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import Rational, as_integer, positive, probability
from sfumato.numeric.figures import PRECISION, ball, up, upper
from sfumato.numeric.frozen import freeze, shown
from sfumato.numeric.private_values import Column, column_of

__all__ = ["RandomizedResponse", "examples"]

_OTHERS = "Categories must be indices from 0, or truth values if there are two: number them first."
_BEYOND = "Every category must be an index from 0 to categories - 1."
_REGULAR = "Categories must form a regular array."


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RandomizedResponse(Mechanism):
    """Reports a category truthfully with probability p, otherwise one of the others, all equally likely.

    Each element of an array is the answer of a different person, and each pays `loss` alone: this is the
    local model.

    Attributes:
        categories: How many there are; an answer is a truth value for two, or an index from 0.
        epsilon: The price: exact where it was given, else ln(p(k − 1)/(1 − p)) rounded up by less than
            2**-300.

    Privacy:
        Claim: between any two truths, one answer is ε-DP with e^ε = p(k − 1)/(1 − p); the loss is exactly
        that of the pair. Source: Warner 1965; Kairouz, Oh, Viswanath 2016 (k categories). Where ε is
        given, p = e^ε/(e^ε + k − 1) is irrational, and the coin is tossed exactly all the same (`Coin`).
    """

    categories: int
    epsilon: Fraction
    _truth: Fraction | None
    _coin: Coin | None = field(compare=False)
    _chance: float = field(compare=False)
    _gap: float = field(compare=False)
    _loss: ResponseLoss = field(compare=False)

    def __init__(
        self, epsilon: Rational | None = None, categories: int = 2, *, truth: Rational | None = None
    ) -> None:
        """Fix the coin from the price, or from the probability `truth` of reporting the true category.

        Raises:
            InvalidParameter: unless exactly one of them is given, or if the truth is not the likeliest
                answer.
        """
        count = as_integer(categories, "categories", least=2)
        if count > 2**62:
            raise InvalidParameter("categories must be at most 2**62.")
        if (epsilon is None) == (truth is None):
            raise InvalidParameter("Give epsilon, or the probability of the truth, and not both.")
        exact = coin = None
        with ctx.workprec(PRECISION):
            if epsilon is not None:
                price = positive(epsilon, "epsilon")
                if price > 700:
                    raise InvalidParameter(
                        "epsilon above 700 is as good as the truth itself: release that instead."
                    )
                coin = Coin(_Share(price, count))
                share = _Share(price, count)()
                chance, gap = float(share.mid()), float((share * -(-ball(price)).expm1()).mid())
            elif truth is not None:
                exact = probability(truth, "truth")
                if exact * count <= 1:
                    raise InvalidParameter(
                        f"truth must exceed 1/{count}: below, the answers say what is not the case."
                    )
                price = upper((ball(exact) * (count - 1) / (1 - ball(exact))).log())
                chance, gap = float(exact), float((count * exact - 1) / (count - 1))
        freeze(self, categories=count, epsilon=price, _truth=exact, _coin=coin, _chance=chance, _gap=gap)
        freeze(self, _loss=ResponseLoss(price, count))

    @classmethod
    def coins(cls) -> RandomizedResponse:
        """The classroom protocol: heads, the truth; tails, a second coin decides. p = 3/4, so ε = ln 3."""
        return cls(truth=Fraction(3, 4))

    def __repr__(self) -> str:
        given = self.epsilon if self._truth is None else None
        return shown("RandomizedResponse", epsilon=given, categories=self.categories, truth=self._truth)

    @property
    def loss(self) -> ResponseLoss:
        """What one answer costs the one who gives it."""
        return self._loss

    @property
    def truth(self) -> float:
        """The probability p of reporting the true category, the nearest float."""
        return self._chance

    @property
    def scale(self) -> float:
        """1/(p − q): how much one answer weighs in `estimate`; q is the probability of a given untruth."""
        return 1 / self._gap

    @property
    def variance(self) -> float | None:
        """The variance of `estimate` from one answer for two categories; for more it depends on the data."""
        if self.categories > 2:
            return None
        return self._chance * (1 - self._chance) / self._gap / self._gap  # infinite where floats end

    @property
    def bias(self) -> float:
        """Zero: `estimate` is unbiased. The raw answers are not."""
        return 0.0

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The half-width of `estimate` from `size` people's answers, for all categories at once, rounded up.

        A bound, since the exact law depends on the data: with probability `confidence` over the coins, no
        estimated share is further from the true share of these people. An indicator with mean p is
        sub-Gaussian with the variance proxy (1 − 2p)/(2·ln((1 − p)/p)) (Kearns, Saul 1998; below the 1/4 of
        Hoeffding), and the two tails of the categories share the failure (for two categories, the shares add
        up to 1 and are one event).
        """
        people = as_integer(size, "size")
        with ctx.workprec(PRECISION):
            fails = 1 - ball(probability(confidence, "confidence"))
            k = self.categories
            p = ball(self._truth) if self._truth is not None else _Share(self.epsilon, k)()
            q = (1 - p) / (k - 1)
            proxy = _proxy(p) if k == 2 else _proxy(p).max(_proxy(q))
            tails = 2 if k == 2 else 2 * k
            # p − q = p(1 − e^−ε), which loses nothing to cancellation.
            gap = p * -(-ball(self.epsilon)).expm1() if self._truth is None else p - q
            return up((2 * proxy * (tails / fails).log() / people).sqrt() / gap)

    @overload
    def release(self, value: bool | np.bool_) -> bool: ...
    @overload
    def release(self, value: int | np.integer[Any]) -> int: ...
    @overload
    def release(self, value: ArrayLike) -> NDArray[Any]: ...
    def release(self, value: Any) -> bool | int | NDArray[Any]:
        """One answer for each category given.

        A truth value for a truth value and an array of them for such an array; otherwise indices, as int64.
        A list declares no type: its answers are indices, also to truth values.

        Raises:
            InvalidValue: for anything but truth values (two categories) or indices from 0 to categories − 1;
                outside the claim, since whoever has no category has no answer to hide.
        """
        if isinstance(value, bool | np.bool_ | int | np.integer):
            answer = self._answers(np.array([self._index(value)]))[0]
            return bool(answer) if isinstance(value, bool | np.bool_) else int(answer)
        if isinstance(value, np.ma.MaskedArray):
            raise InvalidValue(
                "Masked arrays are refused: fill the masked entries with a public category first."
            )
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            answers = self._answers(self._declared(value.reshape(-1))).reshape(value.shape)
            return answers.astype(np.bool_) if value.dtype.kind == "b" else answers
        column, shape = _flattened(value)
        if isinstance(column.data, list) or column.kind not in "biu":
            indices = np.fromiter(map(self._index, column.data), np.int64, len(column))
        else:
            indices = self._declared(column.data)
        answers = self._answers(indices).reshape(shape)
        return answers.astype(np.bool_) if column.kind == "b" else answers

    def _index(self, category: Any) -> int:
        """One category as its index, whatever the others are."""
        truth = isinstance(category, bool | np.bool_)
        whole = isinstance(category, int | np.integer) and not isinstance(category, np.timedelta64)
        if not (self.categories == 2 if truth else whole):
            raise InvalidValue(_OTHERS)
        index = int(category)
        if not 0 <= index < self.categories:
            raise InvalidValue(_BEYOND)
        return index

    def _declared(self, flat: NDArray[Any]) -> NDArray[np.int64]:
        """The indices of an array of declared type."""
        if flat.dtype.kind not in "iu" and not (flat.dtype.kind == "b" and self.categories == 2):
            raise InvalidValue(_OTHERS)
        if flat.size and not (flat.min() >= 0 and flat.max() < self.categories):
            raise InvalidValue(_BEYOND)
        return flat.astype(np.int64)

    def _answers(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        if not indices.size:
            return indices
        # No branch on the coins: everybody draws an untruth, whether it is used or not.
        lies = 1 + random.integers(self.categories - 1, indices.size)
        lies *= ~self._heads(indices.size)
        # Both terms are below 2**62, so that the sum cannot wrap.
        indices += lies
        indices %= self.categories
        return indices

    def _heads(self, size: int) -> NDArray[np.bool_]:
        if self._coin is not None:
            return self._coin.toss(size)
        return random.bernoulli(Fraction(0) if self._truth is None else self._truth, size)

    @overload
    def estimate(self, answers: NDArray[np.bool_]) -> float: ...
    @overload
    def estimate(self, answers: ArrayLike) -> float | NDArray[np.float64]: ...
    def estimate(self, answers: Any) -> float | NDArray[np.float64]:
        """The unbiased estimate of the true shares from released answers (post-processing, free).

        For two categories the share of category 1, (mean + p − 1)/(2p − 1); for more, an array of all shares,
        (frequency − q)/(p − q). A share may come out below 0 or above 1: clipping it would bias it.
        """
        array = np.asarray(answers).reshape(-1)
        if not array.size or array.dtype.kind not in "biu":
            raise InvalidValue("An estimate needs at least one answer, each an index or a truth value.")
        if array.min() < 0 or array.max() >= self.categories:
            raise InvalidValue("Every answer must be an index from 0 to categories - 1.")
        p = self._chance
        if self.categories == 2:
            return (float(array.mean()) + p - 1) / self._gap  # p − q = 2p − 1, without its rounding
        if self.categories > 2**24:
            raise InvalidParameter(
                "Too many categories to list the share of each: count the answers you look for."
            )
        frequencies = np.bincount(array.astype(np.int64), minlength=self.categories) / array.size
        return (frequencies - (1 - p) / (self.categories - 1)) / self._gap


def _flattened(value: Any) -> tuple[Column, tuple[int, ...]]:
    """Categories of a list, a nested one or a column, side by side, and their shape."""
    nested = isinstance(value, list | tuple) and any(isinstance(entry, list | tuple) for entry in value)
    if not nested and not isinstance(value, np.ndarray):
        column = column_of(value, _REGULAR)
        return column, (len(column),)
    try:
        array = np.array(value, dtype=object)
    except ValueError:
        raise InvalidValue(_REGULAR) from None
    return Column("O", array.reshape(-1).tolist()), array.shape


@dataclass(frozen=True, slots=True)
class _Share:
    """e^ε/(e^ε + k − 1) as a ball at the current precision."""

    epsilon: Fraction
    categories: int

    def __call__(self) -> arb:
        return 1 / (1 + (self.categories - 1) * (-ball(self.epsilon)).exp())


def _proxy(mean: arb) -> arb:
    """The least variance proxy of an indicator with this mean; 1/4 where the formula divides 0 by 0."""
    if mean.overlaps(arb(1) / 2):
        return arb(1) / 4
    return (1 - 2 * mean) / (2 * ((1 - mean) / mean).log())


def _pmf(mechanism: RandomizedResponse, left: int, right: int) -> Any:
    def pmf(side: Side) -> dict[int, float]:
        truth, k = (left if side == "left" else right), mechanism.categories
        return {i: mechanism.truth if i == truth else (1 - mechanism.truth) / (k - 1) for i in range(k)}

    return pmf


def _example(name: str, mechanism: RandomizedResponse) -> Example:
    return Example.of_release(name, mechanism, 0, 1, additive=False, pmf=_pmf(mechanism, 0, 1))


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("randomized response: coins", RandomizedResponse.coins()),
        _example("randomized response: binary", RandomizedResponse(1)),
        _example("randomized response: five categories", RandomizedResponse("1.5", 5)),
    )
