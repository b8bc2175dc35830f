"""What every mechanism is, and the examples by which each one is checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass

if TYPE_CHECKING:
    from sfumato.loss import PrivacyLoss

__all__ = ["Example", "Mechanism", "Side"]

Side: TypeAlias = Literal["left", "right"]
"""Which of two neighbouring inputs an example draws from."""


class Mechanism(ABC):
    """A randomised answer whose price is known before it is given.

    Parameters are public, fixed at construction and shown by `repr`; private values are only ever arguments
    of `release`, `select` or whatever verb the mechanism answers to. Randomness comes from `sfumato.random`
    alone. Subclasses are frozen and slotted dataclasses (the interactive ones guard their state themselves).

    Privacy:
        `loss` bounds what one call of the mechanism's verb reveals about which of two neighbouring inputs it
        was given, for every pair within the declared sensitivity and whatever the inputs are. It is the loss
        of the law that is actually drawn, not of the ideal one that a textbook writes down. Values are read
        each by itself: none decides the type, the rounding or the acceptance of another. Where a method says
        that a refusal is outside the claim, a value that is not a number (NaN, None, text) raises, and that
        it did is a fact about the data: clean values before.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """What one answer costs."""

    @abstractmethod
    def error(self, confidence: float, *, size: int = 1) -> float:
        """The half-width that `size` answers keep within together with this probability, rounded up."""

    @property
    @abstractmethod
    def variance(self) -> float | None:
        """The variance of one answer; None where it depends on the private input."""

    @property
    @abstractmethod
    def bias(self) -> float | None:
        """The expected answer minus the truth; None where it depends on the private input."""


@dataclass(frozen=True, slots=True)
class Example:
    """A mechanism with two neighbouring inputs, ready to be drawn from: what the conformance kit runs on.

    Every mechanism module lists some in `examples`. The pair should be one that comes close to the claimed
    loss, so that a mechanism with half its noise fails the auditor.

    Attributes:
        name: Short and unique, for test ids.
        mechanism: What is being checked; its `loss` is the claim.
        left: One input.
        right: A neighbouring input, at the full sensitivity.
        draw: Gives `count` independent outputs, first axis `count`, for the "left" or the "right" input.
        pmf: The exact law of one output for a side, as output → probability, where it is small enough to
            list.
        additive: Whether an output is the input plus noise, so that `error` must cover their difference.
    """

    name: str
    mechanism: Mechanism
    left: Any
    right: Any
    draw: Callable[[Side, int], NDArray[Any]]
    pmf: Callable[[Side], Mapping[Any, float]] | None = None
    additive: bool = False

    def input(self, side: Side) -> Any:
        """The input of one side."""
        return self.left if side == "left" else self.right

    @classmethod
    def of_release(
        cls,
        name: str,
        mechanism: Any,
        left: Any,
        right: Any,
        *,
        additive: bool = True,
        pmf: Callable[[Side], Mapping[Any, float]] | None = None,
    ) -> Example:
        """The example of a mechanism whose `release` treats each element of an array independently.

        One call on `count` stacked copies of the input then gives `count` independent releases of it.
        """

        def draw(side: Side, count: int) -> NDArray[Any]:
            one = np.asarray(left if side == "left" else right)
            stacked = np.broadcast_to(one, (count, *one.shape))
            return np.asarray(mechanism.release(stacked))

        return cls(name, mechanism, left, right, draw, pmf, additive)
