"""The true figures accounting is held to, to 16 digits; `python -m benchmarks.truths` computes them anew.

Nothing here is taken from the package. With L the privacy loss under P and M(z) = E exp(zL), for any c > 0

    delta(epsilon) = 1/pi * integral over t > 0 of Re [ M(c+it) exp(-(c+it) epsilon) / ((c+it)(c+1+it)) ] dt,

by the trapezoid rule in 200-bit arithmetic, with the step halved until 18 digits stay. The sampled
Gaussian's M is itself an integral over the line, by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import acb, arb, ctx

# 500 Laplace, 500 Gaussian and 100 pure losses (see `recipe`), delta 1e-6.
HETEROGENEOUS = 7.475706244115781
# Poisson-sampled Gaussian, rate 0.004, sigma 1, 15,000 steps, delta 1e-5, add or remove one.
TRAINING = 2.7193569253472631
# The sigma at which the same training costs epsilon 2.
MULTIPLIER = 1.1961213612109837


def recipe() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the epsilons of 500 Laplace, the sigmas of 500 Gaussian and the epsilons of 100 pure losses."""
    generator = np.random.default_rng(20240601)
    return (
        generator.uniform(0.001, 0.1, 500),
        generator.uniform(20.0, 200.0, 500),
        generator.uniform(0.001, 0.1, 100),
    )


def heterogeneous() -> arb:
    laplace, sigma, pure = recipe()
    square = sum((1 / (arb(s) * arb(s)) for s in sigma), arb(0))

    def log_moment(z: acb) -> acb:
        total = square / 2 * z * (z + 1)
        for e in map(arb, laplace):
            total += (((z + 1) * (z * e).exp() + z * (-(z + 1) * e).exp()) / (2 * z + 1)).log()
        for e in map(arb, pure):
            total += (((z + 1) * e).exp() + (-z * e).exp()).log() - (1 + e.exp()).log()
        return total

    return _epsilon(log_moment, delta=arb("1e-6"), c=arb(4), low=5.0, high=10.0)


def training(sigma: arb) -> arb:
    """Give the epsilon of removing one, the larger of the two directions here."""
    rate, steps, variance = arb("0.004"), 15_000, sigma * sigma
    h = sigma / 32
    points = [h * k for k in range(-14 * 32, 50 * 32)]
    losses = [(1 - rate + rate * ((2 * x - 1) / (2 * variance)).exp()).log() for x in points]
    weights = [(-x * x / (2 * variance)).exp() * h / (2 * arb.pi() * variance).sqrt() for x in points]

    def log_moment(z: acb) -> acb:
        pairs = zip(losses, weights, strict=True)
        return steps * sum((((z + 1) * loss).exp() * weight for loss, weight in pairs), acb(0)).log()

    return _epsilon(log_moment, delta=arb("1e-5"), c=arb(8), low=1.0, high=5.0)


def multiplier() -> arb:
    """Solve training(sigma) = 2 by the secant rule."""
    before, now = arb("1.196"), arb("1.1962")
    at_before, at_now = training(before) - 2, training(now) - 2
    while abs(float(now - before)) > 1e-17:
        step = (at_now * (now - before) / (at_now - at_before)).mid()
        before, at_before = now, at_now
        now = (now - step).mid()
        if abs(float(step)) < 1e-17:
            break
        at_now = training(now) - 2
    return now


def _epsilon(log_moment: Callable[[acb], acb], *, delta: arb, c: arb, low: float, high: float) -> arb:
    """Solve delta(epsilon) = delta, with the contour's step halved until the answer stays to 18 digits."""
    before, step = arb(0), arb("0.25")
    while True:
        nodes = _nodes(log_moment, c, step)
        now = _root(nodes, c, step, delta, arb(low), arb(high))
        # Too long a step adds to delta (its aliases are positive) and drives the answer to the bracket's end.
        if abs(float(now - before)) < 1e-18 * float(now) and float(now) < high:
            return now
        before, step = now, step / 2


def _nodes(log_moment: Callable[[acb], acb], c: arb, step: arb) -> list[acb]:
    """Give log(M(z) / (z (z + 1))) on the contour, as far as it is not negligible."""
    found: list[acb] = []
    while len(found) < 8 or float((found[-1] - found[0]).real) > -75.0:
        z = acb(c, step * len(found))
        found.append(log_moment(z) - (z * (z + 1)).log())
    return found


def _root(nodes: list[acb], c: arb, step: arb, delta: arb, low: arb, high: arb) -> arb:
    def excess(epsilon: arb) -> arb:
        terms = [(node - acb(c, step * k) * epsilon).exp().real for k, node in enumerate(nodes)]
        return (sum(terms, arb(0)) - terms[0] / 2) * step / arb.pi() - delta

    for _ in range(75):
        middle = ((low + high) / 2).mid()
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return high


def main() -> None:
    ctx.prec = 200
    for name, stored, value in (
        ("HETEROGENEOUS", HETEROGENEOUS, heterogeneous()),
        ("TRAINING", TRAINING, training(arb(1))),
        ("MULTIPLIER", MULTIPLIER, multiplier()),
    ):
        print(f"{name} = {value.str(20, radius=False)}  (stored {stored!r})", flush=True)


if __name__ == "__main__":
    main()
