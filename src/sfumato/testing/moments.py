"""Do errors stay within the claimed width, and are mean and variance the stated ones? Both ways, as ever."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from sfumato.errors import InvalidParameter
from sfumato.testing.statistics import ALPHA, Finding, bernoulli_finding, combine

__all__ = [
    "assert_coverage",
    "assert_mean",
    "assert_variance",
    "coverage_finding",
    "mean_finding",
    "variance_finding",
]


def coverage_finding(
    errors: ArrayLike, width: float, confidence: float, *, exact: bool = True, slack: float = 0.0
) -> Finding:
    """How surprising errors are if `width` is their quantile at `confidence`; see `assert_coverage`."""
    sizes = np.abs(np.asarray(errors, dtype=float)).ravel()
    n = len(sizes)
    covered = int(np.count_nonzero(sizes <= width))
    findings = [bernoulli_finding(covered, n, confidence, 1.0, f"errors within {width:.6g}")]
    if exact:
        inside = int(np.count_nonzero(sizes < width * (1 - slack)))
        findings.append(
            bernoulli_finding(inside, n, 0.0, confidence, f"errors strictly inside {width:.6g} (too wide)")
        )
    return combine(findings, [1 / len(findings)] * len(findings))


def assert_coverage(
    errors: ArrayLike,
    width: float,
    confidence: float,
    *,
    exact: bool = True,
    slack: float = 0.0,
    alpha: float = ALPHA,
) -> None:
    """Assert that errors stay within `width` with probability `confidence`, and not by being far too wide.

    A half-width is the exact quantile when P(|error| < width) <= confidence <= P(|error| <= width), which
    also fits whole-number noise, where no width has exactly the wanted confidence. Both sides are exact
    binomial tests.

    Args:
        errors: answer minus truth.
        width: the claimed half-width.
        confidence: the probability it is claimed for.
        exact: whether it is claimed to be the quantile, not just a bound; False tests the lower side alone.
        slack: by what part an exact width may be too wide (rounding up, a grid).
        alpha: bound on the probability of failing when the claim is true.
    """
    coverage_finding(errors, width, confidence, exact=exact, slack=slack).require(alpha)


def mean_finding(samples: ArrayLike, mean: float, *, deviation: float, tail: float | None = None) -> Finding:
    """How surprising a sample's mean is; see `assert_mean`."""
    values = np.asarray(samples, dtype=float).ravel()
    n, scale = len(values), deviation if tail is None else tail
    if n == 0 or not deviation > 0:
        raise InvalidParameter("A mean needs samples and a positive standard deviation.")
    off = float(values.mean()) - mean
    p = min(1.0, 2 * math.exp(-n * off**2 / (2 * (deviation**2 + scale * abs(off)))))
    return Finding(
        p,
        f"the mean of {n} samples is off by {off:.5g} ({off / deviation * math.sqrt(n):.3g} standard errors)",
    )


def assert_mean(
    samples: ArrayLike, mean: float, *, deviation: float, tail: float | None = None, alpha: float = ALPHA
) -> None:
    """Assert that independent samples have the stated mean, by Bernstein's inequality, both ways.

    Valid where |X - mean| has moments no larger than k!/2 · deviation² · tail^(k-2), which Laplace noise
    meets with tail = deviation/√2, Gaussian noise and anything bounded by 3·deviation with the default tail
    = deviation.

    Args:
        samples: independent numbers.
        mean: what their expectation is claimed to be.
        deviation: their standard deviation, or an upper bound on it.
        tail: the scale of Bernstein's condition; the deviation unless given.
        alpha: bound on the probability of failing when the claim is true.
    """
    mean_finding(samples, mean, deviation=deviation, tail=tail).require(alpha)


def variance_finding(samples: ArrayLike, variance: float, *, mean: float | None = None) -> Finding:
    """How surprising a sample's spread is; see `assert_variance`."""
    values = np.asarray(samples, dtype=float).ravel()
    n = len(values)
    if n < 1000 or not variance >= 0:
        raise InvalidParameter("A variance test needs at least 1000 samples and a variance of at least 0.")
    squares = np.square(values - (values.mean() if mean is None else mean))
    off, spread = float(squares.mean()) - variance, float(squares.std())
    # Squared noise is skewed, so that a normal tail would be too thin; half the distance is what is judged.
    z = abs(off) / (2 * max(spread, 1e-9 * variance) / math.sqrt(n)) if off else 0.0
    words = f"the variance of {n} samples is {variance + off:.6g}, claimed {variance:.6g}"
    return Finding(float(special.erfc(z / math.sqrt(2))), words)


def assert_variance(
    samples: ArrayLike, variance: float, *, mean: float | None = None, alpha: float = ALPHA
) -> None:
    """Assert that samples have the stated variance, both ways.

    The only assertion here whose false-alarm rate is asymptotic: a normal approximation to the mean of
    squares, with twice the distance asked for that it would need. Where the law itself is known,
    `assert_discrete` and `assert_continuous` are exact and see more.

    Args:
        samples: at least 1000 independent numbers.
        variance: the claimed variance.
        mean: the known mean; the sample's own unless given.
        alpha: bound on the probability of failing when the claim is true, for large samples.
    """
    variance_finding(samples, variance, mean=mean).require(alpha)
