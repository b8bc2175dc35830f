"""Adaptive choice: round by round, the counts that the model is furthest from are measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.random import simulation
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._model.estimating import Fitted, estimate
from sfumato.synth._model.model import Model
from sfumato.synth._model.room import BYTES, Room, size_of
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.scores import Candidates, Scores, likely_error
from sfumato.synth.methods.base import Learned, Told, Wanted
from sfumato.synth.methods.independent import measured

__all__ = ["Adaptive", "single_share"]

_ROUNDS = 4  # as many for each column, if none is cut short
_MEASURING = Fraction(9, 10)  # of a round; the rest chooses
_MOST_CANDIDATES = 100_000
_SMALL = 2**18  # a model of this size is never too large, if there is room at all
_LARGE = 2**22  # a table on the way to a marginal has no more cells
_DRAWN = 100_000


def single_share(columns: int) -> Fraction:
    """Which part of the price the counts of each column by itself get, where pairs are measured too."""
    return _MEASURING / (_ROUNDS * columns)


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
        listed, single = _candidates(wanted), [(place,) for place in range(len(domain))]
        least = min((domain.cells(clique), clique) for clique, _ in listed)[1] if listed else ()
        most, _ = _spare(domain, wanted)
        if size_of(domain, [*single, least]) > _room(float(_MEASURING / _ROUNDS), most):
            raise InvalidParameter("No set of columns of the workload fits in this memory: give more.")

    def together(self, columns: int) -> Iterator[int]:  # noqa: ARG002 - others go by it
        """Round by round, how many sets of so many columns are chosen before the model is fitted again."""
        return itertools.repeat(1)

    def learn(self, cells: Cells, meter: Meter, wanted: Wanted, told: Told) -> Learned:
        """Measure single columns, then what the model fits worst; see `Method`."""
        rounds, together = _Rounds(cells, meter, wanted), self.together(len(cells.domain))
        told(float(rounds.spent))
        while rounds.spent < 1:
            rounds.run(next(together))
            told(float(rounds.spent))
        return Learned(rounds.marginals, rounds.fitted.model, rounds.fitted.converged)


class _Held(NamedTuple):
    """What is in a model: cliques that were measured, and those with zeros."""

    measured: list[Clique]
    zeros: list[Clique]


class _Rounds:
    """What was measured so far, the model of it, and what a set of columns costs now.

    Attributes:
        spent: Which part of the price.
        marginals: All noisy counts.
        fitted: The model.
    """

    def __init__(self, cells: Cells, meter: Meter, wanted: Wanted) -> None:
        """Measures each column by itself."""
        self._cells, self._meter, self._wanted = cells, meter, wanted
        self._domain, many = cells.domain, len(cells.domain)
        listed = _candidates(wanted)
        self._price = Fraction(1, _ROUNDS * many)
        self.spent = single_share(many) * many if listed else Fraction(1)
        self.marginals = [measured(cells, meter, (place,), self.spent / many) for place in range(many)]
        self._most, keep = _spare(self._domain, wanted)
        self.fitted = self._settled(None)
        self._choosing = Candidates(cells, [clique for clique, _ in listed], keep=keep)
        self._weights, self._room = [weight for _, weight in listed], Room(self._domain)

    def run(self, most: int) -> None:
        """Chooses and measures up to so many sets of columns, and fits the model again.

        No circle is closed by those of one round: what two of them say of a third is not known yet.
        """
        many = max(min(most, int((1 - self.spent) / self._price)), 1)
        if 1 - self.spent < (many + 1) * self._price:
            self._price = (1 - self.spent) / many
        share = self._price * _MEASURING
        sigma = self._meter.sigma(self._cells.max_rows, share)
        limit = _room(float(self.spent + many * self._price), self._most)
        held, cliques, scores = self._scored(sigma, limit)
        taken, part = list[Clique](), list(range(len(self._domain)))
        for _ in range(many):
            open_ = [at for at, clique in enumerate(cliques) if len({part[place] for place in clique}) > 1]
            if not open_:
                break
            values = [scores.values[at] for at in open_]
            at = self._meter.chosen(values, scores.sensitivity, self._price - share)
            self.spent += self._price - share
            clique = cliques[open_[at]]
            if self._room.fits([*held.measured, *taken], clique, limit, held.zeros):
                self.marginals.append(measured(self._cells, self._meter, clique, share))
                self.spent += share
                taken.append(clique)
            joined = {part[place] for place in clique}
            part = [min(joined) if one in joined else one for one in part]
        if taken:
            before = list(_counts(self.fitted.model, taken))
            self.fitted = self._settled(self.fitted.model)
            pairs = zip(before, _counts(self.fitted.model, taken), strict=True)
            still = [float(np.abs(old - new).sum()) <= likely_error(old, sigma) for old, new in pairs]
            if 2 * sum(still) >= len(still):
                self._price *= 4

    def _scored(self, sigma: float, limit: int) -> tuple[_Held, list[Clique], Scores]:
        """What the model holds, the cliques that likely fit beside it, and how badly it fits them."""
        held, zeros = sorted({marginal.clique for marginal in self.marginals}), list[Clique]()
        places = list[int]()
        for zeros in (list(self._wanted.zeros_with(self._domain, held, self._most)), []):  # zeros give way
            places = self._room.within(held, self._choosing.cliques, limit, zeros)
            if places:
                break
        cliques = [self._choosing.cliques[place] for place in places]
        expected, again = itertools.tee(_counts(self.fitted.model, cliques))
        scores = self._choosing.scores(
            places,
            expected,
            weights=[self._weights[place] for place in places],
            allowances=(likely_error(counts, sigma) for counts in again),
        )
        return _Held(held, zeros), cliques, scores

    def _settled(self, start: Model | None) -> Fitted:
        cliques = [marginal.clique for marginal in self.marginals]
        zeros = self._wanted.zeros_with(self._domain, cliques, self._most)
        return estimate(self._domain, self.marginals, start=start, zeros=zeros)


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


def _counts(model: Model, cliques: Sequence[Clique]) -> Iterator[NDArray[np.float64]]:
    """A model's counts of sets of columns; where they would need too large a table, of rows drawn from it."""
    rows = None
    for clique, counts in zip(cliques, model.marginals(cliques, most_cells=_LARGE), strict=True):
        if counts is None:
            rows = model.rows(_DRAWN, simulation(0)) if rows is None else rows
            shape = model.domain.shape(clique)
            place = np.ravel_multi_index([rows[:, at] for at in clique], shape)
            drawn = np.bincount(place, minlength=model.domain.cells(clique)).reshape(shape)
            yield np.asarray(drawn * (model.total / _DRAWN), np.float64)
        else:
            yield counts


def _spare(domain: Domain, wanted: Wanted) -> tuple[int, bool]:
    """How large a model may be, and whether the exact counts of all candidates are kept beside it.

    They are if they take a quarter of the room at most; else they are counted again in each round.
    """
    kept = -(-Candidates.memory(domain, [clique for clique, _ in _candidates(wanted)]) // BYTES)
    keep = 4 * kept <= wanted.most_cells
    return wanted.most_cells - kept if keep else wanted.most_cells, keep


def _room(spent: float, most: int) -> int:
    """How large a model may be once so much is spent."""
    return max(int(most * min(spent, 1.0)), min(_SMALL, most))
