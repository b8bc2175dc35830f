"""`Totals`: how many rows have each value of a column, declared and public; nothing is read from a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.random import Simulation
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._model.mending import mended
from sfumato.synth._model.model import Model
from sfumato.synth._model.trees import cells_of
from sfumato.synth.columns.coarse import WIDE
from sfumato.synth.columns.fine import Fine

__all__ = ["MOST_ROWS", "ColumnTotals", "Totals", "counted"]

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]

MOST_ROWS = 10**9
"""What totals may add up to."""

_ROUNDS = 100
_LIFT, _LIFTS = 700.0, 4  # what a cell that is too small to be seen is lifted by, and how often
_DEEP = 30.0  # e**-30 of all rows is less than one of any table
_NEAR = 1e-6  # of a row
_TRIED = 2**22  # cells of a model in which it is tried whether totals can be kept


@dataclass(frozen=True, slots=True)
class Totals:
    """How many rows have each value of a column: public figures, which the synthetic table keeps exactly.

    ```python
    synth.Totals("sex", {"F": 5120, "M": 4880})
    ```

    Attributes:
        column: Its name.
        counts: For each value that it can have the number of rows; None is a value that is missing.
    """

    column: str
    counts: Mapping[Any, int]


class ColumnTotals:
    """For some columns, by their place, the number of rows in each cell.

    Attributes:
        counts: Those numbers.
    """

    def __init__(self, counts: Mapping[int, Whole]) -> None:
        self.counts = dict(sorted(counts.items()))
        sums = {int(each.sum()) for each in self.counts.values()}
        if len(sums) > 1:
            told = " and ".join(f"{one:,}" for one in sorted(sums)[:3])
            raise InvalidParameter(f"The totals of different columns must add up to the same: {told}.")
        self.rows = sums.pop() if sums else None
        if self.rows == 0:
            raise InvalidParameter("Totals must add up to at least 1 row.")
        if self.rows is not None and self.rows > MOST_ROWS:
            raise InvalidParameter("Totals must add up to at most a billion rows.")

    def raked(self, model: Model) -> Model:
        """The model that is nearest to another among those with these totals, or as near to that as can be.

        Source: Deming, Stephan 1940; Csiszár 1975 (nearest by divergence).
        """
        if self.rows is None:
            return model
        found = _lifted(Model(model.domain, self.rows, model.potentials))
        for _ in range(_ROUNDS):
            off = 0.0
            for place, wanted in self.counts.items():
                counts = found.marginal((place,))
                off = max(off, float(np.abs(counts - wanted).max()))
                own = found.potentials.get((place,), np.zeros(len(wanted)))
                moved = Model(
                    found.domain, self.rows, {**found.potentials, (place,): own + _moves(wanted, counts)}
                )
                if not moved.is_possible:
                    return found
                found = moved
            if off <= _NEAR:
                break
        return found

    def check(self, sizes: Sequence[int], zeros: Mapping[Clique, NDArray[np.bool_]]) -> None:
        """Refuse totals that cannot be kept together with zeros.

        Args:
            sizes: Of all columns, in cells.
            zeros: For some of them, True for each combination of cells that no row can be in.

        Raises:
            InvalidParameter: if they cannot, as far as a model that is not too large shows it.
        """
        places = sorted({place for clique in zeros for place in clique} | set(self.counts))
        at = {place: here for here, place in enumerate(places)}
        domain = Domain(tuple(map(str, places)), tuple(sizes[place] for place in places))
        potentials = {
            tuple(at[place] for place in clique): np.where(table, -np.inf, 0.0)
            for clique, table in zeros.items()
        }
        if self.rows is None or cells_of(domain, list(potentials)) > _TRIED:
            return
        own = ColumnTotals({at[place]: counts for place, counts in self.counts.items()})
        found = own.raked(Model(domain, self.rows, potentials))
        for place, wanted in own.counts.items():
            if np.abs(found.marginal((place,)) - wanted).max() > 0.5:
                raise InvalidParameter("The totals ask for rows that the constraints do not allow.")

    def kept(self, model: Model, rows: NDArray[Any], rng: Simulation) -> NDArray[Any]:
        """Rows that a model with these totals drew, with exactly these totals, or in proportion to them."""
        return mended(model, rows, self.counts, rng)


def _lifted(model: Model) -> Model:
    """The model with a little in each cell that it gives next to nothing, but for cells that cannot be.

    They may be needed, and would take many rounds to come back. What is little is told by counts: potentials
    of one clique may be far down and those of another make up for it.
    """
    least = model.total * math.exp(-_DEEP)
    for clique in model.potentials:
        for _ in range(_LIFTS):
            table, counts = model.potentials[clique], model.marginal(clique)
            low = (counts < least) & (table > -np.inf)
            if not low.any():
                break
            lifted = table + np.where(low, _moves(np.full(counts.shape, least), counts), 0.0)
            model = Model(model.domain, model.total, {**model.potentials, clique: lifted})
            if (counts > 0)[low].all():
                break
    return model


def _moves(wanted: Whole | Floats, counts: Floats) -> Floats:
    """What potentials move by to take counts to wanted ones; what is too small to be seen is lifted."""
    seen = counts > 0
    with np.errstate(divide="ignore", over="ignore"):
        moves = np.log(wanted / np.where(seen, counts, 1.0))
    moves[~seen & (wanted > 0)] = _LIFT
    return np.asarray(np.minimum(moves, _LIFT))


def counted(given: Totals, column: Fine) -> Whole:
    """The number of rows in each cell of a column, as declared.

    Raises:
        InvalidParameter: if a value is left out, is no value of the column, or has no whole number of rows.
    """
    name = column.name[:60]
    if column.size > WIDE or not (column.values is not None or column.has_whole_steps):
        raise InvalidParameter(f"Totals takes a column of at most {WIDE} values, and {name!r} has more.")
    if not isinstance(given.counts, Mapping):
        raise InvalidParameter(
            'Totals takes a column and rows by value: Totals("sex", {"F": 510, "M": 490}).'
        )
    values = column.exactly(np.arange(column.size)).to_pylist()
    places = {(type(value), value): place for place, value in enumerate(values)}
    found = np.full(column.size, -1, np.int64)
    for value, count in given.counts.items():
        place = places.get((type(value), value))
        if place is None:
            raise InvalidParameter(f"Totals names {str(value)[:40]!r}, which is no value of {name!r}.")
        found[place] = as_integer(count, "A total", least=0)
        if found[place] > MOST_ROWS:
            raise InvalidParameter("A total is at most a billion rows.")
    left = [value for value, count in zip(values, found, strict=True) if count < 0]
    if left == [None]:
        reason = f"Totals of {name!r} must also say how many rows have no value"
        raise InvalidParameter(f"{reason}: add None: 0, or declare the column with nullable=False.").in_shell(
            f"{reason}: add NULL = 0, or declare the column with nullable = false."
        )
    if left:
        raise InvalidParameter(
            f"Totals must say how many rows have each value of {name!r}, and says nothing of "
            f"{str(left[0])[:40]!r}."
        )
    return found
