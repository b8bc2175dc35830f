"""Neighbouring tables for every model, ready to be fitted: what an auditor runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import Design
from sfumato.learn._core.records import Records
from sfumato.learn._core.rows import Rows
from sfumato.learn.base import Learned, PrivateEstimator
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Side

__all__ = ["Example", "Given", "Search", "examples", "flat", "searches"]


class Given(NamedTuple):
    """What is handed to `fit`."""

    X: Any
    y: Any = None
    units: Any = None


@dataclass(frozen=True, slots=True)
class Example:
    """A model and two neighbouring tables.

    Every module whose models cost privacy lists some in `examples`. The pair should come close to the claim:
    one table has a unit more that moves the model as far as it can.

    Attributes:
        name: Short and unique.
        make: Gives an unfitted model.
        left: One table.
        right: The same with a unit added or removed.
    """

    name: str
    make: Callable[[], PrivateEstimator]
    left: Given
    right: Given

    @property
    def loss(self) -> PrivacyLoss:
        """The claim."""
        return self.make().loss

    def rows(self, side: Side) -> tuple[PrivateEstimator, Rows | Records]:
        """A model with the rows of one side, before it learns."""
        model = self.make()
        given = self.left if side == "left" else self.right
        return model, model._rows(given.X, given.y, given.units)

    def draw(self, side: Side, count: int) -> NDArray[np.float64]:
        """What that many fits release, a line of numbers each."""
        model, rows = self.rows(side)
        paid = model._price()
        return np.array([flat(*model._released(rows, Meter.alone(paid))) for _ in range(count)])


@dataclass(frozen=True, slots=True)
class Search:
    """A choice between models, which only samples can hold to its claim.

    How many fits it makes is its own secret, so there is no list of questions to go through.

    Attributes:
        name: Short and unique.
        loss: The claim.
        draw: What that many searches on one side's table release, a line of numbers each.
    """

    name: str
    loss: PrivacyLoss
    draw: Callable[[Side, int], NDArray[np.float64]]


def flat(design: Design, learned: Learned) -> NDArray[np.float64]:
    """All numbers of what was released, in one line: bounds, which may be bought, and what is learned."""
    bounds = [(column.lower, column.upper) for column in design.columns if isinstance(column, Number)]
    found = [np.ravel(np.asarray(learned[name], np.float64)) for name in sorted(learned)]
    return np.concatenate([np.ravel(np.array(bounds, np.float64)), *found])


@cache
def examples() -> tuple[Example, ...]:
    """The examples of all models of this package."""
    return tuple(example for module in _modules() for example in getattr(module, "examples", tuple)())


@cache
def searches() -> tuple[Search, ...]:
    """The examples of all choices between models."""
    return tuple(search for module in _modules() for search in getattr(module, "searches", tuple)())


def _modules() -> list[ModuleType]:
    root = importlib.import_module("sfumato.learn")
    return [importlib.import_module(f"sfumato.learn.{home}") for home in sorted(root._HOMES)]
