"""How far the counts of two tables are apart, over sets of columns; beside what noise and luck alone do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.random import Simulation
from sfumato.synth._model.domain import Clique, Marginal
from sfumato.synth._report.yardstick import Codes, Group, Yardstick
from sfumato.synth.columns.coarse import Coarse

__all__ = ["Errors", "Measured", "errors_over", "group_errors", "some_cliques"]

Floats: TypeAlias = NDArray[np.float64]

_DENSE = 1 << 16  # cells that noise is drawn for
_GROUP_PAIRS = 100  # that a group is compared over, at most


@dataclass(frozen=True, slots=True)
class Errors:
    """How far apart two tables are over sets of so many columns: the total variation between their counts.

    It is the share of rows that would have to move to another cell: 0 where all counts agree in proportion,
    1 where no cell has rows of both.

    Attributes:
        columns: The sets of columns that were looked at.
        of: How many such sets there are.
        synthetic: Between the real and the synthetic rows, for each set.
        sampling: Between the real rows and as many rows as the synthetic table has, drawn again from the real
            ones: luck alone. No rows of that number can be expected to be nearer.
        asked: Between the real counts and the same with noise, if the whole price were spread evenly over
            all sets of so many columns, and no model made; NaN where there is no price, or too many cells.
        measured: Between the real counts and those that the fit measured of these columns; NaN where it
            measured none.
    """

    columns: tuple[tuple[str, ...], ...]
    of: int
    synthetic: Floats
    sampling: Floats
    asked: Floats
    measured: Floats

    @property
    def mean(self) -> float:
        """Over all sets."""
        return float(self.synthetic.mean())

    @property
    def worst(self) -> tuple[tuple[str, ...], float]:
        """The set with the largest error."""
        at = int(self.synthetic.argmax())
        return self.columns[at], float(self.synthetic[at])

    @property
    def is_measured(self) -> NDArray[np.bool_]:
        """Which of the sets the fit measured."""
        return ~np.isnan(self.measured)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "of": self.of,
            "mean": self.mean,
            "sampling_mean": float(self.sampling.mean()),
            "asked_mean": _mean(self.asked),
            "measured_mean": _mean(self.measured),
            "sets": [
                {
                    "columns": list(names),
                    "synthetic": float(synthetic),
                    "sampling": float(sampling),
                    "asked": None if np.isnan(asked) else float(asked),
                    "measured": None if np.isnan(measured) else float(measured),
                }
                for names, synthetic, sampling, asked, measured in zip(
                    self.columns, self.synthetic, self.sampling, self.asked, self.measured, strict=True
                )
            ],
        }


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What a fit measured: noisy counts in cells of its own. All public.

    Attributes:
        cuts: Its cells.
        marginals: Its counts.
    """

    cuts: tuple[Coarse, ...]
    marginals: tuple[Marginal, ...]

    def shares(self, clique: Clique, yardstick: Yardstick) -> Floats | None:
        """What the best of its counts say of some columns, in the cells of the comparison; None: nothing.

        The counts are held above 0 and add up to 1, and are spread within a cell as the model spreads them.
        """
        holding = [marginal for marginal in self.marginals if set(clique) <= set(marginal.clique)]
        if not holding:
            return None
        best = min(holding, key=lambda one: one.sigma * math.sqrt(one.values.size))
        over = tuple(at for at, column in enumerate(best.clique) if column not in clique)
        shares = on_simplex(best.values.sum(axis=over))
        for axis, column in enumerate(clique):
            moved = np.tensordot(_between(self.cuts[column], yardstick.cuts[column]), shares, (1, axis))
            shares = np.moveaxis(moved, 0, axis)
        return shares.ravel()


def _between(own: Coarse, other: Coarse) -> Floats:
    """The share of each cell of one cut that is in each of another, a column for each of the first."""
    found = np.zeros((other.size, own.size))
    np.add.at(found, (other.place, own.place), own.weight)
    return np.asarray(found / found.sum(axis=0))


def on_simplex(values: Floats) -> Floats:
    """The nearest shares of a whole, none below 0, to counts in proportion (in L2).

    Source: Held, Wolfe and Crowder (1974).
    """
    total = float(values.sum())
    if total <= 0:
        return np.full(values.shape, 1 / values.size)
    flat = values.ravel() / total
    falling = np.sort(flat)[::-1]
    over = (np.cumsum(falling) - 1) / np.arange(1, flat.size + 1)
    last = int(np.flatnonzero(falling > over)[-1])
    return np.asarray(np.maximum(flat - over[last], 0.0).reshape(values.shape))


