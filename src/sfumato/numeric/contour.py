"""Certified contour integration: the composed profile from the moment generating functions of its parts.

For independent losses with M(z) = Π E_P[exp(z L_i); L_i < inf] and any c > 0

    delta(epsilon) = (1/2πi) ∫ M(z) e^(-z epsilon) / (z (z + 1)) dz    over Re z = c,

plus the mass at infinity, which callers add. The trapezoid rule with step D over the *whole* line equals
Σ_m e^(2πmc/D) delta(epsilon + 2πm/D): the wanted figure and its aliases, all at least 0. So the rule errs
upwards, and an upper bound needs only what was truncated and rounded; a lower bound subtracts bounds on the
aliases too. The theorem and every bound are in docs/proofs/contour.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.laws.base import Complexes, Floats, Law, Term
from sfumato.numeric.laws.gaussian import GAUSSIAN
from sfumato.numeric.rounding import SMALLEST, U
from sfumato.numeric.solve import fall, minimum

__all__ = ["Composition", "Contour", "assembled", "delta", "epsilon", "inverted", "right_alias", "tail"]

# Relative errors in delta that aliases and truncation are pushed below; in epsilon they count divided by c.
_TOLERANCE = 1e-11
_MOST_NODES = 1 << 14
_MOST_VALUES = 3_000_000
_SMALLEST_C, _LARGEST_C = 2.0**-24, 2.0**24
# Where the right aliases are bounded: close together near 1, because heavy tails put a wall just beyond c.
_RATIOS = 1 + np.geomspace(0.01, 15.0, 20)


@dataclass(frozen=True, slots=True)
class Composition:
    """The finite losses of independent events, grouped by law so that each law is evaluated once a node."""

    groups: tuple[tuple[Law, Floats, Floats], ...]
    top: float  # no finite loss lies above

    @classmethod
    def of(cls, terms: Sequence[Term]) -> Composition:
        """Group terms by law; all Gaussians become one, since their losses add up to a Gaussian loss."""
        counts: dict[tuple[Law, tuple[float, ...]], int] = {}
        squares: list[float] = []
        for term in terms:
            if term.law is GAUSSIAN:
                squares.append(term.count * term.parameters[0] ** 2)
            else:
                key = (term.law, term.parameters)
                counts[key] = counts.get(key, 0) + term.count
        laws: dict[Law, tuple[list[tuple[float, ...]], list[float]]] = {}
        top = 0.0
        for (law, parameters), count in counts.items():
            # Laws whose rows differ in length (mixtures) cannot share an array.
            rows, numbers = laws.setdefault(law, ([], []))
            rows.append(parameters)
            numbers.append(float(count))
            top += count * law.support(parameters)[1]
        groups: list[tuple[Law, Floats, Floats]] = []
        if squares and sum(squares) > 0:
            groups.append((GAUSSIAN, np.array([[math.sqrt(math.fsum(squares))]]), np.ones(1)))
            top = math.inf
        for law, (rows, numbers) in laws.items():
            for width in {len(row) for row in rows}:
                chosen = [i for i, row in enumerate(rows) if len(row) == width]
                groups.append(
                    (law, np.array([rows[i] for i in chosen]), np.array([numbers[i] for i in chosen]))
                )
        return cls(tuple(groups), top * (1 + 4 * U * (len(counts) + 1)) if top > 0 else top)

    def effort(self, t: float) -> float:
        """How many values a node at height t costs."""
        return sum(law.effort(t, parameters) for law, parameters, _ in self.groups)

    def log_mgf(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Log M(z) and a bound on |exp of it - M(z)| over M(Re z).

        Every factor over its value at Re z is at most 1 in modulus and errs by its own η, so a product errs
        by at most e^(Ση) - 1; pairwise summation of the exponents errs by at most 64 U of their sizes.
        """
        total = np.zeros(len(z), dtype=z.dtype)
        error, size = np.zeros(len(z)), np.zeros(len(z))
        for law, parameters, counts in self.groups:
            values = law.log_mgf(z, parameters) * counts
            total = total + values.sum(axis=1)
            finite = np.abs(np.where(np.isfinite(values), values, 0.0))
            size += finite.sum(axis=1)
            error += law.mgf_error(z, parameters, counts)
        with np.errstate(over="ignore"):
            return total, np.expm1(error + 64 * U * size)

    def log_decay(self, c: float, t: float) -> float:
        """A bound on log|M(c + iτ)| - log M(c) for all |τ| ≥ t."""
        at, beyond = np.array([c]), np.array([t])
        parts = [float((law.log_decay(at, beyond, p) @ n)[0]) for law, p, n in self.groups]
        return min(0.0, math.fsum(parts))

    def real(self, c: float) -> float:
        """Log M(c), without its error: for choosing a contour, never for a bound."""
        value = float(self.log_mgf(np.array([c]))[0][0])
        return value if math.isfinite(value) else math.inf


