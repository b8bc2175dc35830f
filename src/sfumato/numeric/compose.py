"""Composition of independent losses: epsilon(delta), delta(epsilon) and Rényi bounds, each certified.

The larger of both directions counts. In each, in this order: nothing but Gaussians, or a single event
(closed form); randomized response alone (exact binomial); a contour integral, if its certificate is narrow
enough; a grid. A figure that none of them can certify is refused. The finite losses and the mass at
infinity are kept apart: that mass is simply added to delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.errors import InvalidParameter, NotCertified
from sfumato.numeric import atoms, binomial, contour, grid
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.exact import float_down, float_up
from sfumato.numeric.laws.base import Law, Term
from sfumato.numeric.laws.gaussian import GAUSSIAN
from sfumato.numeric.laws.profile import Profile
from sfumato.numeric.laws.pure import DOUBLE, PURE
from sfumato.numeric.rounding import SMALLEST, Floats, U, coarse, total_up
from sfumato.numeric.solve import approach, fall

__all__ = ["Direction", "about_rdp", "delta", "epsilon", "rdp"]

Direction = Sequence[Term]

_RELATIVE, _ABSOLUTE = 1e-6, 1e-9
"""How wide a bracket in epsilon may be: this part of the figure, plus this."""

_DELTA_RELATIVE, _DELTA_ABSOLUTE = 1e-4, 1e-300
"""The same for delta, which moves by c·epsilon relatively where epsilon does by 1."""

_DELTA_TINY = 1e-14
"""A bracket of delta this narrow is answered with its upper end once all roads were tried."""

_FEW = 32
"""Up to so many events of a sampled law the grid is tried before the contour."""

_SHORT = 2**16
"""So long a grid, a small part of a contour's work, often tells that one direction matters less."""

_FAR, _LADDER = 1e-12, 4
"""Below this delta the bracket is watched at points that are 2^(1/4) apart."""

_LEAST = 2.0**-12
"""The least order, less 1, at which a divergence is estimated."""

_FARTHEST = 1e12
"""Where losses may together be larger than this, no law is laid out: what squares them would not fit."""

_LOOSE = 1e-2
"""So wide a bracket, relatively, is still answered with its upper end; a wider one is refused."""


def epsilon(directions: Sequence[Direction], delta: float) -> Bracket:
    """The least epsilon ≥ 0 at which every direction's profile is at most delta; infinite where none is.

    Privacy:
        The upper end is never below the truth, for events fixed in advance (Zhu, Dong, Wang 2022, Theorem
        10), under the conditions each law states. Raises rather than answers without a certificate.

    Raises:
        NotCertified: if no method brackets the figure to one per cent; most brackets are a millionth wide.
    """
    result = bracket_of_epsilon(directions, delta)
    if result.upper < math.inf and not result.meets(_LOOSE, _ABSOLUTE):
        raise NotCertified(
            f"The composition is only known to lie between epsilon {result.lower:.9g} and "
            f"{result.upper:.9g}; use a larger delta, fewer distinct losses, or another accountant."
        )
    return result


def bracket_of_epsilon(directions: Sequence[Direction], delta: float) -> Bracket:
    """The bracket of `epsilon`, however wide."""
    if not 0.0 <= delta < 1.0:
        raise InvalidParameter(f"delta must lie in [0, 1), not {delta:g}.")
    result = Bracket(0.0, 0.0)
    for terms in _distinct(directions):
        result = result.join(_epsilon(terms, delta, result.lower))
    return result


def delta(directions: Sequence[Direction], epsilon: float, *, swapped: bool = False) -> Bracket:
    """The largest profile over the directions at epsilon (of either sign).

    Args:
        directions: the terms to compose, in each direction.
        epsilon: where the profile is read.
        swapped: whether the directions are one pair and its swap, which are equally far apart at epsilon 0.

    Privacy:
        The upper end is never below the truth, as for `epsilon`.

    Raises:
        NotCertified: if no method brackets the figure to one per cent; most brackets are far narrower.
    """
    result = bracket_of_delta(directions, epsilon, swapped=swapped)
    if not result.meets(_LOOSE, _DELTA_TINY):
        raise NotCertified(
            f"The composition is only known to have a delta between {result.lower:.9g} and "
            f"{result.upper:.9g} at epsilon {epsilon:.9g}; ask for another epsilon, or another accountant."
        )
    return result


