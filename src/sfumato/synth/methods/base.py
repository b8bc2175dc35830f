"""What a method is given and what it gives: the one shape that all of them have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter
from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._model.model import Model
from sfumato.synth._private.cells import Cells

__all__ = ["Learned", "Method", "Wanted", "silent"]

Told = Callable[[float], None]
"""Told which part of the price is spent, for a bar of progress: a public number."""


def silent(_: float) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is public of a fit: which marginals matter, and how large a model may be.

    Attributes:
        workload: Sets of columns with the weight of each; empty: all pairs alike.
        most_cells: How many cells the tables of the model may have in all.
    """

    workload: tuple[tuple[Clique, float], ...]
    most_cells: int


class Learned(NamedTuple):
    """What a method measured and made of it; public.

    Attributes:
        marginals: All noisy counts, in the order in which they were bought.
        model: What follows from them.
        converged: Whether the model is as close to them as it can be.
        independent: Whether the noise of each count is independent of all others'.
    """

    marginals: Sequence[Marginal]
    model: Model
    converged: bool
    independent: bool = True


class Method(Protocol):
    """A way to choose what is measured."""

    name: str

    def check(self, domain: Domain, wanted: Wanted) -> None:
        """Refuse what cannot be done, before anything is paid.

        Raises:
            InvalidParameter: with what would work.
        """
        ...

    def learn(self, cells: Cells, meter: Meter, wanted: Wanted, told: Told) -> Learned:
        """Spend a meter on counts of rows, and model the table by them.

        Privacy:
            Claim: that of the meter. `cells` is seen through `Meter.noisy` and `Meter.chosen` alone.
        """
        ...
