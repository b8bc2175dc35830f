"""Checks of a model against neighbouring tables, ready to be run: for the kit for fits and an auditor."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter, price
from sfumato.loss import GaussianLoss
from sfumato.mechanisms.base import Side
from sfumato.session.reading import RowsRead
from sfumato.synth._private.misfits import parts_of
from sfumato.synth.checking import CheckPlan, chances_of, measured
from sfumato.synth.examples import Example
from sfumato.synth.fit_examples import SynthFit, fits
from sfumato.synth.released import Released, knowing
from sfumato.synth.synthesizer import Synthesizer

__all__ = ["CheckPair", "check_of", "close_to", "examples", "pair_of"]

_PAID = price(2, "0.01")


@dataclass(frozen=True, slots=True)
class CheckPair:
    """A check, and two neighbouring tables as they are read for it.

    Attributes:
        plan: All that is public of it.
        left: One table.
        right: The same with a unit added or removed, or another one where units are exchanged.
        loss: The price.
    """

    plan: CheckPlan
    left: RowsRead
    right: RowsRead
    loss: GaussianLoss = _PAID

    def released(self, side: Side, meter: Meter) -> dict[str, NDArray[Any]]:
        """What a check releases of one side's table."""
        return measured(self.plan, self.left if side == "left" else self.right, meter)

    def draw(self, side: Side, count: int) -> NDArray[np.float64]:
        """What that many checks release, a line of numbers each."""
        exchange = self.plan.wanted.exchange
        drawn = [self.released(side, Meter.alone(self.loss, exchange=exchange)) for _ in range(count)]
        return np.array([np.concatenate(list(found.values())) for found in drawn])


def check_of(fit: SynthFit, released: Released, loss: GaussianLoss = _PAID) -> CheckPair:
    """The check of what a fit released, whatever that is, against the two tables of the fit."""
    made = Synthesizer(
        table=fit.plan.wanted.table,
        columns=knowing(fit.plan.columns, released.found),
        method=fit.plan.method.name,
        epsilon=Fraction(1),
        delta=Fraction(1, 100),
        released=released,
        unit=fit.plan.unit,
        receipt=None,
    )
    cliques, weights = zip(*fit.plan.wishes.workload, strict=True)
    plan = CheckPlan(fit.plan.wanted, made, cliques, tuple(parts_of(weights)), chances_of(made, cliques))
    return CheckPair(plan, fit.left, fit.right, loss)


def close_to(fit: SynthFit, side: Side) -> Released:
    """A model that is close to one side's table."""
    meter = Meter.alone(price(100, "0.01"), exchange=fit.plan.wanted.exchange, risk=fit.risk)
    return fit.released(side, meter)


@cache
def pair_of(name: str) -> CheckPair:
    """The neighbours of a fit, by its name, beside a model close to one: one more is off everywhere."""
    fit = next(fit for fit in fits() if fit.name == name)
    return check_of(fit, close_to(fit, "right"))


def examples() -> tuple[Example, ...]:
    """The neighbours of all fits."""
    return tuple(Example(f"check of {fit.name}", _PAID, _Drawn(fit.name)) for fit in fits())


class _Drawn:
    """Fits the model when the first line is drawn."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, side: Side, count: int) -> NDArray[np.float64]:
        return pair_of(self._name).draw(side, count)
