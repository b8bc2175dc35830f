"""Neighbouring streams for every form of noise, with a row anywhere in time: what an auditor runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.continual.banded import Banded
from sfumato.continual.buffered import Buffered
from sfumato.continual.factorisation import SCALE_BITS, Factorisation
from sfumato.continual.mechanism import Continual
from sfumato.loss import GaussianLoss
from sfumato.mechanisms.base import Side

__all__ = ["Example", "examples"]

_HORIZON = 6


@dataclass(frozen=True, slots=True)
class Example:
    """A plan with two neighbouring streams: nothing, and rows of one unit at some steps.

    Attributes:
        name: Short and unique.
        plan: What is being checked.
        steps: Where the unit's rows are.
        view: What an analyst makes of the released steps, one stream a row; by default the test that tells
            the two streams apart best, which is what a claim has to stand.
    """

    name: str
    plan: Factorisation
    steps: tuple[int, ...]
    view: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None

    def mechanism(self, groups: int = 1) -> Continual:
        """At one price for all of them."""
        return Continual(self.plan, rho="0.5", sensitivity=1, groups=groups)

    @property
    def loss(self) -> GaussianLoss:
        """The claim."""
        return self.mechanism().loss

    def draw(self, side: Side, count: int) -> NDArray[np.float64]:
        """So many independent streams, as groups of one that a unit is in one of."""
        mechanism = self.mechanism(count)
        course = mechanism.start(mechanism.secret())
        seen = [
            mechanism.floats(course.release(np.full(count, side == "right" and t in self.steps, np.int64)))
            for t in range(self.plan.horizon)
        ]
        shown = np.stack(seen, axis=1)
        return self.best(shown) if self.view is None else self.view(shown)

    def best(self, shown: NDArray[np.float64]) -> NDArray[np.float64]:
        """The likelihood ratio of the two streams, up to a factor: the part of C·D·w along the rows."""
        steps = self.plan.horizon
        column = self.plan.factor.coefficients(steps)
        matrix = np.zeros((steps, steps))
        for t in range(steps):
            matrix[t:, t] = column[: steps - t] * (self.plan.scale(t) / 2.0**SCALE_BITS)
        moved = matrix[:, list(self.steps)].sum(axis=1)
        return np.asarray(shown @ matrix.T @ moved)


@cache
def examples() -> tuple[Example, ...]:
    """The forms of noise, with a row at the first step, at the last one or at several."""
    square_root = Banded.square_root(_HORIZON)
    buffered = Buffered.square_root(_HORIZON)
    plain, scaled = Factorisation(_HORIZON, buffered), Factorisation(_HORIZON, buffered, True)

    def totals(shown: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(shown.cumsum(axis=1))

    return (
        Example("stream: independent noise", Factorisation(_HORIZON, Banded()), (2,)),
        Example("stream: square root", Factorisation(_HORIZON, square_root), (0,)),
        Example("stream: band of two", Factorisation(_HORIZON, Banded.square_root(2)), (3,)),
        Example("stream: buffered, first step", plain, (0,)),
        Example("stream: buffered, last step", plain, (_HORIZON - 1,)),
        Example("stream: columns scaled, first step", scaled, (0,)),
        Example("stream: columns scaled, last step", scaled, (_HORIZON - 1,)),
        Example("stream: running totals", scaled, (1,), totals),
        Example("stream: two steps", Factorisation(_HORIZON, buffered, touches=2), (0, 1)),
        Example("stream: two steps apart", Factorisation(_HORIZON, buffered, touches=2, apart=3), (0, 3)),
    )
