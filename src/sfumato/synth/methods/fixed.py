"""Fixed marginals: all that are wanted, at once and in closed form; what the model keeps of them is free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.synth._model.contrasts import MOST_CELLS
from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._model.estimating import Fitted, estimate
from sfumato.synth._model.trees import cells_of
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.scores import likely_misfit
from sfumato.synth.methods.base import Learned, Told, Wanted
from sfumato.synth.methods.residual import measured, planned

__all__ = ["Fixed"]

_ROUNDS = 4  # in which the model takes in more of the marginals
_CELLS = 2**28  # of all marginals together
_LARGE = 2**17  # cells that a model needs no more of, to be quick


class Fixed:
    """All marginals of the workload at once, each with as little noise as the price allows for all of them.

    Nothing is chosen with noise: the schedule is fixed beforehand, and costs grow with the workload alone, so
    that it goes on where there are hundreds of columns. The model keeps the marginals that it fits worst
    without them, as many as it has room for: to choose among noisy counts is free.
    """

    name = "fixed"

    def check(self, domain: Domain, wanted: Wanted) -> None:
        """Refuse a workload with too many cells.

        Raises:
            InvalidParameter: with what would work.
        """
        cells = [domain.cells(clique) for clique, _ in wanted.workload]
        if sum(cells) > _CELLS or max(cells) > MOST_CELLS:
            raise InvalidParameter(
                "The workload has too many cells to be measured: name fewer sets of columns."
            )

    def learn(self, cells: Cells, meter: Meter, wanted: Wanted, told: Told) -> Learned:
        """Measure all of the workload, and model what matters most of it; see `Method`."""
        domain = cells.domain
        weights = dict(wanted.workload)
        for place in range(len(domain)):  # a column that nobody asks about is modelled, too
            if not any(place in clique for clique in weights):
                weights[(place,)] = 1.0
        parts = measured(cells, meter, planned(domain, weights, "max"))
        told(1.0)
        single = [parts.marginal((place,)) for place in range(len(domain))]
        several = [parts.marginal(clique) for clique in weights if len(clique) > 1]
        fitted = _modelled(domain, single, several, wanted)
        return Learned([*single, *several], fitted.model, fitted.converged, independent=False)


def _modelled(
    domain: Domain, single: Sequence[Marginal], several: Sequence[Marginal], wanted: Wanted
) -> Fitted:
    """A model of as many of the marginals as have room; those that it is furthest from come first."""
    held, most = list(single), min(wanted.most_cells, _LARGE)
    zeros = wanted.zeros_with(domain, [marginal.clique for marginal in held], most)
    spare = cells_of(domain, zeros)
    fitted = estimate(domain, held, zeros=zeros)
    left = [marginal for marginal in several if domain.cells(marginal.clique) <= most]
    for turn in range(_ROUNDS):
        off = [_beyond_noise(marginal, fitted) for marginal in left]
        order = sorted(range(len(left)), key=lambda place: -off[place])
        taken = set[int]()
        room = spare + most * (turn + 1) // _ROUNDS
        cliques = [*(marginal.clique for marginal in held), *zeros]
        for place in order:
            if off[place] <= 0 or (turn == 0 and len(taken) >= len(domain) - 1):
                break
            joined = [*cliques, left[place].clique]
            if (turn > 0 or not _is_joined(domain, cliques, left[place].clique)) and cells_of(
                domain, joined
            ) <= room:
                taken.add(place)
                cliques = joined
        if not taken and turn:
            break
        held += [left[place] for place in sorted(taken)]
        left = [marginal for place, marginal in enumerate(left) if place not in taken]
        fitted = estimate(domain, held, zeros=zeros)
    return fitted


def _beyond_noise(marginal: Marginal, fitted: Fitted) -> float:
    """How far noisy counts are from the model's, beyond what their noise alone would do."""
    off = float(np.abs(marginal.values - fitted.model.marginal(marginal.clique)).sum())
    return off - likely_misfit(marginal.sigma, marginal.values.size)


def _is_joined(domain: Domain, cliques: Sequence[Clique], clique: Clique) -> bool:
    """Whether all columns of a clique hang together already."""
    part = list(range(len(domain)))
    for held in cliques:
        first = part[held[0]]
        merged = {part[place] for place in held}
        part = [first if one in merged else one for one in part]
    return len({part[place] for place in clique}) == 1
