"""Finer and finer grids until a bracket is narrow: of the pair itself or of its swap, the shorter one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.exact import float_down, float_up
from sfumato.numeric.grid_dots import connect
from sfumato.numeric.grid_fft import Composed, Copies, compose, kernel_reach
from sfumato.numeric.grid_plan import Layout, Place, Sketch, common_step
from sfumato.numeric.grid_swap import Swapped, about_swapped, swapped_places, without_depths
from sfumato.numeric.laws.base import Term
from sfumato.numeric.rounding import U

__all__ = ["Bracketed", "View", "Wanted", "refined"]

_PASSES = 5
_LONG, _SHORTER, _NEAR = 2.0**16, 0.5, 3.0
"""A window of more steps than this is compared with the swapped pair's, which must be so much shorter.
Where rounding leaves that one's bracket less than so many times too wide, the long one hardly does better."""

_CANCELLED = 1e-6
"""A delta that is less than this part of the swapped pair's would be lost in the rounding of that."""

_BESIDE = 0.25
"""Where rounding alone is wider than asked, the grid may add so large a part of that."""

_SAFETY, _ROUGHLY = 0.8, 1.2
"""Steps are so much shorter than they need be, or nearly as long where only halves of them will do.

The second stays below the inverse of the first."""

View = Composed | Swapped


