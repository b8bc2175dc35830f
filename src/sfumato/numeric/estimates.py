"""Figures of a sample with an interval for what they estimate: shares, differences, calibration, means.

Those of shares hold for every sample size and every probability, for rows that are drawn independently;
those of means and R² are Student's, good for some dozen rows and more.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.numeric.shares import clopper_pearson
from sfumato.render import with_bar

__all__ = [
    "UNKNOWN",
    "Bin",
    "Estimate",
    "bins_of",
    "calibration",
    "gap",
    "mean",
    "paired",
    "r2",
    "share",
    "spread",
]

Floats: TypeAlias = NDArray[np.float64]


class Estimate(NamedTuple):
    """A figure, and where what it estimates lies.

    Attributes:
        value: NaN where there was nothing to count.
        low: The lower end of the interval; NaN where nothing is known.
        high: The upper end.
    """

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """The half-width of the interval around the value that covers it, on its longer side."""
        return max(self.high - self.value, self.value - self.low)

    def shown(self, scale: float = 1.0) -> str:
        """The figure with its error bar, times a scale; empty where there is none."""
        if math.isnan(self.value):
            return ""
        return with_bar(self.value * scale, self.half * scale)

    def to_dict(self) -> dict[str, float | None]:
        """Plain numbers; None: there is none."""
        return {name: number if math.isfinite(number) else None for name, number in self._asdict().items()}


UNKNOWN = Estimate(math.nan, math.nan, math.nan)
"""No figure: there was nothing to count."""


class Bin(NamedTuple):
    """Rows with about the same prediction.

    Attributes:
        rows: How many.
        predicted: The mean of the probabilities that the model gave.
        seen: The share that turned out so.
    """

    rows: int
    predicted: float
    seen: Estimate


def share(hits: int, trials: int, confidence: float) -> Estimate:
    """A share of independent trials (Clopper and Pearson 1934)."""
    if not trials:
        return UNKNOWN
    low, high = clopper_pearson(hits, trials, (1 - confidence) / 2)
    return Estimate(hits / trials, float(low), float(high))


def gap(hits: int, trials: int, other_hits: int, other_trials: int, confidence: float) -> Estimate:
    """A share less that of other people.

    Each of the two intervals is taken at the root of the confidence: the two samples are independent, so
    that both cover with at least the confidence, and then so does what lies between their ends.
    """
    if not trials or not other_trials:
        return UNKNOWN
    one, other = (
        share(*tally, math.sqrt(confidence)) for tally in ((hits, trials), (other_hits, other_trials))
    )
    return Estimate(one.value - other.value, one.low - other.high, one.high - other.low)


def paired(only_one: int, only_other: int, trials: int, confidence: float) -> Estimate:
    """A share less another one of the same people, by how many are in the one alone and in the other alone.

    What both share cancels out. The two counts depend on each other, and halve what may go wrong.
    """
    if not trials:
        return UNKNOWN
    one, other = (share(hits, trials, (1 + confidence) / 2) for hits in (only_one, only_other))
    return Estimate(one.value - other.value, one.low - other.high, one.high - other.low)


def spread(tallies: list[tuple[int, int]], confidence: float) -> Estimate:
    """The largest of several groups' shares less the smallest; all intervals cover at once."""
    counted = [(hits, trials) for hits, trials in tallies if trials]
    if len(counted) < 2:
        return UNKNOWN
    each = [share(*tally, 1 - (1 - confidence) / len(counted)) for tally in counted]
    values, lows, highs = zip(*each, strict=True)
    return Estimate(max(values) - min(values), max(0.0, max(lows) - min(highs)), max(highs) - min(lows))


def bins_of(predicted: Floats, seen: NDArray[np.bool_], bins: int, confidence: float) -> list[Bin]:
    """Rows by their predicted probability, in so many bins of equal width; those with a row."""
    place = np.minimum((predicted * bins).astype(np.int64), bins - 1)
    found = list[Bin]()
    for at in np.unique(place).tolist():
        chosen = place == at
        rows = int(chosen.sum())
        hits = int(seen[chosen].sum())
        found.append(Bin(rows, float(predicted[chosen].mean()), share(hits, rows, confidence)))
    return found


def calibration(table: list[Bin], confidence: float) -> Estimate:
    """The expected calibration error: how far predictions are from what was seen, bin by bin, on average.

    It leans upwards in small samples, since a bin's share is off by chance too; the interval allows for it.
    Given the predictions, labels are independent. With n rows, n_b of them in bin b, and p_b the mean of
    their true probabilities, the figure is off by at most S = Σ n_b/n·|share_b − p_b|, by the triangle
    inequality. E|share_b − p_b| ≤ 1/(2√n_b), and one label moves S by at most 1/n, so that S exceeds
    Σ √n_b/(2n) + √(ln(1/α)/(2n)) with probability at most α (McDiarmid 1989).
    """
    rows = sum(line.rows for line in table)
    if not rows:
        return UNKNOWN
    value = sum(line.rows * abs(line.seen.value - line.predicted) for line in table) / rows
    off = sum(math.sqrt(line.rows) for line in table) / (2 * rows)
    off += math.sqrt(-math.log(1 - confidence) / (2 * rows))
    return Estimate(value, max(0.0, value - off), min(1.0, value + off))


def mean(values: Floats, confidence: float) -> Estimate:
    """A mean, by Student's distribution."""
    if not len(values):
        return UNKNOWN
    return _student(float(values.mean()), values, confidence)


def r2(truth: Floats, errors: Floats, confidence: float) -> Estimate:
    """R², the share of the variance that is explained, to first order (the delta method)."""
    around = (truth - truth.mean()) ** 2 if len(truth) else truth
    whole = float(around.mean()) if len(truth) else 0.0
    if whole <= 0:
        return UNKNOWN
    left = float((errors**2).mean()) / whole
    return _student(1 - left, (errors**2 - left * around) / whole, confidence)


def _student(value: float, terms: Floats, confidence: float) -> Estimate:
    from scipy.stats import t

    if len(terms) < 2:
        return Estimate(value, -math.inf, math.inf)
    half = float(t.ppf((1 + confidence) / 2, len(terms) - 1) * terms.std(ddof=1) / math.sqrt(len(terms)))
    return Estimate(value, value - half, value + half)
