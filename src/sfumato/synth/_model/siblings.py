"""`siblings`: more rows of a model that agree with given ones in some columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.random import Simulation
from sfumato.synth._model.beliefs import Floats
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._model.model import Model

__all__ = ["siblings"]

_SWEEPS = 2  # between one sibling and the next
_CHUNK = 2**22  # numbers in the largest table of chances


def siblings(
    model: Model, rows: NDArray[np.int32], numbers: NDArray[np.int64], first: int, rng: Simulation
) -> NDArray[np.int32]:
    """For each row of a model so many rows, itself among them, that agree with it in its first columns.

    Each sibling comes from the one before it by drawing all other columns again, one after the other, from
    their distribution given the rest of the row (Gibbs sampling). The first is a row of the model, and such
    steps keep its distribution: so each sibling by itself has exactly the model's distribution given the
    columns that stay, however few the steps are; these only decide how alike siblings are.

    Args:
        model: The model.
        rows: Rows of it.
        numbers: How many are wanted for each, at least 1.
        first: How many columns stay.
        rng: Where the randomness comes from.

    Returns:
        All of them, those of a row one after the other.
    """
    drawn = np.repeat(rows, numbers, axis=0)
    starts = np.cumsum(numbers) - numbers
    wide = max(model.domain.sizes[first:], default=1)
    step = max(_CHUNK // wide, 1)
    order = np.argsort(-numbers, kind="stable")  # those that want many together
    for begin in range(0, len(rows), step):
        part = order[begin : begin + step]
        columns = [_Column(model, at, first, rows[part]) for at in range(first, len(model.domain))]
        state, wanted = rows[part].copy(), numbers[part]
        for sibling in range(1, int(wanted.max(initial=0))):
            many = int(np.searchsorted(-wanted, -sibling))  # those that want more than so many come first
            for _ in range(_SWEEPS):
                for column in columns:
                    column.draw(state[:many], rng)
            drawn[starts[part[:many]] + sibling] = state[:many]
    return drawn


class _Column:
    """A column that is drawn again: what it depends on."""

    def __init__(self, model: Model, at: int, first: int, rows: NDArray[np.int32]) -> None:
        self.at = at
        self._own: Floats = np.zeros((len(rows), model.domain.sizes[at]), np.float64)
        self._others = list[tuple[Clique, Floats, Domain]]()
        for clique, potential in model.potentials.items():
            if at not in clique:
                continue
            beside = tuple(place for place in clique if place != at)
            order = [clique.index(place) for place in (*beside, at)]
            table = potential.transpose(order).reshape(-1, model.domain.sizes[at])
            if all(place < first for place in beside):
                self._own += table[_code(rows, beside, model.domain)]
            else:
                self._others.append((beside, table, model.domain))

    def draw(self, rows: NDArray[np.int32], rng: Simulation) -> None:
        """Draw it again in the first rows, given their other columns."""
        logs = self._own[: len(rows)].copy()
        for beside, table, domain in self._others:
            logs += table[_code(rows, beside, domain)]
        logs -= logs.max(axis=1, keepdims=True)
        sums = np.cumsum(np.exp(logs, out=logs), axis=1, out=logs)
        at = (1 - rng.random((len(rows), 1))) * sums[:, -1:]  # above 0, so that no empty cell is met
        rows[:, self.at] = (sums < at).sum(axis=1)


def _code(rows: NDArray[np.int32], places: Sequence[int], domain: Domain) -> NDArray[np.int64]:
    """The number of each row's cell among those of some columns."""
    code = np.zeros(len(rows), np.int64)
    for place in places:
        code *= domain.sizes[place]
        code += rows[:, place]
    return code
