"""Intervals for the noise, from the law alone: sums, ratios and variances of noisy measurements.

Everything is vectorised over groups: a *form* is an array with one row for each noise and one column for each
group (or a single one), the coefficients of Σ a_i·X_i. Nothing is simulated. Widths are never too narrow:
where a law is known in closed form they are quantiles, elsewhere bounds, and each function says which.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.intervals.noise import Noise

__all__ = [
    "Blend",
    "Floats",
    "edge",
    "excess_of",
    "mean_interval",
    "on_rows",
    "quotient",
    "tail_of_two",
    "variance_interval",
]

Floats: TypeAlias = NDArray[np.float64]

_SPREAD = 1.01  # scales closer than this are moved apart before partial fractions are taken
_EXACT_TERMS = 6  # beyond, partial fractions cancel too much
_EPS = 2.0**-50
_DOUBLINGS, _HALVINGS, _TURNS, _FINE = 120, 52, 14, 2.0**-40
_STEPS = np.concatenate([np.geomspace(1e-3, 0.5, 24), 1 - np.geomspace(0.45, 1e-4, 24)])
_MEAN_SHARE = 1 / 16  # of a variance's risk: what may go wrong in placing the mean


def tail_of_two(width: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """P(|X + Y| > width) for independent Laplace X and Y of these scales, exactly.

    (A²·e^(−t/A) − B²·e^(−t/B))/(A² − B²), and (1 + t/(2A))·e^(−t/A) where the scales agree: partial fractions
    of the characteristic function 1/((1 + A²s²)(1 + B²s²)). Written with A ≥ B and d = (A − B)/A as
    e^(−t/A)·(1 − e^(−v))/(1 − e^(−w)), w = −2·ln(1 − d), v = w + (t/A)·d/(1 − d), it loses no digits however
    close they are.
    """
    t = np.asarray(width, dtype=np.float64)
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    large, small = np.maximum(one, two), np.minimum(one, two)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        x = t / large
        gap = (large - small) / large
        w = -2 * np.log1p(-gap)
        v = w + x * (gap / (1 - gap))
        factor = np.where(gap > 0, np.expm1(-v) / np.expm1(-w), 1 + x / 2)
        result = np.exp(-x) * np.where(small > 0, factor, 1.0)
    return _settled(result, t, large)


def _tail_of_many(t: Floats, scales: Floats) -> Floats:
    """A bound on P(|Σ X_i| > t) for independent Laplace X_i: Σ c_i·e^(−t/A_i), c_i = Π A_i²/(A_i² − A_j²).

    Exact where neighbouring scales differ by 1 %. Closer ones are widened to that first, which only makes the
    sum larger in absolute value (Anderson 1955: all laws here are symmetric and unimodal); what rounding may
    have taken off is added.
    """
    ordered = np.sort(scales, axis=0)[::-1]
    top = ordered[0]
    ordered[-1] = np.maximum(ordered[-1], 1e-9 * top)
    for i in range(len(ordered) - 2, -1, -1):
        ordered[i] = np.maximum(ordered[i], _SPREAD * ordered[i + 1])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        total = size = np.zeros(np.broadcast_shapes(t.shape, top.shape))
        for i, scale in enumerate(ordered):
            weight = np.ones_like(scale)
            for j, other in enumerate(ordered):
                if i != j:
                    weight = weight / ((1 - other / scale) * (1 + other / scale))
            term = weight * np.exp(-t / scale)
            total, size = total + term, size + np.abs(term)
        result = total + 8 * len(ordered) * _EPS * size
    return _settled(result, t, top)


def _settled(tail: Floats, t: Floats, scale: Floats) -> Floats:
    """A probability: 1 for no width at all, 0 where there is no noise."""
    return np.where(t <= 0, 1.0, np.where(scale > 0, np.clip(tail, 0.0, 1.0), 0.0))


@dataclass(frozen=True, slots=True)
class Blend:
    """Independent noises of which linear forms are taken.

    Attributes:
        noises: Their laws; geometric ones are replaced by continuous ones with more slack
            (`Noise.continuous`).
    """

    noises: tuple[Noise, ...]

    def __post_init__(self) -> None:
        alone = sum(noise.law == "geometric" for noise in self.noises) == 1
        object.__setattr__(self, "noises", tuple(noise.continuous(alone=alone) for noise in self.noises))

    def tail(self, form: Floats, width: Floats) -> Floats:
        """A bound on P(|Σ a_i·X_i| > width), slack included; exact but for the slack where that is known.

        Gaussians, and one or two Laplaces: exact. Three to six Laplaces: within 1 % of scale each (partial
        fractions). More, or both laws at once: Chernoff's bound.
        """
        size = np.abs(form)
        slack = sum((size[i] * noise.slack for i, noise in enumerate(self.noises)), np.zeros(size.shape[1:]))
        t = (width - slack) * (1 - _EPS)
        laplace = [size[i] * noise.scale for i, noise in enumerate(self.noises) if noise.law != "gaussian"]
        squares = [np.square(size[i] * n.scale) for i, n in enumerate(self.noises) if n.law == "gaussian"]
        if not laplace:
            from scipy import special

            sigma = np.sqrt(sum(squares, np.zeros(size.shape[1:])))
            with np.errstate(divide="ignore", invalid="ignore"):
                return _settled(special.erfc(t / (sigma * math.sqrt(2))), t, sigma)
        if squares or len(laplace) > _EXACT_TERMS:
            return _chernoff(t, np.stack(laplace), sum(squares, np.zeros(size.shape[1:])))
        if len(laplace) <= 2:
            return tail_of_two(t, laplace[0], laplace[-1] if len(laplace) == 2 else np.zeros_like(laplace[0]))
        return _tail_of_many(t, np.stack(laplace))

    def reach(self, form: Floats, risk: float) -> Floats:
        """Σ |a_i|·(the width of X_i alone): about how wide the form is, to start a search from."""
        size = np.abs(form)
        return sum(
            (size[i] * noise.width(risk) for i, noise in enumerate(self.noises)), np.zeros(size.shape[1:])
        )

    def width(self, form: Floats, risk: float) -> Floats:
        """Half-widths that |Σ a_i·X_i| exceeds with probability at most `risk`: quantiles if `tail` is exact.

        Where it only bounds, the sum of the single widths at risk/k each is taken if it is smaller.
        """
        if form.shape[1:] == (1,):  # one for all groups, and for the next answer with this noise
            return _known_width(self, tuple(form[:, 0].tolist()), risk)
        return self._width(form, risk)

    def within(self, width: float, form: Floats, risk: float) -> bool:
        """Whether `width` of one form is at most this, but for the last digit of a float."""
        return bool(self._most(form, risk)[0] <= width or self.tail(form, np.array([width]))[0] <= risk)

    def _most(self, form: Floats, risk: float) -> Floats:
        """The sum of the single widths at risk/k each: no form is wider."""
        return self.reach(form, risk / max(1, len(self.noises))) * (1 + _EPS)

    def _width(self, form: Floats, risk: float) -> Floats:
        high = self._most(form, risk)
        low = np.zeros_like(high)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            out = self.tail(form, middle) <= risk
            low, high = np.where(out, low, middle), np.where(out, middle, high)
        return high


@functools.lru_cache(maxsize=1024)
def _known_width(blend: Blend, form: tuple[float, ...], risk: float) -> Floats:
    found = blend._width(np.array(form)[:, None], risk)
    found.flags.writeable = False
    return found


def _chernoff(t: Floats, scales: Floats, variance: Floats) -> Floats:
    """2·min over s of exp(−s·t)·E exp(s·Z), over a fixed list of s below 1/max scale."""
    from scipy import special

    best = np.full(np.broadcast_shapes(t.shape, variance.shape), np.inf)
    top = scales.max(axis=0)
    safe = np.where(top > 0, top, 1.0)
    with np.errstate(over="ignore", under="ignore"):
        for step in _STEPS:
            s = step / safe
            growth = -np.log1p(-np.square(s * scales)).sum(axis=0) + variance * s * s / 2
            best = np.minimum(best, growth - s * t)
        bound = 2 * np.exp(np.minimum(best, 0.0))
    only_gaussian = special.erfc(t / np.sqrt(2 * np.where(variance > 0, variance, 1.0)))
    return _settled(np.where(top > 0, bound, only_gaussian), t, np.maximum(top, np.sqrt(variance)))


def edge(start: Floats, step: Floats, excess: Callable[[Floats], Floats]) -> Floats:
    """How far one can go from `start` in the direction of `step` until `excess` is no longer positive.

    Positive excess must be an interval that holds the start. The answer is its end, from the outside, or
    infinite: doubled steps until it is passed, then regula falsi (Illinois) with a bisection in between.
    """
    near, far, inner = start, start + step, excess(start)
    outer = excess(far)
    for _ in range(_DOUBLINGS):
        going = outer > 0
        if not going.any():
            break
        step = np.where(going, step * 2, step)
        near, inner = np.where(going, far, near), np.where(going, outer, inner)
        far = np.where(going, start + step, far)
        outer = np.where(going, excess(far), outer)
    endless = outer > 0
    first, last = far - near, np.zeros(near.shape)
    for turn in range(_TURNS):
        with np.errstate(divide="ignore", invalid="ignore"):
            part = inner / (inner - outer) if turn % 4 else np.full(near.shape, 0.5)
        point = near + np.where((part > 0) & (part < 1), part, 0.5) * (far - near)
        here = excess(point)
        held = here > 0
        # An end that stays twice in a row has its excess halved, so that it moves next time.
        inner, outer = (
            np.where(held, here, np.where(last < 0, inner / 2, inner)),
            np.where(held, np.where(last > 0, outer / 2, outer), here),
        )
        near, far, last = np.where(held, point, near), np.where(held, far, point), np.where(held, 1.0, -1.0)
    for fine in (_FINE * 2.0**10, _FINE):  # near is there by now: see whether just beyond it is out already
        point = near + np.minimum(np.abs(far - near), np.abs(first) * fine) * np.sign(first)
        far = np.where(excess(point) > 0, far, point)
    return np.where(endless, np.copysign(np.inf, step), far)


def excess_of(tail: Floats, risk: float, firm: NDArray[np.bool_]) -> Floats:
    """How far a tail is above the risk, on the scale of logarithms where it is nearly straight."""
    with np.errstate(divide="ignore"):
        return np.where(firm, np.maximum(np.log(tail) - math.log(risk), -100.0), -1.0)


def on_rows(
    rows: NDArray[np.bool_],
    elsewhere: tuple[float, float],
    solve: Callable[..., tuple[Floats, Floats]],
    *arrays: Floats,
) -> tuple[Floats, Floats]:
    """The ends that are solved for on some rows, and what they are elsewhere, where nothing is looked for.

    Args:
        rows: Which.
        elsewhere: Both ends on the others.
        solve: Both ends, of the arrays on these rows; what holds for one row must not depend on another.
        arrays: With a column for each row, or a single one for all.
    """
    low, high = (np.full(rows.shape, end) for end in elsewhere)
    if rows.any():
        low[rows], high[rows] = solve(
            *(each[..., rows] if each.shape[-1] == len(rows) else each for each in arrays)
        )
    return low, high


def quotient(
    blend: Blend,
    risk: float,
    *,
    top: Floats,
    bottom: Floats,
    numerator: Floats,
    denominator: Floats,
    least: float = 0.0,
) -> tuple[Floats, Floats]:
    """The set of ratios θ = N/D that the noisy N̂ and D̂ do not refute: Fieller's interval, for any noise.

    N̂ − θ·D̂ has the noise Σ (a_i − θ·d_i)·X_i, whose law is known for every θ, so {θ : |N̂ − θ·D̂| ≤ q(θ)}
    covers the ratio with probability 1 − risk: exactly so where `Blend.tail` is exact and without slack.
    The half-width q(θ) is convex in θ (quantiles of linear forms of a symmetric log-concave vector are a
    norm: Meyer, Reisner 1991; Bobkov 2010), so the set is an interval around N̂/D̂ wherever |D̂| exceeds the
    width of its own noise. Elsewhere it is unbounded, and everything is returned.

    Args:
        blend: The noises.
        risk: How likely the interval may miss.
        top: The form of the numerator's noise.
        bottom: The form of the denominator's noise.
        numerator: N̂, one a group.
        denominator: D̂, one a group.
        least: What |D̂| must exceed the width of its noise by; covers any convention for what a ratio is when
            |D| ≤ least.
    """
    sign = np.where(denominator < 0, -1.0, 1.0)
    numerator, denominator = numerator * sign, denominator * sign
    firm = denominator > blend.width(bottom, risk) + least
    if firm.shape == numerator.shape and not firm.all():
        return on_rows(
            firm,
            (-np.inf, np.inf),
            lambda above, below, n, d: quotient(
                blend, risk, top=above, bottom=below, numerator=n, denominator=d, least=least
            ),
            top,
            bottom,
            numerator,
            denominator,
        )
    safe = np.where(firm, denominator, 1.0)
    center = np.where(firm, numerator, 0.0) / safe
    step = np.maximum(blend.reach(top - center * bottom, risk) / safe, np.abs(center) * 2.0**-40 + 1e-300)

    def excess(theta: Floats) -> Floats:
        return excess_of(blend.tail(top - theta * bottom, np.abs(numerator - theta * safe)), risk, firm)

    low, high = edge(center, -step, excess), edge(center, step, excess)
    return np.where(firm, low, -np.inf), np.where(firm, high, np.inf)


def mean_interval(
    total: Floats, count: Floats, noises: tuple[Noise, Noise], *, lower: float, upper: float, risk: float
) -> tuple[Floats, Floats]:
    """An interval for S/n within a known range, from a noisy sum and count; all of it if n̂ is too small.

    `quotient` with the noise X − θ·Y. Groups with n ≤ 1 (empty, or of less than one row's weight) are covered
    whatever value is given to them, since n̂ then exceeds 1 and its width with probability below the risk.
    """
    low, high = quotient(
        Blend(noises),
        risk,
        top=np.array([[1.0], [0.0]]),
        bottom=np.array([[0.0], [1.0]]),
        numerator=total,
        denominator=np.maximum(count, 0.0),
        least=1.0,
    )
    return np.clip(low, lower, upper), np.clip(high, lower, upper)


def variance_interval(
    total: Floats,
    squares: Floats,
    count: Floats,
    noises: tuple[Noise, Noise, Noise],
    *,
    half: float,
    shift: float,
    sample: bool,
    risk: float,
) -> tuple[Floats, Floats]:
    """An interval for V = Q/n + shift − (S/n)², or for V·n/(n − 1), from noisy S, Q and n. Conservative.

    At μ = S/n the variance is a plain ratio, V = (Q + shift·n − 2μS + μ²n)/n, of noise X_Q − 2μ·X_S +
    (μ² + shift − V)·X_n; with n − 1 below for a sample. So: an interval for μ at 1/16 of the risk, then the
    variances that some μ in it does not refute at the rest. The numerator is flat at μ̂, which makes what is
    lost by not knowing μ of second order: for large groups the width is that of a known mean. Coefficients
    are taken at their largest over the interval, which only widens (Anderson 1955).

    Returns:
        Both ends, not below 0; all of [0, ∞) where n̂ is within 1 and its noise of nothing.
    """
    rest = risk * (1 - _MEAN_SHARE) * (1 - _EPS)
    blend = Blend(noises)
    count_form = np.array([[0.0], [0.0], [1.0]])
    firm = np.maximum(count - 1, 0.0) > blend.width(count_form, rest)
    if firm.shape == total.shape == squares.shape and not firm.all():
        return on_rows(
            firm,
            (0.0, np.inf),
            lambda s, q, n: variance_interval(
                s, q, n, noises, half=half, shift=shift, sample=sample, risk=risk
            ),
            total,
            squares,
            count,
        )
    low_mu, high_mu = mean_interval(
        total, count, (noises[0], noises[2]), lower=-half, upper=half, risk=risk * _MEAN_SHARE
    )
    below = count - (1.0 if sample else 0.0)
    safe, n = np.where(firm, below, 1.0), np.where(firm, count, 1.0)
    s, q = np.where(firm, total, 0.0), np.where(firm, squares, 0.0)

    def numerator(mu: Floats) -> Floats:
        return q + shift * n - 2 * mu * s + mu * mu * n

    least = numerator(np.clip(s / n, low_mu, high_mu))
    most = np.maximum(numerator(low_mu), numerator(high_mu))
    most_mu = np.maximum(np.abs(low_mu), np.abs(high_mu))
    least_mu = np.where(low_mu * high_mu <= 0, 0.0, np.minimum(np.abs(low_mu), np.abs(high_mu)))
    ends = least_mu * least_mu + shift, most_mu * most_mu + shift

    def form(v: Floats) -> Floats:
        weight = np.maximum(np.abs(ends[0] - v), np.abs(ends[1] - v))
        return np.stack([2 * most_mu, np.ones_like(v), weight])

    def excess(v: Floats, width: Floats) -> Floats:
        return excess_of(blend.tail(form(v), width), rest, firm)

    start_low, start_high = least / safe, most / safe
    step_low, step_high = (blend.reach(form(v), rest) / safe + 1e-300 for v in (start_low, start_high))
    high = edge(start_high, step_high, lambda v: excess(v, v * safe - most))
    low = edge(start_low, -step_low, lambda v: excess(v, least - v * safe))
    return np.where(firm, np.maximum(low, 0.0), 0.0), np.where(firm, np.maximum(high, 0.0), np.inf)
