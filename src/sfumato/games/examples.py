"""Neighbouring inputs of every game with a privacy claim, ready to be drawn from: what an auditor runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Side

__all__ = ["Example", "examples"]


@dataclass(frozen=True, slots=True)
class Example:
    """A game on two neighbouring inputs.

    Every module whose results cost privacy lists some in `examples`. The pair should come close to the claim,
    so that a mechanism that keeps less is caught.

    Attributes:
        name: Short and unique.
        loss: The claim.
        draw: Gives `count` independent outputs, first axis `count`, for the "left" or the "right" input.
        pmf: The exact law of one output for a side, as output → probability, where it is small enough to
            list.
    """

    name: str
    loss: PrivacyLoss
    draw: Callable[[Side, int], NDArray[Any]]
    pmf: Callable[[Side], Mapping[Any, float]] | None = None


@cache
def examples() -> tuple[Example, ...]:
    """The examples of all games of this package."""
    root = importlib.import_module("sfumato.games")
    homes = sorted(root._HOMES)
    modules = [importlib.import_module(f"sfumato.games.{home}") for home in homes]
    return tuple(example for module in modules for example in getattr(module, "examples", tuple)())
