"""What a price means: the attacker's best at it, how often it fits, and where published deployments stand."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from markupsafe import Markup

from sfumato._dataclasses import dataclass
from sfumato.explain import Comparison, compare
from sfumato.explain.attacker import ceilings
from sfumato.explain.figures import percent_up
from sfumato.explain.words import sentences
from sfumato.loss import (
    Adjacency,
    ApproximateLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    PureLoss,
)
from sfumato.schema import PrivacyUnit
from sfumato.server.page.drawing import Frame, Scale
from sfumato.server.page.feel.mock import SIZE

__all__ = ["HIGHEST", "LOWEST", "Attack", "attack", "marks", "stands"]

LOWEST, HIGHEST = 0.01, 10**1.5
"""The ends of the slider."""
_QUICK = (PureLoss, LaplaceLoss, DiscreteLaplaceLoss, GaussianLoss, DiscreteGaussianLoss)
_RATES = np.concatenate([np.linspace(0, 0.1, 11), np.linspace(0.15, 1, 18)])


@dataclass(frozen=True, slots=True)
class Attack:
    """What an attacker can do who knows everything but whether one unit is in the data.

    Attributes:
        words: Sentence by sentence: a belief, the verdict, what is found, for whom.
        rows: False alarms and the most that is found, in percent.
        picture: The same as a curve above the line of guessing.
        of_price: Whether it is what the price alone allows: the question's own noise tells a little less.
    """

    words: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]
    picture: Markup
    of_price: bool


def attack(loss: PrivacyLoss, unit: PrivacyUnit) -> Attack:
    """The attacker's best against a loss.

    Privacy:
        Claim: every figure is a ceiling. The curve of several noises together is slow to compute, so that
        for those the (ε, δ) that they were calibrated to takes its place, which is never below it.
    """
    point = loss.approximate
    of_price = not isinstance(loss, _QUICK) and point is not None
    if of_price and point is not None:
        loss = ApproximateLoss(*point) if point[1] else PureLoss(point[0])
    return _attack(loss, "row" if unit.is_row else "person", unit.adjacency, of_price)


@lru_cache(maxsize=1_024)
def _attack(loss: PrivacyLoss, word: str, adjacency: Adjacency, of_price: bool) -> Attack:
    best = [float(hits) for hits in ceilings(loss, _RATES, rounds=5)]
    curve = [(100 * rate, 100 * hits) for rate, hits in zip(_RATES.tolist(), best, strict=True)]
    picture = Frame(
        "How many an attacker finds at most, for each share of false alarms; guessing finds as many as it "
        "wrongly accuses",
        (0, 100),
        (0, 100),
        across="false alarms, %",
        upwards="found at most, %",
        size=SIZE,
    )
    guess = [(0.0, 0.0), (100.0, 100.0)]
    picture.axes().band(guess, curve).line(guess, "guide").line(curve)
    at = {round(rate, 4): hits for rate, hits in zip(_RATES.tolist(), best, strict=True)}
    rows = tuple((f"{100 * rate:.0f} %", percent_up(at[rate])) for rate in (0.01, 0.05, 0.1, 0.5))
    said = sentences(loss, unit=word, adjacency=adjacency)
    return Attack(said, rows, picture.drawn(), of_price)


def stands(epsilon: Fraction, delta: Fraction, unit: PrivacyUnit) -> Comparison:
    """Where a price stands among published deployments of the same kind of unit."""
    kind = "record" if unit.is_row else "person" if unit.window is None else "person and period"
    return compare(epsilon, delta, kind)


def marks(standing: Comparison) -> Markup:
    """The published epsilons along the slider: a picture of its width, without words of its own."""
    place = Scale(LOWEST, HIGHEST, 8, 992, logarithmic=True)
    parts = ['<svg class="marks" viewBox="0 0 1000 14" preserveAspectRatio="none" aria-hidden="true">']
    stated = [one.epsilon for one in standing.near if one.epsilon is not None]
    parts += [f'<path class="mark" d="M{place(e)} 0V14"/>' for e in stated if LOWEST <= e <= HIGHEST]
    return Markup("".join((*parts, "</svg>")))
