"""`Pairs`: a model's counts of a column with each other one, all of them in one walk through its tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sfumato.synth._model.beliefs import Floats
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._model.trees import Tree

__all__ = ["Pairs"]


class _Step(NamedTuple):
    """How a column's counts with a separator become those with other columns of the clique behind it.

    Attributes:
        along: The separator's columns that the others have, too.
        over: Its other columns, which are summed over.
        ends: The columns that are reached.
        chances: Of `ends` less `along`, given the separator: along × over × the new ones.
    """

    along: Clique
    over: Clique
    ends: Clique
    chances: Floats


class Pairs:
    """Counts of pairs of columns, out of the counts of the cliques of a tree.

    What the walks of several columns share is kept as long as it takes no more room than the tables do; a
    step that is as large as the table that it comes from is made again, since nothing is summed for it.
    """

    def __init__(
        self, domain: Domain, tree: Tree, tables: Sequence[tuple[Clique, Floats]], total: float
    ) -> None:
        self.domain, self.tree, self.total, self._tables = domain, tree, total, tables
        self._around: list[list[tuple[int, Clique]]] = [[] for _ in tree.cliques]
        for child, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
            if parent >= 0:
                self._around[child].append((parent, separator))
                self._around[parent].append((child, separator))
        self._behind = _behind(tree)
        self._steps = dict[tuple[int, Clique, Clique], _Step]()
        self._spare = sum(table.size for _, table in tables)

    def of(self, column: int, others: Iterable[int], most_cells: int) -> dict[int, Floats]:
        """The counts of a column and each of some others, but for those that take a table with more cells."""
        cliques, size = self.tree.cliques, self.domain.sizes[column]
        places = [place for place, clique in enumerate(cliques) if column in clique]
        found, wanted = dict[int, Floats](), set(others) - {column}
        for place in sorted(places, key=lambda place: self.domain.cells(cliques[place])):
            for other in wanted.intersection(cliques[place]).difference(found):
                found[other] = self._summed(place, (column, other))
        left = [
            (place, near, separator, self._summed(place, (column, *separator)))
            for place in places
            for near, separator in self._around[place]
            if column not in separator
            and not wanted.isdisjoint(self._behind[place, near])
            and size * self.domain.cells(separator) <= most_cells
        ]
        while left:
            before, place, entered, counts = left.pop()
            for other in wanted.intersection(cliques[place]).difference(entered):
                found[other] = self._walked(counts, entered, self._step(place, entered, (other,)))
            left += [
                (place, near, separator, self._walked(counts, entered, self._step(place, entered, separator)))
                for near, separator in self._around[place]
                if near != before
                and not wanted.isdisjoint(self._behind[place, near])
                and size * self.domain.cells(separator) <= most_cells
            ]
        return found | self._apart(column, wanted, places[0])

    def _apart(self, column: int, wanted: set[int], home: int) -> dict[int, Floats]:
        """With the columns that hang together with it by nothing."""
        around = (self._behind[home, near] for near, _ in self._around[home])
        part = set(self.tree.cliques[home]).union(*around)
        own, found = self._summed(home, (column,)), dict[int, Floats]()
        for place, clique in enumerate(self.tree.cliques):
            for other in wanted.intersection(clique).difference(part, found):
                found[other] = np.multiply.outer(own, self._summed(place, (other,)) / self.total)
        return found

    def _summed(self, place: int, wanted: Clique) -> Floats:
        """The counts of some columns of a clique, in this order."""
        columns, table = self._tables[place]
        axes = tuple(axis for axis, column in enumerate(columns) if column not in wanted)
        kept = [column for column in columns if column in wanted]
        return np.asarray(table.sum(axis=axes).transpose([kept.index(column) for column in wanted]))

    def _step(self, place: int, entered: Clique, ends: Clique) -> _Step:
        if (place, entered, ends) in self._steps:
            return self._steps[place, entered, ends]
        along = tuple(column for column in entered if column in ends)
        over = tuple(column for column in entered if column not in ends)
        new = tuple(column for column in ends if column not in entered)
        counts = self._summed(place, (*along, *over, *new))
        counts = counts.reshape([self.domain.cells(group) for group in (along, over, new)])
        whole = counts.sum(axis=2, keepdims=True)
        chances = np.divide(counts, whole, out=np.zeros(counts.shape), where=whole > 0)
        step = _Step(along, over, ends, chances)
        if 2 * chances.size <= self._tables[place][1].size and chances.size <= self._spare:
            self._spare -= chances.size
            self._steps[place, entered, ends] = step
        return step

    def _walked(self, counts: Floats, entered: Clique, step: _Step) -> Floats:
        """From a column's counts with a separator, column first, to those with the step's ends."""
        size, along = counts.shape[0], step.along
        axis = {column: 1 + at for at, column in enumerate(entered)}
        turned = counts.transpose([*(axis[c] for c in along), 0, *(axis[c] for c in step.over)])
        product = turned.reshape(self.domain.cells(along), size, -1) @ step.chances
        new = [column for column in step.ends if column not in along]
        shaped = product.reshape(*self.domain.shape(along), size, *self.domain.shape(tuple(new)))
        place = {column: axis for axis, column in enumerate([*along, -1, *new])}
        return shaped.transpose([place[-1], *(place[column] for column in step.ends)])


def _behind(tree: Tree) -> dict[tuple[int, int], frozenset[int]]:
    """The columns that are met first behind each edge of a tree, by the places where it starts and ends."""
    down = [set(clique) for clique in tree.cliques]
    for place in reversed(range(len(down))):
        if tree.parents[place] >= 0:
            down[tree.parents[place]] |= down[place]
    found = dict[tuple[int, int], frozenset[int]]()
    whole = list(down)
    for place, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
        if parent >= 0:
            whole[place] = whole[parent]  # all columns of this part of the forest
            found[parent, place] = frozenset(down[place].difference(separator))
            found[place, parent] = frozenset(whole[place].difference(down[place]))
    return found
