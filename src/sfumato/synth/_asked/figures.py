"""Figures of a synthetic table: what the model says, and intervals out of noisy counts alone. All public."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.names import in_sql
from sfumato.synth._asked.weights import Weights, coarsened, multiplied
from sfumato.synth.answers import reach_of
from sfumato.synth.sums import Sums

if TYPE_CHECKING:
    from sfumato.synth.checked import SynthCheck
    from sfumato.synth.columns.fine import Fine
    from sfumato.synth.released import Released

__all__ = ["Figure"]

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[float, float]
Told: TypeAlias = Callable[[Floats], tuple[Floats, Floats] | None]
"""From lines of weights to sums, and the standard deviation of each one's error; None: they are not known."""

_MOST_CELLS = 2**18
_STEPS = 16  # into which values are divided where the end of an average's interval is looked for
_ROUNDS = 8  # in which the step that it lies in is divided again


class _Source(NamedTuple):
    """Noisy counts, and what the rows of their cells count for."""

    told: Told
    weights: Weights

    def values(self, lines: Floats) -> tuple[Floats, Floats]:
        """What is told, where it is known."""
        found = self.told(lines)
        assert found is not None
        return found

    @property
    def is_known(self) -> bool:
        """Whether there is an interval."""
        is_bounded = np.isfinite(self.weights.ends).all()
        return bool(is_bounded) and self.told(np.zeros((1, self.weights.every.size))) is not None


