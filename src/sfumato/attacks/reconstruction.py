"""Reconstruction: enough counts, each a little wrong, are the whole table (Dinur and Nissim 2003).

Every person has a secret bit. The curator answers how many of a *set* of people have it, with some error.
Answers whose error stays well below √n give nearly every bit away, whatever the error's shape; the answers
need about √n of noise each, which is what differential privacy asks for as soon as there are n of them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.attacks._asking import Bits, Subset, as_bits, collected, finite_array
from sfumato.attacks._calls import Chance
from sfumato.attacks._hadamard import Subsets, padded, transformed
from sfumato.attacks._power import counted_power, stated, tried
from sfumato.attacks.outcome import Outcome, Tally
from sfumato.attacks.power import Power
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import Gaussian
from sfumato.numeric.exact import as_integer
from sfumato.numeric.rounding import Floats
from sfumato.random import simulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Curve",
    "Method",
    "curve",
    "hadamard_answers",
    "hadamard_subsets",
    "reconstruct",
    "reconstruct_fourier",
    "reconstruction",
    "subset_queries",
]

Method: TypeAlias = Literal["lp", "fourier"]

_A_FEW = 4  # random subsets per person: enough for the linear program (Dwork, McSherry, Talwar 2007)
_MOST = 2_048  # people of a linear program: beyond, the transform is the tool
_LARGEST = 2**24  # people of a transform
_STEPS = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)  # of √n


def subset_queries(n: int, count: int, seed: int | None = None) -> Bits:
    """`count` random subsets of n people, each person in each with probability 1/2: a row a subset."""
    people, rows = as_integer(n, "n"), as_integer(count, "count")
    if people * rows > 2**30:
        raise InvalidParameter("n times count must be at most 2**30; ask about fewer people or subsets.")
    return simulation(seed).integers(0, 2, (rows, people), dtype=np.uint8).astype(np.bool_)


def hadamard_subsets(n: int) -> Sequence[Bits]:
    """The subsets that `reconstruct_fourier` asks about, in its order: as many as the next power of two.

    Each is made when it is looked at; the first is everybody, and any other has half of the places.
    """
    return Subsets(_people(n))  # type: ignore[return-value]  # len and [], which is all that is promised


def hadamard_answers(secret: npt.ArrayLike) -> Floats:
    """The exact answers to all `hadamard_subsets`, in O(n log n): for whoever answers them at once.

    Steward-only: exact.
    """
    bits = as_bits(secret, "secret")
    places = np.zeros(padded(len(bits)))
    places[: len(bits)] = bits
    answers: Floats = (bits.sum() + transformed(places)) / 2
    return answers


def reconstruct(queries: npt.ArrayLike, answers: npt.ArrayLike) -> Bits:
    """Everybody's bit, from subsets and their answers, by linear programming.

    The bits between 0 and 1 whose counts are nearest to the answers in total (least Σ|error|), rounded. It
    forgives large errors in a part of the answers, and small errors in all (Dwork, McSherry, Talwar 2007).

    Args:
        queries: a row a subset, a column a person, zeros and ones.
        answers: one number for each subset.

    Raises:
        InvalidParameter: if the shapes do not fit, or there are more than 2,048 people.
    """
    from scipy.optimize import linprog

    subsets = as_bits(queries, "queries", dimensions=2)
    told = finite_array(answers, "answers", dimensions=1)
    rows, people = subsets.shape
    if len(told) != rows:
        raise InvalidParameter("answers must be as many numbers as queries has rows.")
    if people > _MOST:
        raise InvalidParameter(
            f"The linear program takes at most {_MOST:,} people; use reconstruct_fourier beyond."
        )
    # min Σ|a − Qx| over 0 ≤ x ≤ 1 has the dual max a·y − Σw over |y| ≤ 1, w ≥ 0, Qᵀy ≤ w: it has a row
    # for each person instead of one for each answer, and its multipliers are the x.
    rule = np.hstack([subsets.T.astype(np.float64), -np.eye(people)])
    # Answers of any size: divided by their largest, the program is the same and the solver's tolerances fit.
    size = max(1.0, float(np.abs(told).max()))
    solution = linprog(
        np.concatenate([-told, np.full(people, 1.0)]) / size,
        A_ub=rule,
        b_ub=np.zeros(people),
        bounds=[(-1.0, 1.0)] * rows + [(0.0, None)] * people,
        method="highs-ipm",  # without noise the optimum is far from unique, and a simplex walks for long
    )
    if solution.status != 0:
        raise InvalidParameter("The linear program has no solution at these answers; give finite counts.")
    bits: Bits = np.asarray(-solution.ineqlin.marginals) * size > 0.5
    return bits


def reconstruct_fourier(ask: Subset | npt.ArrayLike, n: int) -> Bits:
    """Everybody's bit from as many answers as there are people, by a fast transform in O(n log n).

    The Hadamard subsets are asked one after the other, the answers are transformed back and rounded. Noise
    of deviation σ in the answers is noise of 2σ/√N in each bit (N the next power of two). The first person
    is in every subset, and has what the others leave. Source: Dwork, Yekhanin 2008.

    Args:
        ask: answers how many of a set have the bit; the set is an array of n truth values. Or the answers
            themselves, in the order of `hadamard_subsets(n)`.
        n: how many people there are.

    Raises:
        InvalidParameter: if `ask` raises, or answers with something other than one finite number.
    """
    people = _people(n)
    told = collected(ask, Subsets(people))
    # The answers are (Σx + Hx)/2, so that H·answers · 2/N is x, and x + Σx at the first place.
    places = transformed(told)[:people] * (2 / len(told))
    bits: Bits = places > 0.5
    bits[0] = places[0] - bits[1:].sum() > 1
    return bits


def reconstruction(
    ask: Subset | npt.ArrayLike,
    secret: npt.ArrayLike,
    *,
    queries: npt.ArrayLike | int | None = None,
    method: Method = "lp",
    seed: int | None = None,
    target: str = "",
    confidence: float = 0.99,
) -> Outcome:
    """How many of the secret bits come out of answers about sets of people, beside a guess.

    Steward-only: it is scored against the truth, and nothing pays for that.

    The baseline is somebody who knows how many have the bit, and guesses the more frequent one for
    everybody: the share is about the population, and learning it from a release harms nobody in it.
    Where half of the people have the bit, that is a coin.

    Power: the leak is answers without noise. The Hadamard subsets, and all sets that tell every person apart,
    then give every bit; where the subsets do not, exact answers about other bits are tried.

    Args:
        ask: answers how many of a set have the bit; the set is an array of truth values, one for each
            person. Or the answers themselves, in the order of the queries.
        secret: everybody's bit.
        queries: for "lp", the subsets as a table of zeros and ones (a row a subset) or how many random ones;
            four for each person if not given.
        method: "lp" for a linear program, "fourier" for Hadamard subsets and a fast transform.
        seed: of the random subsets; None draws it. It must be given with answers that exist already.
        target: what is attacked, in words.
        confidence: of all intervals.

    Example:
        With exact counts of random subsets every bit is found. With 256 counts of `sf.Geometric` at
        ε = 1/256 each, 1 in all, it is a coin; at ε = 1 each, 256 in all, nine in ten bits are found.

    Privacy:
        Claim: where all answers *together* are (ε, δ)-DP for a change of one person's bit, a bit that is
        either with probability 1/2 is found with probability at most (e^ε + δ)/(1 + e^ε). Source: Kairouz,
        Oh, Viswanath 2015, Thm. 2.1. Where each answer alone is ε-DP, the total is what composition makes
        of it, and the claim is about that total.

    Raises:
        InvalidParameter: if `ask` raises or answers with something other than one finite number, or the
            parameters do not fit each other.
    """
    bits = as_bits(secret, "secret")
    if method == "fourier":
        if queries is not None:
            raise InvalidParameter('method="fourier" asks subsets of its own; leave queries out.')
        subsets: Any = Subsets(_people(len(bits)))
        told = collected(ask, subsets)
        rebuilt = reconstruct_fourier(told, len(bits))
        truth = hadamard_answers(bits)
    elif method == "lp":
        if len(bits) > _MOST:
            raise InvalidParameter(f'Beyond {_MOST:,} people, ask with method="fourier".')
        if not callable(ask) and seed is None and np.ndim(queries if queries is not None else 0) == 0:
            raise InvalidParameter("Give the queries, or their seed, with answers that exist already.")
        subsets = _subsets(queries, len(bits), seed)
        told = collected(ask, subsets)
        rebuilt = reconstruct(subsets, told)
        truth = subsets.astype(np.float64) @ bits
    else:
        raise InvalidParameter('method must be "lp" or "fourier".')
    frequent = max(int(bits.sum()), len(bits) - int(bits.sum())) / len(bits)
    outcome = Outcome(
        "reconstruction",
        "a person's bit is reconstructed",
        Tally(int((rebuilt == bits).sum()), len(bits)),
        frequent,
        "a coin" if frequent == 0.5 else "the more frequent bit for everybody",
        target,
        confidence,
        {
            "people": len(bits),
            "answers": len(told),
            "method": method,
            "typical_error": float(np.sqrt(np.mean((told - truth) ** 2))),
        },
    )
    return stated(
        outcome,
        lambda: _power(outcome, bits, None if method == "fourier" else subsets, seed),
        advice="ask about more people, or half of whom have the bit, with as many subsets as people or more",
    )


def _power(outcome: Outcome, bits: Bits, subsets: Bits | None, seed: int | None) -> Power:
    """Whether answers without noise would be noticed."""
    rank = len(bits)
    if subsets is not None:
        counts = subsets.astype(np.float64)
        rank = int(np.linalg.matrix_rank(counts.T @ counts))
    if subsets is None or rank == len(bits):
        return counted_power(outcome, 1.0, _EXACT)

    def twin(random: Chance) -> Outcome:
        secret = random.permutation(bits)
        rebuilt = reconstruct(subsets, subsets.astype(np.float64) @ secret)
        return replace(outcome, reached=Tally(int((rebuilt == secret).sum()), len(bits)))

    return tried(_EXACT, twin, simulation(seed), cells=subsets.size * len(bits))


_EXACT = "answers without noise"


@dataclass(frozen=True, slots=True)
class Curve:
    """How much a reconstruction finds as the noise grows, from exact answers to beyond √n.

    Steward-only where the secret is real.

    Attributes:
        people: How many there are.
        method: How the bits were reconstructed.
        magnitudes: Standard deviations of the noise in each answer.
        outcomes: What was reached at each.
    """

    people: int
    method: str
    magnitudes: tuple[float, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def rates(self) -> tuple[float, ...]:
        """The share of bits that was found at each magnitude."""
        return tuple(outcome.rate for outcome in self.outcomes)

    @property
    def breaks(self) -> float | None:
        """The least magnitude at which the attack has lost half of its lead over a guess; None if none."""
        lost = (
            noise
            for noise, outcome in zip(self.magnitudes, self.outcomes, strict=True)
            if outcome.rate < (1 + outcome.baseline) / 2
        )
        return min(lost, default=None)

    def plot(self, *, path: str | os.PathLike[str] | None = None) -> Figure:
        """The curve above the line of guessing, with √n marked."""
        from sfumato.plots.attacks import reconstruction_curve

        return reconstruction_curve(
            self.magnitudes,
            {"linear program" if self.method == "lp" else "fast transform": self.rates},
            people=self.people,
            guess=self.outcomes[0].baseline,
            title=f"How many of {self.people:,} secret bits come out of noisy counts",
            path=path,
        )

    def __str__(self) -> str:
        root = math.sqrt(self.people)
        rows = [
            f"{noise:>12,.2f}  {noise / root:>8.3f}  {outcome.rate:>8.1%}"
            for noise, outcome in zip(self.magnitudes, self.outcomes, strict=True)
        ]
        return "\n".join([f"{'noise':>12}  {'of √n':>8}  {'found':>8}", *rows])


def curve(
    secret: npt.ArrayLike,
    *,
    magnitudes: Sequence[float] | None = None,
    method: Method = "fourier",
    queries: npt.ArrayLike | int | None = None,
    seed: int | None = None,
    confidence: float = 0.99,
) -> Curve:
    """What a reconstruction finds in answers with more and more noise.

    Steward-only: it is scored against the truth, and nothing pays for that. The noise is that of the
    Gaussian mechanism, the subsets are the same at every magnitude.

    Args:
        secret: everybody's bit.
        magnitudes: standard deviations of the noise, zero for exact answers; if not given, from 0 to 8√n.
        method: as for `reconstruction`.
        queries: as for `reconstruction`.
        seed: of the random subsets; None draws it.
        confidence: of all intervals.

    Raises:
        InvalidParameter: if a magnitude is negative or not finite, or the parameters do not fit each other.
    """
    bits = as_bits(secret, "secret")
    steps = math.sqrt(len(bits)) * np.array(_STEPS) if magnitudes is None else magnitudes
    noises = finite_array(steps, "magnitudes", dimensions=1)
    if noises.min() < 0:
        raise InvalidParameter("magnitudes must not be negative: they are standard deviations.")
    subsets = None if method == "fourier" and queries is None else _subsets(queries, len(bits), seed)
    exact = hadamard_answers(bits) if subsets is None else subsets.astype(np.float64) @ bits
    outcomes = []
    for noise in noises.tolist():
        told = Gaussian(sigma=noise, sensitivity=1).release(exact) if noise else exact
        words = f"noise of {noise:.3g}" if noise else "exact answers"
        outcomes.append(
            reconstruction(told, bits, queries=subsets, method=method, target=words, confidence=confidence)
        )
    return Curve(len(bits), method, tuple(noises.tolist()), tuple(outcomes))


def _people(n: int) -> int:
    people = as_integer(n, "n")
    if people > _LARGEST:
        raise InvalidParameter("n must be at most 2**24; reconstruct a part of the people at a time.")
    return people


def _subsets(queries: npt.ArrayLike | int | None, people: int, seed: int | None) -> Bits:
    if queries is None:
        return subset_queries(people, _A_FEW * people, seed)
    if isinstance(queries, int | np.integer):
        return subset_queries(people, int(queries), seed)
    given = as_bits(queries, "queries", dimensions=2)
    if given.shape[1] != people:
        raise InvalidParameter("queries must have a column for each person of secret.")
    return given
