"""Deep runs for the registry: one canary, or none, in many runs. PyTorch is loaded when one is audited."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Side

if TYPE_CHECKING:
    from sfumato.learn.torch.runs import Private

__all__ = ["Example", "examples"]

_SIZE = 16


@dataclass(frozen=True, slots=True)
class Example:
    """A run with one canary, or without it, that is made again for each sample.

    Attributes:
        name: Short and unique.
        epsilon: The price of the run.
        rate: The chance of a record.
        steps: How many.
    """

    name: str
    epsilon: Fraction
    rate: Fraction
    steps: int

    def pair(self) -> Example:
        """Itself: loss and draws."""
        return self

    @property
    def loss(self) -> PrivacyLoss:
        """The claim: the whole curve of its steps, of which the price is one point."""
        from sfumato.learn.torch.objectives import cross_entropy

        run = self.make(*_given(), cross_entropy)
        return run.sampler.loss(run.noise_multiplier)

    def make(self, model: Any, data: Any, objective: Any) -> Private:
        """The run."""
        from torch.optim import SGD

        from sfumato.learn.torch.runs import private

        return private(
            model,
            SGD(model.parameters(), 0.1),
            data,
            epsilon=self.epsilon,
            delta=Fraction(1, 10**5),
            size=_SIZE,
            batch=int(self.rate * _SIZE),
            steps=self.steps,
            objective=objective,
        )

    def draw(self, side: Side, count: int) -> NDArray[np.float64]:
        """How much each of so many runs looks as if the canary were in it."""
        from sfumato.audit.deep import scores_of_run

        model, records = _given()
        inside = [0] if side == "left" else []
        return np.array(
            [scores_of_run(self.make, model, records, inside, canaries=1)[0] for _ in range(count)], float
        )


def _given() -> tuple[Any, Any]:
    """A small model, and records that are all alike."""
    import torch

    return torch.nn.Linear(2, 2), (torch.ones(_SIZE - 1, 2), torch.zeros(_SIZE - 1, dtype=torch.long))


def examples() -> tuple[Example, ...]:
    """Runs for the registry: samples that are drawn, and all records in each step."""
    return (
        Example("deep run: a canary in drawn batches", Fraction(4), Fraction(1, 2), 2),
        Example("deep run: a canary in every batch", Fraction(4), Fraction(1), 1),
    )
