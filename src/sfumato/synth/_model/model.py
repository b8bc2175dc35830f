"""`Model`: a distribution of rows that potentials on some cliques make, its marginals, and rows of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.random import Simulation
from sfumato.synth._model.beliefs import Beliefs, Floats
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._model.pairs import Pairs
from sfumato.synth._model.sampling import sample
from sfumato.synth._model.trees import Tree, tree_of

__all__ = ["Model", "Warm"]

MOST_CELLS = 2**26

Warm: TypeAlias = tuple[float, dict[Clique, Floats], dict[Clique, Floats]]
"""Where an estimate with more marginals may start from: a pull, potentials and slopes; see `estimating`."""


class Model:
    """A distribution over all cells of a grid, and a total.

    The chance of a row is proportional to the exponential of the sum of the potentials of its cells. Columns
    without potentials are uniform, and cliques that share no column are independent.

    Attributes:
        domain: The columns.
        total: How many rows the marginals add up to.
        potentials: For each of some cliques, the potential of each cell; -inf where no row can be.
        warm: Where a later estimate starts from; not kept in arrays.
    """

    def __init__(
        self, domain: Domain, total: float, potentials: Mapping[Clique, Floats], *, warm: Warm | None = None
    ) -> None:
        if not (math.isfinite(total) and total > 0):
            raise InvalidParameter("The total must be a finite number above 0.")
        for clique, potential in potentials.items():
            if potential.shape != domain.shape(clique) or not (potential < math.inf).all():
                raise InvalidParameter("Potentials need one number below infinity for each cell of a clique.")
        self.domain, self.total, self.warm = domain, float(total), warm
        self.potentials = {clique: potentials[clique] for clique in sorted(potentials)}

    @cached_property
    def tree(self) -> Tree:
        """The junction tree of the cliques."""
        return tree_of(self.domain, self.potentials)

    @cached_property
    def is_possible(self) -> bool:
        """Whether there is a cell for a row to be in."""
        beliefs = Beliefs(self.domain, self.tree, list(self.potentials))
        return beliefs.highest(list(self.potentials.values())) > -math.inf

    @cached_property
    def _tables(self) -> list[tuple[Clique, Floats]]:
        """The counts of each clique of the tree: its columns, those that the parent shares first."""
        beliefs = Beliefs(self.domain, self.tree, list(self.potentials))
        counts = beliefs.counts(list(self.potentials.values()), self.total)
        if counts.log_partition == -math.inf:
            raise InvalidParameter("The potentials leave no cell for a row to be in.")
        return beliefs.tables()

    def marginal(self, clique: Clique, *, most_cells: int = MOST_CELLS) -> Floats:
        """The expected counts of the cells of some columns, in their shape; they add up to the total.

        Raises:
            InvalidParameter: if a table on the way has more cells than `most_cells`.
        """
        wanted = set(clique)
        if len(wanted) < len(clique) or not wanted <= set(range(len(self.domain))):
            raise InvalidParameter("A clique names places of columns, each once.")
        tellings: list[list[_Table]] = [[] for _ in self.tree.cliques]
        roots = list[_Table]()
        for place in reversed(range(len(self.tree.cliques))):
            parent, separator = self.tree.parents[place], self.tree.separators[place]
            columns, table = self._tables[place]
            below = set(columns).union(*(other.columns for other in tellings[place]))
            if not below & wanted - set(separator):
                continue  # it only tells that its chances add up to 1
            needed = (below & wanted) | set(separator)
            told = tellings[place]
            later = [needed.union(*(table.columns for table in told[k:])) for k in range(len(told) + 1)]
            own = _Table(columns, table).summed(later[0])
            if separator:
                own = own.given(separator)
            for k, other in enumerate(told):
                own = own.times(other, later[k + 1], self.domain, most_cells)
            if parent >= 0:
                tellings[parent].append(own)
            else:
                roots.append(own)
        whole = _Table((), np.array(self.total))
        for root in roots:
            share = _Table(root.columns, root.table / self.total)
            whole = whole.times(share, wanted, self.domain, most_cells)
        return np.ascontiguousarray(whole.table.transpose([whole.columns.index(place) for place in clique]))

    def marginals(
        self, cliques: Iterable[Clique], *, most_cells: int = MOST_CELLS
    ) -> Iterator[Floats | None]:
        """The marginals of many cliques one after another: quick for pairs that are in ascending order.

        None where a table on the way has more cells than `most_cells`.
        """
        pairs = Pairs(self.domain, self.tree, self._tables, self.total)
        for first, group in itertools.groupby(cliques, lambda clique: clique[0] if len(clique) == 2 else -1):
            if first >= 0:
                others = [clique[1] for clique in group]
                known = pairs.of(first, others, most_cells)
                yield from (known.get(other) for other in others)
                continue
            for clique in group:
                try:
                    yield self.marginal(clique, most_cells=most_cells)
                except InvalidParameter:
                    yield None

    def rows(self, n: int, rng: Simulation) -> NDArray[np.int32]:
        """Rows of the model, each column as the number of its cell; see `sampling.sample`."""
        if n < 0:
            raise InvalidParameter("The number of rows must not be negative.")
        shared = [len(separator) for separator in self.tree.separators]
        tables = [(columns, table, k) for (columns, table), k in zip(self._tables, shared, strict=True)]
        return sample(self.domain, tables, n, rng)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The model as named arrays, from which `from_arrays` makes the same one, to the last bit."""
        arrays: dict[str, NDArray[Any]] = {"total": np.array(self.total)}
        for place, (clique, potential) in enumerate(self.potentials.items()):
            arrays[f"clique{place}"] = np.array(clique, np.int64)
            arrays[f"potential{place}"] = potential
        return arrays

    @classmethod
    def from_arrays(cls, domain: Domain, arrays: Mapping[str, NDArray[Any]]) -> Model:
        """The model that `to_arrays` gave.

        Raises:
            InvalidParameter: if the arrays are not of a model with these columns.
        """
        count = (len(arrays) - 1) // 2
        names = {"total", *(f"{kind}{place}" for kind in ("clique", "potential") for place in range(count))}
        if set(arrays) != names:
            raise InvalidParameter("These arrays are not those of a model.")
        potentials: dict[Clique, Floats] = {}
        for place in range(count):
            clique = tuple(int(column) for column in arrays[f"clique{place}"])
            if any(not 0 <= column < len(domain) for column in clique):
                raise InvalidParameter("These arrays are of a model with other columns.")
            potentials[clique] = np.asarray(arrays[f"potential{place}"], np.float64)
        return cls(domain, float(arrays["total"]), potentials)


