"""Does a sample follow the stated law? Tests whose false-alarm rate is proven, and that look both ways.

Every assertion bounds its false-alarm rate by `alpha` for *every* sample size (exact binomial tails, the
Dvoretzky–Kiefer–Wolfowitz inequality, a finite-sample bound on the likelihood ratio), so that a suite of
thousands of assertions at the default 1e-9 stays quiet until something is wrong. The one exception,
`assert_variance`, says so. Too much noise fails as well as too little: what a test of a given size catches
is told by `sfumato.testing.detection`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from sfumato.audit.outputs import listed, normal
from sfumato.errors import InvalidParameter

__all__ = [
    "ALPHA",
    "Finding",
    "assert_bernoulli",
    "assert_continuous",
    "assert_discrete",
    "bernoulli_finding",
    "combine",
    "continuous_finding",
    "discrete_finding",
]

ALPHA = 1e-9
"""The default false-alarm rate of one assertion."""

Law: TypeAlias = Mapping[Any, float] | Callable[[NDArray[np.int64]], ArrayLike]

_CELLS = 64  # of the likelihood-ratio test: finer cells see more shapes, each sees less of a given one
_LIST_ERROR = 1e-12  # what the rounding of a listed law may leave unaccounted for
_WINDOW = 1 << 20


class Finding(NamedTuple):
    """How surprising a sample is under the claim: a p-value, and what was most surprising about it."""

    p: float
    words: str

    def require(self, alpha: float) -> None:
        """Raise AssertionError if the claim gives something as surprising with probability below `alpha`."""
        if not 0 < alpha < 1:
            raise InvalidParameter("alpha must lie strictly between 0 and 1.")
        if self.p < alpha:
            raise AssertionError(f"{self.words} (p = {self.p:.3g}, alpha = {alpha:.3g})")


def combine(findings: list[Finding], weights: list[float]) -> Finding:
    """The most surprising of several findings, paid for by Bonferroni with weights that sum to at most 1."""
    p, words = min((f.p / w, f.words) for f, w in zip(findings, weights, strict=True))
    return Finding(min(1.0, p), words)


def _upper_tail(successes: int, trials: int, p: float) -> float:
    """P(Binomial(trials, p) >= successes)."""
    return 1.0 if successes <= 0 else float(special.betainc(successes, trials - successes + 1, p))


def _lower_tail(successes: int, trials: int, p: float) -> float:
    """P(Binomial(trials, p) <= successes)."""
    return 1.0 if successes >= trials else float(special.betaincc(successes + 1, trials - successes, p))


def bernoulli_finding(
    successes: int, trials: int, low: float, high: float, what: str = "successes"
) -> Finding:
    """How surprising a count is if its probability lies anywhere in [low, high]; exact tails, doubled."""
    low, high = max(0.0, low), min(1.0, high)
    if not (0 <= successes <= trials and trials > 0 and low <= high):
        raise InvalidParameter("need 0 <= successes <= trials, trials > 0 and a probability between 0 and 1.")
    share = successes / trials
    if share > high:
        p, side = _upper_tail(successes, trials, high), "too often"
    elif share < low:
        p, side = _lower_tail(successes, trials, low), "too rarely"
    else:
        p, side = 0.5, "as expected"
    claim = f"{low:.8g}" if low == high else f"{low:.8g} to {high:.8g}"
    return Finding(min(1.0, 2 * p), f"{what} {side}: {successes} of {trials} ({share:.6g}), claimed {claim}")


def assert_bernoulli(successes: int, trials: int, p: float, *, alpha: float = ALPHA) -> None:
    """Assert that `successes` out of `trials` fit the probability `p`: exact, two-sided."""
    bernoulli_finding(successes, trials, p, p).require(alpha)


def _likelihood_ratio(counts: NDArray[np.int64], probabilities: NDArray[np.float64], what: str) -> Finding:
    """The likelihood-ratio (G) test of a multinomial with a finite-sample bound on its p-value.

    n·KL(observed, claimed) has a moment generating function below that of a Gamma(k-1) variable, so that
    P(n·KL >= t) <= e^-t (e·t/(k-1))^(k-1) for t > k-1, whatever n (Agrawal 2020, "Finite-sample
    concentration of the multinomial in relative entropy"). The textbook's chi-square p-value
    holds only as n grows.
    """
    n, freedom = int(counts.sum()), len(counts) - 1
    if freedom < 1:
        return Finding(1.0, f"{what}: a single cell")
    statistic = float(special.rel_entr(counts / n, probabilities).sum()) * n
    worst = int(np.argmax(np.abs(counts - n * probabilities) / np.sqrt(n * probabilities + 1)))
    words = (
        f"{what} do not follow the claimed law: n·KL = {statistic:.5g} over {freedom + 1} cells, "
        f"the worst has {counts[worst]} of {n} where {n * probabilities[worst]:.5g} were expected"
    )
    if statistic <= freedom:
        return Finding(1.0, words)
    return Finding(min(1.0, math.exp(-statistic + freedom * (1 + math.log(statistic / freedom)))), words)


def _tail_levels(n: int) -> NDArray[np.float64]:
    """Tail masses 1/2, 1/4, … down to one that about ten samples fall into."""
    return np.asarray(0.5 ** np.arange(1, max(2, int(math.log2(max(n, 40) / 10)) + 1)), dtype=np.float64)


def _tails(
    below: NDArray[np.int64],
    mass: NDArray[np.float64],
    n: int,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> list[Finding]:
    """Exact tests of lower tails, of upper tails, and of both together (which sees a wrong scale best).

    Args:
        below: how many samples lie at or below each cut.
        mass: the claimed probability of that.
        n: the number of samples.
        low: for each depth, the cut that ends the lower tail.
        high: for each depth, the cut after which the upper tail begins.
    """
    events = {f"the lower tail of mass {mass[i]:.3g}": (below[i], mass[i]) for i in low}
    events |= {f"the upper tail of mass {1 - mass[i]:.3g}": (n - below[i], 1 - mass[i]) for i in high}
    for i, j in zip(low, high, strict=True):
        if i < j:
            outside = 1 - (mass[j] - mass[i])
            events[f"both tails of mass {outside:.3g}"] = (n - (below[j] - below[i]), outside)
    return [
        bernoulli_finding(int(k), n, p - 1e-12, p + 1e-12, f"samples in {name}")
        for name, (k, p) in events.items()
    ]


def _pooled(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each value of an ordered law, its cell: neighbours share one until it has 1/64 of the mass."""
    if len(probabilities) <= _CELLS:
        return np.arange(len(probabilities))
    middle = np.cumsum(probabilities) - probabilities / 2
    cells = np.floor(np.clip(middle, 0, 1 - 1e-12) * _CELLS).astype(np.int64)
    return np.unique(cells, return_inverse=True)[1].astype(np.int64)


def _window(
    pmf: Callable[[NDArray[np.int64]], ArrayLike], n: int, centre: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The values around `centre` that hold all but a hair of the law's mass, and their probabilities."""
    half = 8
    while True:
        values = np.arange(centre - half, centre + half + 1, dtype=np.int64)
        probabilities = np.asarray(pmf(values), dtype=float)
        if math.fsum(probabilities) >= 1 - 0.01 / n:
            return values, probabilities
        if half >= _WINDOW:
            raise InvalidParameter(
                "The law is too wide to list; use assert_continuous with its distribution function."
            )
        half *= 4


def _counted(
    samples: Any, values: list[Any] | NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """How often each listed value occurs; and the values, where they are integers in order."""
    outputs = normal(samples)
    ordered: NDArray[Any] | None = None
    if outputs.dtype != object and outputs.ndim == 1:
        array = np.asarray(values)
        if array.dtype.kind in "biuf" and array.ndim == 1 and np.all(np.diff(array.astype(float)) > 0):
            ordered = array
    if ordered is not None:
        place = np.clip(np.searchsorted(ordered, outputs), 0, len(ordered) - 1)
        hits = ordered[place] == outputs
        counts = np.bincount(place[hits], minlength=len(ordered))
        return counts, ordered.astype(np.int64) if ordered.dtype.kind in "iu" else None
    law = listed(values)
    if len(law) != len(set(law)):
        raise InvalidParameter("A law lists the same value twice.")
    times = Counter(outputs if outputs.dtype == object else listed(outputs))
    return np.array([times[value] for value in law], dtype=np.int64), None


def discrete_finding(samples: Any, pmf: Law, *, centre: int = 0) -> Finding:
    """How surprising the samples are under a discrete law; see `assert_discrete`."""
    n = len(samples)
    values: Any
    if isinstance(pmf, Mapping):
        items = sorted(pmf.items(), key=_numbers_first)
        values, probabilities = [value for value, _ in items], np.asarray([p for _, p in items], dtype=float)
    else:
        values, probabilities = _window(pmf, n, centre)
    total = math.fsum(probabilities)
    if not (np.all(probabilities >= 0) and total <= 1 + 1e-9):
        raise InvalidParameter("A law needs probabilities that are at least 0 and sum to at most 1.")
    counts, integers = _counted(samples, values)
    rest = max(0.0, 1.0 - total)
    outside = n - int(counts.sum())
    impossible = outside + int(counts[probabilities == 0].sum())
    findings = [bernoulli_finding(impossible, n, 0.0, rest + _LIST_ERROR, "values outside the listed law")]
    keep = probabilities > 0
    counts, probabilities = counts[keep], probabilities[keep]
    cells = _pooled(probabilities)
    cell_counts, cell_mass = np.bincount(cells, weights=counts), np.bincount(cells, weights=probabilities)
    if rest > _LIST_ERROR or outside:  # one more cell for all that is not listed
        cell_counts, cell_mass = np.append(cell_counts, outside), np.append(cell_mass, rest + _LIST_ERROR)
    findings.append(
        _likelihood_ratio(cell_counts.astype(np.int64), cell_mass / max(1.0, cell_mass.sum()), f"{n} samples")
    )
    mass_below, levels = np.cumsum(probabilities), _tail_levels(n)
    low, high = (np.clip(np.searchsorted(mass_below, at), 0, len(counts) - 1) for at in (levels, 1 - levels))
    fine = _tails(np.cumsum(counts), mass_below, n, low, high)
    if integers is not None:
        for bit in range(
            3
        ):  # a sampler that builds its low bits apart from the high ones can fail here alone
            odd = (integers[keep] >> bit & 1).astype(bool)
            mass = math.fsum(probabilities[odd])
            name = f"listed values with bit {bit} set"
            fine.append(bernoulli_finding(int(counts[odd].sum()), n, mass - 1e-12, mass + 1e-12, name))
    weights = [0.1, 0.4] + [0.5 / len(fine)] * len(fine)
    return combine(findings + fine, weights)


def _numbers_first(item: tuple[Any, float]) -> tuple[bool, float]:
    value = item[0]
    number = isinstance(value, int | float | np.integer | np.floating)
    return (not number, float(value) if number else 0.0)


def assert_discrete(samples: Any, pmf: Law, *, alpha: float = ALPHA, centre: int = 0) -> None:
    """Assert that samples follow a discrete law, in the bulk, in both tails and in their low bits.

    A likelihood-ratio test over up to 64 pooled cells, exact binomial tests of both tails at geometric
    depths, of the three lowest bits (integers), and of everything that the law says cannot happen.

    Args:
        samples: the outputs: integers, texts, tuples, None, rows of an array.
        pmf: output → probability as a mapping (what it leaves out must have the rest of the mass), or a
            vectorised function of int64 arrays.
        alpha: bound on the probability of failing when the claim is true.
        centre: where a function's mass lies, to start listing it from; a public figure, not one of the
            sample's.
    """
    discrete_finding(samples, pmf, centre=centre).require(alpha)


def _quantiles(
    cdf: Callable[[NDArray[np.float64]], ArrayLike], levels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Points at which a distribution function first reaches the levels, by doubling and bisection."""
    low, high = np.full_like(levels, -1.0), np.full_like(levels, 1.0)
    for _ in range(1000):
        short = np.asarray(cdf(low), dtype=float) >= levels
        far = np.asarray(cdf(high), dtype=float) < levels
        if not (short.any() or far.any()):
            break
        low, high = np.where(short, low * 2, low), np.where(far, high * 2, high)
    for _ in range(64):
        middle = low + (high - low) / 2
        reached = np.asarray(cdf(middle), dtype=float) >= levels
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def continuous_finding(samples: ArrayLike, cdf: Callable[[NDArray[np.float64]], ArrayLike]) -> Finding:
    """How surprising numbers are under a distribution function; see `assert_continuous`."""
    ordered = np.sort(np.asarray(samples, dtype=float).ravel())
    n = len(ordered)
    if n == 0 or not np.all(np.isfinite(ordered)):
        raise InvalidParameter("samples must be finite numbers, at least one.")
    last = np.flatnonzero(np.append(np.diff(ordered) > 0, True))
    points, upto = ordered[last], (last + 1) / n
    before = np.concatenate([[0.0], upto[:-1]])
    at = np.asarray(cdf(points), dtype=float)
    just_below = np.asarray(cdf(np.nextafter(points, -np.inf)), dtype=float)
    distance = float(max(np.abs(upto - at).max(), np.abs(before - just_below).max()))
    findings = [
        Finding(
            min(1.0, 2 * math.exp(-2 * n * distance**2)),  # Massart 1990: the tight constant, for any law
            f"{n} samples are {distance:.5g} away from the claimed distribution function",
        )
    ]
    cuts = np.unique(_quantiles(cdf, np.arange(1, _CELLS) / _CELLS))
    cells = np.diff(np.concatenate([[0.0], np.asarray(cdf(cuts), dtype=float), [1.0]]))
    counts = np.diff(np.concatenate([[0], np.searchsorted(ordered, cuts, side="right"), [n]]))
    possible = cells > 0
    findings.append(_likelihood_ratio(counts[possible], cells[possible] / cells.sum(), f"{n} samples"))
    levels = _tail_levels(n)
    cuts = _quantiles(cdf, np.concatenate([levels, 1 - levels]))
    where = np.arange(len(levels))
    fine = _tails(
        np.searchsorted(ordered, cuts, side="right"),
        np.asarray(cdf(cuts), dtype=float),
        n,
        where,
        where + len(levels),
    )
    return combine(findings + fine, [0.25, 0.25] + [0.5 / len(fine)] * len(fine))


def assert_continuous(
    samples: ArrayLike, cdf: Callable[[NDArray[np.float64]], ArrayLike], *, alpha: float = ALPHA
) -> None:
    """Assert that numbers follow the law with distribution function `cdf`, in the bulk and in both tails.

    The Dvoretzky–Kiefer–Wolfowitz inequality with Massart's constant, a likelihood-ratio test over 64
    equally likely cells, and exact binomial tests at geometric depths of both tails. All of them hold for
    laws with atoms as well, so it also serves for integers that are too spread out to list.

    Args:
        samples: finite numbers.
        cdf: vectorised x → P(X <= x).
        alpha: bound on the probability of failing when the claim is true.
    """
    continuous_finding(samples, cdf).require(alpha)
