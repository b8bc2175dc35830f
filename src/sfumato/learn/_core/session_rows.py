"""`SessionRows`: the rows of a fit on a session, read once they are looked at; second moments without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.session.rows_wanted import MomentsTaken, RowsTaken, Term

if TYPE_CHECKING:
    from sfumato.ledger import Right

__all__ = ["SessionRows", "engine_moments"]

_WIDEST = 100  # coordinates: 5,050 sums in one statement


def engine_moments(design: Design, taken: RowsTaken) -> MomentsTaken | None:
    """The second moments that the engine can add up itself, as `sums.moments` does; None: it cannot.

    It can where each row is a unit: the rows of a unit with several are shortened by what they add up to.

    Args:
        design: The coordinates, of columns in the same order as the rows that are taken.
        taken: The rows, between bounds.
    """
    if taken.measured.unit.column is not None or design.width > _WIDEST:
        return None
    terms = [
        Term(coordinate.column, less=UNIT * design.signed)
        if coordinate.category is None
        else Term(coordinate.column, coordinate.category, UNIT)
        for coordinate in design.coordinates
    ]
    terms += [Term(None, size=UNIT)] if design.intercept else []
    return taken.moments(terms)


class SessionRows(Rows):
    """Rows that are read once, by whoever looks at them first; who needs second moments alone reads none.

    Privacy:
        Claim: they are what `Reading.rows` says, and `summed` is what they add up to, exactly: the engine
        rounds each number as `Design.integers` does, and adds up integers. All that is read was paid for by
        one debit, each of it once.
    """

    def __init__(
        self,
        design: Design,
        read: Callable[[], tuple[NDArray[np.int16], NDArray[Any] | None, NDArray[np.int64] | None]],
        right: Right,
        moments: MomentsTaken | None,
        *,
        exchange: bool,
        has_units: bool,
    ) -> None:
        self.design, self.exchange = design, exchange
        if not has_units:
            self.units = None
        self._read, self._right, self._moments = read, right, moments

    def __getattr__(self, name: str) -> Any:
        if name not in ("integers", "target", "units"):
            raise AttributeError(name)
        integers, target, units = self._read()
        super().__init__(self.design, integers, target, units, exchange=self.exchange)
        return self.__dict__[name]

    def summed(self) -> NDArray[Any] | None:
        """The upper triangle of Σ v·vᵀ over all rows, from the engine; once, and not after rows were read."""
        taken, self._moments = None if "integers" in self.__dict__ else self._moments, None
        return None if taken is None else taken.read(self._right)
