"""Independent columns: each one's own counts and nothing else, the floor that every method must beat."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.fits.meter import Meter
from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._model.estimating import estimate
from sfumato.synth._private.cells import Cells
from sfumato.synth.methods.base import Learned, Told, Wanted

__all__ = ["Independent", "measured"]


class Independent:
    """Counts of each column by itself, the price divided alike."""

    name = "independent"

    def check(self, domain: Domain, wanted: Wanted) -> None:
        """Nothing is too large for it."""

    def learn(self, cells: Cells, meter: Meter, wanted: Wanted, told: Told) -> Learned:
        """Measure each column; see `Method`."""
        many = len(cells.domain)
        marginals = [measured(cells, meter, (place,), Fraction(1, many)) for place in range(many)]
        told(1.0)
        zeros = wanted.zeros_with(cells.domain, [marginal.clique for marginal in marginals])
        fitted = estimate(cells.domain, marginals, zeros=zeros)
        return Learned(marginals, fitted.model, fitted.converged)


def measured(cells: Cells, meter: Meter, clique: Clique, share: Fraction) -> Marginal:
    """Noisy counts of some columns, for a share of the price."""
    exact = cells.counts(clique)
    noisy = meter.noisy(exact, share)
    shape = cells.domain.shape(clique)
    sigma = meter.sigma(exact.sensitivity * exact.step, share)
    return Marginal(clique, np.asarray(noisy).reshape(shape), sigma)
