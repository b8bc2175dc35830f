"""Two neighbouring tables counted on levels: what an auditor draws from."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Meter, price
from sfumato.mechanisms.base import Side
from sfumato.synth._levels.counting import counted
from sfumato.synth._levels.grid import Grid
from sfumato.synth._levels.measuring import design_of
from sfumato.synth._levels.totals import public_totals
from sfumato.synth._levels.tree import tree_of
from sfumato.synth._private.places import Places
from sfumato.synth.examples import Example

__all__ = ["examples"]

_PAID = price(1, Fraction(1, 100))


def examples() -> tuple[Example, ...]:
    """Somebody comes to a small tract, with and without public totals beside it."""
    return (
        Example("levels: one more in a tract", _PAID, _Drawn(None)),
        Example("levels: one more beside a public total", _PAID, _Drawn({"tract": {"b": 3}})),
    )


class _Drawn:
    """All that is released of one side's table: the noisy marginals, and the counts of each level."""

    def __init__(self, invariants: dict[str, dict[str, int]] | None) -> None:
        self._invariants = invariants

    def __call__(self, side: Side, count: int) -> NDArray[np.float64]:
        tree = tree_of(["county", "tract"], {"county": ["x", "x", "y"], "tract": ["a", "b", "c"]})
        grid = Grid(("sex",), (2,))
        counts = np.array([[1, 0], [2, 1], [0, 4]]) + (side == "left") * np.array([[1, 0], [0, 0], [0, 0]])
        places = Places(tree, grid, counts, Fraction(1))
        design = design_of(tree, grid, public_totals(tree, self._invariants), None)
        sigmas = design.sigmas(_PAID.rho, Fraction(1))
        lines = []
        for _ in range(count):
            released = design.measured(places, Meter.alone(_PAID))
            levels = counted(tree, grid, design.known(design.levels(released, sigmas)), design.public)
            found = [*released.values(), *levels]
            lines.append(np.concatenate([np.ravel(np.asarray(values, np.float64)) for values in found]))
        return np.array(lines)
