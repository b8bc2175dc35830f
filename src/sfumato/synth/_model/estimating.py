"""`estimate`: the model that noisy marginals are most likely under."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.synth._model.beliefs import Beliefs, Floats
from sfumato.synth._model.descent import Moves, Point, descend
from sfumato.synth._model.domain import Clique, Domain, Marginal
from sfumato.synth._model.model import Model
from sfumato.synth._model.sharing import Sharing
from sfumato.synth._model.trees import tree_of

__all__ = ["Fitted", "estimate"]

_SPREAD = 300.0  # second derivatives of the first round differ by about this factor
_SHRINK = 0.3
_INNER = 30  # steps after which a round is looked at
_LOOKS = 4
_EASY = 25  # a round of fewer steps is followed by one with less pull
_ROUGH = 0.01  # how far from the least of a round it may end, as a part of the objective
_RAISE = 2.0
_SOFT = 0.4  # the pull, in multiples of 1 / sigma, at which empty cells are still easy to fill
_STILL = 0.02  # a fall of the objective, as a part of the tolerance, that is taken for none


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model, and how near it is to the best one.

    Attributes:
        model: The model.
        converged: Whether the gap is within the tolerance, or the objective has stopped falling.
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
    tolerance: float = 1e-2,
    most_steps: int = 10_000,
) -> Fitted:
    """The model of greatest likelihood, and among those of the same marginals the one of greatest entropy.

    It has the least sum of squared differences from the noisy counts, in multiples of sigma, of all
    distributions of a total. It is found by a proximal method: each round adds to the objective a multiple
    of the divergence from the last round's model, which makes its dual smooth, and that multiple shrinks.
    The dual also bounds how far from the best a model is. Rounds go on until that is proven small, or until
    the objective falls by less than a fiftieth of that twice, which usually comes first: the bound lags.

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


class _Place(NamedTuple):
    """Where a round starts.

    Attributes:
        base: The potentials of the last round's model.
        slopes: About the gradient of the objective.
        pull: How much the divergence from the last round's model counts.
    """

    base: Floats
    slopes: Floats
    pull: float


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
        variance = self.sharing.variance
        self.scale = float(np.median(variance)) ** -0.5 if len(variance) else 1.0  # that of slopes
        self.ends = np.cumsum([marginal.values.size for marginal in measured])[:-1]

    def run(self, start: Model | None, tolerance: float, most_steps: int) -> Fitted:
        """Rounds until the gap is small, or the objective does not fall any more."""
        nothing = [np.zeros(marginal.values.shape) for marginal in self.measured]
        if self.beliefs.highest([*nothing, *self.blocked.values()]) == -math.inf:
            raise InvalidParameter("The zeros leave no cell for a row to be in.")
        if not self.measured:
            model = Model(self.domain, self.total, self._potentials(self.wanted))
            return Fitted(model, True, 0.0, 0.0, self.steps)
        at = self._carried(start)
        best, objective, gap, still = at.base, math.inf, math.inf, 0
        least, lowest_pull = 0.0, self.scale
        soft: _Place | None = None
        moves = Moves(len(self.wanted))
        while still < 2 and not self._within(gap, objective, tolerance) and self.steps < most_steps:
            before = self.steps
            found, solved = self._round(at, moves, most_steps, gap, tolerance)
            if not solved and self.steps < most_steps:
                at = at._replace(pull=at.pull * _RAISE)
                lowest_pull = max(lowest_pull, at.pull)
                moves.clear()
                continue
            base = at.base - found.at / at.pull
            reached = self._objective(found.extra)
            least = max(least, self._bound(self.sharing.spread(found.at)))
            falls = not self._within(abs(objective - reached), reached, _STILL * tolerance)
            still = 0 if falls or at.pull > lowest_pull else still + 1
            if reached < objective:
                best, objective = base, reached
            gap = objective - least
            if soft is None or at.pull >= _SOFT * self.scale:
                soft = _Place(base, found.at, at.pull)
            at = _Place(base, found.at, at.pull)
            if self.steps - before < _EASY:
                at = at._replace(pull=at.pull * _SHRINK)
                moves.clear()
        warm = (soft.pull, self._by_clique(soft.base), self._by_clique(soft.slopes)) if soft else None
        model = Model(self.domain, self.total, self._potentials(best), warm=warm)
        good = still >= 2 or self._within(gap, objective, tolerance)
        return Fitted(model, good, max(gap, 0.0), objective + self.offset, self.steps)

    def _within(self, gap: float, objective: float, tolerance: float) -> bool:
        return math.isfinite(gap) and gap <= tolerance * (len(self.wanted) + objective)

    def _round(
        self, at: _Place, moves: Moves, most_steps: int, gap: float, tolerance: float
    ) -> tuple[Point, bool]:
        """The least of the dual of one round, and whether it was found near enough."""
        variance, wanted = self.sharing.variance, self.wanted
        reference = math.nan

        def dual(slopes: Floats) -> Point:
            nonlocal reference
            counts, log_partition = self._counts(at.base - slopes / at.pull)
            reference = log_partition if math.isnan(reference) else reference
            inner = variance * self.sharing.spread(slopes)
            value = at.pull * self.total * (log_partition - reference) + float(slopes @ (inner / 2 + wanted))
            return Point(slopes, value, wanted - counts + inner, 1 / (counts / at.pull + variance), counts)

        def left(point: Point) -> float:
            return float(point.slope @ (point.slope / variance))

        least = 0.01 * tolerance * len(variance)
        near = least if math.isinf(gap) else max(least, 1e-4 * gap)
        point = dual(at.slopes)
        for _ in range(_LOOKS):
            steps = min(_INNER, max(most_steps - self.steps, 1))
            point = descend(dual, point, moves, done=lambda here: left(here) <= near, steps=steps)
            if left(point) <= max(near, _ROUGH * self._objective(point.extra)):
                return point, True
            if self.steps >= most_steps:
                break
        return point, False

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

    def _carried(self, start: Model | None) -> _Place:
        """Where the first round starts: as an earlier model did while it was soft, or from nothing."""
        if start is not None and start.warm is not None and self.measured:
            pull, base, slopes = start.warm
            return _Place(self._moved(base), self._moved(slopes), max(pull, _SOFT * self.scale))
        nothing = np.zeros(len(self.wanted))
        counts, _ = self._counts(nothing)
        most = np.maximum(counts, np.minimum(self.wanted, self.total)) / self.sharing.variance
        return _Place(nothing, nothing, max(float(np.max(most, initial=0.0)), 1e-300) / _SPREAD)

    def _moved(self, parts: Mapping[Clique, Floats]) -> Floats:
        """Numbers on cliques as numbers on those measured now, where these hold them."""
        moved = [np.zeros(marginal.values.shape) for marginal in self.measured]
        for clique, part in parts.items():
            for marginal, sum_ in zip(self.measured, moved, strict=True):
                if set(clique) <= set(marginal.clique):
                    sum_ += part.reshape(
                        [self.domain.sizes[p] if p in clique else 1 for p in marginal.clique]
                    )
                    break
        return _in_a_row(moved)

    def _by_clique(self, numbers: Floats) -> dict[Clique, Floats]:
        return {m.clique: part for m, part in zip(self.measured, self._split(numbers), strict=True)}

    def _potentials(self, numbers: Floats) -> dict[Clique, Floats]:
        parts = self._by_clique(numbers)
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
