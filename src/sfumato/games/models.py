"""Private choice of a model and of hyper-parameters, at the price that the choice really has.

| what was done | what it costs |
| --- | --- |
| trained models, one chosen on a holdout | `ModelSelection`: training and choice, added or in parallel |
| one private training run again and again, the best kept | `RandomStopping`: at most 3ε, however many runs |
| the best of K runs, K fixed and known | K·ε: *not* the price of the one that is shown |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue, UnsupportedLoss
from sfumato.games.examples import Example
from sfumato.loss import NO_LOSS, Adjacency, ParallelLoss, PrivacyLoss, PureLoss, RenyiLoss, compose
from sfumato.loss.composed import common_adjacency
from sfumato.loss.parallel import parallel
from sfumato.mechanisms.base import Side
from sfumato.mechanisms.exponential import Exponential
from sfumato.numeric.exact import Rational, positive, probability
from sfumato.numeric.private_values import MASKED, Column, column_of, same

__all__ = ["Holdout", "ModelSelection", "RandomStopping", "examples"]

Holdout: TypeAlias = Literal["apart", "same"]
_T = TypeVar("_T")

# Where the Rényi curve of a repeated run is written down: between these orders chords are drawn.
_ORDERS = tuple(Fraction(x) for x in ("1.25", "1.5", "2", "2.5", "3", "4", "5", "6", "8", "10", "12", "16"))
_ORDERS += tuple(Fraction(x) for x in (20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 4096))
_SHAPE = "Predictions must have a row for each model and an answer for each label."
# Float formulas below are good to about 1e-14; a price is rounded up by more.
_UP = 1 + 1e-12


@dataclass(frozen=True, slots=True, init=False)
class ModelSelection:
    """Chooses one of several trained models by how often each is right on a holdout.

    Attributes:
        epsilon: The pure price of the choice alone.
        names: What the candidates are called.
        training: What the training of each cost: `NO_LOSS` for a public model or one trained on other
            people's data.
        holdout: "apart" if nobody is both in the training part and in the holdout, "same" if they may be.
        adjacency: "add-remove" or "exchange".

    Privacy:
        Claim: releasing *all* the models' training and the choice costs `loss`. The score is the number of
        right answers on the holdout: a person who comes raises each score by 0 or 1, an exchanged one moves
        each by at most 1 either way; the choice is the exponential mechanism with that sensitivity. Training
        losses add up, since every candidate saw the training part, also those that lose. If the parts are
        disjoint, whoever is in one is not in the other: parallel composition, the larger of the two under
        add/remove and both together under exchange, where a person may move from one part to the other
        (`ParallelLoss`); a training loss must then hold for a person who comes or goes too, not only for one
        who is replaced. Conditions: one holdout example a person; what a model says about a row depends on
        that row alone. "apart" also needs a split that was fixed beforehand or follows from each person's
        own id or coin: "the first 80 % of the rows" is not one, since a person who leaves moves the border.
    """

    epsilon: Fraction
    names: tuple[str, ...]
    training: tuple[PrivacyLoss, ...]
    holdout: Holdout
    adjacency: Adjacency

    def __init__(
        self,
        epsilon: Rational,
        candidates: Mapping[str, PrivacyLoss] | Sequence[PrivacyLoss],
        *,
        holdout: Holdout,
        adjacency: Adjacency = "add-remove",
    ) -> None:
        """Fix the candidates with what they cost, and the price of the choice.

        Raises:
            InvalidParameter: for no candidates, or an unknown holdout or adjacency.
            UnsupportedLoss: for a training loss that holds for other neighbours.
        """
        named = isinstance(candidates, Mapping)
        if not isinstance(candidates, Mapping | Sequence):
            raise InvalidParameter("candidates must be a list of training losses, or a mapping with names.")
        names = tuple(candidates) if named else tuple(f"model {i}" for i in range(len(candidates)))
        training = tuple(candidates.values() if isinstance(candidates, Mapping) else candidates)
        if not training:
            raise InvalidParameter("There is no model to choose from: give at least one candidate.")
        if not all(isinstance(loss, PrivacyLoss) for loss in training):
            raise InvalidParameter(
                "Each candidate needs the loss of its training: sf.loss.NO_LOSS for a public model."
            )
        if holdout not in get_args(Holdout):
            raise InvalidParameter('holdout must be "apart" (nobody is in both parts) or "same".')
        if adjacency not in get_args(Adjacency):
            raise InvalidParameter('adjacency must be "add-remove" or "exchange".')
        if common_adjacency(training) not in (None, adjacency):
            raise UnsupportedLoss(f"A training loss does not hold for {adjacency} neighbours: restate it.")
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "training", training)
        object.__setattr__(self, "holdout", holdout)
        object.__setattr__(self, "adjacency", adjacency)

    @property
    def mechanism(self) -> Exponential:
        """The choice itself, on whole numbers of right answers."""
        return Exponential(self.epsilon, 1, monotone=self.adjacency == "add-remove")

    @property
    def loss(self) -> PrivacyLoss:
        """What training every candidate and choosing one cost together."""
        trained = compose(self.training)
        if self.holdout == "same":
            return compose([trained, self.mechanism.loss]).under(self.adjacency)
        return parallel([trained, self.mechanism.loss], self.adjacency)

    def correct(self, predictions: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
        """How often each model is right: *not* private.

        Args:
            predictions: a row for each model, with an answer for each holdout example; of any type, each
                compared by itself. What is missing, or cannot be compared, is not right.
            labels: the right answers.

        Raises:
            InvalidValue: if the numbers of rows and answers do not fit.
        """
        truth = column_of(labels, _SHAPE)
        rows = [column_of(row, _SHAPE) for row in _models(predictions)]
        if len(rows) != len(self.names) or any(len(row) != len(truth) for row in rows):
            raise InvalidValue(_SHAPE)
        return np.array([_right(row, truth) for row in rows], np.int64)

    def select(self, predictions: ArrayLike, labels: ArrayLike) -> int:
        """The place of the chosen model; those that are right more often are exponentially more likely."""
        return self.mechanism.select(self.correct(predictions, labels))

    def guarantee(self, confidence: Rational) -> int:
        """How many fewer right answers than the best the chosen model has at most."""
        return math.floor(self.mechanism.error(confidence, candidates=len(self.names)))


@dataclass(frozen=True, slots=True, init=False)
class RandomStopping:
    """Runs a private algorithm a random number of times and keeps the best run: hyper-parameters for 3ε.

    After each run a coin with heads `gamma` decides whether to stop, so there are 1/gamma runs on average.
    Each run draws its hyper-parameters from a public law, trains, and scores itself; the *score is part of
    what that run's price pays for* (choose on a noisy score, or on an already private one).

    Attributes:
        base: What one run costs, its score included.
        gamma: The probability of stopping after each run.
        loss: What the best of them costs, however many there were: pure where the base is, else a Rényi curve
            (of a pure base that is better known by its ρ, pass `ConcentratedLoss(loss.rho)`).

    Privacy:
        Claim: the best run of a geometric number K costs, with base ε, ε + 2·ln((e^ε + γ)/(1 + γe^ε)) in pure
        privacy, which is below 3ε and cannot be improved; with a Rényi base, at each order λ, for any order
        μ: D_λ + 2(1 − 1/μ)·D_μ + 2·ln(1/γ)/μ + ln(1/γ)/(λ − 1). Sources: Liu, Talwar 2019 (3ε);
        Papernot, Steinke 2022, Thm. 2 with η = 1 (Rényi). For the pure figure: with f(q) = γq/(1 − (1−γ)q),
        P(best = y) = f(Q(≤y)) − f(Q(<y)) is Q(y) times an average of f′(q) = γ/(1 − (1−γ)q)² over
        q in Q(<y)…Q(≤y). The first factor moves by e^ε at most. At equal shares of the interval, f′ moves by
        the square of (γ + (1−γ)p′)/(γ + (1−γ)p), where p, p′ are the two probabilities of one event:
        p′ ≤ min(e^ε p, 1 − e^−ε(1−p)), and the quotient is largest where both are equal, p = 1/(1 + e^ε).
        Conditions: K is never shown, so neither the number of runs nor their duration may be (given that
        there were k runs, the price is kε); no run is skipped, no cap is put on K, and the data stays the
        same throughout.
    """

    base: PrivacyLoss
    gamma: Fraction
    loss: PrivacyLoss

    def __init__(self, base: PrivacyLoss | Rational, gamma: Rational) -> None:
        """Fix the price of a run and the chance to stop.

        Args:
            base: the loss of one run, or its pure ε.
            gamma: the probability of stopping after each run, between 0 and 1.

        Raises:
            UnsupportedLoss: for a base with a δ that no Rényi bound covers.
        """
        one = base if isinstance(base, PrivacyLoss) else PureLoss(positive(base, "base"))
        stop = probability(gamma, "gamma")
        object.__setattr__(self, "base", one)
        object.__setattr__(self, "gamma", stop)
        object.__setattr__(self, "loss", _repeated(one, stop))

    @property
    def expected_runs(self) -> float:
        """How many runs there are on average."""
        return float(1 / self.gamma)

    def select(self, run: Callable[[], tuple[float, _T]]) -> tuple[float, _T]:
        """The best of a hidden number of runs, as (score, result); of equal scores the first.

        Args:
            run: one private run, hyper-parameters drawn again: gives (score, result), a higher score is
                better. It must not fail: an error tells how far the runs came. A NaN counts as the lowest.
        """
        if not callable(run):
            raise InvalidParameter("run must be a function that trains once and gives (score, result).")
        best = run()
        top = _level(best)
        while not random.bernoulli(self.gamma):
            scored = run()
            if (level := _level(scored)) > top:
                best, top = scored, level
        return best

    def probabilities(self, law: Sequence[float]) -> list[float]:
        """The law of the best run from that of one run: no run is made, so nothing is private.

        Args:
            law: the probability of each result of one run, the worst score first.
        """
        stay, below = 1 - float(self.gamma), [0.0, *accumulate(law)]
        # f(b) − f(a) without cancellation.
        return [
            float(self.gamma) * share / ((1 - stay * a) * (1 - stay * b))
            for share, a, b in zip(law, below, below[1:], strict=False)
        ]

    def reached(self, confidence: Rational) -> float:
        """A share of single runs such that the best is among the top `share` of them with `confidence`.

        A level that one run stays below with probability q is missed by all K with probability
        γq/(1 − (1−γ)q).
        """
        beta = 1 - probability(confidence, "confidence")
        return min(1.0, float(1 - beta / (self.gamma + (1 - self.gamma) * beta)) * _UP)


def _models(predictions: Any) -> Any:
    """The rows of predictions, one for each model."""
    if isinstance(predictions, np.ma.MaskedArray):
        raise InvalidValue(MASKED)
    if isinstance(predictions, list | tuple | np.ndarray) and not (
        isinstance(predictions, np.ndarray) and predictions.ndim != 2
    ):
        return predictions
    if hasattr(predictions, "__array__") and getattr(predictions, "ndim", 2) == 2:
        return np.asarray(predictions, dtype=object)
    raise InvalidValue(_SHAPE)


def _right(answers: Column, truth: Column) -> int:
    """How many answers equal the label beside them, each pair compared by itself.

    Among numbers a single text would turn all of them into text, and every answer wrong: one person would
    move the scores by far more than 1. What is missing, or cannot be compared, is not right.
    """
    said, meant = answers.data, truth.data
    numbers = answers.kind in "biuf" and truth.kind in "biuf"
    if (
        isinstance(said, np.ndarray)
        and isinstance(meant, np.ndarray)
        and (numbers or said.dtype == meant.dtype)
    ):
        return int(np.count_nonzero(said == meant))
    return sum(map(same, said, meant))


def _level(scored: tuple[float, Any]) -> float:
    """The score of a run in a total order: NaN is the lowest."""
    try:
        score, _ = scored
        return -math.inf if math.isnan(score) else score
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("run must give a pair (score, result) with a number as its score.") from None


def _repeated(base: PrivacyLoss, gamma: Fraction) -> PrivacyLoss:
    """What the best of a geometric number of runs costs; see `RandomStopping`."""
    if (adjacency := base.adjacency) is not None:
        # A single part in parallel with nothing: the same curve, which keeps saying whom it holds for.
        return ParallelLoss([_amplified(base, gamma)], adjacency)
    return _amplified(base, gamma)


def _amplified(base: PrivacyLoss, gamma: Fraction) -> PrivacyLoss:
    stop = float(gamma)
    if (epsilon := base.pure) is not None:
        if epsilon == 0:
            return NO_LOSS
        small = math.exp(-float(epsilon))
        more = 2 * math.log1p((1 - stop) * -math.expm1(-float(epsilon)) / (small + stop))
        return PureLoss(min(3 * epsilon, epsilon + Fraction(more * _UP)))
    known = [(order, value) for order in _ORDERS if (value := base.rdp(order)) < math.inf]
    if base.failure or not known:
        raise UnsupportedLoss(
            f"{type(base).__name__} has no Rényi bound, and repeated runs amplify a δ: train with a pure "
            "or concentrated loss (Laplace, Gaussian noise) instead."
        )
    ways = -math.log(stop)
    pulled = min(2 * (1 - 1 / float(m)) * value + 2 * ways / float(m) for m, value in known)
    bounds = [(value + pulled + ways / (float(order) - 1)) * _UP for order, value in known]
    # A divergence never decreases with its order, so a later bound holds for earlier orders too.
    lowest = list(accumulate(reversed(bounds), min))[::-1]
    return RenyiLoss([order for order, _ in known], [Fraction(value) for value in lowest])


def _selection_example() -> Example:
    """Two public models and one person whose answer speaks for the one and against the other."""
    selection = ModelSelection(2, [NO_LOSS, NO_LOSS], holdout="same", adjacency="exchange")
    answers = np.array([[1, 1, 1], [0, 0, 0]])
    scores = {
        "left": selection.correct(answers, [0, 0, 1]),
        "right": selection.correct(answers, [0, 0, 0]),
    }

    def draw(side: Side, count: int) -> NDArray[np.int64]:
        return np.array([selection.mechanism.select(scores[side]) for _ in range(count)])

    def pmf(side: Side) -> dict[int, float]:
        return dict(enumerate(selection.mechanism.probabilities(scores[side]).tolist()))

    return Example("models: chosen on a holdout, exchange", selection.loss, draw, pmf)


def _stopping_example() -> Example:
    """Three results in sixtieths; one run favours the lower two on the left, the top one on the right, by 3.

    The middle one, just below where the two laws part, is where the repeated run comes close to its price.
    """
    stopping = RandomStopping("1.0987", "0.1")  # a little above ln 3
    shares: dict[str, tuple[int, ...]] = {"left": (39, 6, 15), "right": (13, 2, 45)}

    def draw(side: Side, count: int) -> NDArray[Any]:
        ends = list(accumulate(shares[side]))

        def run() -> tuple[float, int]:
            drawn = random.integers(60)
            place = sum(drawn >= end for end in ends)
            return float(place), place

        return np.array([stopping.select(run)[1] for _ in range(count)])

    def pmf(side: Side) -> dict[int, float]:
        return dict(enumerate(stopping.probabilities([share / 60 for share in shares[side]])))

    return Example("models: best of a random number of runs", stopping.loss, draw, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (_selection_example(), _stopping_example())
