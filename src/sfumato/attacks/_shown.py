"""The epsilon that right guesses prove: what every attack on a model has to say about its training."""

from __future__ import annotations

import math

from sfumato.numeric.shares import clopper_pearson

__all__ = ["SURE", "epsilon_shown"]

SURE = 0.99
"""The confidence of the bound."""


def epsilon_shown(hits: int, trials: int, guess: float) -> float:
    """A lower bound on epsilon, under exchange, from so many hits where a guess has this probability.

    Privacy:
        Claim: where each trial's secret was drawn uniformly and apart from the others, and what was released
        is epsilon-private under exchange of one secret, no smaller epsilon than this would have given so
        many hits, but with probability 1 %. Proof: given the release and every other secret, the likelihoods
        of any two values of a secret differ by at most e^epsilon, so that the values named, a share g of
        all, hold the secret with probability at most g·e^epsilon / (1 − g + g·e^epsilon); one trial after
        the other, the hits are at most binomial with that (Steinke, Nasr, Jagielski 2023, for g = 1/2).
        A lower limit p on a binomial share (Clopper, Pearson 1934) gives epsilon ≥ logit p − logit g. A
        delta in the release takes at most 2·trials·delta off the confidence where g = 1/2; elsewhere read
        the figure as one for delta 0.
    """
    low = float(clopper_pearson(hits, trials, 1 - SURE)[0])
    if low <= guess:
        return 0.0
    return math.log(low / (1 - low)) - math.log(guess / (1 - guess))