@dataclass(frozen=True, slots=True)
class Contour:
    """A contour with everything on it evaluated, ready to be read at any epsilon.

    With S(e) = Re Σ_k weights_k e^(-i t_k e) the rule's answer is e^(log_m - c e) S(e).
    """

    c: float
    step: float
    times: Floats
    weights: Complexes
    log_m: float
    error: float  # on S: rounding of the moments, truncation
    phase: float  # on S for each unit of epsilon: rounding of the phases
    slack: float  # relative: of e^log_m, and of the sum
    far: Floats  # points c' > c
    far_log: Floats  # log of the Chernoff bound on delta(x) e^(c' x), rounded up
    top: float

    def sum(self, epsilon: float) -> float:
        """S at epsilon."""
        # Not a product of the linear algebra library, which wakes all its threads for a sum this short.
        return float(np.sum(self.weights * np.exp(self.times * (-1j * epsilon))).real)

    def guess(self, delta: float, start: float) -> float:
        """Roughly where the rule reads delta: Newton's method on its logarithm, from a point to the right."""
        x = start
        for _ in range(12):
            turned = self.weights * np.exp(self.times * (-1j * x))
            value = float(turned.real.sum())
            if value <= 0:
                return x
            slope = float(turned.imag @ self.times) / value - self.c
            move = (math.log(value) + self._scale(x) - math.log(delta)) / min(slope, -0.1 * self.c)
            x = max(x - move, 0.0)
            if abs(move) < 1e-3 * U**0.5 * (x + 1 / self.c):
                break
        return x

    def _scale(self, epsilon: float) -> float:
        """e^(log_m - c epsilon), and by how much its exponent may be off."""
        return self.log_m - self.c * epsilon

    def _off(self, epsilon: float) -> float:
        """The relative error of e^_scale and of the sum."""
        return self.slack + 8 * U * (abs(self.log_m) + self.c * abs(epsilon))

    def upper(self, epsilon: float) -> float:
        """A float not below the finite part of delta(epsilon).

        Privacy:
            The infinite rule is at least delta, since its aliases are; the finite sum plus its error bound
            is at least the infinite rule.
        """
        if epsilon >= self.top:
            return 0.0
        total = self.sum(epsilon) + self.error + self.phase * abs(epsilon)
        scale = self._scale(epsilon)
        if total <= 0 or scale > 600:
            return 1.0
        return min(1.0, math.exp(scale) * total * (1 + 2 * self._off(epsilon)))

    def lower(self, epsilon: float) -> float:
        """A float not above the finite part of delta(epsilon): aliases are subtracted as well.

        To the left delta ≤ 1; to the right Chernoff: delta(x) ≤ M(c') e^(-c' x) c'^c'/(c'+1)^(c'+1).
        """
        total = self.sum(epsilon) - self.error - self.phase * abs(epsilon)
        scale = self._scale(epsilon)
        if total <= 0 or scale > 600:
            return 0.0
        value = math.exp(scale) * total * (1 - 2 * self._off(epsilon))
        return max(0.0, value - self.alias(epsilon))

    def alias(self, epsilon: float) -> float:
        """A bound on the sum of all aliases."""
        return _left(self.c, self.step) + right_alias(
            self.c, self.step, epsilon, self.far, self.far_log, self.top
        )


def _left(c: float, step: float) -> float:
    """Σ over m < 0 of e^(2πmc/D)·1."""
    x = math.exp(-2 * math.pi * c / step)
    return x / (1 - x) * (1 + 1e-9) if x < 1 else math.inf


def right_alias(c: float, step: float, epsilon: float, far: Floats, far_log: Floats, top: float) -> float:
    """Σ over m > 0 of e^(2πmc/D) delta(epsilon + 2πm/D) by the best Chernoff bound; 0 beyond the top."""
    shift = 2 * math.pi / step
    if epsilon + shift >= top:
        return 0.0
    gap = (far - c) * shift
    logs = far_log - far * epsilon - gap - np.log(-np.expm1(-gap))
    return math.exp(min(float(logs.min()) + 1e-9, 700.0))