def bracket_of_delta(directions: Sequence[Direction], epsilon: float, *, swapped: bool = False) -> Bracket:
    """The bracket of `delta`, however wide."""
    if not math.isfinite(epsilon):
        raise InvalidParameter("epsilon must be a finite number.")
    floor = -math.expm1(epsilon) if epsilon < 0 else 0.0
    if epsilon < -30:  # a profile lies between 1 - e^epsilon and 1
        return Bracket(floor * (1 - 8 * U), 1.0)
    result = Bracket(floor * (1 - 8 * U), floor * (1 + 8 * U)).clip(0.0, 1.0)
    distinct = _distinct(directions)
    if swapped and epsilon == 0.0 and len(distinct) > 1:
        # The total variation of a pair and of its swap: one number, and either way tells it. The grid is
        # shortest where the largest loss is smallest: what is far below 0 hardly counts.
        distinct.sort(key=lambda terms: _largest(terms)[1])
        few = all(_few(terms) for terms in distinct)
        easy = [] if few else [terms for terms in distinct if _exactly(terms)]
        return _either(easy or distinct)
    for terms in distinct:
        result = result.join(_delta(terms, epsilon, result.lower))
    return result.clip(0.0, 1.0)


def _either(ways: Sequence[tuple[Term, ...]]) -> Bracket:
    """The one number that all ways tell at epsilon 0: the first, and the next where that one's is wide."""
    result = Bracket(0.0, 1.0)
    for terms in ways:
        result = _both(result, _delta(terms, 0.0, 0.0))
        if result.meets(_DELTA_RELATIVE, _DELTA_ABSOLUTE):
            break
    return result


def _exactly(terms: tuple[Term, ...]) -> bool:
    """Whether a contour tells the profile at 0 to nine digits."""
    bracket = _integral(terms, 0.0)
    return bracket is not None and bracket.meets(1e-9, 0.0)


def rdp(directions: Sequence[Direction], alpha: float) -> float:
    """The Rényi divergence bound of order alpha ≥ 1, rounded up: sums over events, the larger direction.

    Privacy:
        Rényi bounds at one order add up, adaptively too (Mironov 2017, Proposition 1); order 1 is the
        Kullback–Leibler divergence and order infinity the largest loss.
    """
    if not alpha >= 1.0:
        raise InvalidParameter(f"The order alpha must be at least 1, not {alpha:g}.")
    sums = [
        total_up([term.count * term.law.renyi(alpha, term.parameters) * (1 + 2 * U) for term in terms])
        for terms in _distinct(directions)
    ]
    return max(sums, default=0.0)


def about_rdp(terms: Direction) -> Callable[[float], float]:
    """The sum that `rdp` bounds, in floats: neither above nor below, but near; all terms of a law at once."""
    alike: dict[Law, list[Term]] = {}
    for term in terms:
        alike.setdefault(term.law, []).append(term)
    laws = [
        (law, np.array([term.parameters for term in some]), np.array([float(term.count) for term in some]))
        for law, some in alike.items()
    ]

    def about(alpha: float) -> float:
        order = max(alpha - 1, _LEAST)  # the quotient of a smaller one would have no digits
        at = np.array([order])
        return sum(float(np.real(law.log_mgf(at, rows))[0] @ counts) for law, rows, counts in laws) / order

    return about


def _distinct(directions: Sequence[Direction]) -> list[tuple[Term, ...]]:
    """The directions with equal terms merged and equal directions listed once."""
    ways: dict[frozenset[Term], tuple[Term, ...]] = {}
    for terms in directions:
        merged: dict[tuple[Law, tuple[float, ...]], Term] = {}
        for term in terms:
            key = (term.law, term.parameters)
            same = merged.get(key)
            merged[key] = term if same is None else Term(*key, same.count + term.count)
        ways.setdefault(frozenset(merged.values()), tuple(merged.values()))
    return list(ways.values())


