"""What limits cut if the tail of a profile goes on as it is seen to: an assumption, and a bound under it."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.intervals.sums import width_of_sum
from sfumato.plan.questions.profile import Profile

__all__ = ["Tail"]

ENOUGH = 5
"""Times the scale of their noise, 1/ε: so many units at least are above the rung that a tail begins at."""

_APART = 2  # rungs: from 10 to 50 rows, say
_COVERED = 0.75  # of a risk: for the bound that assumes nothing, which is taken where it is lower
_EVENTS = 5  # that share the rest
_LIMITS = 4  # that one answer may ask about: on rows in all or in a group, on groups, on rows of quantiles
_CELLS = 2**13  # of the grid on which a sum of many independent numbers is looked at
_SLOPES = 50
_CLEAR = 0.02  # how rarely noise may look like units that are not there
_LEAST = 0.4  # of its cell's upper end, from 2 to 5: so many rows a unit there has at least


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """A profile with the assumption that units become rarer above a rung as fast as they do below it.

    The assumption: units are independent draws from a population in which, for n ≥ r, those with more than n
    rows are at most (r/n)^a of those with more than r, where a is the power with which they fall from q to r:
    (q/r)^a of those with more than q have more than r. No unit has more rows than the ceiling. It holds, with
    any q and r, where the number of units with more than n rows is concave on logarithmic axes: for powers of
    n, as Zipf's, and for log-normal numbers.

    Attributes:
        profile: What is known.
        place: Of the rung r: the last above which there seem to be enough units, or twice as many where
            there are, and no more further up than the assumption allows. Counted are the rows of each cell
            over its upper end: no more than its units.
    """

    profile: Profile
    place: int

    @classmethod
    def of(cls, profile: Profile) -> Tail | None:
        """The tail above the last rung that is well seen; None: there is none, or it goes on otherwise."""
        rungs = np.asarray(profile.rungs, dtype=np.float64)
        above = np.cumsum((profile.rows / rungs)[::-1])[::-1]  # from each cell on
        for enough in (2 * ENOUGH * profile.noise[0].scale, ENOUGH * profile.noise[0].scale):
            places = [place for place in range(_APART, len(rungs) - 1) if above[place + 1] >= enough]
            if places and not _more_above(profile, above, places[-1]):
                return cls(profile, places[-1])
        return None

    @property
    def ends(self) -> tuple[int, int]:
        """The rungs q and r."""
        rungs = self.profile.rungs
        return rungs[self.place - _APART], rungs[self.place]

    def assumes(self, owner: str) -> str:
        """The assumption in words."""
        below, above = self.ends
        return (
            f"Fitted intervals assume that each {owner} is a draw of its own, that above {above:,} rows they "
            f"become rarer at least as fast, as a power of the number of rows, as between {below:,} and "
            f"{above:,}, and that none has more than {self.profile.ceiling:,}."
        )

    def most_cut(self, limit: int, risk: float) -> float:
        """More rows than are cut where at most so many of each unit count, but for a probability of `risk`.

        Three quarters of the risk are for `Profile.most_cut`, and the lower of both bounds is taken. With
        N(n) the number of units with more than n rows, and R the limit: units with more than r rows lose
        max(0, r − R)·N(r) up to r and the sum of their rows beyond max(r, R) above it. All others are in the
        cells up to r, and lose what `Profile.most_cut` says of these. Five events have a fifth of the rest
        each: N(r) is not above its noisy number by more than its noise; N(q) − N(r), in other cells, not
        below it; N(r), a binomial number of N(q), does not make the power a look steeper than it is (Clopper
        and Pearson); the sum of N(r) numbers of that power is not above its quantile; and rows in cells up to
        r are not above theirs. Which rung r is follows from the noise of rows, which
        units have no part in, and from the data: where chance in the data or that noise decides, all rungs
        share. The last two events are about one limit, and up to four limits share them: all hold at once.
        """
        profile = self.profile
        if limit >= profile.ceiling:
            return 0.0
        sure = profile.most_cut(limit, risk * _COVERED)
        part = risk * (1 - _COVERED) / _EVENTS
        shared = part / (len(profile.rungs) - 1 - _APART)
        below, above = self.ends
        units, noise = profile.units, profile.noise[0]
        cells = slice(self.place + 1 - _APART, self.place + 1)
        beyond = units[self.place + 1 :]
        many = _whole(beyond.sum() + _width((1.0,) * len(beyond), noise, part))
        between = _whole(units[cells].sum() - _width((1.0,) * _APART, noise, part) - 1)
        power = _power(many, between, shared) / math.log(above / below)
        start = max(above, limit)
        rarer = (above / np.arange(start, profile.ceiling)) ** power
        tail = _most_of_sum(many, rarer, shared / _LIMITS)
        return min(sure, tail + max(0, above - limit) * many + self._up_to(limit, shared / _LIMITS))

    def _up_to(self, limit: int, risk: float) -> float:
        """What units lose that have no more than r rows."""
        rungs = np.asarray(self.profile.rungs[: self.place + 1], dtype=np.float64)
        lost = np.maximum(0.0, rungs - limit)
        if not lost.any():
            return 0.0
        seen = float((lost / rungs) @ self.profile.rows[: self.place + 1])
        factors = tuple(float(rows) for rows in lost if rows)
        return max(0.0, seen + _width(factors, self.profile.noise[1], risk))


def _more_above(profile: Profile, above: NDArray[np.float64], place: int) -> bool:
    """Whether more units are clearly seen further up than there can be if they become rarer as assumed.

    By rows alone: a cell's rows over its upper end are at most its units, and at least two fifths of them.
    """
    rungs, low = profile.rungs, place - _APART
    spread = [
        _width((1.0,) * (len(rungs) - 1 - at), profile.noise[1], _CLEAR) for at in range(len(rungs) - 1)
    ]
    many = max(0.0, above[place + 1] + spread[place]) / _LEAST
    between = max(0.0, above[low + 1] - above[place + 1] - _width((1.0,) * _APART, profile.noise[1], _CLEAR))
    power = math.log1p(between / max(many, 1.0)) / math.log(rungs[place] / rungs[low])
    return any(
        above[at + 1] - spread[at] > many * (rungs[place] / rungs[at]) ** power
        for at in range(place + 1, len(rungs) - 1)
    )


@functools.lru_cache(maxsize=256)
def _width(factors: tuple[float, ...], noise: Noise, risk: float) -> float:
    """What one side of the noise exceeds with this probability."""
    return width_of_sum([(factor, noise) for factor in factors], min(2 * risk, 1.0))


def _whole(number: float) -> int:
    return max(0, math.ceil(number))


def _power(successes: int, failures: int, risk: float) -> float:
    """−log of an upper bound on a probability, from how often it came true and how often it did not."""
    if not failures:
        return 0.0
    from scipy import special

    return max(0.0, -math.log(float(special.betaincinv(successes + 1, failures, 1 - risk))))


def _most_of_sum(count: int, exceeds: NDArray[np.float64], risk: float) -> float:
    """A quantile of the sum of `count` independent numbers that exceed 0, 1, … with these probabilities.

    Numbers are rounded up to a grid. The law of their sum is a power of the Fourier transform of theirs, over
    so many cells that less than a millionth of the risk is beyond (Chernoff).
    """
    if not count or not len(exceeds):
        return 0.0
    step = max(1, math.ceil(2 * (count * float(exceeds.sum()) + 3 * len(exceeds)) / _CELLS))
    each = -np.diff(np.concatenate(([1.0], exceeds[::step], [0.0])))
    cells = 2 ** math.ceil(math.log2(max(_chernoff(count, each, risk * 1e-6), len(each)) + 2))
    law = np.fft.irfft(np.fft.rfft(each, cells) ** count, cells)
    beyond = 1 - np.cumsum(law)
    return float(np.argmax(beyond <= risk * (1 - 1e-5)) * step)


def _chernoff(count: int, each: NDArray[np.float64], risk: float) -> float:
    """A bound that a sum of so many independent numbers of this law exceeds with at most this probability."""
    numbers = np.arange(len(each), dtype=np.float64)
    top = len(each) - 1
    slopes = np.geomspace(1e-4 / top, 60 / top, _SLOPES)
    powers = np.outer(slopes, numbers - top)  # from the top, so that nothing overflows
    moments = slopes * top + np.log(np.exp(powers) @ each)
    return min(float(((count * moments - math.log(risk)) / slopes).min()), float(count * top))
