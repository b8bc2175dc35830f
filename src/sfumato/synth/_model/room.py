"""How much room a model takes, and `Room`: which cliques it may take in, for thousands of them at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from sfumato.synth._model.descent import moves_kept
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._model.trees import Tree, cells_of, tree_of

__all__ = ["BYTES", "MEGABYTE", "Room", "megabytes", "size_of"]

BYTES = 32
"""What a cell of a tree takes while a model is estimated beside the one that it starts from, at most."""

MEGABYTE = 2**20

_NUMBER = 10  # cells that a noisy count takes as much as
_LOOKS = 200  # how many pairs are looked at more closely at a time
_MOVE = 0.5  # and each of the two numbers that the descent keeps of it for each of its last moves, together


def size_of(domain: Domain, measured: Iterable[Clique], others: Iterable[Clique] = ()) -> int:
    """What a model takes while it is estimated, in cells of `BYTES` bytes.

    Args:
        domain: The columns.
        measured: Cliques with noisy counts, each once or often.
        others: Cliques of the tree without: zeros.
    """
    cliques = set(measured)
    return cells_of(domain, [*cliques, *others]) + _for_numbers(sum(map(domain.cells, cliques)))


def megabytes(size: int) -> int:
    """How many megabytes hold a model of a size."""
    return math.ceil(size * BYTES / MEGABYTE)


def _for_numbers(many: int) -> int:
    """What so many noisy counts take, in cells."""
    return many * _NUMBER + math.ceil(many * moves_kept(many) * _MOVE)


class Room:
    """Looks for cliques that fit, and remembers those that do not.

    To triangulate the graph once for each candidate would take longer than all the rest. For a pair, the
    tree that is there says how many cells it takes at most; only where that is too much, and for larger
    cliques, it is looked at more closely. What was found too large stays so until the limit is higher.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._seen = dict[Clique, int]()  # what the model's size with a clique was when it was looked at

    def within(
        self, held: Sequence[Clique], wanted: Sequence[Clique], limit: int, zeros: Sequence[Clique] = ()
    ) -> list[int]:
        """The places of wanted cliques that are held already, or that likely fit beside these.

        Whether one does is known when `fits` was asked. Of very many pairs, some that would fit are missed.
        """
        tree = tree_of(self.domain, [*held, *zeros])
        cells, numbers = sum(map(self.domain.cells, tree.cliques)), sum(map(self.domain.cells, set(held)))
        homes = [set(clique) for clique in tree.cliques]
        more = _more_for_pairs(self.domain, tree)
        own, found, close = set(held), list[int](), list[tuple[int, int]]()
        for place, clique in enumerate(wanted):
            size = cells + _for_numbers(numbers + self.domain.cells(clique))
            if not any(home.issuperset(clique) for home in homes):
                size += more.get(clique, 0 if len(clique) < 2 else limit)
            if clique in own or (size <= limit and self._seen.get(clique, 0) <= limit):
                found.append(place)
            else:
                close.append((size if len(clique) == 2 else 0, place))
        pairs = 0
        for _, place in sorted(close):
            pairs += len(wanted[place]) == 2 and self._seen.get(wanted[place], 0) <= limit
            if pairs > _LOOKS:
                break
            if self.fits(held, wanted[place], limit, zeros):
                found.append(place)
        return sorted(found)

    def fits(self, held: Sequence[Clique], clique: Clique, limit: int, zeros: Sequence[Clique] = ()) -> bool:
        """Whether a model with one more clique has a size of at most `limit`; so it does if it is held."""
        if clique in held:
            return True
        if self._seen.get(clique, 0) > limit:
            return False
        self._seen[clique] = size_of(self.domain, [*held, clique], zeros)
        return self._seen[clique] <= limit


def _more_for_pairs(domain: Domain, tree: Tree) -> dict[Clique, int]:
    """For each pair of columns that share no clique, how many cells the tree grows by at most.

    A column that joins another one goes along with all separators on the way: the tree stays one if it has a
    new clique for each two separators in a row, with the column, and a last one with both columns.
    """
    found = dict[Clique, int]()
    for one in range(len(domain)):
        for other, cells in _reached(domain, tree, one):
            pair = (min(one, other), max(one, other))
            found[pair] = min(found.get(pair, cells), cells)
    return found


def _reached(domain: Domain, tree: Tree, column: int) -> Iterator[tuple[int, int]]:
    """The columns that share no clique with one, and how many cells it takes to lead it there."""
    around: list[list[tuple[int, Clique]]] = [[] for _ in tree.cliques]
    for child, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
        if parent >= 0:
            around[child].append((parent, separator))
            around[parent].append((child, separator))
    size, sizes = domain.sizes[column], domain.sizes
    ways = list[tuple[int, Clique, int]]()  # a clique, how it is entered, and the cells up to there
    met = {place for place, clique in enumerate(tree.cliques) if column in clique}
    known = {column}.union(*(tree.cliques[place] for place in met))
    for place in sorted(met):
        for near, separator in around[place]:
            if near not in met:
                ways.append((near, separator, -_spared(domain, tree.cliques[place], len(separator) + 1)))
    while ways:
        place, entered, cells = ways.pop()
        met.add(place)
        clique = tree.cliques[place]
        spared, through = _spared(domain, clique, len(entered) + 1), size * domain.cells(entered)
        for other in set(clique) - known:
            yield other, cells + through * sizes[other] - spared
        known.update(clique)
        for near, separator in around[place]:
            if near not in met:
                both = tuple(set(entered) | set(separator))
                gone = _spared(domain, clique, len(both))
                ways.append((near, separator, cells + size * domain.cells(both) - gone))
    lone = {clique[0] for clique in tree.cliques if len(clique) == 1}
    for other in set(range(len(domain))) - known:  # nothing is on the way to these
        spared = sum(sizes[place] for place in (column, other) if place in lone)
        yield other, size * sizes[other] - spared


def _spared(domain: Domain, clique: Clique, held: int) -> int:
    """The cells of a clique that is within a new one, which holds so many of its columns; else none."""
    return domain.cells(clique) if held == len(clique) else 0
