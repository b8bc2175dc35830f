"""Calibration: the Gaussian mechanism's sigma, ours and the peers', against a 50-digit solution."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

from benchmarks.harness import Report, peer, race, seconds
from sfumato import accounting


def calibration(report: Report) -> None:
    """The Gaussian mechanism's sigma against a 50-digit solution, over a sweep of epsilon and delta."""
    report.heading(
        "sigma of the Gaussian mechanism against 50 digits", "worst above", "worst below", "points below"
    )
    epsilons = ("0.001", "0.01", "0.1", "0.3", "0.5", "1", "2", "5", "10", "30", "100")
    deltas = ("1e-15", "1e-12", "1e-9", "1e-6", "1e-5", "0.001", "0.01", "0.1", "0.3")
    points = list(itertools.product(epsilons, deltas))
    google = peer("dp_accounting")
    diffprivlib = peer("diffprivlib.mechanisms")
    contenders: dict[str, Callable[[str, str], float] | None] = {
        "sfumato": lambda epsilon, delta: accounting.gaussian_sigma(epsilon, delta),
        "Google": google and (lambda epsilon, delta: google.get_sigma_gaussian(float(epsilon), float(delta))),
        "diffprivlib": diffprivlib
        and (lambda epsilon, delta: _diffprivlib_sigma(diffprivlib, float(epsilon), float(delta))),
    }
    case = f"{len(points)} points"
    for who, call in contenders.items():
        if call is None:
            report.missing(case, who)
            continue
        errors = {}
        for epsilon, delta in points:
            # Ours takes the decimals as written; the peers take floats and are held to the truth at those.
            exact = (epsilon, delta) if who == "sfumato" else (float(epsilon), float(delta))
            errors[epsilon, delta] = _relative(call(epsilon, delta), _true_sigma(*exact))
        above, below = max(0.0, *errors.values()), min(0.0, *errors.values())
        count = sum(error < 0 for error in errors.values())
        report.row(
            case,
            who,
            f"{above:+.1e}",
            f"{below:+.1e}",
            f"{count}",
            relative_errors={f"{epsilon}, {delta}": error for (epsilon, delta), error in errors.items()},
        )
        if who == "sfumato":
            report.figure("Gaussian calibration, worst relative error", max(above, -below), "<=", 1e-12)
            report.figure("Gaussian calibration, points below the truth", count, "<=", 0)
    timing = race(
        {who: lambda call=call: call("1", "1e-6") for who, call in contenders.items() if call is not None},
        repeats=9,
        calls=20,
    )
    report.heading("one calibration, epsilon 1, delta 1e-6", "wall", "CPU")
    for who, one in timing.items():
        report.row("sigma", who, seconds(one.wall), seconds(one.cpu), timing=one)


def _diffprivlib_sigma(diffprivlib: Any, epsilon: float, delta: float) -> float:
    # Its scale is a private attribute; the public `mse` would round a second time.
    return float(diffprivlib.GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=1.0)._scale)


def _true_sigma(epsilon: str | float, delta: str | float) -> Any:
    """Solve the Gaussian mechanism's delta(epsilon, sigma) = delta to 50 digits (Balle and Wang 2018)."""
    with mp.workdps(120):
        e, d = mpf(epsilon), mpf(delta)

        def excess(log_sigma: Any) -> Any:
            s = mp.exp(log_sigma)
            left, right = 1 / (2 * s) - e * s, -1 / (2 * s) - e * s
            got = (mp.erfc(-left / mp.sqrt(2)) - mp.exp(e) * mp.erfc(-right / mp.sqrt(2))) / 2
            return mp.log(got) - mp.log(d)

        low = high = mpf(0)
        while excess(low) < 0:
            low -= 1
        while excess(high) > 0:
            high += 1
        return mp.exp(mp.findroot(excess, (low, high), solver="anderson", tol=mpf(10) ** -110, maxsteps=400))


def _relative(value: Any, truth: Any) -> float:
    """Give the relative error of a float or a fraction without rounding it first."""
    with mp.workdps(120):
        exact = mpf(value.numerator) / value.denominator if hasattr(value, "numerator") else mpf(float(value))
        return float(exact / truth - 1)


PARTS = (calibration,)
