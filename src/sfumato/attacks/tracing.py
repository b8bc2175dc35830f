"""Tracing: who is in a crowd, from nothing but the crowd's averages.

A study of 100 patients publishes the frequency of each of some thousand genetic variants. Each frequency is
over a hundred people and says nothing about anyone; all of them together lean, ever so slightly, towards
those who are in (Homer et al. 2008). Whoever has a person's variants can tell whether that person is.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato.attacks._asking import finite_array
from sfumato.attacks._calls import Chance
from sfumato.attacks._power import stated, tried
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, probability
from sfumato.numeric.rounding import Floats
from sfumato.random import simulation

__all__ = ["trace_scores", "tracing"]

_MORE = "give more columns, fewer members, or more others"


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
    seed: int | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How many members released means give away, beside how many outsiders are taken for members.

    Steward-only: it needs the members' rows, and nothing pays for that.

    A person is called a member if the score of `trace_scores` is above that of all but a share
    `false_positives` of the outsiders. Every other row of `others` sets that threshold. The baseline is the
    same attack on the rest of them: people of the same population whose data is in no release, so that
    whatever the release teaches about the population is taught about them as well. They must have taken part
    neither in the means nor in the reference.

    Power: the leak is exact means. As many people are drawn again from members and others, and exact means
    over them have to be noticed with this reference. Where attributes are so few, or so much alike, that they
    are not, a failure says nothing: `undecided` says so, and there is no verdict.

    Args:
        means: the released means, one for each attribute.
        reference: the means of the population, or a table of people from it.
        members: a table of people by attributes: those over whom the means were taken.
        others: the same for people of the same population who are not in.
        false_positives: the share of outsiders that the attacker accepts to take for members.
        seed: for the same twins again, on which the power is measured; by default others each time.
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
    people, apart = (
        finite_array(table, name, dimensions=2) for table, name in ((members, "members"), (others, "others"))
    )
    population = _reference(reference)

    def attack(released: npt.ArrayLike, inside: Floats, outside: Floats) -> Outcome:
        own, fresh = trace_scores(released, population, inside), trace_scores(released, population, outside)
        calibration, rest = np.sort(fresh[::2]), fresh[1::2]
        # The rank that a fresh outsider exceeds with a probability of at most the share (conformal).
        rank = math.ceil((1 - share) * (len(calibration) + 1))
        if rank > len(calibration) or not len(rest):
            least = 2 * math.ceil(1 / share)
            raise InvalidParameter(
                f"others must be at least {least} people for that share of false positives."
            )
        threshold = calibration[rank - 1]
        return Outcome(
            "tracing",
            "a member is recognised as one",
            Tally(int((own > threshold).sum()), len(own)),
            Tally(int((rest > threshold).sum()), len(rest)),
            "the same attack on people who are not in the data",
            target,
            confidence,
            {
                "attributes": int(np.size(means)),
                "false_positives": float(share),
                "deviations_apart": _apart(own, fresh),
            },
        )

    outcome = attack(means, people, apart)
    everybody = np.concatenate([people, apart])

    def twin(random: Chance) -> Outcome:
        order = random.permutation(len(everybody))
        inside, outside = everybody[order[: len(people)]], everybody[order[len(people) :]]
        return attack(inside.mean(axis=0), inside, outside)

    leak = f"exact averages of {everybody.shape[1]:,} columns over {len(people):,} people"
    return stated(outcome, lambda: tried(leak, twin, simulation(seed), cells=everybody.size), advice=_MORE)


def _apart(inside: Floats, outside: Floats) -> float | None:
    """How many of the outsiders' deviations lie between the two average scores."""
    spread = float(outside.std())
    return float(inside.mean() - outside.mean()) / spread if spread > 0 else None
