"""`Beliefs`: belief propagation on a junction tree: from potentials to the counts of each of its cliques.

A clique's table is never made by exponentials of all of its cells, which would cost more than all the rest.
Its last column, the largest, is summed out first: as a product of exponentials of the few small tables that
the column is in, each at most 1 and with a 1 in each of its rows. The rest of the table is small, and is
summed in logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._model.trees import Tree

__all__ = ["Beliefs", "Counts", "Floats"]

Floats: TypeAlias = NDArray[np.float64]

_LOWEST = -1e300  # in the place of -inf where it is subtracted from itself
_FAINT = 1e-250  # a product of exponentials below it may have lost some of its terms


class Counts(NamedTuple):
    """What potentials make of a total.

    Attributes:
        marginals: The counts of each clique that has potentials, in its shape.
        log_partition: The logarithm of the sum, over all cells of the whole grid, of the exponential of the
            sum of potentials; -inf if they leave no cell.
    """

    marginals: list[Floats]
    log_partition: float


@dataclass(frozen=True, slots=True)
class _Part:
    """A small table that is added to a clique's: potentials, or what a child tells.

    Attributes:
        place: Of the potentials; or of the child, less the number of cliques.
        turn: From the order of its own columns to the clique's.
        spread: Broadcasts it over the clique, less the last column if it does not have it.
        others: The axes of these that it does not have.
        back: From the clique's order to its own.
    """

    place: int
    turn: tuple[int, ...]
    spread: tuple[slice | None, ...]
    others: tuple[int, ...]
    back: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """Parts with the last column whose columns are all within those of the first: they are summed as one."""

    shape: tuple[int, ...]
    spread: tuple[slice | None, ...]
    others: tuple[int, ...]
    parts: list[_Part]


class _Node:
    """How the table of one clique is put together."""

    def __init__(
        self, domain: Domain, clique: Clique, separator: Clique, parts: Sequence[tuple[int, Clique]]
    ) -> None:
        rest = sorted((set(clique) - set(separator)), key=lambda place: (domain.sizes[place], place))
        self.columns = (*separator, *rest)
        head, last = self.columns[:-1], self.columns[-1]
        self.rest = tuple(range(len(separator), len(head)))
        self.shape = domain.shape(self.columns)
        self.head = [_part(place, scope, head) for place, scope in parts if last not in scope]
        scopes = sorted((p for p in parts if last in p[1]), key=lambda p: (-domain.cells(p[1]), p))
        leaders = list[Clique]()
        for _, scope in scopes:
            if not any(set(scope) <= set(leader) for leader in leaders):
                leaders.append(scope)
        leaders = leaders or [(last,)]
        self.groups = list[_Group]()
        for leader in leaders:
            whole = _part(0, leader, self.columns)
            own = tuple(place for place in self.columns if place in leader)
            members = [
                _part(place, scope, own)
                for place, scope in scopes
                if next(lead for lead in leaders if set(scope) <= set(lead)) == leader
            ]
            self.groups.append(_Group(domain.shape(own), whole.spread, whole.others, members))
        self.logs = [np.empty(group.shape) for group in self.groups]
        self.tops = [np.empty((*group.shape[:-1], 1)) for group in self.groups]
        alone = len(self.groups) == 1 and len(self.groups[0].shape) == len(self.shape)
        self.table = self.logs[0] if alone else np.empty(self.shape)
        self.counts = self.below = self.sums = np.empty(0)

    def summed(self, terms: Sequence[Floats]) -> Floats:
        """Adds up the parts of the last column, and gives the logarithm of the head: over it, no column."""
        head = np.zeros(self.shape[:-1])
        for part in self.head:
            head += terms[part.place].transpose(part.turn)[part.spread]
        for group, table, top in zip(self.groups, self.logs, self.tops, strict=True):
            _gather(group, terms, table)
            np.max(table, axis=-1, keepdims=True, out=top)
            np.maximum(top, _LOWEST, out=top)
            table -= top
            head += top[group.spread][..., 0]
        return head

    def folded(self, head: Floats) -> tuple[Floats, Floats]:
        """The sum over all but the separator, and the logarithm of what it is a multiple of."""
        if self.table is self.logs[0]:
            np.exp(self.table, out=self.table)
        else:
            pairs = zip(self.groups, self.logs, strict=True)
            factors = [np.exp(table)[group.spread] for group, table in pairs]
            np.multiply(factors[0], factors[1] if len(factors) > 1 else 1.0, out=self.table)
            for factor in factors[2:]:
                self.table *= factor
        sums = np.asarray(self.table.sum(axis=-1))
        if len(self.groups) > 1 and sums.min() < _FAINT:
            self._repair(head, sums)
        self.sums = sums
        with np.errstate(divide="ignore"):
            head += np.log(sums)
        top = np.maximum(head.max(axis=self.rest, keepdims=True), _LOWEST)
        head -= top
        self.counts = np.exp(head, out=head)
        self.below = np.asarray(self.counts.sum(axis=self.rest, keepdims=True))
        return self.below, top

    def _repair(self, head: Floats, sums: Floats) -> None:
        """Sums again, in logarithms, the rows in which all products are too small."""
        rows = np.nonzero(sums < _FAINT)
        exact = np.zeros((len(rows[0]), self.shape[-1]))
        for group, table in zip(self.groups, self.logs, strict=True):
            exact += np.broadcast_to(table[group.spread], self.shape)[rows]
        top = np.maximum(exact.max(axis=-1, keepdims=True), _LOWEST)
        exact = np.exp(exact - top)
        self.table[rows] = exact
        sums[rows] = exact.sum(axis=-1)
        head[rows] += top[:, 0]

    def filled(self, counts: Floats | float) -> None:
        """Makes the tables counts, from those of the separator."""
        self.counts *= np.divide(counts, self.below, out=np.zeros(self.below.shape), where=self.below > 0)
        share = np.divide(self.counts, self.sums, out=np.zeros(self.sums.shape), where=self.sums > 0)
        self.table *= share[..., np.newaxis]

    def read(self, terms: list[Floats]) -> None:
        """Puts the counts of each part in its place."""
        for part in self.head:
            terms[part.place] = self.counts.sum(axis=part.others).transpose(part.back)
        for group in self.groups:
            table = self.table.sum(axis=group.others) if group.others else self.table
            for part in group.parts:
                own = table.sum(axis=part.others) if part.others else table
                terms[part.place] = own.transpose(part.back)


class Beliefs:
    """Belief propagation for potentials on some cliques, each within a clique of the tree.

    It keeps room for the tables, which each call uses again.

    Attributes:
        tree: The junction tree.
        cliques: Those that have potentials.
    """

    def __init__(self, domain: Domain, tree: Tree, cliques: Sequence[Clique]) -> None:
        self.tree, self.cliques = tree, tuple(cliques)
        parts: list[list[tuple[int, Clique]]] = [[] for _ in tree.cliques]
        for place, clique in enumerate(self.cliques):
            parts[tree.home(clique)].append((place, clique))
        for child, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
            if parent >= 0:
                parts[parent].append((child - len(tree.cliques), separator))
        whole = zip(tree.cliques, tree.separators, parts, strict=True)
        self._nodes = [_Node(domain, clique, separator, own) for clique, separator, own in whole]

    def counts(self, potentials: Sequence[Floats], total: float) -> Counts:
        """The counts of the distribution that the potentials make, of a total.

        A potential may be -inf: the cell is then empty.
        """
        terms = [*potentials, *(np.empty(0) for _ in self._nodes)]
        log_partition = 0.0
        for place in reversed(range(len(self._nodes))):
            node = self._nodes[place]
            below, top = node.folded(node.summed(terms))
            with np.errstate(divide="ignore"):
                message = np.asarray(np.log(below) + top)
            if self.tree.parents[place] >= 0:
                shared = len(self.tree.separators[place])
                terms[place - len(self._nodes)] = message.reshape(message.shape[:shared])
            else:
                log_partition += message.item()
        for place, node in enumerate(self._nodes):
            if self.tree.parents[place] >= 0:
                node.filled(terms[place - len(self._nodes)].reshape(node.below.shape))
            else:
                node.filled(total)
            node.read(terms)
        return Counts(terms[: len(potentials)], log_partition)

    def tables(self) -> list[tuple[Clique, Floats]]:
        """The counts of each clique of the tree as of the last call: its columns, separator first, and table.

        The tables are overwritten by the next call.
        """
        return [(node.columns, node.table) for node in self._nodes]

    def highest(self, potentials: Sequence[Floats]) -> float:
        """The largest sum of potentials that a cell of the whole grid has."""
        terms = [*potentials, *(np.empty(0) for _ in self._nodes)]
        highest = 0.0
        for place in reversed(range(len(self._nodes))):
            node = self._nodes[place]
            head = node.summed(terms)
            tables = [log[group.spread] for group, log in zip(node.groups, node.logs, strict=True)]
            for table in tables[1:]:
                tables[0] = np.add(tables[0], table, out=node.table)
            head += tables[0].max(axis=-1)
            message = head.max(axis=node.rest)
            if self.tree.parents[place] >= 0:
                terms[place - len(self._nodes)] = message
            else:
                highest += float(message)
        return highest


def _gather(group: _Group, terms: Sequence[Floats], out: Floats) -> None:
    """The sum of a group's parts, in the clique's order of columns."""
    if not group.parts:
        out.fill(0)
    for place, part in enumerate(group.parts):
        term = terms[part.place].transpose(part.turn)[part.spread]
        if place == 0:
            out[...] = term
        else:
            out += term


def _part(place: int, scope: Clique, columns: Clique) -> _Part:
    """How a table of some columns, in ascending order, lies among columns in an order of their own."""
    order = [column for column in columns if column in scope]
    return _Part(
        place=place,
        turn=tuple(scope.index(column) for column in order),
        spread=tuple(slice(None) if column in scope else None for column in columns),
        others=tuple(axis for axis, column in enumerate(columns) if column not in scope),
        back=tuple(order.index(column) for column in scope),
    )
