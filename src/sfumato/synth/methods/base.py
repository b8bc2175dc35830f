"""What a method is given and what it gives: the one shape that all of them have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter
from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._model.model import Model
from sfumato.synth._model.room import size_of
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
        most_cells: How large the model may be, and what is counted for it, in cells of `room.BYTES` bytes.
        zeros: For some columns, True for each cell that no row can be in.
    """

    workload: tuple[tuple[Clique, float], ...]
    most_cells: int
    zeros: Mapping[Clique, NDArray[np.bool_]] = field(default_factory=dict)

    def zeros_with(
        self, domain: Domain, cliques: Sequence[Clique], most: int | None = None
    ) -> dict[Clique, NDArray[np.bool_]]:
        """The zeros that a model of some cliques has room for, those of few columns first.

        What is left out is kept to when rows are drawn.
        """
        kept = dict[Clique, NDArray[np.bool_]]()
        limit = max(self.most_cells if most is None else most, size_of(domain, cliques))
        for clique in sorted(self.zeros, key=lambda one: (domain.cells(one), one)):
            if len(clique) == 1 or size_of(domain, cliques, [*kept, clique]) <= limit:
                kept[clique] = self.zeros[clique]
        return kept


class Learned(NamedTuple):
    """What a method measured and made of it; public.

    Attributes:
        marginals: All noisy counts, in the order in which they were bought.
        model: What follows from them.
        converged: Whether the model is as close to them as it can be.
        parts: Where marginals share their noise, the standard deviation of that of each part of them, as
            `residual.Parts` has it; empty: each count has noise of its own.
    """

    marginals: Sequence[Marginal]
    model: Model
    converged: bool
    parts: Mapping[Clique, float] = MappingProxyType({})


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
