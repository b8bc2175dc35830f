"""How often intervals of least squares hold the true weights, over a class of tables.

Tables are as small as intervals are told for, and ten times that; columns, errors, bounds and prices vary.
A table is drawn anew for each fit. All cases are looked at with few fits; the weights that were held least
often are looked at again, with other draws and many more of them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.harness import Report

Floats: TypeAlias = NDArray[np.float64]
Random: TypeAlias = np.random.Generator

LEVEL, DELTA = 0.95, 1e-6
LEAST = 1000.0
"""So many rows for each weight, also in units of a count's noise, are the fewest that have intervals."""
EPSILONS, WIDTHS = (0.5, 1.0, 8.0), (1, 3, 10)
LOWEST = 0.94
"""No more than 1 % less often than told."""
FITS, AGAIN, WORST, QUICK = int(os.environ.get("FITS", "120")), 2000, 12, 40_000
"""How many fits a case has, `$FITS` if given, a third where a table is larger; and again the worst ones: so
many that one deviation is half a hundredth."""
EARLY = 20
"""After so many fits, of which none has intervals, there are no more."""


def _correlated(part: float) -> Callable[[Random, tuple[int, int]], Floats]:
    def drawn(rng: Random, shape: tuple[int, int]) -> Floats:
        shared = rng.normal(size=(shape[0], 1))
        return np.asarray((part**0.5 * shared + (1 - part) ** 0.5 * rng.normal(size=shape)).clip(-3, 3))

    return drawn


COLUMNS: dict[str, Callable[[Random, tuple[int, int]], Floats]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.normal(size=shape).clip(-3, 3),
    "exponential": lambda rng, shape: rng.exponential(size=shape).clip(0, 6),
    "log-normal": lambda rng, shape: rng.lognormal(size=shape).clip(0, 8),
    "0/1, half": lambda rng, shape: (rng.random(shape) < 0.5).astype(float),
    "0/1, tenth": lambda rng, shape: (rng.random(shape) < 0.1).astype(float),
    "0/1, fiftieth": lambda rng, shape: (rng.random(shape) < 0.02).astype(float),
    "correlated 0.5": _correlated(0.5),
    "correlated 0.9": _correlated(0.9),
}
RANGES = {"exponential": (0.0, 6.0), "log-normal": (0.0, 8.0)} | dict.fromkeys(
    ("normal", "correlated 0.5", "correlated 0.9"), (-3.0, 3.0)
)


def _uneven(rng: Random, X: Floats) -> Floats:
    """Normal errors whose spread grows with the first column, sixfold over its range."""
    low, high = X[:, 0].min(), X[:, 0].max()
    return np.asarray(rng.normal(size=len(X)) * (0.3 + 1.5 * (X[:, 0] - low) / (high - low)))


def _long_tailed(rng: Random, X: Floats) -> Floats:
    """Log-normal errors with a mean of 0; those beyond a thousandth or so of rows are held there."""
    most = 27.0
    mean = math.exp(0.5) * ndtr(math.log(most) - 1) + most * ndtr(-math.log(most))
    return np.asarray((rng.lognormal(size=len(X)).clip(0, most) - mean) / 2)


ERRORS: dict[str, Callable[[Random, Floats], Floats]] = {
    "normal": lambda rng, X: rng.normal(size=len(X)),
    "uniform": lambda rng, X: rng.uniform(-1.7, 1.7, len(X)),
    "exponential": lambda rng, X: rng.exponential(size=len(X)) - 1,
    "t, 4 degrees": lambda rng, X: rng.standard_t(4, len(X)) / 2**0.5,
    "uneven": _uneven,
    "log-normal": _long_tailed,
}