def _infinity(terms: Sequence[Term]) -> tuple[float, float]:
    """Floats below and above 1 - Π(1 - mass)."""
    logs = [term.count * math.log1p(-mass) for term in terms if (mass := _mass(term)) > 0]
    if not logs:
        return 0.0, 0.0
    value = -math.expm1(math.fsum(logs))
    return max(0.0, value * (1 - 32 * U)), min(1.0, value * (1 + 32 * U))


def _mass(term: Term) -> float:
    return min(term.law.infinity(term.parameters), 1 - U)


def _largest(terms: Sequence[Term]) -> tuple[float, float]:
    """Floats below and above the largest finite loss."""
    tops = [(term.law.support(term.parameters)[1], term.count) for term in terms]
    if any(math.isinf(top) for top, _ in tops):
        return math.inf, math.inf
    exact = sum((Fraction(top) * count for top, count in tops), Fraction(0))
    return float_down(exact) * (1 - 1e-13), float_up(exact)


def _closed(terms: Sequence[Term]) -> Callable[[Floats], tuple[Floats, Floats]] | None:
    """Bounds on the profile in closed form, where there is one: a single event, or nothing but Gaussians."""
    if len(terms) == 1 and terms[0].count == 1:
        (term,) = terms
        return lambda x: term.law.bounds(x, term.parameters)
    if all(term.law is GAUSSIAN for term in terms):
        squares = sum((Fraction(term.parameters[0]) ** 2 * term.count for term in terms), Fraction(0))
        mu = math.sqrt(float(squares))
        less, more = (mu * (1 - 4 * U),), (mu * (1 + 4 * U),)
        return lambda x: (GAUSSIAN.bounds(x, less)[0], GAUSSIAN.bounds(x, more)[1])
    return None


def _at(bounds: Callable[[Floats], tuple[Floats, Floats]]) -> Callable[[float], tuple[float, float]]:
    """The same for one number at a time."""

    def single(x: float) -> tuple[float, float]:
        low, high = bounds(np.array([x]))
        return float(low[0]), float(high[0])

    return single


def _listed(terms: Sequence[Term]) -> Callable[[float], tuple[float, float]] | None:
    """Bounds on the profile by listing outcomes, where they are few and the rest is in closed form."""
    split = atoms.outcomes(terms)
    if split is None:
        return None
    listed, others = split
    rest = _closed(others) if others else atoms.nothing
    if rest is None:
        return None
    infinity = _infinity([term for term in terms if term not in others])
    return lambda x: listed.bounds(x, rest, infinity)


def _binomial(terms: Sequence[Term]) -> tuple[float, int, float] | None:
    """(eps, count, delta0) of a composition of one randomized response, else None."""
    if len(terms) != 1 or terms[0].law not in (PURE, DOUBLE):
        return None
    (term,) = terms
    return term.parameters[0], term.count, term.law.infinity(term.parameters)


def _contoured(terms: Sequence[Term]) -> bool:
    return not any(isinstance(term.law, Profile) for term in terms)


