"""Adaptive choice: round by round, the counts that the model is furthest from are measured."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.random import simulation
from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._model.estimating import Fitted, estimate
from sfumato.synth._model.model import Model
from sfumato.synth._model.trees import cells_of
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.scores import Candidates, likely_misfit
from sfumato.synth.methods.base import Learned, Told, Wanted
from sfumato.synth.methods.independent import measured

__all__ = ["Adaptive"]

_ROUNDS = 4  # as many for each column, if none is cut short
_MEASURING = Fraction(9, 10)  # of a round; the rest chooses
_MOST_CANDIDATES = 100_000
_SMALL = 2**16  # a tree with fewer cells is never too large
_LARGE = 2**22  # a table on the way to a marginal has no more cells
_DRAWN = 100_000


class Adaptive:
    """Rounds of choosing what the model fits worst, measuring it and fitting again.

    After the counts of each column by itself, each round chooses a set of columns of the workload, or a part
    of one, by how far its counts are from the model's, less what noise alone would make of it; sets whose
    model would be too large are left out. Where a round teaches less than its noise, the next ones pay four
    times as much (after McKenna, Mullins, Sheldon, Miklau 2022).
    """

    name = "adaptive"

    def check(self, domain: Domain, wanted: Wanted) -> None:
        """Refuse a workload with too many parts, or one of which nothing would fit.

        Raises:
            InvalidParameter: with what would work.
        """
        parts = sum(2 ** min(len(clique), 30) for clique, _ in wanted.workload)
        if parts > _MOST_CANDIDATES * 4 or len(_candidates(wanted)) > _MOST_CANDIDATES:
            raise InvalidParameter("The workload has too many sets of columns: name fewer, or smaller ones.")
        # The first set stands beside all single columns; later ones may be measured again.
        more = [domain.cells(clique) - sum(domain.shape(clique)) for clique, _ in _candidates(wanted)]
        if more and sum(domain.sizes) + min(more) > _room(float(_MEASURING / _ROUNDS), wanted):
            raise InvalidParameter("No set of columns of the workload fits in this memory: give more.")

    def learn(self, cells: Cells, meter: Meter, wanted: Wanted, told: Told) -> Learned:
        """Measure single columns, then what the model fits worst; see `Method`."""
        domain, many = cells.domain, len(cells.domain)
        listed = _candidates(wanted)
        rounds = _ROUNDS * many if listed else many
        price = Fraction(1, rounds)  # of a round
        spent = price * _MEASURING * many if listed else Fraction(1)
        marginals = [measured(cells, meter, (place,), spent / many) for place in range(many)]
        told(float(spent))
        fitted = _settled(domain, marginals, None, wanted)
        choosing = Candidates(cells, [clique for clique, _ in listed])
        weights = [weight for _, weight in listed]
        while listed and spent < 1:
            if 1 - spent < 2 * price:
                price = 1 - spent
            share = price * _MEASURING
            sigma = meter.sigma(cells.max_rows, share)
            open_ = _that_fit(domain, marginals, choosing.cliques, float(spent + price), wanted)
            before = _counts(fitted.model, [choosing.cliques[place] for place in open_])
            scores = choosing.scores(
                open_,
                before,
                weights=[weights[place] for place in open_],
                allowances=[likely_misfit(sigma, counts.size) for counts in before],
            )
            at = meter.chosen(scores.values, scores.sensitivity, price - share)
            clique = choosing.cliques[open_[at]]
            marginals.append(measured(cells, meter, clique, share))
            spent += price
            told(float(spent))
            fitted = _settled(domain, marginals, fitted.model, wanted)
            moved = float(np.abs(fitted.model.marginal(clique) - before[at]).sum())
            if moved <= likely_misfit(sigma, before[at].size):
                price *= 4
        return Learned(marginals, fitted.model, fitted.converged)


def _candidates(wanted: Wanted) -> list[tuple[Clique, float]]:
    """All parts of two or more columns of the sets that matter, each with its weight.

    A part weighs, for each set, as much as the set does for each column that they share.
    """
    matters = dict[int, float]()
    for clique, weight in wanted.workload:
        for place in clique:
            matters[place] = matters.get(place, 0.0) + weight
    parts = {
        part
        for clique, _ in wanted.workload
        for many in range(2, len(clique) + 1)
        for part in itertools.combinations(clique, many)
    }
    return [(part, sum(matters[place] for place in part)) for part in sorted(parts)]


def _counts(model: Model, cliques: Sequence[Clique]) -> list[NDArray[np.float64]]:
    """A model's counts of sets of columns; where they would need too large a table, of rows drawn from it."""
    found, rows = list[NDArray[np.float64]](), None
    for clique in cliques:
        try:
            found.append(model.marginal(clique, most_cells=_LARGE))
        except InvalidParameter:
            rows = model.rows(_DRAWN, simulation(0)) if rows is None else rows
            shape = model.domain.shape(clique)
            place = np.ravel_multi_index([rows[:, at] for at in clique], shape)
            counts = np.bincount(place, minlength=model.domain.cells(clique)).reshape(shape)
            found.append(np.asarray(counts * (model.total / _DRAWN), np.float64))
    return found


def _that_fit(
    domain: Domain, marginals: Sequence[Marginal], cliques: Sequence[Clique], spent: float, wanted: Wanted
) -> list[int]:
    """The places of those whose model would not be too large: the more is spent, the larger it may be."""
    limit = _room(spent, wanted)
    held = sorted({marginal.clique for marginal in marginals})
    for extra in (list(wanted.zeros_with(domain, held)), []):  # zeros give way to what is measured
        found = [
            place
            for place, clique in enumerate(cliques)
            if clique in held or cells_of(domain, [*held, *extra, clique]) <= limit
        ]
        if found:
            break
    return found


def _room(spent: float, wanted: Wanted) -> int:
    """How many cells a model may have once so much is spent."""
    return max(int(wanted.most_cells * min(spent, 1.0)), min(_SMALL, wanted.most_cells))


def _settled(domain: Domain, marginals: Sequence[Marginal], start: Model | None, wanted: Wanted) -> Fitted:
    zeros = wanted.zeros_with(domain, [marginal.clique for marginal in marginals])
    most = max(2 * wanted.most_cells, _SMALL)
    return estimate(domain, marginals, start=start, zeros=zeros, most_cells=most)
