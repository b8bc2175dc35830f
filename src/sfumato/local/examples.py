"""Pairs of values with a randomizer, ready to be drawn from: what an auditor runs on every client."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.local.base import Randomizer
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Side

__all__ = ["Example", "examples", "unpacked"]


@dataclass(frozen=True, slots=True)
class Example:
    """A randomizer and two values of one person, with the reports in a shape that an auditor can read.

    Every module with a randomizer lists some in `examples`. The pair should come close to the claim, so that
    a client that keeps less is caught.

    Attributes:
        name: Short and unique.
        randomizer: What is being checked; its `loss` is the claim.
        left: One value.
        right: Another.
        read: Turns a batch of reports into numbers or rows of numbers that say the same; None: they are that.
        encode: How a list of values becomes a batch; None: by the randomizer's `encode`.
        claim: What is claimed of such a batch; None: the randomizer's `loss`.
        pmf: The exact law of one report for a side, as what `read` gives → probability, where it is small
            enough to list; rows are tuples.
        tight: The part of the claimed epsilon that a long audit of this pair shows.
    """

    name: str
    randomizer: Randomizer[Any]
    left: Any
    right: Any
    read: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    pmf: Callable[[Side], Mapping[Any, float]] | None = None
    tight: float = 0.8
    encode: Callable[[list[Any]], NDArray[Any]] | None = None
    claim: PrivacyLoss | None = None

    @property
    def loss(self) -> PrivacyLoss:
        """The claim."""
        return self.randomizer.loss if self.claim is None else self.claim

    def value(self, side: Side) -> Any:
        """The value of one side."""
        return self.left if side == "left" else self.right

    def draw(self, side: Side, count: int) -> NDArray[Any]:
        """What `count` people with the value of a side report."""
        reports = (self.encode or self.randomizer.encode)([self.value(side)] * count)
        return reports if self.read is None else self.read(reports)


def unpacked(bits: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Rows of packed bytes as rows of so many bits."""
    return lambda reports: np.unpackbits(reports, axis=1, count=bits, bitorder="little")


@cache
def examples() -> tuple[Example, ...]:
    """The examples of all randomizers of this package."""
    root = importlib.import_module("sfumato.local")
    homes = sorted(root._HOMES)
    modules = [importlib.import_module(f"sfumato.local.{home}") for home in homes]
    return tuple(example for module in modules for example in getattr(module, "examples", tuple)())
