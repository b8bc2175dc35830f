"""The accountant of last resort: any composition of laws on one grid, from their profiles alone.

Where a contour integral cannot be certified (few events, small sampling rates, lattices, a profile that is
only a function), each law is replaced by a discrete one that dominates it (`grid_dots`), the discrete laws
are composed by a tilted transform (`grid_fft`), and the step is refined until the two ends of the answer
agree. The lower end needs no second grid: the cost of connecting the dots is itself bounded, to second
order in the step, from the grid that was computed (`docs/proofs/grid.md`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.exact import float_down, float_up
from sfumato.numeric.grid_passes import Bracketed, View, Wanted, refined
from sfumato.numeric.grid_plan import Place, Sketch, place
from sfumato.numeric.laws.base import Term
from sfumato.numeric.rounding import U

__all__ = ["DELTA_FAR", "LARGEST", "delta", "epsilon"]

LARGEST = 2**23
"""The longest array: about 64 MB, and some seconds."""

_EXACT = 4096
"""Up to so many events the mass at infinity is compared with delta in exact arithmetic."""
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9
"""How close the two ends must come, in epsilon, before refining stops."""
_DELTA = 3e-5
"""The same for delta, as a part of it. The upper end errs by the square of what the certificate shows."""
_FAR, DELTA_FAR = 1e-12, 3e-3
"""Below the first a delta need only be known to the second."""
_NOTHING = 1e-278
"""A delta below this is not told from what is cut off above the range, 1e-280."""
_FIRST = 2**15
"""The first grid is no longer than about this: most questions need no more."""


def epsilon(terms: Sequence[Term], delta: float, *, largest: int = LARGEST, enough: float = 0.0) -> Bracket:
    """The least ε ≥ 0 at which one direction of the composed terms has a profile of at most delta.

    The bracket may be wider than asked for where `largest` was reached, or where its upper end is at most
    `enough`: the caller decides.

    Privacy:
        The upper end is never below the truth, whatever laws are composed, as long as each law's `bounds`
        are bounds (`docs/proofs/grid.md`, theorem). Valid for a composition whose laws were fixed in
        advance.
    """
    if not 0.0 <= delta < 1.0:
        raise InvalidParameter(f"delta must lie in [0, 1), not {delta:g}.")
    infinity = _infinity(terms)
    if delta < infinity[0]:
        return Bracket(math.inf, math.inf)
    spare = delta - infinity[1]
    if spare <= 1e-12 * delta:
        return _extreme(terms, delta)

    def aim(sketch: Sketch) -> tuple[float, float, float, float]:
        tilt = sketch.tilt_for(log_delta=math.log(spare))
        guess = max(sketch.at(tilt)[0], 0.0)
        return tilt, guess, delta, _RELATIVE * guess + _ABSOLUTE

    def read(composed: View, guess: float) -> Bracketed:
        bracket = _solve(composed, delta, guess, top, sure=bounded)
        if bracket.upper == math.inf:
            return Bracketed(
                bracket, _RELATIVE * bracket.lower + _ABSOLUTE if bracket.lower < math.inf else 0.0
            )
        slope = composed.upper(bracket.upper)[1]
        rounding = composed.rounding(bracket.upper) / slope if slope > 0 else 0.0
        return Bracketed(bracket, _RELATIVE * bracket.lower + _ABSOLUTE, rounding)

    events = sum(term.count for term in terms)
    places = [place(term, 1e-9 * spare / events, 1e-10 / events) for term in terms]
    top = float_up(sum((Fraction(spot.high) * spot.term.count for spot in places), Fraction(0)))
    bounded = all(math.isfinite(term.law.support(term.parameters)[1]) for term in terms)
    question = Wanted(aim, read, lambda bracket: (bracket.upper, delta), enough)
    return refined(places, question, largest, 2 * _FIRST)


def delta(
    terms: Sequence[Term],
    epsilon: float,
    *,
    largest: int = LARGEST,
    enough: float = 0.0,
    far: float = DELTA_FAR,
) -> Bracket:
    """The profile of the composition of the terms, one direction of it, at epsilon (of either sign).

    The bracket may be wide where its upper end is at most `enough`; it need only be as narrow as the part
    `far` of it where it is tiny.

    Privacy:
        The upper end is never below the truth (`docs/proofs/grid.md`, theorem).
    """
    if not math.isfinite(epsilon):
        raise InvalidParameter("epsilon must be a finite number.")
    events = sum(term.count for term in terms)
    infinity = _infinity(terms)
    # One event alone goes that far at least so often; where that is next to never, a range much longer than
    # this would let losses that matter even less decide the tilt.
    alone = max(
        term.count
        * (float(term.law.bounds(epsilon, term.parameters)[1]) - term.law.infinity(term.parameters))
        for term in terms
    )
    rough = _placed(terms, 1e-40, min(max(1e-4 * alone, 1e-280), 1e-40), events)
    top = sum((Fraction(spot.high) * spot.term.count for spot in rough), Fraction(0))
    if (
        all(math.isfinite(term.law.support(term.parameters)[1]) for term in terms)
        and Fraction(epsilon) >= top
    ):
        return Bracket(*infinity)
    places = _ranges(rough, epsilon, alone, events)

    def aim(sketch: Sketch) -> tuple[float, float, float, float]:
        tilt = sketch.tilt_for(epsilon=epsilon)
        # A relative width of delta is that of epsilon times the tilt, about.
        log_delta = sketch.at(tilt)[1]
        part = _DELTA if log_delta > math.log(_FAR) else far
        wanted = max(_RELATIVE * abs(epsilon) + _ABSOLUTE, 0.3 * part / max(tilt, 1.0))
        return tilt, epsilon, math.exp(max(log_delta, -600.0)), wanted

    def read(composed: View, guess: float) -> Bracketed:
        upper, slope = composed.upper(guess)
        bracket = Bracket(min(max(composed.lower(guess), infinity[0]), upper), upper)
        part = _DELTA if upper > _FAR else far
        narrow = max((_RELATIVE * abs(guess) + _ABSOLUTE) * slope, part * upper)
        return Bracketed(bracket, narrow, composed.rounding(guess))

    question = Wanted(aim, read, lambda bracket: (epsilon, bracket.upper), max(enough, _NOTHING))
    return refined(places, question, largest, _FIRST)


def _ranges(rough: Sequence[Place], epsilon: float, alone: float, events: int) -> list[Place]:
    """The places that are long enough for delta at epsilon, and not much longer.

    A long range tells too large a delta where tails are heavy: a second look shows it.
    """
    places = list(rough)
    about = math.inf
    for _ in range(3):
        sketch = Sketch(places)
        before, about = about, min(0.0, sketch.at(sketch.tilt_for(epsilon=epsilon))[1])
        if before < about + 7.0:
            break
        far = about < math.log(_FAR) or sketch.at(sketch.steepest)[0] < epsilon
        plain = max(1e-10 * math.exp(max(about, -600.0)), 1e-280)
        cut = max(1e-3 * alone, 1e-280) if far else plain
        places = _placed([spot.term for spot in rough], plain / events, cut / events, events)
    return places


def _placed(terms: Sequence[Term], lattice: float, smooth: float, events: int) -> list[Place]:
    """Places with at most so much left above them: lattices have tables that end, smooth laws do not."""
    on = [term.law.lattice(term.parameters) is not None for term in terms]
    return [
        place(term, lattice, 1e-10 / events) if it else place(term, smooth, 1e-13 / events)
        for term, it in zip(terms, on, strict=True)
    ]


def _solve(composed: View, delta: float, guess: float, top: float, *, sure: bool) -> Bracket:
    """The two ends of the least ε ≥ 0 with δ(ε) ≤ delta; `top` is where the finite losses of the grid end.

    If `sure`, those are all the finite losses there are, so that delta is met at `top` without looking.
    """
    upper, slope = composed.upper(0.0)
    if upper <= delta:
        return Bracket(0.0, 0.0)
    left, right = 0.0, top
    x = min(max(guess, 0.0), top)
    for _ in range(60):
        value, slope = composed.upper(x)
        if value > delta:
            left = x
        else:
            right = x
            if value > delta * (1 - 1e-12) or x - left <= 4 * U * x:
                break
        # Newton's step in e^ε, where the profile is convex and falling; a hair more, so as to end on the
        # safe side.
        move = (value - delta * (1 - 5e-13)) / slope if slope > 0 else -1.0
        x = x + math.log1p(move) if move > -1.0 else 0.5 * (left + right)
        if not left < x < right:
            x = 0.5 * (left + right)
            if not left < x < right:
                break
    lower = _solve_lower(composed, delta, right)
    if right == top and not sure and composed.upper(top)[0] > delta:
        return Bracket(lower, math.inf)
    return Bracket(lower, right)


def _solve_lower(composed: View, delta: float, upper: float) -> float:
    """An ε at which the lower bound still is at least delta: the truth is not below it."""
    value, slope = composed.upper(upper)
    gap = max((value - composed.lower(upper)) / slope if slope > 0 else 0.0, 1e-12 * upper) * 1.05
    short = 0.0
    for _ in range(24):  # outwards until the bound holds
        if gap >= upper:
            return 0.0
        if composed.lower(upper - gap) >= delta:
            break
        short, gap = gap, 4.0 * gap
    for _ in range(6):  # and back, if that went much too far
        if gap <= 1.1 * short or gap <= 0.1 * (_RELATIVE * upper + _ABSOLUTE) or short == 0.0:
            break
        middle = math.sqrt(short * gap)
        short, gap = (short, middle) if composed.lower(upper - middle) >= delta else (middle, gap)
    return upper - gap if composed.lower(upper - gap) >= delta else 0.0


def _infinity(terms: Sequence[Term]) -> tuple[float, float]:
    """Bounds on the mass at infinity of the composition: 1 - Π (1 - mass)^count."""
    if any(term.law.infinity(term.parameters) >= 1.0 for term in terms):
        return 1.0, 1.0
    kept = math.fsum(term.count * math.log1p(-term.law.infinity(term.parameters)) for term in terms)
    exact = -math.expm1(kept)
    return exact * (1 - 2.0**-39), min(1.0, exact * (1 + 2.0**-44))


def _extreme(terms: Sequence[Term], delta: float) -> Bracket:
    """The answer where delta covers next to no finite loss: close to the largest, or infinite."""
    covered = sum(term.count for term in terms) <= _EXACT and Fraction(delta) >= _exact_infinity(terms)
    ends = [term.law.support(term.parameters)[1] for term in terms]
    low = _exceeded(terms, ends, delta)
    if not covered or not all(map(math.isfinite, ends)):
        return Bracket(low, math.inf)
    high = float_up(
        sum((Fraction(end) * term.count for end, term in zip(ends, terms, strict=True)), Fraction(0))
    )
    return Bracket(min(low, max(high, 0.0)), max(high, 0.0))


def _exact_infinity(terms: Sequence[Term]) -> Fraction:
    kept = Fraction(1)
    for term in terms:
        kept *= (1 - Fraction(term.law.infinity(term.parameters))) ** term.count
    return 1 - kept


def _exceeded(terms: Sequence[Term], ends: Sequence[float], delta: float) -> float:
    """An ε at which the composed profile still exceeds delta.

    Losses that each exceed x_j add up to more than Σ x_j, and 1 - Π a_j ≥ Π (1 - a_j) for a_j in [0, 1]:
    the finite part of the composed profile at Σ x_j is at least the product of the finite parts at the x_j.
    """
    spare = max(0.0, delta - _infinity(terms)[0])
    if not all(map(math.isfinite, ends)):
        return 0.0
    for away in (2.0**-46, 2.0**-42, 2.0**-38, 2.0**-34, 2.0**-30, 2.0**-24, 2.0**-18, 2.0**-12):
        product, total = 1.0, Fraction(0)
        for term, end in zip(terms, ends, strict=True):
            x = end - abs(end) * away
            finite = float(term.law.bounds(x, term.parameters)[0]) - term.law.infinity(term.parameters)
            product *= max(finite, 0.0) ** term.count
            total += Fraction(x) * term.count
        if product * (1 - 1e-9) > spare:
            return max(0.0, float_down(total))
    return 0.0
