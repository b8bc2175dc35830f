"""A tree of pairs: the spanning tree of the strongest dependences, chosen edge by edge."""

from __future__ import annotations

import itertools
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._model.estimating import estimate
from sfumato.synth._model.room import megabytes, size_of
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.scores import Candidates, if_independent, likely_misfit
from sfumato.synth.methods.base import Learned, Told, Wanted
from sfumato.synth.methods.independent import measured

__all__ = ["MST", "single_share"]

_SINGLE, _CHOOSING = Fraction(1, 3), Fraction(1, 6)


def single_share(columns: int) -> Fraction:
    """Which part of the price the counts of each column by itself get."""
    return _SINGLE / columns if columns > 1 else Fraction(1)


class MST:
    """Counts of each column, then of as many pairs as join all columns without a circle.

    A pair is chosen by how far its counts are from those of independent columns (McKenna, Miklau, Sheldon
    2021), less what the noise of its own counts will be: pairs of many cells must be worth it. Nothing is
    followed up: a column that depends on two others together is not seen. Pairs that constraints hold
    together, which are public, are taken without a choice.
    """

    name = "mst"

    def check(self, domain: Domain, wanted: Wanted) -> None:
        """Refuse pairs that are too large.

        Raises:
            InvalidParameter: with how much memory would do.
        """
        # No tree of pairs has more cells than the one in which all are paired with the largest column.
        largest = max(range(len(domain)), key=domain.sizes.__getitem__)
        star = [
            (min(largest, place), max(largest, place)) for place in range(len(domain)) if place != largest
        ]
        needed = size_of(domain, [*((place,) for place in range(len(domain))), *star])
        if needed > wanted.most_cells:
            reason = "A tree of pairs may be too large for this memory"
            raise InvalidParameter(f"{reason}: give memory={megabytes(needed)}.").in_shell(
                f"{reason}: give --memory {megabytes(needed)}."
            )

    def learn(self, cells: Cells, meter: Meter, wanted: Wanted, told: Told) -> Learned:
        """Measure single columns and a tree of pairs; see `Method`."""
        domain = cells.domain
        many = len(domain)
        single = single_share(many) * many
        marginals = [measured(cells, meter, (place,), single / many) for place in range(many)]
        told(float(single))
        zeros = wanted.zeros_with(domain, [marginal.clique for marginal in marginals])
        if many == 1:
            fitted = estimate(domain, marginals, zeros=zeros)
            return Learned(marginals, fitted.model, fitted.converged)
        start = estimate(domain, marginals, zeros=zeros).model
        ones = [start.marginal((place,)) for place in range(many)]
        left = list[Clique](itertools.combinations(range(many), 2))
        pairs = Candidates(cells, left, keep=False)
        each = (1 - _SINGLE - _CHOOSING) / (many - 1)
        noise = [likely_misfit(meter.sigma(cells.max_rows, each), domain.cells(pair)) for pair in left]
        expected = if_independent(ones, start.total, left)
        scored = pairs.scores(range(len(left)), expected, allowances=noise)
        part, edges = list(range(many)), list[Clique]()
        for one, other in (clique for clique in sorted(wanted.zeros) if len(clique) == 2):
            if part[one] != part[other]:
                edges.append((one, other))
                part = [part[one] if held == part[other] else held for held in part]
        choices = len(set(part)) - 1
        for _ in range(choices):
            open_ = [at for at, (one, other) in enumerate(left) if part[one] != part[other]]
            each = _CHOOSING / choices
            place = meter.chosen([scored.values[at] for at in open_], scored.sensitivity, each)
            one, other = left[open_[place]]
            edges.append((one, other))
            part = [part[one] if held == part[other] else held for held in part]
        chosen = single + (_CHOOSING if choices else 0)
        told(float(chosen))
        rest = (1 - chosen) / len(edges)
        marginals += [measured(cells, meter, edge, rest) for edge in edges]
        told(1.0)
        zeros = wanted.zeros_with(domain, [marginal.clique for marginal in marginals])
        fitted = estimate(domain, marginals, start=start, zeros=zeros)
        return Learned(marginals, fitted.model, fitted.converged)
