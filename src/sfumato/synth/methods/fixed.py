"""Fixed marginals: all that are wanted, at once and in closed form; what the model keeps of them is free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.synth._model.contrasts import MOST_CELLS
from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._model.estimating import Fitted, estimate
from sfumato.synth._model.room import BYTES, Room, megabytes, size_of
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.scores import likely_misfit
from sfumato.synth.methods.base import Learned, Told, Wanted
from sfumato.synth.methods.residual import NUMBERS, measured, planned

__all__ = ["Fixed"]

_ROUNDS = 4  # in which the model takes in more of the marginals
_LARGE = 2**19  # a model needs no larger size, to be quick
_MOST_PARTS = 400_000  # parts of sets of columns, each measured by itself


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
        if max(domain.cells(clique) for clique, _ in wanted.workload) > MOST_CELLS:
            raise InvalidParameter("A set of columns of the workload has too many cells: name smaller ones.")
        if sum(2 ** min(len(clique), 30) for clique, _ in wanted.workload) > _MOST_PARTS:
            raise InvalidParameter("The workload has too many sets of columns: name fewer, or smaller ones.")
        needed = _for_counts(domain, wanted) + size_of(domain, [(place,) for place in range(len(domain))])
        if needed > wanted.most_cells:
            reason = "The noisy counts of the workload are too many for this memory"
            raise InvalidParameter(
                f"{reason}: give memory={megabytes(needed)}, or name fewer sets of columns."
            ).in_shell(f"{reason}: give --memory {megabytes(needed)}, or name fewer sets of columns.")

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
        return Learned([*single, *several], fitted.model, fitted.converged, parts.sigmas)


def _for_counts(domain: Domain, wanted: Wanted) -> int:
    """What the noisy counts of a workload take, and those that get their noise in one go; in a model's cells.

    A count is there as a part and in its marginal, and once more when it is written; 40 bytes more take the
    exact sums and their noise while they are drawn.
    """
    sets = [domain.cells(clique) for clique, _ in wanted.workload]
    cells = sum(sets) + sum(domain.sizes)
    return -(-(24 * cells + 40 * min(cells, max(NUMBERS, *sets))) // BYTES)


def _modelled(
    domain: Domain, single: Sequence[Marginal], several: Sequence[Marginal], wanted: Wanted
) -> Fitted:
    """A model of as many of the marginals as have room; those that it is furthest from come first."""
    held, start = list(single), size_of(domain, [marginal.clique for marginal in single])
    most = min(wanted.most_cells - _for_counts(domain, wanted), start + _LARGE)
    zeros = wanted.zeros_with(domain, [marginal.clique for marginal in held], most)
    fitted, room, left = estimate(domain, held, zeros=zeros), Room(domain), list(several)
    for turn in range(_ROUNDS):
        off = _beyond_noise(left, fitted)
        taken, limit = set[int](), start + (most - start) * (turn + 1) // _ROUNDS
        cliques = [marginal.clique for marginal in held]
        for place in sorted(range(len(left)), key=lambda place: -off[place]):
            clique = left[place].clique
            if off[place] <= 0 or (turn == 0 and len(taken) >= len(domain) - 1):
                break
            if turn == 0 and _is_joined(domain, [*cliques, *zeros], clique):
                continue
            if room.fits(cliques, clique, limit, list(zeros)):
                taken.add(place)
                cliques.append(clique)
        if not taken and turn:
            break
        held += [left[place] for place in sorted(taken)]
        left = [marginal for place, marginal in enumerate(left) if place not in taken]
        fitted = estimate(domain, held, zeros=zeros)
    return fitted


def _beyond_noise(marginals: Sequence[Marginal], fitted: Fitted) -> list[float]:
    """How far noisy counts are from the model's, beyond what their noise alone would do.

    Those that the model has only by too large a table are not looked at.
    """
    found = list[float]()
    counts = fitted.model.marginals([marginal.clique for marginal in marginals])
    for marginal, own in zip(marginals, counts, strict=True):
        off = 0.0 if own is None else float(np.abs(marginal.values - own).sum())
        found.append(off - likely_misfit(marginal.sigma, marginal.values.size))
    return found


def _is_joined(domain: Domain, cliques: Sequence[Clique], clique: Clique) -> bool:
    """Whether all columns of a clique hang together already."""
    part = list(range(len(domain)))
    for held in cliques:
        first = part[held[0]]
        merged = {part[place] for place in held}
        part = [first if one in merged else one for one in part]
    return len({part[place] for place in clique}) == 1
