"""What is measured on which level, for which share of the price; and the measuring itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import positive
from sfumato.synth._levels.grid import Floats, Grid, Part
from sfumato.synth._levels.linear import Known, Noisy, best, entry_variance, upward
from sfumato.synth._levels.totals import PublicTotals
from sfumato.synth._levels.tree import Tree

if TYPE_CHECKING:
    from sfumato.fits.meter import Meter
    from sfumato.synth._private.places import Places

__all__ = ["Design", "design_of"]

_LAST = Fraction(1, 2)  # of the price goes to the last level, which has most of the counts
_POWER = 1 / 2
_STEPS = 2**20  # shares are whole multiples of one of these, so that they are exact


@dataclass(frozen=True, slots=True)
class Design:
    """Which marginals are measured on each level, and for which share of the price; all of it public.

    Attributes:
        tree: The places.
        grid: The cells.
        public: Totals that are declared.
        shares: By level and attributes; together at most 1.
    """

    tree: Tree
    grid: Grid
    public: PublicTotals
    shares: Mapping[tuple[int, Part], Fraction]

    def measured(self, places: Places, meter: Meter) -> dict[str, Floats]:
        """The marginals with noise, each for its share: all that is released of the counts.

        Privacy:
            Claim: the loss is that of the meter's whole price. Each marginal has noise of its own for its
            share, and shares add up to at most 1; which marginals there are and what each costs follows from
            public facts alone.
        """
        return {
            _name(level, part): meter.noisy(places.total(level, part), share)
            for (level, part), share in self.shares.items()
        }

    def levels(self, released: Mapping[str, Floats], sigma: Mapping[tuple[int, Part], float]) -> list[Noisy]:
        """What was released, by level, in the shapes of the tables, with variances."""
        found: list[dict[Part, tuple[Floats, float]]] = [{} for _ in self.tree.names]
        for level, part in self.shares:
            shape = (
                self.tree.sizes(level),
                *(n if at in part else 1 for at, n in enumerate(self.grid.sizes)),
            )
            values = np.asarray(released[_name(level, part)], np.float64).reshape(shape)
            found[level][part] = (values, sigma[level, part] ** 2)
        return list(found)

    def sigmas(self, rho: Fraction, sensitivity: Fraction) -> dict[tuple[int, Part], float]:
        """The standard deviation of the noise of each marginal, in people."""
        return {
            query: float(sensitivity) / math.sqrt(2 * rho * share) for query, share in self.shares.items()
        }

    def known(self, noisy: Sequence[Noisy]) -> list[Known]:
        """What each level and those below say of it."""
        return upward(self.tree, self.grid, noisy, self.public.known)

    def widest(self, sigma: Mapping[tuple[int, Part], float]) -> list[dict[Part, float]]:
        """For each level and marginal the largest standard deviation of the best linear estimate of a count.

        It does not depend on any count, so that it is known before anything is paid.
        """
        nothing = {
            _name(level, part): np.zeros(self.tree.sizes(level) * self.grid.cells_of(part))
            for level, part in self.shares
        }
        found = best(self.tree, self.grid, self.known(self.levels(nothing, sigma)))
        return [
            {part: math.sqrt(entry_variance(self.grid, known, part).max()) for part in self.grid.parts}
            for known in found
        ]


def design_of(tree: Tree, grid: Grid, public: PublicTotals, shares: Mapping[str, Any] | None) -> Design:
    """The public rule: half of the price for the last level, the rest alike for the others.

    Within a level each marginal gets a share in proportion to the square root of how many cells it has: by
    that all tables of a level come out better together than from the cells alone, and the cells themselves,
    which all other tables have a part in, stay close. Totals that are public in all places of a level are not
    measured there.

    Args:
        tree: The places.
        grid: The cells.
        public: Totals that are declared.
        shares: Weights of levels by name, in place of the rule's; a level that is left out gets nothing.

    Raises:
        InvalidParameter: for an unknown level, a weight that is not above 0, or if the last one has none.
    """
    weights = _weights(tree, shares)
    found: dict[tuple[int, Part], Fraction] = {}
    for level, weight in weights.items():
        parts = [part for part in grid.parts if part or not public.fixed[level].all() or len(grid.parts) == 1]
        powers = {part: grid.cells_of(part) ** _POWER for part in parts}
        whole = sum(powers.values())
        for part in parts:
            found[level, part] = Fraction(math.floor(weight * powers[part] / whole * _STEPS), _STEPS)
    if min(found.values()) <= 0:
        raise InvalidParameter(
            "Some share of the price is too small to measure anything: even the shares out."
        )
    return Design(tree, grid, public, found)


def _weights(tree: Tree, shares: Mapping[str, Any] | None) -> dict[int, Fraction]:
    last = len(tree) - 1
    if shares is None:
        others = dict.fromkeys(range(last), (1 - _LAST) / last)
        return {**others, last: _LAST}
    if not isinstance(shares, Mapping):
        raise InvalidParameter('shares takes weights by level: {"state": 1, "county": 1, "tract": 2}.')
    given = {tree.level(name): positive(weight, f"the share of {name}") for name, weight in shares.items()}
    if last not in given:
        raise InvalidParameter(
            f"shares leaves out {tree.names[last]}, and nothing else tells its places apart."
        )
    return {level: weight / sum(given.values()) for level, weight in sorted(given.items())}


def _name(level: int, part: Part) -> str:
    """What a marginal is kept as."""
    return f"{level}: {' '.join(map(str, part))}".rstrip()