def _epsilon(terms: tuple[Term, ...], delta: float, known: float) -> Bracket:
    """One direction; where it is no more than what is known of another, its bracket may say only that."""
    terms = tuple(term for term in terms if term.law.support(term.parameters)[1] > 0 or _mass(term) > 0)
    if not terms:
        return Bracket(0.0, 0.0)
    low_mass, high_mass = _infinity(terms)
    least, largest = _largest(terms)
    if delta < low_mass:
        return Bracket(math.inf, math.inf)
    if delta <= high_mass:
        # At delta = 0, and at the very mass of infinity, it is the largest loss; within rounding of it,
        # either.
        return Bracket(least if delta == 0 else 0.0, largest if high_mass == 0 else math.inf)
    closed = _closed(terms)
    if closed is not None:
        return _inverted(_at(closed), delta, largest)
    pure = _binomial(terms)
    if pure is not None:
        return binomial.epsilon(pure[0], pure[1], delta, delta0=pure[2]).clip(0.0, largest)
    best = Bracket(0.0, largest)
    if _FARTHEST < largest < math.inf:
        return best
    if largest <= known or (known > 0 and _tail(terms, known) + high_mass <= delta):
        return Bracket(0.0, min(largest, known))
    gridded = _few(terms)
    if gridded:
        best = _both(best, grid.epsilon(terms, delta, enough=known))
    elif known > 0 and _sampled(terms):
        best = _both(best, grid.epsilon(terms, delta, enough=known, largest=_SHORT))
    if best.upper <= known:
        return best
    if not best.meets(_RELATIVE, _ABSOLUTE) and _contoured(terms):
        # The finite part may be as large as delta less the mass at infinity, rounded to the safe side.
        bracket = contour.epsilon(terms, (delta - high_mass) * (1 - 2 * U) if high_mass else delta)
        if bracket is not None and high_mass:
            looser = contour.epsilon(terms, (delta - low_mass) * (1 + 2 * U))
            bracket = Bracket(looser.lower if looser is not None else 0.0, bracket.upper)
        if bracket is not None:
            best = _both(best, bracket)
    if not best.meets(_RELATIVE, _ABSOLUTE) and (listed := _listed(terms)) is not None:
        best = _both(best, _inverted(listed, delta, largest))
    if not best.meets(_RELATIVE, _ABSOLUTE) and not gridded:
        best = _both(best, grid.epsilon(terms, delta, enough=known))
    return best


def _tail(terms: tuple[Term, ...], epsilon: float) -> float:
    """A cheap bound on the finite part of the profile, for passing over a direction that cannot matter."""
    return contour.tail(terms, epsilon) if _contoured(terms) else math.inf


def _inverted(bounds: Callable[[float], tuple[float, float]], delta: float, largest: float) -> Bracket:
    """Where a closed form passes delta: each end a float at which its own bound was seen to decide."""
    if bounds(0.0)[1] <= delta:
        return Bracket(0.0, 0.0)
    high = 1.0
    while high < largest and bounds(high)[1] > delta:
        high *= 2
        if high > 1e300:
            return Bracket(high, math.inf)
    high = min(high, largest)
    guess = approach(lambda x: bounds(x)[1], delta, 0.0, high)
    near = 1e-15 * guess + 1e-300
    upper = fall(lambda x: bounds(x)[1], delta, 0.0, high, guess=guess, tolerance=near)[1]
    if bounds(0.0)[0] <= delta:
        return Bracket(0.0, upper)
    lower = fall(lambda x: bounds(x)[0], delta, 0.0, upper, guess=guess - 2 * near, tolerance=near)[0]
    return Bracket(lower, upper)


def _delta(terms: tuple[Term, ...], epsilon: float, known: float) -> Bracket:
    """One direction; where it is no more than what is known of another, its bracket may say only that.

    A bracket of a tiny delta is often loose, and its upper end then does not follow the curve. So far out it
    is read at the last of some fixed points where it is narrow: a profile never rises. Where that one is not
    tiny but the bracket is, the answer is what counts as tiny.
    """
    bracket = _read(terms, epsilon, known)
    if bracket.upper > _FAR or bracket.upper <= known or epsilon <= 0:
        return bracket
    if _closed(terms) is not None or _binomial(terms) is not None:
        return bracket
    index = math.floor(_LADDER * math.log2(epsilon))
    if _narrow(bracket) and _narrow(_rung(terms, index + 1, 0.8 * _LOOSE)):
        return bracket
    while index > -20 * _LADDER and not _narrow(_rung(terms, index)):
        index -= 1
    upper = _rung(terms, index).upper
    if bracket.upper <= _DELTA_TINY < upper:
        upper = _DELTA_TINY
    return Bracket(min(bracket.lower, upper), upper)


@lru_cache(maxsize=512)
def _rung(terms: tuple[Term, ...], index: int, far: float = grid.DELTA_FAR) -> Bracket:
    """The profile at 2^(index/4); nothing is known where no method has an answer."""
    try:
        return _read(terms, 2.0 ** (index / _LADDER), 0.0, far)
    except NotCertified:
        return Bracket(0.0, 1.0)


