"""Dominating pairs known by their profile alone, as terms: samples of anything, groups, suprema.

Every function takes and gives terms of count 1. A profile decreases in ε and the curves below are read at
arguments rounded the safe way, so each value is an upper bound; whatever is not convex by rounding lies above
a function that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sfumato.numeric import compose
from sfumato.numeric.laws import Profile, Term
from sfumato.numeric.laws.sampled import sampled_bounds
from sfumato.numeric.rounding import LIBRARY, Floats, U, up
from sfumato.numeric.tabulated import MOST_EVENTS, tabulated

__all__ = ["fixed", "grouped", "poisson", "single", "supremum"]

# A few rounded operations and at most four library calls beside the curve that is read.
_SLACK = 4 * LIBRARY + 16 * U
# Far enough out for a loss to be called infinite: e^700 is near the largest float.
_FAR = 700.0

Ends = tuple[float, float]


def single(directions: Sequence[Sequence[Term]], way: int) -> Term:
    """One direction of a composition as one term.

    Privacy:
        The composed curve, rounded up: of a few events from one table, of many from the composition itself,
        where for ε < 0 the swapped pair is read, H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P). Its mass at infinity is
        at most the sum of the parts'.
    """
    terms = tuple(directions[way])
    if len(terms) == 1 and terms[0].count == 1:
        return terms[0]

    swapped = tuple(directions[len(directions) - 1 - way])

    def exactly(epsilons: Floats) -> Floats:
        pairs = [(terms if epsilon >= 0 else swapped, abs(epsilon)) for epsilon in epsilons.ravel().tolist()]
        deltas = [compose.delta((pair,), epsilon).upper for pair, epsilon in pairs]
        return _mirrored(epsilons, np.array(deltas).reshape(epsilons.shape))

    few = sum(term.count for term in terms) <= MOST_EVENTS
    curve = tabulated(terms) if few else exactly
    mass = math.fsum(term.law.infinity(term.parameters) * term.count for term in terms)
    supports = [(term.law.support(term.parameters), term.count) for term in terms]
    ends = (
        sum(low * count for (low, _), count in supports),
        sum(high * count for (_, high), count in supports),
    )
    return _term(curve, "composition", mass * (1 + 4 * U), ends)


def poisson(remove: Term, add: Term, rate: float) -> tuple[Term, Term]:
    """The two directions of a mechanism on a Poisson sample, from its own two directions.

    Privacy:
        (qP + (1−q)Q, Q) and its swap: Zhu, Dong, Wang 2022, Thm. 11. What is certain for P alone stays so
        with probability q; what only Q can show is seen under the sampled law too, so adding has no mass at
        infinity.
    """
    low, high = remove.law.support(remove.parameters)
    mass = remove.law.infinity(remove.parameters)
    out = _term(
        _sample(remove, rate, True),
        "Poisson sample (remove)",
        mass * rate,
        (_mixed(low, rate), _mixed(high, rate)),
    )
    low, high = add.law.support(add.parameters)
    if add.law.infinity(add.parameters):
        high = math.inf
    back = _term(
        _sample(add, rate, False), "Poisson sample (add)", 0.0, (-_mixed(-low, rate), -_mixed(-high, rate))
    )
    return out, back


def fixed(term: Term, rate: float) -> Term:
    """A sample of fixed size under exchange, from a pair that dominates in both orders.

    Privacy:
        Zhu, Dong, Wang 2022, on samples of fixed size: H_α(qP + (1−q)Q ‖ Q) for α ≥ 1 and H_α(P ‖ (1−q)P +
        qQ) for α < 1.
    """
    above, below = _sample(term, rate, True), _sample(term, rate, False)

    def curve(epsilons: Floats) -> Floats:
        return np.where(epsilons >= 0, above(np.maximum(epsilons, 0.0)), below(np.minimum(epsilons, 0.0)))

    _, high = term.law.support(term.parameters)
    mass = term.law.infinity(term.parameters)
    top = _mixed(high, rate)
    bottom = math.log1p(-rate) if mass else -top
    return _term(curve, "fixed-size sample", mass * rate, (min(bottom, -top), top))


def grouped(term: Term, size: int) -> Term:
    """A chain of `size` neighbours, from a pair that dominates in both orders.

    Privacy:
        δ_k(ε) ≤ (1 + e^(ε/k) + … + e^((k−1)ε/k))·δ(ε/k) for ε ≥ 0 (Vadhan 2017, Lemma 2.2), and δ_k never
        increases, so from the least value found on it stays there; for ε < 0 the swap of the value at −ε.
    """
    law, parameters = term.law, term.parameters
    mass = law.infinity(parameters)

    def chain(epsilons: Floats) -> Floats:
        step = epsilons / size
        inner = law.delta(step * (1 - 4 * U), parameters)
        # Σ e^(js) = e^((k−1)s)·(1 − e^(−ks))/(1 − e^(−s)); at s = 0 it is k.
        ratio = np.where(step < 1e-8, size, np.expm1(-size * step) / np.expm1(-np.maximum(step, 1e-8)))
        with np.errstate(over="ignore"):  # beyond 1 in any case
            return np.minimum(up(np.exp((size - 1) * step) * ratio * inner, 4 * _SLACK), 1.0)

    _, high = law.support(parameters)
    where = math.inf
    if mass > 0:
        tries = np.linspace(0.0, min(size * high, _FAR), 4097)
        values = chain(tries)
        where, mass = float(tries[np.argmin(values)]), float(np.min(values))

    def curve(epsilons: Floats) -> Floats:
        return _mirrored(epsilons, chain(np.minimum(np.abs(epsilons), min(where, _FAR))))

    end = min(size * high, where) * (1 + 4 * U)
    return _term(curve, f"group of {size}", mass, (-end, end))


def supremum(terms: Sequence[Term]) -> Term:
    """The pointwise supremum of profiles, again the profile of a pair (as in Zhu, Dong, Wang 2022)."""
    if len(set(terms)) == 1:
        return terms[0]

    def curve(epsilons: Floats) -> Floats:
        deltas: Floats = np.max([term.law.delta(epsilons, term.parameters) for term in terms], axis=0)
        return deltas

    supports = [term.law.support(term.parameters) for term in terms]
    mass = max(term.law.infinity(term.parameters) for term in terms)
    return _term(
        curve, "supremum", mass, (min(low for low, _ in supports), max(high for _, high in supports))
    )


def _term(curve: Callable[[Floats], Floats], name: str, mass: float, ends: Ends) -> Term:
    return Term(Profile(curve, name, min(1.0, mass), ends), ())


def _sample(term: Term, rate: float, remove: bool) -> Callable[[Floats], Floats]:
    return lambda epsilons: sampled_bounds(term.law, term.parameters, rate, epsilons, remove=remove)[1]


def _mixed(loss: float, rate: float) -> float:
    """log(1 − q + q·e^loss), moved outward by its rounding."""
    value = loss + math.log(rate) if loss > _FAR else math.log1p(rate * math.expm1(loss))
    return (
        value + math.copysign(_SLACK * (abs(value) + abs(math.log(rate)) + 1), value)
        if math.isfinite(value)
        else value
    )


def _mirrored(epsilons: Floats, beyond: Floats) -> Floats:
    """Values at |ε| turned into values at ε: the swap below 0."""
    down = np.minimum(epsilons, 0.0)
    swapped = up(-np.expm1(down) + np.exp(down) * beyond, _SLACK)
    return np.where(epsilons >= 0, beyond, np.minimum(swapped, 1.0))
