"""Neighbouring tables for whatever is released here, ready to be drawn from: what an auditor runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Side

__all__ = ["Example", "examples"]


@dataclass(frozen=True, slots=True)
class Example:
    """A release from two neighbouring tables.

    Every module of this package whose releases cost privacy lists some in `examples`.

    Attributes:
        name: Short and unique.
        loss: The claim.
        draw: What that many releases from one side's table hold, a line of numbers each.
    """

    name: str
    loss: PrivacyLoss
    draw: Callable[[Side, int], NDArray[np.float64]]


@cache
def examples() -> tuple[Example, ...]:
    """The examples of all releases of this package."""
    from sfumato.synth.fit_examples import fits
    from sfumato.synth.linked_examples import linked_fits

    root = importlib.import_module("sfumato.synth")
    modules = [importlib.import_module(f"sfumato.synth.{home}") for home in sorted(root._HOMES)]
    listed = [example for module in modules for example in getattr(module, "examples", tuple)()]
    one = (Example(fit.name, fit.claim, fit.draw) for fit in fits())
    two = (Example(fit.name, fit.loss, fit.draw) for fit in linked_fits())
    return (*listed, *one, *two)
