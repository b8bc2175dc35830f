"""From counts to a lower bound on epsilon that holds at a stated confidence."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_integer, delta_of, probability
from sfumato.numeric.shares import clopper_pearson, share_above, share_below

__all__ = [
    "Bound",
    "Direction",
    "asked_at",
    "below",
    "clopper_pearson",
    "epsilon_floor",
    "familywise",
    "resolution",
]

Direction: TypeAlias = Literal["left over right", "right over left"]


def asked_at(delta: Rational, confidence: Rational) -> tuple[float, float]:
    """Delta and confidence as floats, to be checked before anything is drawn, trained or read.

    Raises:
        InvalidParameter: unless 0 <= delta < 1 and 0 < confidence < 1.
    """
    return float(delta_of(delta)), float(probability(confidence, "confidence"))


def below(value: float, limit: float = 1.0) -> str:
    """A number below a limit in six digits, or as many more as it takes not to be rounded up to the limit.

    A confidence of 0.9999999 must not be told as 1.
    """
    shown = (f"{value:.{digits}g}" for digits in range(6, 18))
    return next((text for text in shown if float(text) < limit), f"{value!r}")


def epsilon_floor(
    over: ArrayLike,
    trials_over: int,
    under: ArrayLike,
    trials_under: int,
    *,
    delta: float | Sequence[float],
    alpha: float,
) -> NDArray[Any]:
    """The epsilon that counts of one event prove at confidence 1 - alpha, at least 0; vectorised over events.

    A list of deltas gives one row for each of them.

    Privacy:
        (epsilon, delta)-privacy means P(E) <= e^epsilon Q(E) + delta for every event E, so that any fixed
        event proves epsilon >= ln((P(E) - delta) / Q(E)). A lower limit on P(E) and an upper limit on Q(E),
        each at alpha/2, hold together with probability at least 1 - alpha (union bound).
    """
    low = share_above(over, trials_over, alpha / 2)
    high = share_below(under, trials_under, alpha / 2)
    deltas = np.asarray(delta, dtype=float)
    rows = deltas[:, np.newaxis] if deltas.ndim else deltas
    return np.asarray(np.log(np.maximum(np.maximum(low - rows, 0.0) / high, 1.0)))


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the epsilon of whatever produced two sets of samples.

    Attributes:
        epsilon: no (epsilon', delta)-private mechanism with epsilon' below this would have given these
            counts, but with probability at most 1 - confidence.
        delta: the delta it was asked for.
        confidence: the probability, before the samples were drawn, that the bound is true.
        event: what was counted, in words.
        direction: which of the two inputs makes the event more likely.
        inside: how many held-out samples of the likelier input lie in the event.
        trials: out of how many.
        inside_other: how many held-out samples of the other input lie in the event.
        trials_other: out of how many.
    """

    epsilon: float
    delta: float
    confidence: float
    event: str
    direction: Direction
    inside: int
    trials: int
    inside_other: int
    trials_other: int

    @classmethod
    def of_counts(
        cls,
        over: tuple[int, int],
        under: tuple[int, int],
        *,
        delta: float,
        confidence: float,
        event: str,
        direction: Direction,
    ) -> Bound:
        """The bound from (inside, trials) of an event that was fixed before these samples were looked at."""
        floor = epsilon_floor(*over, *under, delta=delta, alpha=1 - confidence)
        return cls(float(floor), delta, confidence, event, direction, *over, *under)

    def refutes(self, claim: float) -> bool:
        """Whether a claimed epsilon is proven false at this confidence."""
        return self.epsilon > claim

    def __str__(self) -> str:
        return textwrap.fill(
            f"epsilon >= {self.epsilon:.4g} at delta = {self.delta:g} "
            f"with confidence {below(self.confidence)}: "
            f"{self.event} ({self.direction}: {self.inside} of {self.trials} "
            f"against {self.inside_other} of {self.trials_other})",
            80,
        )


def familywise(confidence: float, tests: int) -> float:
    """The confidence each of several bounds needs for all of them to hold together at `confidence`.

    Bonferroni: right whatever the dependence between the tests.
    """
    return 1 - (1 - float(probability(confidence, "confidence"))) / as_integer(tests, "tests")


def resolution(epsilon: float, samples: int, *, delta: float = 0.0, confidence: float = 0.999) -> float:
    """What the auditor typically proves about the tightest mechanism of that epsilon: how far below it stays.

    The expected counts of randomized response (the worst pure mechanism) put through the auditor's own
    arithmetic. Claims below this figure are typically refuted with so many samples a side, claims between
    it and `epsilon` are not.
    """
    if not epsilon > 0 or samples < 10:
        raise InvalidParameter("The resolution needs a positive epsilon and at least 10 samples a side.")
    held_out = samples * 3 // 5
    truth = 1 / (1 + math.exp(-epsilon))
    over, under = truth * (1 - delta) + delta, (1 - truth) * (1 - delta)
    floor = epsilon_floor(
        held_out * over, held_out, held_out * under, held_out, delta=delta, alpha=1 - confidence
    )
    return float(floor)