class Case(NamedTuple):
    """A kind of table, and the price of a fit.

    Attributes:
        columns: A key of `COLUMNS`.
        errors: A key of `ERRORS`.
        width: How many columns there are.
        epsilon: What a fit costs.
        times: How often the fewest rows that intervals are told for.
        loose: Whether bounds are four times as wide as the columns.
        far: Whether the target's are four times as wide as the target.
    """

    columns: str
    errors: str
    width: int = 1
    epsilon: float = 1.0
    times: int = 1
    loose: bool = False
    far: bool = False

    @property
    def size(self) -> int:
        """How many rows there are."""
        from sfumato.mechanisms import Gaussian

        sigma = 1 / math.sqrt(2 * Gaussian(self.epsilon, DELTA, sensitivity=1).loss.rho)
        return int(1.05 * LEAST * self.times * (self.width + 1) * max(sigma, 1))

    @property
    def weights(self) -> Floats:
        """The true ones, the intercept last."""
        signs = np.where(np.arange(self.width) % 2, -1.0, 1.0) * (np.arange(self.width) % 3 != 2)
        return np.append(signs / self.width**0.5, 0.5)

    def drawn(self, rng: Random, size: int) -> tuple[Floats, Floats]:
        """Columns and a target."""
        X = COLUMNS[self.columns](rng, (size, self.width))
        return X, X @ self.weights[:-1] + self.weights[-1] + ERRORS[self.errors](rng, X)

    def bounds(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Of columns and of the target, whose ends a large table shows."""
        _, y = self.drawn(np.random.default_rng(0), 100_000)
        columns, target = RANGES.get(self.columns, (0.0, 1.0)), (float(y.min()), float(y.max()))
        return _wider(columns, self.loose), _wider(target, self.far)


def _wider(ends: tuple[float, float], wider: bool) -> tuple[float, float]:
    more = 1.5 * (ends[1] - ends[0]) if wider else 0.0
    return ends[0] - more, ends[1] + more


def held(case: Case, fits: int, seed: int = 1) -> NDArray[np.bool_]:
    """Whether each interval holds its weight, the intercept's last; a line for each fit that tells them."""
    from sfumato import learn
    from sfumato.errors import NotCertified
    from sfumato.fits.meter import Meter, price

    (columns, target), rng = case.bounds(), np.random.default_rng(seed)
    paid, size, found = price(case.epsilon, DELTA), case.size, []
    for tried in range(fits):
        if tried >= EARLY and not found:
            break
        # As `fit` does it, with the price worked out once.
        model = learn.LinearRegression(case.epsilon, DELTA, columns, target)
        rows = model._rows(*case.drawn(rng, size), None)
        model._keep(rows.design, model._learn(rows, Meter.alone(paid)), paid, None)
        try:
            ends = model.confidence_intervals(LEVEL)
        except NotCertified:
            continue
        found.append((ends[:, 0] <= case.weights) & (case.weights <= ends[:, 1]))
    return np.array(found, bool).reshape(-1, case.width + 1)


def cases() -> list[tuple[Case, int]]:
    """Kinds of tables, and how many of each: fewer where fits take long."""
    least = [Case(columns, errors, 1, 8.0) for columns in COLUMNS for errors in ERRORS]
    least += [Case(columns, errors, 3, 8.0) for columns in COLUMNS for errors in ERRORS]
    wide = [Case("normal", errors, 3, 1.0, loose=True, far=True) for errors in ERRORS]
    wide += [Case("0/1, tenth", errors, 1, 0.5, far=True) for errors in ERRORS]
    priced = [
        Case(columns, errors, width, epsilon)
        for columns, errors in (
            ("normal", "exponential"),
            ("normal", "log-normal"),
            ("exponential", "uneven"),
            ("0/1, tenth", "normal"),
        )
        for width in WIDTHS
        for epsilon in EPSILONS
    ]
    many = [
        Case(columns, errors, width, epsilon, 10)
        for columns, errors in (
            ("log-normal", "exponential"),
            ("0/1, fiftieth", "uneven"),
            ("correlated 0.9", "normal"),
        )
        for width, epsilon in ((1, 8.0), (3, 8.0), (1, 1.0), (3, 1.0))
    ]
    listed = dict.fromkeys(least + wide + priced + many)
    return [(case, FITS if case.size * (case.width + 1) <= QUICK else FITS // 3) for case in listed]


def linear(report: Report) -> None:
    """Least squares: intervals of 95 %."""
    report.heading(
        "Intervals of 95 %, least squares: how often they hold",
        "fits", "told", "slopes", "least", "intercept",
    )  # fmt: skip
    pooled, seen = dict[str, list[NDArray[np.bool_]]](), list[tuple[float, Case]]()
    for case, fits in cases():
        found = held(case, fits)
        rates = found.mean(axis=0) if len(found) else np.full(case.width + 1, np.nan)
        _row(report, case, fits, found, rates)
        if len(found) >= fits / 2:
            seen.append((float(rates.min()), case))
            for group in (f"errors {case.errors}", f"columns {case.columns}", f"epsilon {case.epsilon:g}"):
                pooled.setdefault(f"{group}, slopes", []).append(found[:, :-1].ravel())
                pooled.setdefault(f"{group}, intercept", []).append(found[:, -1])
            pooled.setdefault("all", []).append(found.ravel())
    report.heading("All cases of a kind together", "intervals", "held")
    shares = {group: float(np.concatenate(parts).mean()) for group, parts in pooled.items()}
    for group, share in shares.items():
        many = sum(map(len, pooled[group]))
        report.row("least squares", group, f"{many}", f"{share:.4f}", intervals=many, held=share)
    report.figure("least squares, intervals of 95 %: held", shares["all"], ">=", LOWEST)
    report.figure(
        "least squares, intervals of 95 %: held, in the worst kind", min(shares.values()), ">=", LOWEST
    )
    report.heading(
        "The worst of these again, with other draws", "fits", "told", "slopes", "least", "intercept"
    )
    least = 1.0
    for at, (_, case) in enumerate(sorted(seen, key=lambda one: one[0])[:WORST]):
        found = held(case, AGAIN, seed=1000 + at)
        rates = found.mean(axis=0)
        least = min(least, float(rates.min()))
        _row(report, case, AGAIN, found, rates)
    report.figure("least squares, intervals of 95 %: the worst weight again", least, ">=", LOWEST)


def _row(report: Report, case: Case, fits: int, found: NDArray[np.bool_], rates: Floats) -> None:
    report.row(
        f"{case.columns}; {case.errors}",
        f"{case.size} x {case.width}, {case.epsilon:g}",
        f"{fits}", f"{len(found) / fits:.0%}",
        *(f"{rate:.3f}" for rate in (rates[:-1].mean(), rates[:-1].min(), rates[-1])),
        **case._asdict(), rows=case.size, fits=fits, told=len(found), held=rates.tolist(),
    )  # fmt: skip