@dataclass(frozen=True, slots=True)
class Bracketed:
    """A bracket of the answer, how wide it may be, and how much of its width is rounding."""

    bracket: Bracket
    narrow: float
    rounding: float = 0.0

    @property
    def coarse(self) -> float:
        """How many times as wide as it may be the part is that finer steps would lessen; 1 and less: done."""
        left = self.bracket.width - self.rounding
        if left <= 0.0:
            return 0.0
        spare = self.narrow - self.rounding
        may = spare if spare > 0.1 * self.narrow else max(_BESIDE * self.rounding, 0.1 * self.narrow)
        return left / may if may > 0.0 else math.inf


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a composition, an epsilon or a delta."""

    aim: Callable[[Sketch], tuple[float, float, float, float]]  # saddle, epsilon, delta, tolerance in epsilon
    read: Callable[[View, float], Bracketed]
    point: Callable[[Bracket], tuple[float, float]]  # (epsilon, delta), roughly, once a bracket is known
    enough: float  # no more need be known of an answer that is at most this


@dataclass(frozen=True, slots=True)
class _Side:
    """One way to read a profile, of the pair as it is or swapped, and the window that this needs."""

    places: list[Place]
    at: float
    about: float  # the profile there, roughly
    log_about: float  # the logarithm of the lowest guess of it
    low: float
    high: float
    tilts: tuple[float, float, float]
    unit: float | None  # steps that are this over a power of two put atoms on points

    @property
    def length(self) -> float:
        """What the transform has to span."""
        return self.high - min(self.low, self.at)

    @classmethod
    def of(
        cls,
        sketch: Sketch,
        places: Sequence[Place],
        saddle: float,
        point: tuple[float, float],
        goal: tuple[float, float],
        *,
        steeper: bool = False,
    ) -> _Side:
        """The side for a profile of about point[1] at point[0], and a step and a tolerance."""
        at, about = point
        log_about = min(math.log(about), sketch.at(saddle)[1])
        tilt, low, high, up, down = sketch.frame(saddle, log_about, *goal, steeper=steeper)
        trimmed = sketch.trimmed(places, tilt, at, log_about)
        return cls(trimmed, at, about, log_about, low, high, (tilt, up, down), _unit(places))


def _other_side(terms: Sequence[Term], point: tuple[float, float], goal: tuple[float, float]) -> _Side | None:
    """The side of the swapped pair, where delta is about point[1] at point[0]; None where not known."""
    epsilon, delta = point
    about = about_swapped(epsilon, delta)
    if not 0.0 < about * _CANCELLED < delta or epsilon == math.inf:
        return None
    places = swapped_places(terms, epsilon, max(1e-10 * delta, 1e-280))
    if places is None:
        return None
    sketch = Sketch(places)
    # An error of the swapped profile is one of delta, of which it is a larger part.
    goal = goal[0], goal[1] * delta / about
    saddle = sketch.tilt_for(epsilon=-epsilon)
    return _Side.of(sketch, places, saddle, (-epsilon, about), goal, steeper=True)


def refined(places: Sequence[Place], question: Wanted, largest: int, first: int) -> Bracket:
    """Compose on finer and finer grids until the bracket is narrow or the largest grid was used.

    Where the next grid would be long and that of the swapped pair is shorter, it is tried in between.
    """
    sketch = Sketch(places)
    saddle, guess, about, tolerance = question.aim(sketch)
    spread = _spread(places)
    # Lemma 7 in the smooth case: spreading moves ε by about 2.1·(tilt + 1)·variance.
    step = math.sqrt(tolerance / (2.0 * (saddle + 1) * spread)) if spread else math.inf
    direct = _Side.of(sketch, places, saddle, (guess, about), (step, tolerance))
    short = without_depths(places, guess)
    if short != list(places):
        sketch = Sketch(short)
        saddle = sketch.tilt_for(epsilon=guess)
        steeper = _Side.of(sketch, short, saddle, (guess, about), (step, tolerance), steeper=True)
        direct = steeper if steeper.length < _SHORTER * direct.length else direct
    best, alone = Bracket(-math.inf, math.inf), True

    def settled(reading: Bracketed) -> bool:
        nonlocal best
        best = _tighter(best, reading.bracket)
        return reading.bracket.width <= reading.narrow or best.upper <= question.enough

    def swapped(at: float) -> Callable[[Composed], Bracketed]:
        return lambda composed: question.read(Swapped(composed), at)

    step = max(step, direct.length / first)
    for reading, following in _passes(direct, step, lambda it: question.read(it, guess), largest):
        if settled(reading):
            break
        if not alone or not 0.0 < following * _LONG < direct.length:
            continue
        alone, point = False, question.point(best)
        other = _other_side([spot.term for spot in places], point, (following, tolerance))
        if other is None or other.length > _SHORTER * direct.length:
            continue
        step = max(following, other.length / first)
        before = best.width
        for turned, finer in _passes(other, step, swapped(point[0]), largest):
            if settled(turned):
                return best
            # As long as it is the shorter one.
            if other.length * following > _SHORTER * direct.length * finer:
                break
        if best.width <= min(_NEAR * reading.narrow, 0.5 * before):
            break
    return best


def _spread(places: Sequence[Place]) -> int:
    """How many events lie on no lattice that the step divides."""
    return sum(spot.term.count for spot, on in zip(places, common_step(places)[1], strict=True) if not on)


def _passes(
    side: _Side, step: float, read: Callable[[Composed], Bracketed], largest: int
) -> Iterator[tuple[Bracketed, float]]:
    """What finer and finer grids tell, each with the step to come (0: none)."""
    places, spread = side.places, _spread(side.places)
    divisor, shared = common_step(places)
    unit = side.unit if divisor is None else None
    room = (kernel_reach(-side.log_about) + 1) * math.sqrt(1.1 * spread / 4) + 4
    best: Bracket | None = None
    for _ in range(_PASSES):
        aligned = step if unit is None else unit * 2.0 ** math.floor(math.log2(_ROUGHLY * step / unit))
        window = side.at, side.low, side.high, room
        layout, last = _layout(
            places, divisor, aligned, window, side.tilts, largest, spread, unit is not None
        )
        composed = compose(_parts(places, shared, divisor, layout), layout, side.about)
        reading = read(composed)
        bracket, coarse = reading.bracket, reading.coarse
        before = math.inf if best is None else best.width
        best = bracket if best is None else _tighter(best, bracket)
        # Where a finer grid hardly helped, what is left is not the grid's doing.
        last = last or best.width > 0.7 * before or coarse <= 1.0
        # The width falls with the square of the step; without a lower end, nobody knows how far to go.
        wanted = 1 / math.sqrt(coarse) if coarse > 0.0 and bracket.lower > 0.0 else 0.0
        step = layout.step * min(0.5, max(1 / 16 if wanted else 1 / 4, _SAFETY * wanted))
        yield reading, 0.0 if last else step
        if last:
            return


def _unit(places: Sequence[Place]) -> float | None:
    """The span of the commonest bounded law: halvings of it put both its ends, where atoms are, on the grid.

    An atom between two points is spread over both, which costs as much as the cell is wide; on a point it
    costs nothing. Halving is exact, so that the points are those of the support whatever the step.
    """
    bounded = [
        spot for spot in places if (spot.low, spot.high) == spot.term.law.support(spot.term.parameters)
    ]
    most = max(bounded, key=lambda spot: spot.term.count, default=None)
    return None if most is None or not most.high > most.low else most.high - most.low


def _tighter(one: Bracket, other: Bracket) -> Bracket:
    """Both brackets hold the truth, so their intersection does."""
    return Bracket(max(one.lower, other.lower), min(one.upper, other.upper))


def _layout(
    places: Sequence[Place],
    divisor: Fraction | None,
    step: float,
    window: tuple[float, float, float, float],
    tilts: tuple[float, float, float],
    largest: int,
    spread: int,
    aligned: bool,
) -> tuple[Layout, bool]:
    """The layout for a wanted step, and whether it is the last because nothing finer fits."""
    guess, low, high, room = window
    tilt, up, down = tilts
    widest = max((spot.high - spot.low for spot in places if spot.lattice is None), default=0.0)
    low = min(low, guess)
    finest = max((high - low) / (largest - 4), widest / (largest - 4), 1e-300)
    last = step <= 1.25 * finest or not spread
    step = max(step, finest)
    if divisor is not None:
        pieces = max(1, math.ceil(divisor / Fraction(step))) if math.isfinite(step) else 1
        if pieces > 1 and divisor / pieces < Fraction(finest):
            pieces = max(1, pieces - 1)
        step = float_down(divisor / pieces * (1 - Fraction(1, 2**52)))
    # Room for the neighbourhood of epsilon that lemma 7 looks at.
    low -= room * step
    bottom = sum(spot.term.count * spot.low for spot in places)
    if low <= bottom:  # each law's lowest point may lie a step below its lowest loss
        low = min(low, bottom - (2 * spread + 4) * step)
    layout = Layout(step, tilt, low, high, up, down)
    if divisor is None and not aligned and layout.size <= largest:
        layout = Layout(max((high - low) / (layout.size - 3), finest), tilt, low, high, up, down)
    return layout, last


def _parts(
    places: Sequence[Place], shared: Sequence[bool], divisor: Fraction | None, layout: Layout
) -> list[Copies]:
    """Each law on its own points: its lattice where the step divides it, all points of the grid otherwise."""
    step = Fraction(layout.step)
    parts = []
    for spot, on in zip(places, shared, strict=True):
        term = spot.term
        if on and divisor is not None and spot.lattice is not None:
            stride = int(Fraction(spot.lattice) / step)
            count = (
                math.ceil((spot.high - spot.low) / spot.lattice * (1 - 1e-12)) + 2
            )  # one point below the lowest atom
            mismatch = Fraction(spot.lattice) - stride * step
            raised = float_up(mismatch * count) + 4 * U * abs(spot.high) * count
        else:
            stride, raised = 1, 0.0
            count = math.ceil((spot.high - spot.low) / layout.step) + 2
        zone = int(spot.spare / layout.step) if stride == 1 else 0
        dots = connect(
            term.law, term.parameters, spot.high, layout.step, count=count, stride=stride, zone=zone
        )
        parts.append(Copies(dots, term.count, stride, not on, raised))
    return parts