class _Table:
    """Numbers for the cells of some columns, in any order of columns."""

    def __init__(self, columns: Sequence[int], table: Floats) -> None:
        self.columns, self.table = tuple(columns), table

    def summed(self, kept: set[int]) -> _Table:
        """Without the columns that are not kept."""
        axes = tuple(axis for axis, place in enumerate(self.columns) if place not in kept)
        return _Table([place for place in self.columns if place in kept], self.table.sum(axis=axes))

    def given(self, known: Clique) -> _Table:
        """As chances given the first columns."""
        axes = tuple(range(len(known), len(self.columns)))
        whole = self.table.sum(axis=axes, keepdims=True)
        return _Table(self.columns, self.table / np.where(whole > 0, whole, 1.0))

    def times(self, other: _Table, kept: set[int], domain: Domain, most_cells: int) -> _Table:
        """The product with another table, summed over the columns that are not kept; a matrix product."""
        mine, theirs = self.summed(kept | set(other.columns)), other.summed(kept | set(self.columns))
        both = [place for place in mine.columns if place in theirs.columns]
        along, over = [p for p in both if p in kept], [p for p in both if p not in kept]
        left = [place for place in mine.columns if place not in both]
        right = [place for place in theirs.columns if place not in both]
        columns = (*along, *left, *right)
        if domain.cells(columns) > most_cells:
            raise InvalidParameter("A marginal of these columns needs a table with too many cells.")
        product = mine.matrix(along, left, over, domain=domain) @ theirs.matrix(
            along, over, right, domain=domain
        )
        return _Table(columns, product.reshape(domain.shape(columns)))

    def matrix(self, *groups: Sequence[int], domain: Domain) -> Floats:
        """The table with one axis for each group of columns."""
        order = [self.columns.index(place) for group in groups for place in group]
        return self.table.transpose(order).reshape([domain.cells(tuple(group)) for group in groups])