def _kernel(c: float) -> float:
    """Log(c(c + 1)): how far the integrand is below the moment."""
    return math.log(c) + math.log1p(c)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A contour before it is evaluated: where it runs, its step, how many nodes, and bounds further right."""

    c: float
    step: float
    nodes: int
    far: Floats
    far_log: Floats


def _layout(composition: Composition, c: float, epsilon: float, log_delta: float) -> _Layout | None:
    """Step and number of nodes from the bounds that the answer will carry; None if too many."""
    far = c * _RATIOS
    values, errors = composition.log_mgf(far)
    usable = np.isfinite(values) & (errors < 0.1)
    if not usable.any():
        return None
    far, values, errors = far[usable], values[usable], errors[usable]
    far_log = (
        values + 2 * errors + far * np.log(far) - (far + 1) * np.log1p(far) + 1e-12 * (1 + np.abs(values))
    )
    goal = log_delta + math.log(_TOLERANCE)
    step = 2 * math.pi * c / -min(goal, -1.0)
    for _ in range(60):
        if math.log(max(right_alias(c, step, epsilon, far, far_log, composition.top), 1e-320)) <= goal:
            break
        step *= 0.85
    nodes = _nodes(composition, c, epsilon, step, goal)
    return None if nodes is None else _Layout(c, step, nodes, far, far_log)


def line(composition: Composition, c: float, epsilon: float, log_delta: float) -> Contour | None:
    """A line near Re z = c for reading delta near epsilon, where it is about e^log_delta; None if too long.

    Where heavy tails force a small step, a contour further left may need fewer nodes: it is tried. A poor
    choice costs width or time, never soundness.
    """
    best = _layout(composition, c, epsilon, log_delta)
    for part in (0.8, 0.65, 0.5):
        if best is not None and best.nodes <= 256:
            break
        other = _layout(composition, c * part, epsilon, log_delta)
        if other is not None and (best is None or other.nodes < best.nodes):
            best = other
    return None if best is None else _evaluated(composition, best)


def _evaluated(composition: Composition, layout: _Layout) -> Contour | None:
    """The moments on a contour, and the error of the finite sum."""
    c, step, nodes = layout.c, layout.step, layout.nodes
    times: Floats = step * np.arange(nodes, dtype=np.float64)
    z = c + 1j * times
    total, moved = composition.log_mgf(z)
    if not moved[0] < 1e-3:
        return None
    rest = composition.log_decay(c, step * nodes)
    return assembled(layout.c, step, total, moved, rest, (layout.far, layout.far_log), composition.top)


def assembled(
    c: float,
    step: float,
    total: Complexes,
    moved: Floats,
    log_rest: float,
    far: tuple[Floats, Floats],
    top: float,
) -> Contour:
    """A line from the moments on its nodes.

    Args:
        c: where it crosses the real axis.
        step: the distance of its nodes.
        total: log M at its nodes.
        moved: the errors of exp(total) over M(c).
        log_rest: a bound on log|M/M(c)| beyond the last node.
        far: points further right and the logarithms of Chernoff bounds there.
        top: no finite loss lies above.
    """
    nodes = len(total)
    times: Floats = step * np.arange(nodes, dtype=np.float64)
    z = c + 1j * times
    log_m = float(total[0].real)
    with np.errstate(under="ignore", invalid="ignore"):
        factor = np.where(np.isneginf(total.real), 0.0, np.exp(total - log_m))
    size = (step / math.pi) / np.abs(z * (z + 1))
    size[0] *= 0.5
    weights = factor * (step / math.pi) / (z * (z + 1))
    weights[0] *= 0.5
    # All moduli are stated against M(c), which is e^log_m up to moved[0].
    against = 1 + 2 * float(moved[0])
    rounding = float(size @ (np.minimum(moved, 2.0) + 32 * U)) * against
    # Whatever the order of summation, a sum errs by at most its length in units of U of its sizes.
    rounding += 2 * (nodes + 8) * U * float(np.abs(weights).sum())
    edge = step * nodes
    cut = math.exp(log_rest) * (step / edge + 1) / (math.pi * edge) * against
    return Contour(
        c=c,
        step=step,
        times=times,
        weights=weights,
        log_m=log_m,
        error=(rounding + cut) * (1 + 1e-9),
        phase=float(np.abs(weights) @ times) * 8 * U,
        slack=64 * U,
        far=far[0],
        far_log=far[1],
        top=top,
    )


def _nodes(composition: Composition, c: float, epsilon: float, step: float, goal: float) -> int | None:
    """How many nodes make the truncated rest negligible: by doubling, then by halving the last stretch."""
    most = _MOST_NODES
    while most > 32 and most * composition.effort(step * most) > _MOST_VALUES:
        most //= 2
    log_m = composition.real(c)

    def rest(nodes: int) -> float:
        edge = step * nodes
        decay = composition.log_decay(c, edge)
        return log_m - c * epsilon + decay + math.log((step / edge + 1) / (math.pi * edge)) - goal

    # What even the largest number leaves: hopeless if it alone would be wider in epsilon than is wanted.
    wanted = math.log(min(c * (1e-6 * abs(epsilon) + 1e-9), 0.1) / _TOLERANCE)
    if rest(most) > wanted:
        return None
    high = 8
    while high < most and rest(high) > 0:
        high *= 2
    low, high = high // 2, min(high, most)
    while high - low > max(2, high // 16):
        middle = (low + high) // 2
        if rest(middle) > 0:
            low = middle
        else:
            high = middle
    return high


def epsilon(terms: Sequence[Term], delta: float) -> Bracket | None:
    """The epsilon at which the finite losses of the terms leave delta, or None where contours cannot tell.

    Privacy:
        Both ends are points at which the line's own bounds decide: `upper(end) ≤ delta` or `lower(end) ≥
        delta`; the profile decreases, so the truth lies between them.
    """
    composition = Composition.of(terms)
    if not composition.groups:
        return Bracket(0.0, 0.0)
    log_delta = math.log(delta)

    def chernoff(c: float) -> float:
        return (composition.real(c) - _kernel(c) - log_delta) / c

    c = minimum(chernoff, 8.0, _SMALLEST_C, _LARGEST_C)
    start = chernoff(c)
    if not math.isfinite(start):
        return None
    path = line(composition, c, max(start - 3 / c, 0.0), log_delta)
    if path is None:
        return None
    return inverted(path, delta, min(start, composition.top))


def inverted(path: Contour, delta: float, start: float) -> Bracket | None:
    """The epsilon at which a line reads delta.

    Privacy:
        Each end is a point at which one of the line's own bounds was seen to decide; the profile
        decreases, so the truth lies between them.
    """
    if path.upper(0.0) <= delta:
        return Bracket(0.0, 0.0)
    guess = path.guess(delta, max(start, 1.0 / path.c))
    # The bounds differ from the rule by their relative error over the slope, which is about c.
    part = (path.error + path.phase * guess) / max(path.sum(guess), 1e-300) + path.slack
    tolerance = 0.5 * min(part, 1.0) / path.c + 1e-15 * guess
    high, width = guess + 4 * tolerance, 1e-3 / path.c
    while path.upper(high) > delta:
        high += width
        width *= 2
        if width > 1e6 * (guess + 1 / path.c):
            return None
    _, upper = fall(path.upper, delta, 0.0, high, guess=guess + 2 * tolerance, tolerance=tolerance)
    # The line was laid for epsilons near the guess: far below it its lower bound says nothing.
    reach = 8 * tolerance
    while path.lower(upper - reach) <= delta:
        reach *= 8
        if reach >= upper:
            return Bracket(0.0, upper)
    lower, _ = fall(path.lower, delta, upper - reach, upper, guess=guess - 2 * tolerance, tolerance=tolerance)
    return Bracket(lower, upper)


def delta(terms: Sequence[Term], epsilon: float) -> Bracket | None:
    """The finite part of the composed profile at epsilon, or None where contours cannot tell."""
    composition = Composition.of(terms)
    if epsilon >= composition.top:
        return Bracket(0.0, 0.0)

    def height(c: float) -> float:
        return composition.real(c) - c * epsilon - _kernel(c)

    c = minimum(height, 8.0, _SMALLEST_C, _LARGEST_C)
    log_delta = min(height(c) - 3.0, -1e-3)
    if not math.isfinite(log_delta):
        return None
    path = line(composition, c, epsilon, log_delta)
    return None if path is None else Bracket(path.lower(epsilon), path.upper(epsilon))


def tail(terms: Sequence[Term], epsilon: float) -> float:
    """A float not below the finite part of the profile: Chernoff's bound (proof, lemma 3) at a good point.

    Cheap and rough: moments at real points only.
    """
    composition = Composition.of(terms)
    if epsilon >= composition.top or not composition.groups:
        return 0.0
    c = minimum(lambda c: composition.real(c) - c * epsilon - _kernel(c), 8.0, _SMALLEST_C, _LARGEST_C)
    while c > _SMALLEST_C:
        value, error = composition.log_mgf(np.array([c]))
        log_m, moved = float(value[0]), float(error[0])
        if math.isfinite(log_m) and moved < 0.1:
            exponent = log_m + 2 * moved - c * epsilon + c * math.log(c) - (c + 1) * math.log1p(c)
            exponent += 1e-12 * (1 + abs(log_m) + c * abs(epsilon))
            return max(math.exp(min(exponent, 700.0)), SMALLEST)
        c /= 4.0  # so far out the moments are all rounding
    return math.inf