def some_cliques(columns: int, width: int, most: int, rng: Simulation) -> list[Clique]:
    """All sets of so many columns, in order; where there are more than `most`, a random choice of them."""
    every = math.comb(columns, width)
    if every <= most:
        return list(itertools.combinations(range(columns), width))
    chosen = set[Clique]()
    while len(chosen) < most:
        chosen.add(tuple(sorted(rng.choice(columns, width, replace=False).tolist())))
    return sorted(chosen)


def errors_over(
    cliques: Sequence[Clique],
    real: Sequence[Codes],
    synthetic: Sequence[Codes],
    yardstick: Yardstick,
    rng: Simulation,
    *,
    sigma: float | None = None,
    measured: Measured | None = None,
) -> Errors:
    """The errors over some sets of columns.

    Args:
        cliques: The sets, all of as many columns.
        real: The real rows, in the cells of the yardstick, column by column.
        synthetic: The synthetic ones.
        yardstick: The cells.
        rng: Draws rows again, and noise.
        sigma: Of the noise that the whole price buys for one set of counts; None: there is no price.
        measured: What the fit measured.
    """
    width, columns = len(cliques[0]), len(real)
    every = math.comb(columns, width)
    again = _drawn_again(len(real[0]), len(synthetic[0]), rng)
    noise = math.nan if sigma is None else sigma * math.sqrt(every)
    found = np.full((4, len(cliques)), np.nan)
    for at, clique in enumerate(cliques):
        sizes = [yardstick.sizes[column] for column in clique]
        cells, mine, theirs = _cells(clique, sizes, real, synthetic)
        counts = np.bincount(mine, minlength=cells).astype(np.float64)
        shares = counts / counts.sum()
        found[0, at] = _apart(shares, np.bincount(theirs, minlength=cells))
        found[1, at] = _apart(shares, np.bincount(mine, again, cells))
        if math.prod(sizes) <= _DENSE and cells == math.prod(sizes):
            if not math.isnan(noise):
                found[2, at] = _apart(shares, on_simplex(counts + noise * rng.standard_normal(cells)))
            told = None if measured is None else measured.shares(clique, yardstick)
            if told is not None:
                found[3, at] = _apart(shares, told)
    names = tuple(tuple(yardstick.names[column] for column in clique) for clique in cliques)
    return Errors(names, every, *found)


def _drawn_again(rows: int, wanted: int, rng: Simulation) -> Floats:
    """How often each of the rows comes up where so many are drawn, with replacement."""
    return np.bincount(rng.integers(0, rows, wanted), minlength=rows).astype(np.float64)


def _cells(
    clique: Clique, sizes: Sequence[int], one: Sequence[Codes], other: Sequence[Codes]
) -> tuple[int, Codes, Codes]:
    """How many cells there are, and in which one each row of two tables is.

    Where there are many more cells than rows, only those with rows are numbered.
    """
    mine, theirs = np.zeros(len(one[0]), np.int64), np.zeros(len(other[0]), np.int64)
    for column, size in zip(clique, sizes, strict=True):
        mine = mine * size + one[column]
        theirs = theirs * size + other[column]
    cells = math.prod(sizes)
    if cells <= max(_DENSE, 4 * (len(mine) + len(theirs))):
        return cells, mine, theirs
    _, numbered = np.unique(np.concatenate([mine, theirs]), return_inverse=True)
    return int(numbered.max()) + 1, numbered[: len(mine)], numbered[len(mine) :]


def _apart(shares: Floats, counts: NDArray[Any]) -> float:
    """The total variation between shares and counts in proportion; 1 where there are no counts."""
    total = counts.sum()
    return float(0.5 * np.abs(shares - counts / total).sum()) if total > 0 else 1.0


def group_errors(
    group: Group,
    real: Sequence[Codes],
    synthetic: Sequence[Codes],
    yardstick: Yardstick,
    rng: Simulation,
) -> tuple[float, float]:
    """The mean error over pairs of the other columns within a group, and what luck alone does to it.

    Args:
        group: Of the real rows and of the synthetic ones.
        real: The real rows.
        synthetic: The synthetic ones.
        yardstick: The cells.
        rng: Draws rows again.
    """
    mine, theirs = (
        [codes[inside] for codes in table]
        for table, inside in zip((real, synthetic), group.parts, strict=False)
    )
    others = [at for at in range(len(real)) if at != group.column]
    if not others:
        return math.nan, math.nan
    if not len(theirs[0]):
        return 1.0, math.nan  # the group is gone
    width = min(2, len(others))
    cliques = [
        tuple(others[at] for at in some) for some in some_cliques(len(others), width, _GROUP_PAIRS, rng)
    ]
    found = errors_over(cliques, mine, theirs, yardstick, rng)
    return found.mean, float(found.sampling.mean())
