"""`Tree`: a junction tree over columns that are measured together, and how many cells it has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.synth._model.domain import Clique, Domain

__all__ = ["CellCosts", "FillCosts", "Tree", "cells_of", "tree_of"]


@dataclass(frozen=True, slots=True)
class Tree:
    """A forest of cliques in which those that hold a column are always connected.

    Attributes:
        cliques: None within another; a parent comes before its children. Each column is in one at least.
        parents: The place of each clique's parent, or -1 for the root of a part of the forest.
        separators: What each clique shares with its parent; nothing for a root.
    """

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    separators: tuple[Clique, ...]

    def home(self, clique: Clique) -> int:
        """The place of the first clique that holds some columns, or -1 if none does."""
        wanted = set(clique)
        return next((place for place, held in enumerate(self.cliques) if wanted.issubset(held)), -1)


def tree_of(domain: Domain, cliques: Iterable[Clique]) -> Tree:
    """A junction tree in which each of some cliques has a home; the same one for the same cliques.

    The columns' graph is triangulated by eliminating columns greedily, by two rules; the tree with fewer
    cells is kept.

    Raises:
        InvalidParameter: if a clique is not made of places of columns in ascending order.
    """
    return _joined(domain, _triangulated(domain, cliques))


def cells_of(domain: Domain, cliques: Iterable[Clique]) -> int:
    """How many cells the cliques of the junction tree of some cliques have together."""
    return sum(domain.cells(clique) for clique in _triangulated(domain, cliques))


def _triangulated(domain: Domain, cliques: Iterable[Clique]) -> list[Clique]:
    """The maximal cliques of a chordal graph that has all edges within the given ones."""
    graph = [0] * len(domain)
    for clique in sorted(set(cliques)):
        if any(not 0 <= place < len(domain) for place in clique) or list(clique) != sorted(set(clique)):
            raise InvalidParameter("A clique names places of columns in ascending order, each once.")
        held = sum(1 << place for place in clique)
        for place in clique:
            graph[place] |= held & ~(1 << place)
    ways = [_eliminated(domain.sizes, list(graph), by_fill=by_fill) for by_fill in (True, False)]
    return min(ways, key=lambda way: sum(map(domain.cells, way)))


def _members(mask: int) -> list[int]:
    places = list[int]()
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return places


def _eliminated(sizes: Sequence[int], graph: list[int], *, by_fill: bool) -> list[Clique]:
    """The maximal cliques that come up when columns leave one by one, the one of least cost first."""
    costs = FillCosts(sizes, graph) if by_fill else CellCosts(sizes, graph)
    left, masks = set(range(len(sizes))), list[int]()
    while left:
        place = min(left, key=costs.of)
        left.remove(place)
        whole = costs.graph[place] | 1 << place
        if not any(whole & ~mask == 0 for mask in masks):
            masks.append(whole)
        costs.eliminate(place)
    return [tuple(_members(mask)) for mask in masks]


class CellCosts:
    """A graph from which columns leave, and how many cells each has together with its neighbours.

    Attributes:
        graph: The neighbours of each column, as bits.
    """

    def __init__(self, sizes: Sequence[int], graph: list[int]) -> None:
        self.graph, self._sizes = graph, sizes
        self._cells = [
            size * math.prod(sizes[other] for other in _members(around))
            for size, around in zip(sizes, graph, strict=True)
        ]

    def of(self, place: int) -> tuple[int, int, int]:
        """What it costs to take a column out now, and which comes first of those that cost the same."""
        return self._cells[place], self._cells[place], place

    def eliminate(self, place: int) -> None:
        """Join all neighbours of a column, and take it out."""
        around = self.graph[place]
        for one in _members(around):
            for other in _members(around & ~self.graph[one] & ~((2 << one) - 1)):
                self.join(one, other)
        for one in _members(around):
            self.part(one, place)

    def join(self, one: int, other: int) -> None:
        """Make two columns neighbours."""
        self._cells[one] *= self._sizes[other]
        self._cells[other] *= self._sizes[one]
        self.graph[one] |= 1 << other
        self.graph[other] |= 1 << one

    def part(self, one: int, gone: int) -> None:
        """Take from a column a neighbour that leaves."""
        self._cells[one] //= self._sizes[gone]
        self.graph[one] &= ~(1 << gone)


class FillCosts(CellCosts):
    """The same, where a column costs the cells of all pairs of its neighbours that are not joined yet."""

    def __init__(self, sizes: Sequence[int], graph: list[int]) -> None:
        super().__init__(sizes, graph)
        self._fill = [0] * len(sizes)
        for place, around in enumerate(graph):
            for one in _members(around):
                self._fill[place] += sizes[one] * self._weight(around & ~graph[one] & ~((2 << one) - 1))

    def of(self, place: int) -> tuple[int, int, int]:
        """What it costs to take a column out now, and which comes first of those that cost the same."""
        return self._fill[place], self._cells[place], place

    def join(self, one: int, other: int) -> None:
        """Make two columns neighbours: those who know both miss a pair less, they may miss more."""
        mine, theirs = self.graph[one], self.graph[other]
        pair = self._sizes[one] * self._sizes[other]
        for common in _members(mine & theirs):
            self._fill[common] -= pair
        self._fill[one] += self._sizes[other] * self._weight(mine & ~theirs)
        self._fill[other] += self._sizes[one] * self._weight(theirs & ~mine)
        super().join(one, other)

    def part(self, one: int, gone: int) -> None:
        """Take from a column a neighbour that leaves, and the pairs that it was not joined in."""
        missing = self.graph[one] & ~self.graph[gone] & ~(1 << gone)
        self._fill[one] -= self._sizes[gone] * self._weight(missing)
        super().part(one, gone)

    def _weight(self, mask: int) -> int:
        return sum(self._sizes[place] for place in _members(mask))


def _joined(domain: Domain, cliques: Sequence[Clique]) -> Tree:
    """The cliques as a forest: each next one is that which shares most with those already there.

    A spanning tree whose separators are as large as they can be is a junction tree (Jensen, Jensen 1994).
    """
    left = sorted(cliques, key=lambda clique: (-domain.cells(clique), clique))
    best: dict[Clique, tuple[int, Clique]] = dict.fromkeys(left, (-1, ()))
    order, parents, separators = list[Clique](), list[int](), list[Clique]()
    while left:
        chosen = max(left, key=lambda clique: len(best[clique][1]))
        left.remove(chosen)
        parent, shared = best[chosen]
        order.append(chosen)
        parents.append(parent)
        separators.append(shared)
        for clique in left:
            common = tuple(place for place in clique if place in chosen)
            if len(common) > len(best[clique][1]):
                best[clique] = len(order) - 1, common
    return Tree(tuple(order), tuple(parents), tuple(separators))
