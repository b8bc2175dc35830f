"""The sparse-vector technique: which of a stream of values exceed a threshold, for a fixed price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.mechanisms._scores import Number, ScoreGrid, drawable
from sfumato.mechanisms._utility import failure_of, outward, two_sided_width
from sfumato.numeric.exact import Rational, as_integer

__all__ = ["Gate", "Values", "split"]

Values: TypeAlias = Iterable[Number] | NDArray[Any]

_FIRST_BLOCK, _LARGEST_BLOCK = 256, 65536


def split(epsilon: Fraction, count: int, *, monotone: bool) -> tuple[Fraction, Fraction]:
    """How ε is best shared between the threshold and the values: 1 : (2c)^(2/3), monotone 1 : c^(2/3).

    Any split is private; this one minimises the variance of the comparison (Lyu, Su, Li 2017).
    The ratio is rounded to thousandths, the two shares add up to ε exactly.
    """
    weight = Fraction(round(1000 * (count if monotone else 2 * count) ** (2 / 3)), 1000)
    first = epsilon / (1 + weight)
    return first, epsilon - first


@dataclass(frozen=True, slots=True)
class Gate:
    """A noisy threshold and noisy comparisons with it: the private part of the technique.

    Privacy:
        Claim: ε1 + ε2 for the places of the first `count` values above. Integer values of sensitivity s,
        one discrete Laplace ρ of scale s/ε1 on the threshold, a fresh one ν_i of scale 2·count·s/ε2
        (count·s/ε2 if all values move the same way) on each value; "above" iff v_i + ν_i ≥ T + ρ; stop
        after `count`. Shift ρ by s: "below" becomes only likelier, whatever the number of values. Each
        "above" then needs ν_i to rise by at most 2s (s if values only ever rise or, with ρ unshifted, only
        ever fall). All shifts are whole numbers, so the argument is the same for the discrete law. Source:
        Lyu, Su, Li 2017, Alg. 7, also for monotone queries. Conditions: one threshold noise for the
        whole stream, never a noisy value reported that decided a comparison, ν scaled by `count`; the
        variants that skip one of these are not private. Values may be chosen in view of earlier answers.
    """

    grid: ScoreGrid
    threshold: int
    outer: Fraction
    inner: Fraction
    count: int

    @classmethod
    def of(
        cls, epsilon: Fraction, threshold: Fraction, sensitivity: Fraction, *, count: int, monotone: bool
    ) -> Gate:
        """The gate that spends `epsilon` on finding `count` values above."""
        grid = ScoreGrid.of(sensitivity)
        first, second = split(epsilon, count, monotone=monotone)
        inner = (count if monotone else 2 * count) * grid.sensitivity / second
        level = threshold // grid.step
        return cls(grid, level, drawable(grid.sensitivity / first), drawable(inner), count)

    def crossings(self, values: Values) -> Iterator[tuple[int, int]]:
        """The index and grid level of each value found above, at most `count`; takes none beyond the last."""
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidParameter(
                "Values must be an iterable of numbers, in the order in which they are to be tried."
            )
        bar = self.threshold + random.discrete_laplace(self.outer)
        if isinstance(values, Sequence | np.ndarray):
            pairs = self._blocks(values, bar)
        else:
            pairs = self._lazily(values, bar)
        # The count comes first: zip must not ask for one pair more than it may give.
        for _, pair in zip(range(self.count), pairs, strict=False):
            yield pair

    def _lazily(self, values: Iterable[Number], bar: int) -> Iterator[tuple[int, int]]:
        for index, value in enumerate(values):
            level = self.grid.level(value)
            if level + random.discrete_laplace(self.inner) >= bar:
                yield index, level

    def _blocks(self, values: Sequence[Number] | NDArray[Any], bar: int) -> Iterator[tuple[int, int]]:
        """The same over values that are there already, many at a time; noise never reached is unused."""
        start, width = 0, _FIRST_BLOCK
        while start < len(values):
            levels = self.grid.levels(values[start : start + width])
            noise = random.discrete_laplace(self.inner, len(levels))
            if isinstance(levels, np.ndarray) and abs(bar) < 2**61:
                # Levels are below 2**53 here; noise is pulled in so that no sum can wrap.
                above = np.flatnonzero(levels + np.clip(noise, -(2**62), 2**62) >= bar).tolist()
            else:
                above = [
                    i
                    for i, (v, n) in enumerate(zip(levels, noise.tolist(), strict=True))
                    if int(v) + n >= bar
                ]
            for i in above:
                yield start + i, int(levels[i])
            start, width = start + width, min(2 * width, _LARGEST_BLOCK)

    def error(self, confidence: Rational, size: int) -> float:
        """α: among `size` values, with `confidence`, those found are ≥ T − α and those passed over ≤ T + α.

        Both noises are kept within α at once; the failure probability is shared in the way that makes α
        least.
        """
        beta = failure_of(confidence, 1)
        share = float(self.outer / (self.outer + self.inner))
        width = two_sided_width(self.outer, beta * share)
        width += two_sided_width(self.inner, beta * (1 - share) / as_integer(size, "size"))
        return outward(width, self.grid.step)