class Figure:
    """A number of the answer.

    Attributes:
        value: By the model; NaN: an average over no rows.
        note: Where its interval comes from, or why there is none.
    """

    def __init__(
        self,
        released: Released,
        columns: Sequence[Fine],
        parts: Sequence[Weights],
        *,
        is_mean: bool,
        bought: SynthCheck | None = None,
    ) -> None:
        """Take what rows of fine cells count for, in parts with columns of their own.

        `bought` says how far off the model is, for where noisy counts do not.

        Raises:
            InvalidParameter: if the columns have too many cells together.
        """
        rough = [coarsened(part, released.cuts) for part in parts]
        cells = released.domain.cells(tuple(place for part in rough for place in part.clique))
        if cells > _MOST_CELLS:
            raise InvalidParameter(
                f"The columns of the question have {cells:,} cells together, and at most {_MOST_CELLS:,} are "
                "added up: name fewer of them."
            )
        weights = multiplied(rough)
        counts = released.learned.model.marginal(weights.clique)
        self.value = float(np.sum(counts * weights.mean))
        if is_mean:
            rows = float(np.sum(counts * weights.share))
            self.value = self.value / rows if rows > 0 else math.nan
        own = Sums(released.domain, released.learned, weights.clique)
        self._is_mean, self._sources = is_mean, [_Source(own.told, weights)]
        fine = _fine(released, columns, parts)
        if fine is not None:
            self._sources.append(fine)
        self._bought = None
        if bought is not None and not any(source.is_known for source in self._sources):
            names = {released.domain.names[place] for place in weights.clique}
            if bought.sets == 1 and names <= set(bought.columns) and np.isfinite(weights.ends).all():
                self._bought = bought, weights, counts.ravel()
        self.note = self._noted(released, weights)

    @property
    def is_by_check(self) -> bool:
        """Whether its interval follows from a bought check, and so is about the rows that the check read."""
        return self._bought is not None

    def ends(self, confidence: float) -> Ends | None:
        """An interval that holds what is estimated so often; None: there is none.

        Where both coarse and fine counts tell it, how coarse cells are cut follows from the noise of the fine
        ones, and so does which of the two is the better one. Each gets half of the chance to be wrong, so
        that both hold together, and what they have in common is the interval.

        Raises:
            InvalidParameter: if the confidence is not between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise InvalidParameter("confidence must be between 0 and 1.")
        shared = 1 if self._bought is not None else len(self._sources)
        reach = reach_of(1 - (1 - confidence) / shared)
        ends_of = _mean if self._is_mean else _sum
        every = [ends_of(source, reach) for source in self._sources if source.is_known]
        if self._bought is not None:
            every = [ends_of(self._found(confidence, reach), reach)]
        if not every:
            return None
        low, high = max(one for one, _ in every), min(other for _, other in every)
        if low > high:  # one of the two is wrong, which is within what is allowed for
            low, high = min(every, key=lambda ends: ends[1] - ends[0])
        # What the model says is shown, so an interval that misses it is made wider, never moved.
        return (low, high) if math.isnan(self.value) else (min(low, self.value), max(high, self.value))

    def _found(self, confidence: float, reach: float) -> _Source:
        """What the model says of sums, and how far off it was found to be.

        Its counts are off by at most the bought misfit, added up over all cells, so that a sum of them is off
        by at most that times the largest weight.
        """
        assert self._bought is not None
        bought, weights, counts = self._bought
        most = bought.misfit(confidence) / reach

        def told(lines: Floats) -> tuple[Floats, Floats]:
            return lines @ counts, most * np.abs(lines).max(axis=1, initial=0.0)

        return _Source(told, weights)

    def _noted(self, released: Released, weights: Weights) -> str:
        names = [in_sql(released.domain.names[place]) for place in weights.clique]
        if self._bought is not None:
            return f"interval from how far off the model was found to be for {_listed(names)}"
        if not any(source.is_known for source in self._sources):
            if not np.isfinite(weights.ends).all():
                return f"no interval: {_listed(names)} can make anything of it within a bin"
            return (
                f"no interval: {_listed(names)} were not measured together, so that nobody knows how far off "
                "the model is there"
            )
        said = (
            f"interval from noisy counts of {_listed(names)}" if names else "interval from all noisy counts"
        )
        cuts = [released.cuts[place] for place in weights.clique]
        cut = [name for name, cut in zip(names, cuts, strict=True) if cut.size < len(cut.place)]
        if len(self._sources) == 1 and cut and (weights.low() != weights.high()).any():
            said += f"; it allows for whatever lies within bins of {_listed(cut)}"
        return said


def _fine(released: Released, columns: Sequence[Fine], parts: Sequence[Weights]) -> _Source | None:
    """The counts of fine cells, where all depends on one column that has them; else None.

    What is alike for all values that are not missing does not depend on how they are divided into coarse
    cells, and needs none.
    """
    places = [place for part in parts for place in part.clique]
    if len(places) != 1 or places[0] not in released.fine:
        return None
    whole, counts, known = multiplied(parts), released.fine[places[0]], columns[places[0]].known
    if all((table[:known] == table[0]).all() for table in (whole.low(), whole.high())):
        return None
    return _Source(counts.told, whole)


def _sum(source: _Source, reach: float) -> Ends:
    """An interval for the sum of what rows count for."""
    least, most = source.weights.low(), source.weights.high()
    values, sigmas = source.values(np.stack([least.ravel(), most.ravel()]))
    low, high = float(values[0] - reach * sigmas[0]), float(values[1] + reach * sigmas[1])
    low, high = (max(low, 0.0) if least.min() >= 0 else low), (min(high, 0.0) if most.max() <= 0 else high)
    return low, max(low, high)


def _mean(source: _Source, reach: float) -> Ends:
    """An interval for the mean of the values of counted rows, within those that it can have.

    Values less their true mean add up to 0, so that a number is possible as long as 0 is within the interval
    of that sum; for the true mean it is, as often as the level says (Fieller 1954).
    """
    lowest, highest = source.weights.ends

    def beyond(centres: Floats, *, below: bool) -> Floats:
        """Above 0 where a mean is too low (or too high, unless `below`)."""
        side = source.weights.low if below else source.weights.high
        values, sigmas = source.values(np.stack([side(centre).ravel() for centre in centres]))
        return (values if below else -values) - reach * sigmas

    found = list[float]()
    for below in (True, False):
        outer, inner = (lowest, highest) if below else (highest, lowest)
        for turn in range(_ROUNDS):
            grid = np.linspace(outer, inner, _STEPS + 1)
            inside = np.flatnonzero(beyond(grid, below=below) <= 0)
            if not len(inside):
                if turn == 0:  # nothing is possible, which the level allows for: nothing is said
                    return lowest, highest
                break
            if inside[0] == 0:
                break
            outer, inner = float(grid[inside[0] - 1]), float(grid[inside[0]])
        found.append(outer)
    return (found[0], found[1]) if found[0] <= found[1] else (lowest, highest)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
