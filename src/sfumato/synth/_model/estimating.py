"""`estimate`: the model that noisy marginals are most likely under."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.synth._model.beliefs import Beliefs, Floats
from sfumato.synth._model.descent import Point, descend
from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._model.model import Model
from sfumato.synth._model.sharing import Sharing
from sfumato.synth._model.trees import tree_of

__all__ = ["Fitted", "estimate"]

_SPREAD = 300.0  # second derivatives of the first round differ by about this factor
_SHRINK = 0.3
_DEEP = 30.0  # how low a carried potential may be: the new counts may want it back
_ROUNDS = 80
_INNER = 60  # steps of a round


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model, and how near it is to the best one.

    Attributes:
        model: The model.
        converged: Whether the gap is within the tolerance.
        gap: A proven bound on how far the objective is above its least value. Its double bounds the squared
            distance of the model's marginals from the best ones, each cell in multiples of its sigma.
        objective: Half the sum of squared differences between the model's marginals and the noisy ones, in
            multiples of sigma.
        steps: How often beliefs were propagated.
    """

    model: Model
    converged: bool
    gap: float
    objective: float
    steps: int


def estimate(
    domain: Domain,
    marginals: Sequence[Marginal],
    total: float | None = None,
    *,
    start: Model | None = None,
    zeros: Mapping[Clique, NDArray[np.bool_]] | None = None,
    most_cells: int = 2**26,
    tolerance: float = 1e-3,
    most_steps: int = 10_000,
) -> Fitted:
    """The model of greatest likelihood, and among those of the same marginals the one of greatest entropy.

    It has the least sum of squared differences from the noisy counts, in multiples of sigma, of all
    distributions of a total. It is found by a proximal method: each round adds to the objective a multiple
    of the divergence from the last round's model, which makes its dual smooth, and that multiple shrinks.
    The dual also bounds how far from the best a model is, and rounds go on until that is proven small.

    Args:
        domain: The columns.
        marginals: Noisy counts, in any order, also several of the same columns.
        total: How many rows the table has, at least 1; if None, what the marginals say of it, each weighted
            by the inverse of its variance.
        start: A model from earlier marginals, to start from.
        zeros: For cliques, True for each cell that no row can be in.
        most_cells: How many cells the junction tree may have.
        tolerance: What the gap may be, as a part of the number of noisy counts plus the objective.
        most_steps: After how often beliefs were propagated it gives up.

    Raises:
        InvalidParameter: if a marginal has the wrong shape, numbers that are not finite or a sigma that is
            not above 0, if zeros leave no cell, or if the tree would have too many cells.

    Source: Rockafellar 1976 and Teboulle 1992 (proximal methods with divergences); McKenna, Sheldon, Miklau
    2019 (the objective).
    """
    measured = _merged(domain, marginals)
    whole = _total(measured, total)
    blocked = _blocked(domain, zeros or {})
    cliques = [marginal.clique for marginal in measured]
    tree = tree_of(domain, [*cliques, *blocked])
    if sum(map(domain.cells, tree.cliques)) > most_cells:
        raise InvalidParameter("The junction tree has too many cells: measure fewer columns together.")
    beliefs = Beliefs(domain, tree, [*cliques, *blocked])
    return _Search(domain, measured, whole, beliefs, blocked).run(start, tolerance, most_steps)


