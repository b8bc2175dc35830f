"""Private PAC learning over a finite class, and how many examples it takes: with constants, not with O.

```python
learner = PrivateLearner(1, thresholds(range(100)))
rule = learner.hypotheses[learner.select(ages, bought)]
```
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games.examples import Example
from sfumato.games.hypotheses import (
    Hypothesis,
    HypothesisClass,
    Predictor,
    class_of,
    conjunctions,
    decision_stumps,
    labels_of,
    parities,
    thresholds,
)
from sfumato.loss import Adjacency, PrivacyLoss
from sfumato.mechanisms.base import Side
from sfumato.mechanisms.exponential import Exponential
from sfumato.numeric.exact import Rational, as_integer, positive, probability

__all__ = [
    "PrivateLearner",
    "conjunctions",
    "decision_stumps",
    "error_promised",
    "examples",
    "examples_needed",
    "parities",
    "thresholds",
]

# Float formulas are good to about 1e-13; what they promise is widened by more.
_WIDER = 1 + 1e-11
# Of how many parts each share of the failure probability is made when the best shares are searched.
_PARTS = 64
_MOST = 2**62


def _refuse_unknown(adjacency: Adjacency) -> None:
    if adjacency not in get_args(Adjacency):
        raise InvalidParameter('adjacency must be "add-remove" or "exchange".')


def _mechanism(epsilon: Rational, adjacency: Adjacency) -> Exponential:
    """The choice among scores that are counts of mistakes: the one place that says how they move."""
    _refuse_unknown(adjacency)
    return Exponential(epsilon, 1, monotone=adjacency == "add-remove")


@dataclass(frozen=True, slots=True, init=False, eq=False)
class PrivateLearner:
    """Chooses one rule of a finite public class, those with fewer mistakes exponentially more likely.

    Attributes:
        epsilon: The pure price of one choice.
        adjacency: "add-remove" (an example comes or goes; how many there are is private) or "exchange" (one
            example is replaced; how many there are is public).
        hypotheses: The class: `hypotheses[i]` is rule i, a callable on a batch of features.

    Privacy:
        Claim: `epsilon`-DP for neighbours of `adjacency`; each person gives one example (for k examples each
        use `loss.group(k)`). The score of a rule is minus the number of examples it gets wrong, a whole
        number. An example that comes lowers every score by 0 or 1 and raises none: sensitivity 1, monotone.
        An exchanged one may raise some scores by 1 and lower others by 1: sensitivity 1, *not* monotone,
        which takes half the rate for the same price. Sources: McSherry, Talwar 2007; Kasiviswanathan, Lee,
        Nissim, Raskhodnikova, Smith 2008 (their generic private learner is this choice).
        Each label and feature is read by itself. An example whose label is not 0 or 1, or that has a
        feature missing (NaN, None, text among numbers), counts for no rule. An answer of a rule that is
        not 0 or 1 is a mistake. Refusals are by the declared type and shape alone.
        Conditions: the class was fixed without the data (a list of rules made from the examples themselves
        gives them away, whatever noise the choice has); what a rule says about a row depends on that row
        alone, not on the others of its batch, and whether it raises on none: that is outside the claim.
    """

    epsilon: Fraction
    adjacency: Adjacency
    hypotheses: HypothesisClass
    _choice: Exponential = field(repr=False)

    def __init__(
        self,
        epsilon: Rational,
        hypotheses: HypothesisClass | Predictor | tuple[Hypothesis, ...] | list[Hypothesis],
        *,
        adjacency: Adjacency = "add-remove",
        columns: int | None = None,
    ) -> None:
        """Fix the class and the price.

        Args:
            epsilon: the price.
            hypotheses: a sequence of callables (features in, labels of 0 and 1 out), an object with a length
                and `predict(features)` → (hypotheses, rows), or a ready class: `thresholds`, `parities`,
                `conjunctions`, `decision_stumps`.
            adjacency: who is a neighbour.
            columns: for rules of one's own, how many numbers a row has where features come as a list of
                lists; None: each is one number. Arrays say so themselves, and keep their type; all
                other features reach the rules as float64.

        Raises:
            InvalidParameter: for an empty class, or an epsilon that is not positive.
        """
        choice = _mechanism(epsilon, adjacency)
        object.__setattr__(self, "epsilon", choice.epsilon)
        object.__setattr__(self, "adjacency", adjacency)
        width = None if columns is None else as_integer(columns, "columns")
        object.__setattr__(self, "hypotheses", class_of(hypotheses, width))
        object.__setattr__(self, "_choice", choice)

    @property
    def loss(self) -> PrivacyLoss:
        """What one choice costs, for neighbours of `adjacency`."""
        return self._choice.loss.under(self.adjacency)

    def errors(self, features: Any, labels: ArrayLike) -> NDArray[np.int64]:
        """How many examples each rule gets wrong: *not* private, for made-up or public examples.

        Raises:
            InvalidValue: for labels or features of another declared type or shape, or lengths that differ.
        """
        truth, known = labels_of(labels)
        if not hasattr(features, "__len__") or len(features) != len(truth):
            raise InvalidValue("Features and labels must have the same number of examples.")
        return self.hypotheses.mistakes(_kept(features, known), truth[known])

    def select(self, features: Any, labels: ArrayLike) -> int:
        """The place of the chosen rule: `learner.hypotheses[place]` is the rule itself.

        Raises:
            InvalidValue: for labels or features of another declared type or shape, or lengths that differ.
        """
        return self._choice.select(-self.errors(features, labels))

    def probabilities(self, features: Any, labels: ArrayLike) -> NDArray[np.float64]:
        """With what probability each rule is chosen: nothing is drawn, so nothing is private."""
        return self._choice.probabilities(-self.errors(features, labels))

    def guarantee(self, confidence: Rational) -> int:
        """How many more mistakes than the best rule of the class the chosen one makes at most.

        On the examples themselves, with probability `confidence`, whatever they are.
        """
        return math.floor(self._choice.error(confidence, candidates=len(self.hypotheses)))


def _kept(features: Any, known: NDArray[np.bool_]) -> Any:
    """The features of some examples, in a container whose type no example decides."""
    if isinstance(features, np.ndarray):
        return features[known]
    if hasattr(features, "iloc"):
        return features.iloc[np.flatnonzero(known)]
    if hasattr(features, "filter") and hasattr(features, "to_pandas"):  # Polars and Arrow
        return features.filter(known)
    return [row for row, keep in zip(features, known.tolist(), strict=True) if keep]


def error_promised(
    size: int,
    n: int,
    *,
    beta: Rational,
    epsilon: Rational | None,
    realizable: bool = False,
    adjacency: Adjacency = "add-remove",
) -> float:
    """How far above the best rule's true error the private choice lies at most, with probability 1 − beta.

    n examples are drawn independently from any law. Write g for the mistakes of `PrivateLearner.guarantee` at
    failure β₁. *Agnostic*: the excess is at most g/n + √(ln((m−1)/β₂)/2n) + √(ln(1/β₃)/2n): the choice
    against the best on the sample, every other rule better on the sample than in truth, the best rule worse
    (Hoeffding's inequality, one-sided, and a union bound). *Realizable* (some rule is never wrong): the best
    on the sample has no mistake, the choice has at most g, and a rule of true error above α has so few with
    probability at most exp(−n·KL(g/n ‖ α)) (Chernoff's bound); α is the one where m−1 such rules fail with
    β₂. The shares β₁ + β₂ + β₃ = β that promise most are searched; any of them are valid.

    Args:
        size: m, how many rules the class has.
        n: how many examples there are.
        beta: the probability with which it may fail.
        epsilon: the price; None for the learner that just takes the best on the sample, without privacy.
        realizable: whether some rule of the class is never wrong: a promise about the world.
        adjacency: as for `PrivateLearner`.

    Returns:
        At most 1. In the realizable case the excess is the error itself.
    """
    promise = _promise(*_checked(size, beta, epsilon, adjacency), bool(realizable), adjacency)
    return promise(as_integer(n, "n"))


def examples_needed(
    size: int,
    *,
    alpha: Rational,
    beta: Rational,
    epsilon: Rational | None,
    realizable: bool = False,
    adjacency: Adjacency = "add-remove",
) -> int:
    """The fewest examples for which an excess error of at most `alpha` is promised with probability 1 − beta.

    It is the inverse of `error_promised`, and grows like (ln m + ln 1/β)·(1/α² + 1/(εα)), and like
    (ln m + ln 1/β)·(1/α + 1/(εα)) in the realizable case: for α below ε privacy is nearly free in the
    agnostic one.

    This many *suffice*: an upper bound, O(…), on what is needed. Lecture notes often write "n = Ω(…) examples
    are enough"; read literally, Ω says that fewer are *not* enough, which no such argument shows. Here no
    letter is needed: the figure has its constants.

    Args:
        size: m, how many rules the class has; ln m is what counts, so an infinite class has no such figure.
        alpha: the excess error that is wanted.
        beta: the probability with which it may fail.
        epsilon: the price; None for no privacy.
        realizable: whether some rule of the class is never wrong.
        adjacency: as for `PrivateLearner`.
    """
    goal = float(probability(alpha, "alpha"))
    promise = _promise(*_checked(size, beta, epsilon, adjacency), bool(realizable), adjacency)
    high = 1
    while promise(high) > goal:
        high *= 2
        if high > _MOST:
            raise InvalidParameter("More than 2**62 examples would be needed: ask for less.")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if promise(middle) > goal else (low, middle)
    return high


def _checked(
    size: int, beta: Rational, epsilon: Rational | None, adjacency: Adjacency
) -> tuple[int, Fraction, Fraction | None]:
    _refuse_unknown(adjacency)
    price = None if epsilon is None else positive(epsilon, "epsilon")
    return as_integer(size, "size"), probability(beta, "beta"), price


@lru_cache(maxsize=128)
def _promise(
    size: int, beta: Fraction, epsilon: Fraction | None, realizable: bool, adjacency: Adjacency
) -> Callable[[int], float]:
    """The promise as a function of n, with everything that does not depend on n worked out once.

    For each fixed split of β it decreases in n, so the least over the splits does too.
    """
    if size == 1:
        return lambda _: 0.0
    if epsilon is None:
        gaps, rest = np.zeros(1), np.array([float(beta)])
    else:
        choice = _mechanism(epsilon, adjacency)
        shares = [beta * Fraction(part, _PARTS) for part in range(1, _PARTS)]
        gaps = np.array([math.floor(choice.error(1 - share, candidates=size)) for share in shares], float)
        rest = np.array([float(beta - share) for share in shares])
    if realizable:
        return _realizable(gaps, (math.log(size - 1) - np.log(rest)) * _WIDER)
    split = np.arange(1, _PARTS) / _PARTS
    union = np.sqrt((math.log(size - 1) - np.log(np.outer(rest, split))) / 2)
    spread = (union + np.sqrt(-np.log(np.outer(rest, 1 - split)) / 2)).min(axis=1)
    return lambda n: min(1.0, float(np.min(gaps / n + spread / math.sqrt(n))) * _WIDER)


def _realizable(gaps: NDArray[np.float64], wanted: NDArray[np.float64]) -> Callable[[int], float]:
    """The least α with n·KL(g/n ‖ α) ≥ wanted, by bisection, for the best split."""

    def promise(n: int) -> float:
        fits = gaps < n
        if not fits.any():
            return 1.0
        seen, goal = gaps[fits] / n, wanted[fits] / n
        low, high = seen, np.ones_like(seen)
        entropy = np.where(seen > 0, seen * np.log(np.where(seen > 0, seen, 1.0)), 0.0)
        entropy = entropy + (1 - seen) * np.log1p(-seen)
        for _ in range(60):
            middle = (low + high) / 2
            with np.errstate(divide="ignore"):
                apart = entropy - seen * np.log(middle) - (1 - seen) * np.log1p(-middle)
            enough = apart >= goal
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return min(1.0, float(high.min()) * _WIDER)

    return promise


def _example(
    name: str, learner: PrivateLearner, left: tuple[Any, list[int]], right: tuple[Any, list[int]]
) -> Example:
    """Scores are counted once; every draw is a choice among them."""
    scores = {"left": -learner.errors(*left), "right": -learner.errors(*right)}

    def draw(side: Side, count: int) -> NDArray[np.int64]:
        return np.array([learner._choice.select(scores[side]) for _ in range(count)])

    def pmf(side: Side) -> dict[int, float]:
        return dict(enumerate(learner._choice.probabilities(scores[side]).tolist()))

    return Example(name, learner.loss, draw, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        # Near the worst: the rule that the new example speaks against was rare before.
        _example(
            "pac: thresholds, one more example",
            PrivateLearner(2, thresholds([1.0])),
            ([1.0] * 3, [0, 1, 0]),
            ([1.0] * 4, [0, 1, 0, 0]),
        ),
        # The exchanged example turns from one rule's friend into its enemy: scores move both ways.
        _example(
            "pac: thresholds, exchange",
            PrivateLearner(2, thresholds([1.0]), adjacency="exchange"),
            ([1.0] * 3, [0, 0, 1]),
            ([1.0] * 3, [0, 0, 0]),
        ),
        _example(
            "pac: parities of two bits",
            PrivateLearner(2, parities(2), adjacency="exchange"),
            ([[1, 0], [0, 1], [1, 1]], [1, 0, 1]),
            ([[1, 0], [0, 1], [1, 1]], [1, 0, 0]),
        ),
    )
