"""A privacy loss in plain words, its figures rounded so that the words stay true."""

from __future__ import annotations

import math
import textwrap
from fractions import Fraction

import numpy as np

from sfumato.explain.attacker import Posterior, ceilings, posterior, quick_advantage
from sfumato.explain.figures import given, percent_down, percent_up
from sfumato.loss import Adjacency, PrivacyLoss
from sfumato.numeric.exact import Rational, decimal_up

__all__ = ["NOT_PROMISED", "percent_down", "percent_up", "sentences", "words"]

NOT_PROMISED = (
    "What it does not promise: it hides who is in the data, not what is true of everybody (a study that "
    "finds that smoking causes cancer tells an insurer about every smoker, also about those who never took "
    "part), and it guards the answers, not the table, the machine or the keys: privacy is not security."
)
"""One sentence on the limits of the promise."""

_COLUMNS = 80
_ALARMS = 0.01
_USUAL = "1e-3"


# What the attacker wants to know, per kind of neighbours: the secret, a belief about it, the verdict to give,
# and what is found.
_SECRETS: dict[Adjacency, tuple[str, str, str, str]] = {
    "add-remove": (
        "whether one {unit} is in the data",
        "that it is",
        "Having to say “in” or “out”",
        "of those that are in",
    ),
    "exchange": (
        "which of two contents one {unit} has in the data",
        "in one of them",
        "Having to name one",
        "of the cases in which it is the one suspected",
    ),
}


def words(
    loss: PrivacyLoss,
    *,
    unit: str = "person",
    delta: Rational | None = None,
    adjacency: Adjacency | None = None,
) -> str:
    """A paragraph of at most 80 columns that says what an attacker can learn about one unit.

    Args:
        loss: the loss of all that the attacker sees.
        unit: what is protected, in one word or a few: "person", "row", "visit".
        delta: the probability that is set aside where the loss has no pure ε and some noise may tell all; by
            default a thousand times the δ that it was calibrated to, since (ε, δ) alone bounds beliefs only
            with room to spare, or 1e-3.
        adjacency: which inputs are neighbours, where the loss does not say so itself; "add-remove" if neither
            does.
    """
    if loss.pure == 0:
        return _fill(sentences(loss, unit=unit)[0])
    said = sentences(loss, unit=unit, delta=delta, adjacency=adjacency)
    return _fill(" ".join((*said, NOT_PROMISED)))


def sentences(
    loss: PrivacyLoss,
    *,
    unit: str = "person",
    delta: Rational | None = None,
    adjacency: Adjacency | None = None,
) -> tuple[str, ...]:
    """What `words` says of the attacker, sentence by sentence: belief, verdict, finds, for whom this holds.

    Where nothing depends on the data there is one sentence.
    """
    if loss.pure == 0:
        return (f"Nothing about any {unit} can be learned from this: it does not depend on the data.",)
    secret, belief, verdict, whom = _SECRETS[loss.adjacency or adjacency or "add-remove"]
    even = posterior(loss, "1/2", failure=_aside(loss, delta))
    right = min(1.0, math.nextafter((1 + quick_advantage(loss)) / 2, 2.0))
    (hits,) = ceilings(loss, np.array([_ALARMS]), rounds=5)
    return (
        f"Suppose that an attacker knows everything but {secret.format(unit=unit)}. "
        f"{_belief(even, belief, loss)}",
        f"{verdict}, they are right at most {percent_up(right)} of the time, where a coin is right 50 %.",
        f"Allowed one false alarm in 100, they find at most {percent_up(float(hits))} {whom}.",
        f"These are ceilings, for the cleverest attacker and the most exposed {unit}.",
    )


def _belief(even: Posterior, belief: str, loss: PrivacyLoss) -> str:
    if even.largest == 1:
        return "No limit can be given to what they come to believe: they may become certain."
    besides = (
        f"except with a probability of at most {given(even.failure)}, when anything may be learned"
        f"{_why(even.failure, loss)}"
        if even.failure
        else "whatever is released"
    )
    return (
        f"A belief of 50 % {belief} can rise to at most {percent_up(even.largest)}, or fall to at least "
        f"{percent_down(even.smallest)}, {besides}."
    )


def _why(failure: float, loss: PrivacyLoss) -> str:
    """Why this probability is set aside, where it is not the delta that the reader knows."""
    point = loss.approximate
    if point is None or not point[1] or Fraction(repr(failure)) <= point[1]:
        return ""
    times = Fraction(repr(failure)) / point[1]
    often = f"{given(float(times))} times" if times.denominator == 1 else "more than"
    own = given(decimal_up(point[1]))
    return f" ({often} the delta of {own}, because delta alone sets no limit to beliefs)"


def _aside(loss: PrivacyLoss, delta: Rational | None) -> Rational:
    if delta is not None:
        return delta
    if loss.pure is not None:
        return 0
    point = loss.approximate
    return _USUAL if point is None or not point[1] else min(1000 * point[1], Fraction(1, 10))


def _fill(text: str) -> str:
    # A space that belongs to a number or its sign must not break.
    kept = text.replace(" %", "\u00a0%")
    return textwrap.fill(kept, _COLUMNS, break_long_words=False).replace("\u00a0", " ")
