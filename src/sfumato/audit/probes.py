"""Side channels: does the time that an answer takes, or the last bit of a float, tell two inputs apart?"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.audit.blackbox import LEAST, support_bound
from sfumato.audit.bounds import Bound, Direction, asked_at, below, epsilon_floor
from sfumato.audit.outputs import is_numeric, normal
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import as_integer

__all__ = ["Drawable", "Timing", "floats", "timing"]

Input = TypeVar("Input")
_LEAST = 20
_WARM = 3  # calls before any is counted: caches and tables are made at the first


class Drawable(Protocol):
    """What has outputs to draw for two neighbouring inputs: the examples of mechanisms and of clients."""

    def draw(self, side: Side, count: int, /) -> NDArray[Any]:
        """So many outputs on one side's input."""
        ...


@dataclass(frozen=True, slots=True)
class Timing:
    """What the run time says about the input.

    Attributes:
        bound: the epsilon that times prove by themselves, beside whatever the answers say.
        left: the median time on one input, in nanoseconds.
        right: the median time on the other.
        repeats: how often each was run.
    """

    bound: Bound
    left: float
    right: float
    repeats: int

    @property
    def tells(self) -> bool:
        """Whether the time proves anything about the input."""
        return self.bound.epsilon > 0

    def __str__(self) -> str:
        medians = (
            f"medians {self.left / 1000:.4g} and {self.right / 1000:.4g} µs over {self.repeats} runs each"
        )
        if not self.tells:
            return textwrap.fill(
                f"Run time does not tell the inputs apart at confidence {below(self.bound.confidence)} "
                f"({medians}). That proves nothing about other inputs, more runs or another machine.",
                80,
            )
        return textwrap.fill(
            f"Run time tells the inputs apart: {self.bound} ({medians}). "
            "Whoever can measure it learns this beside the answer.",
            80,
        )


def timing(
    run: Callable[[Input], object],
    left: Input,
    right: Input,
    *,
    repeats: int = 1000,
    confidence: float = 0.999,
    delta: float = 0.0,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Timing:
    """Whether run time tells two inputs apart, as a lower bound on epsilon from times alone.

    Each repeat runs both inputs, in an order that a fair coin decides, so that whatever drifts on the machine
    drifts for both alike. A threshold is learned on every second repeat; the others are counted against it.

    Args:
        run: what is measured: takes an input; its answer is thrown away.
        left: one input.
        right: a neighbouring input.
        repeats: how often to run each.
        confidence: the probability that the bound is true.
        delta: the delta at which epsilon is asked for.
        clock: the time in nanoseconds, never falling.

    Privacy:
        Claim: with probability at least `confidence`, the time of one run on an otherwise equal machine is
        not (epsilon, delta)-private for any epsilon below `result.bound.epsilon`: a threshold fixed
        beforehand and Clopper–Pearson limits on held-out counts, whatever the distribution of times.
        Condition: times of different repeats are independent; a machine that slows down and speeds up
        makes them less so, which shows as noise on both inputs alike. No loss of a mechanism covers a
        clock: whoever must not see the time must not be able to measure it.

    Raises:
        InvalidParameter: if there are fewer than 20 repeats, or delta or confidence is out of range.
    """
    count = as_integer(repeats, "repeats", least=_LEAST)
    delta, confidence = asked_at(delta, confidence)
    inputs = (left, right)
    for _ in range(_WARM):
        for given in inputs:
            run(given)
    times = np.empty((count, 2), dtype=np.int64)
    for at, first in enumerate(random.bernoulli(Fraction(1, 2), count).tolist()):
        for side in (0, 1) if first else (1, 0):
            start = clock()
            run(inputs[side])
            times[at, side] = clock() - start
    limit, above, over = _learned(times[0::2], delta, 1 - confidence)
    held = times[1::2]
    inside = [int(np.count_nonzero((held[:, side] > limit) == above)) for side in (0, 1)]
    counts = [(hits, len(held)) for hits in inside]
    direction: Direction = "left over right" if over == 0 else "right over left"
    bound = Bound.of_counts(
        counts[over],
        counts[1 - over],
        delta=delta,
        confidence=confidence,
        event=f"a run of {'more than' if above else 'at most'} {limit / 1000:.6g} µs",
        direction=direction,
    )
    medians = np.median(times, axis=0)
    return Timing(bound, float(medians[0]), float(medians[1]), count)


def _learned(times: NDArray[np.int64], delta: float, alpha: float) -> tuple[int, bool, int]:
    """The threshold, whether longer runs are meant, and the likelier side: what promises the most."""
    limits = np.unique(times)
    trials = len(times)
    best, rule = -1.0, (int(limits[0]), True, 0)
    # Where nothing is proven on this half, the ranking goes by a laxer rate: the other half may prove it.
    for rate in (alpha, 0.5):
        below = [np.searchsorted(np.sort(times[:, side]), limits, side="right") for side in (0, 1)]
        for above in (True, False):
            inside = [trials - count if above else count for count in below]
            for over in (0, 1):
                hopes = epsilon_floor(inside[over], trials, inside[1 - over], trials, delta=delta, alpha=rate)
                at = int(np.argmax(hopes))
                if hopes[at] > best:
                    best, rule = float(hopes[at]), (int(limits[at]), above, over)
        if best > 0:
            break
    return rule


def floats(
    example: Drawable,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
    samples: int = 100_000,
) -> Bound:
    """The epsilon that the low bits of a mechanism's floats prove: `support_bound` on an example of it.

    Args:
        example: a mechanism with two neighbouring inputs, from `mechanisms.examples()` or of one's own.
        delta: the delta at which epsilon is asked for.
        confidence: the probability that the bound is true.
        samples: how many outputs to draw a side.

    Privacy:
        The claim of `support_bound`.

    Raises:
        InvalidParameter: if the outputs are not floating-point numbers, or a number is out of range.
    """
    delta, confidence = asked_at(delta, confidence)
    count = as_integer(samples, "samples", least=LEAST)
    left, right = example.draw("left", count), example.draw("right", count)
    outputs = normal(left)
    if not is_numeric(outputs) or outputs.dtype.kind != "f":
        raise InvalidParameter("This mechanism gives no floats, so that its low bits have nothing to tell.")
    return support_bound(left, right, delta=delta, confidence=confidence)
