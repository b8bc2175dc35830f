"""What reports cost centrally once a shuffler has forgotten whose they are."""

from __future__ import annotations

from typing import Any

from sfumato import accounting
from sfumato.errors import UnsupportedLoss
from sfumato.local.base import Randomizer
from sfumato.local.means import DuchiMean
from sfumato.local.response import BinaryResponse, KaryResponse
from sfumato.numeric.exact import Rational

__all__ = ["shuffled"]


def shuffled(randomizer: Randomizer[Any], people: int, delta: Rational) -> float:
    """The central ε, at a given delta, of one report from each of so many people, after shuffling.

    Args:
        randomizer: What each of them runs, the same for all.
        people: How many of them surely run it. Whoever sends something else, or tells the analyst what they
            sent, hides nobody: state fewer, which is safe.
        delta: The small probability with which more may come out.

    Privacy:
        Claim: the multiset of reports is (ε, δ)-DP when one person's value is exchanged for another, with a
        public number of people; towards whoever sees reports with their senders (the shuffler, if it reads
        them) only the local guarantee holds. Source: `accounting.shuffled` (Feldman, McMillan, Talwar 2021,
        for every ε₀-DP randomizer), and `accounting.shuffled_response` where a report is one of two answers,
        turned round by a coin: binary and two-valued response, and Duchi's ends. There a report is with
        probability 2/(e^ε₀ + 1) a fair coin and otherwise the truth (of a random rounding, which is a mixture
        of the two truths, and the hockey-stick divergence is convex), as that function asks. Each person's
        reports count once: several of one person are one report with their losses added up.

    Raises:
        UnsupportedLoss: if the randomizer has no pure guarantee.
        InvalidParameter: for an epsilon above 50, more than 10**12 people, or an unusable delta.
    """
    local = randomizer.loss.pure
    if local is None:
        raise UnsupportedLoss("Amplification by shuffling is known for pure local guarantees alone.")
    amplify = accounting.shuffled_response if _two_answers(randomizer) else accounting.shuffled
    return amplify(local, people, delta)


def _two_answers(randomizer: Randomizer[Any]) -> bool:
    """Whether a report is one of two, told truthfully or turned round by one coin."""
    if isinstance(randomizer, KaryResponse):
        return randomizer.domain.size == 2
    return isinstance(randomizer, BinaryResponse | DuchiMean)