def _narrow(bracket: Bracket) -> bool:
    return bracket.meets(_LOOSE, SMALLEST * 64)


def _read(terms: tuple[Term, ...], epsilon: float, known: float, far: float = grid.DELTA_FAR) -> Bracket:
    """The bracket that the methods give at one point; a tiny one need only be as narrow as `far` of it."""
    terms = tuple(
        term for term in terms if term.law.support(term.parameters) != (0.0, 0.0) or _mass(term) > 0
    )
    if not terms:
        return Bracket(0.0, max(0.0, -math.expm1(epsilon) * (1 + 8 * U)))
    closed = _closed(terms)
    if closed is not None:
        return Bracket(*_at(closed)(epsilon))
    pure = _binomial(terms)
    if pure is not None:
        exact = binomial.delta(pure[0], pure[1], epsilon, delta0=pure[2])
        positive = epsilon < _largest(terms)[1]
        return Bracket(exact.lower, max(exact.upper, SMALLEST)) if positive else exact
    low_mass, high_mass = _infinity(terms)
    if epsilon >= _largest(terms)[1]:
        return Bracket(low_mass, high_mass)
    best = Bracket(low_mass, 1.0)
    if _FARTHEST < _largest(terms)[1] < math.inf:
        return best
    if known > 0 and (_tail(terms, epsilon) + high_mass) * (1 + 4 * U) <= known:
        return Bracket(low_mass, max(low_mass, known))
    if epsilon > 0 and high_mass == 0.0 and _tail(terms, epsilon) <= SMALLEST:
        return Bracket(0.0, SMALLEST)
    gridded = _few(terms)
    if gridded:
        best = _both(best, grid.delta(terms, epsilon, enough=known, far=far))
    elif known > 0 and _sampled(terms):
        best = _both(best, grid.delta(terms, epsilon, enough=known, far=far, largest=_SHORT))
    if best.upper <= known:
        return Bracket(best.lower, known)
    if (
        not best.meets(_DELTA_RELATIVE, _DELTA_ABSOLUTE)
        and (bracket := _integral(terms, epsilon)) is not None
    ):
        best = _both(best, bracket)
    if not best.meets(_DELTA_RELATIVE, _DELTA_ABSOLUTE) and (listed := _listed(terms)) is not None:
        best = _both(best, Bracket(*listed(epsilon)))
    if not best.meets(_DELTA_RELATIVE, _DELTA_ABSOLUTE) and not gridded:
        best = _both(best, grid.delta(terms, epsilon, enough=known, far=far))
    if best.upper <= known:
        return Bracket(best.lower, known)
    # Below the largest loss the profile is positive, however small.
    # A grid is that narrow by chance, here and not a little further on: its figures are all rounded alike.
    bits = 36 if best.meets(1e-9, 0.0) and not gridded else 21
    return Bracket(best.lower, min(1.0, coarse(max(best.upper, SMALLEST), bits)))


def _integral(terms: tuple[Term, ...], epsilon: float) -> Bracket | None:
    """The profile by a contour integral, the mass at infinity included; None where contours cannot tell."""
    bracket = contour.delta(terms, epsilon) if _contoured(terms) else None
    if bracket is None:
        return None
    low_mass, high_mass = _infinity(terms)
    high = min(1.0, (bracket.upper + high_mass) * (1 + 2 * U))
    return Bracket(min((bracket.lower + low_mass) * (1 - 2 * U), high), high)


def _few(terms: tuple[Term, ...]) -> bool:
    """Whether so few events are sampled that a contour would hardly be certified: the grid goes first."""
    return sum(term.count for term in terms) <= _FEW and _sampled(terms)


def _sampled(terms: tuple[Term, ...]) -> bool:
    return any(term.law.effort(0.0, term.row) > 1 for term in terms)


def _both(one: Bracket, other: Bracket) -> Bracket:
    """Two brackets of one figure: the truth lies in both."""
    return Bracket(max(one.lower, other.lower), min(one.upper, other.upper))
