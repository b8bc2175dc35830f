"""Tracing: who is in a crowd, from nothing but the crowd's averages.

A study of 100 patients publishes the frequency of each of some thousand genetic variants. Each frequency is
over a hundred people and says nothing about anyone; all of them together lean, ever so slightly, towards
those who are in (Homer et al. 2008). Whoever has a person's variants can tell whether that person is.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from sfumato.attacks._asking import finite_array
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, probability
from sfumato.numeric.rounding import Floats

__all__ = ["trace_scores", "tracing"]

_TOO_FEW = (
    "with so few attributes ({attributes:,}) for {members:,} members this attack can recognise nobody, so "
    "that its failure says nothing; give more columns, or fewer members."
)


def trace_scores(means: npt.ArrayLike, reference: npt.ArrayLike, people: npt.ArrayLike) -> Floats:
    """How much the released means lean towards each person: ⟨x − p, q − p⟩, one score a person.

    For d attributes, a person outside has a score around 0; a member of a crowd of n has one around
    Σ p(1 − p)/n, and both spread by √(Σ p²(1 − p)²/n): they are √(d/n) deviations apart.

    Args:
        means: q, the released means, one for each attribute.
        reference: p, the means of the population; or a table of people from it, whose means are taken.
        people: a table of people by attributes, numbers from 0 to 1.

    Raises:
        InvalidParameter: if the shapes do not fit, or something is not a finite number.
    """
    released = finite_array(means, "means", dimensions=1)
    population = _reference(reference)
    rows = finite_array(people, "people", dimensions=2)
    if not len(released) == len(population) == rows.shape[1]:
        raise InvalidParameter("means, reference and people must have the same attributes, in one order.")
    scores: Floats = (rows - population) @ (released - population)
    return scores


def _reference(reference: npt.ArrayLike) -> Floats:
    dimensions = 2 if np.ndim(reference) == 2 else 1
    known = finite_array(reference, "reference", dimensions=dimensions)
    return known if dimensions == 1 else known.mean(axis=0)


def tracing(
    means: npt.ArrayLike,
    reference: npt.ArrayLike,
    members: npt.ArrayLike,
    others: npt.ArrayLike,
    *,
    false_positives: Rational = 0.05,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How many members released means give away, beside how many outsiders are taken for members.

    Steward-only: it needs the members' rows, and nothing pays for that.

    A person is called a member if the score of `trace_scores` is above that of all but a share
    `false_positives` of the outsiders. Every other row of `others` sets that threshold. The baseline is the
    same attack on the rest of them: people of the same population whose data is in no release, so that
    whatever the release teaches about the population is taught about them as well. They must have taken part
    neither in the means nor in the reference. Where attributes are so few, for so many members, that exact
    means could not show a difference, a failure says nothing: `undecided` says so, and there is no verdict.

    Args:
        means: the released means, one for each attribute.
        reference: the means of the population, or a table of people from it.
        members: a table of people by attributes: those over whom the means were taken.
        others: the same for people of the same population who are not in.
        false_positives: the share of outsiders that the attacker accepts to take for members.
        target: what is attacked, in words.
        confidence: of all intervals.

    Example:
        Exact means of 2,000 attributes over 100 people give nearly all of them away at 5 % false positives.
        Means from `sf.Gaussian` at ε = 1 and δ = 1e-5 for all of them together give 6 %, where 5 is a guess.

    Privacy:
        Claim: where the means are (ε, δ)-DP, the share of members found is, in expectation, at most e^ε
        times the share of outsiders taken for members, plus δ. Source: Wasserman, Zhou 2010; Kairouz, Oh,
        Viswanath 2015. The score is that of Dwork, Smith, Steinke, Ullman, Vadhan 2015, who show that it
        finds members in means of any accuracy better than about √d/n.

    Raises:
        InvalidParameter: if the shapes do not fit, something is not a finite number, or there are too few
            others to set a threshold.
    """
    share = probability(false_positives, "false_positives")
    inside = trace_scores(means, reference, finite_array(members, "members", dimensions=2))
    outside = trace_scores(means, reference, finite_array(others, "others", dimensions=2))
    calibration, fresh = np.sort(outside[::2]), outside[1::2]
    # The rank that a fresh outsider exceeds with a probability of at most the share (conformal).
    rank = math.ceil((1 - share) * (len(calibration) + 1))
    if rank > len(calibration) or not len(fresh):
        least = 2 * math.ceil(1 / share)
        raise InvalidParameter(f"others must be at least {least} people for that share of false positives.")
    threshold = calibration[rank - 1]
    found = Outcome(
        "tracing",
        "a member is recognised as one",
        Tally(int((inside > threshold).sum()), len(inside)),
        Tally(int((fresh > threshold).sum()), len(fresh)),
        "the same attack on people who are not in the data",
        target,
        confidence,
        {
            "attributes": int(np.size(means)),
            "false_positives": float(share),
            "deviations_apart": _apart(inside, outside),
        },
    )
    # What exact means would give away: the scores are at most √(d/n) deviations apart (`trace_scores`).
    at_best = float(ndtr(ndtri(float(share)) + math.sqrt(np.size(means) / len(inside))))
    # Ties may leave a guess below its share, which is no merit of the means.
    by_luck = max(each.baseline_interval[1] for each in (found, replace(found, guess=float(share))))
    if found.works or at_best > by_luck:
        return found
    return replace(found, undecided=_TOO_FEW.format(attributes=int(np.size(means)), members=len(inside)))


def _apart(inside: Floats, outside: Floats) -> float | None:
    """How many of the outsiders' deviations lie between the two average scores."""
    spread = float(outside.std())
    return float(inside.mean() - outside.mean()) / spread if spread > 0 else None