class _Search:
    """The rounds of one estimate."""

    def __init__(
        self,
        domain: Domain,
        measured: Sequence[Marginal],
        total: float,
        beliefs: Beliefs,
        blocked: Mapping[Clique, Floats],
    ) -> None:
        self.domain, self.measured, self.total, self.beliefs = domain, measured, total, beliefs
        self.blocked, self.steps = blocked, 0
        self.sharing = Sharing(domain, [m.clique for m in measured], [m.sigma for m in measured])
        noisy = _in_a_row([marginal.values for marginal in measured])
        self.wanted = self.sharing.agreed(noisy)
        self.offset = self._objective(noisy)  # of all models alike: how much marginals disagree
        self.ends = np.cumsum([marginal.values.size for marginal in measured])[:-1]

    def run(self, start: Model | None, tolerance: float, most_steps: int) -> Fitted:
        """Rounds until the gap is small."""
        base = self._carried(start)
        counts, before = self._counts(base)
        if before == -math.inf:
            raise InvalidParameter("The zeros leave no cell for a row to be in.")
        variance = self.sharing.variance
        pull = self._first_pull(counts)
        slopes = np.zeros(len(variance))
        objective, gap = self._objective(counts), math.inf
        best = base, counts, objective, gap
        for _ in range(_ROUNDS if len(variance) else 0):
            point = self._round(base, slopes, pull, most_steps, gap, tolerance)
            slopes, counts = point.at, point.extra
            base = base - slopes / pull
            objective = self._objective(counts)
            gap = objective - self._bound(self.sharing.spread(slopes))
            if gap < best[3]:
                best = base, counts, objective, gap
            if gap <= tolerance * (len(variance) + objective) or self.steps >= most_steps:
                break
            if float(point.slope @ (point.slope / variance)) <= 1e-2 * gap:
                pull *= _SHRINK
        base, counts, objective, gap = best
        if not len(variance):
            gap = 0.0
        model = Model(self.domain, self.total, self._potentials(base))
        good = gap <= tolerance * (len(variance) + objective)
        return Fitted(model, good, max(gap, 0.0), objective + self.offset, self.steps)

    def _round(
        self, base: Floats, slopes: Floats, pull: float, most_steps: int, gap: float, tolerance: float
    ) -> Point:
        variance, wanted = self.sharing.variance, self.wanted
        reference = math.nan

        def dual(at: Floats) -> Point:
            nonlocal reference
            counts, log_partition = self._counts(base - at / pull)
            reference = log_partition if math.isnan(reference) else reference
            inner = variance * self.sharing.spread(at)
            value = pull * self.total * (log_partition - reference) + float(at @ (inner / 2 + wanted))
            return Point(at, value, wanted - counts + inner, 1 / (counts / pull + variance), counts)

        near = 0.01 * tolerance * len(variance) if math.isinf(gap) else 1e-4 * gap
        near = max(near, 0.01 * tolerance * len(variance))

        def done(point: Point) -> bool:
            return float(point.slope @ (point.slope / variance)) <= near

        first = dual(slopes)
        return descend(dual, first, done=done, steps=min(_INNER, max(most_steps - self.steps, 1)))

    def _counts(self, potentials: Floats) -> tuple[Floats, float]:
        """The model's marginals in one row, and the logarithm of its sum."""
        self.steps += 1
        all_potentials = [*self._split(potentials), *self.blocked.values()]
        counts, log_partition = self.beliefs.counts(all_potentials, self.total)
        return _in_a_row(counts[: len(self.measured)]), log_partition

    def _split(self, numbers: Floats) -> list[Floats]:
        if not self.measured:
            return []
        parts = np.split(numbers, self.ends)
        return [part.reshape(m.values.shape) for part, m in zip(parts, self.measured, strict=True)]

    def _objective(self, counts: Floats) -> float:
        return float(np.sum((counts - self.wanted) ** 2 / self.sharing.variance)) / 2

    def _bound(self, slopes: Floats) -> float:
        """What the objective is at least: the dual's value, without the divergence (Fenchel's inequality)."""
        highest = self.beliefs.highest([*self._split(-slopes), *self.blocked.values()])
        return -self.total * highest - float(slopes @ (self.sharing.variance * slopes / 2 + self.wanted))

    def _first_pull(self, counts: Floats) -> float:
        if not len(counts):
            return 1.0
        most = np.maximum(counts, np.minimum(self.wanted, self.total))
        return max(float(np.max(most / self.sharing.variance)), 1e-300) / _SPREAD

    def _carried(self, start: Model | None) -> Floats:
        """The potentials of an earlier model, where they are of columns that are measured together now."""
        parts = [np.zeros(marginal.values.shape) for marginal in self.measured]
        for clique, potential in (start.potentials if start is not None else {}).items():
            for marginal, part in zip(self.measured, parts, strict=True):
                if set(clique) <= set(marginal.clique):
                    shape = [self.domain.sizes[p] if p in clique else 1 for p in marginal.clique]
                    part += np.where(np.isfinite(potential), potential, 0.0).reshape(shape)
                    break
        return np.maximum(self.sharing.spread(_in_a_row(parts)), -_DEEP)

    def _potentials(self, numbers: Floats) -> dict[Clique, Floats]:
        parts = {m.clique: part for m, part in zip(self.measured, self._split(numbers), strict=True)}
        for clique, mask in self.blocked.items():
            parts[clique] = parts[clique] + mask if clique in parts else mask
        return parts


def _in_a_row(tables: Sequence[Floats]) -> Floats:
    return np.concatenate([np.empty(0), *(table.ravel() for table in tables)])


def _merged(domain: Domain, marginals: Sequence[Marginal]) -> list[Marginal]:
    """One marginal for each clique: those of the same columns are averaged by the inverse of variance."""
    weights: dict[Clique, float] = {}
    sums: dict[Clique, Floats] = {}
    for marginal in marginals:
        clique, sigma = marginal.clique, float(marginal.sigma)
        values = np.asarray(marginal.values, float)
        if not 0 < sigma < math.inf:
            raise InvalidParameter("A marginal's sigma must be a finite number above 0.")
        if values.shape != domain.shape(clique) or not np.isfinite(values).all():
            raise InvalidParameter("A marginal needs one finite number for each cell of its columns.")
        weights[clique] = weights.get(clique, 0.0) + sigma**-2
        sums[clique] = sums.get(clique, 0.0) + values * sigma**-2
    return [Marginal(c, sums[c] / weights[c], weights[c] ** -0.5) for c in sorted(sums)]


def _total(measured: Sequence[Marginal], total: float | None) -> float:
    """The number of rows, at least 1: as given, or as the marginals' sums tell."""
    if total is not None:
        if not math.isfinite(total):
            raise InvalidParameter("The total must be a finite number.")
        return max(float(total), 1.0)
    weights = [1 / (marginal.sigma**2 * marginal.values.size) for marginal in measured]
    sums = [float(marginal.values.sum()) for marginal in measured]
    mean = sum(w * s for w, s in zip(weights, sums, strict=True)) / sum(weights) if weights else 1.0
    return max(mean, 1.0)


def _blocked(domain: Domain, zeros: Mapping[Clique, NDArray[Any]]) -> dict[Clique, Floats]:
    """Potentials of zeros: -inf in each cell that no row can be in."""
    for clique, mask in zeros.items():
        if np.shape(mask) != domain.shape(clique):
            raise InvalidParameter("Zeros need True or False for each cell of their columns.")
    return {clique: np.where(zeros[clique], -math.inf, 0.0) for clique in sorted(zeros)}
