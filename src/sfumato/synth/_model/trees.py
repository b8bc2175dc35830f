"""`Tree`: a junction tree over columns that are measured together, and how many cells it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.synth._model.domain import Clique, Domain

__all__ = ["Tree", "cells_of", "tree_of"]


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
    ways = [_eliminated(domain.sizes, list(graph), rule) for rule in (_fill, _cells)]
    return min(ways, key=lambda way: sum(map(domain.cells, way)))


def _members(mask: int) -> list[int]:
    places = list[int]()
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return places


def _cells(sizes: Sequence[int], graph: Sequence[int], place: int) -> int:
    """How many cells a column and its neighbours have together."""
    return sizes[place] * math.prod(sizes[other] for other in _members(graph[place]))


def _fill(sizes: Sequence[int], graph: Sequence[int], place: int) -> int:
    """How many cells the pairs of neighbours have that are not joined yet."""
    around = graph[place]
    cost = 0
    for other in _members(around):
        missing = around & ~graph[other] & ~((2 << other) - 1)
        cost += sizes[other] * sum(sizes[last] for last in _members(missing))
    return cost


def _eliminated(
    sizes: Sequence[int], graph: list[int], rule: Callable[[Sequence[int], Sequence[int], int], int]
) -> list[Clique]:
    """The maximal cliques that come up when columns leave one by one, the one of least cost first."""

    def cost(place: int) -> tuple[int, int, int]:
        return rule(sizes, graph, place), _cells(sizes, graph, place), place

    costs = {place: cost(place) for place in range(len(sizes))}
    masks = list[int]()
    while costs:
        place = min(costs, key=costs.__getitem__)
        del costs[place]
        around = graph[place]
        whole = around | 1 << place
        if not any(whole & ~mask == 0 for mask in masks):
            masks.append(whole)
        stale = 0
        for other in _members(around):
            added = around & ~graph[other] & ~(1 << other)
            graph[other] = (graph[other] | added) & ~(1 << place)
            stale |= 1 << other | (graph[other] if added else 0)
        for other in _members(stale):
            costs[other] = cost(other)
    return [tuple(_members(mask)) for mask in masks]


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
