"""Least squares on a tree of intervals: shares of all levels that add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass

__all__ = ["Tree"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree whose nodes all have `branching` children; the root is known to be 1.

    Attributes:
        branching: How many.
        variances: That of what is measured at a node of each level, from the root's children to the leaves;
            infinite where nothing is.
    """

    branching: int
    variances: Floats

    def _trust(self) -> list[float]:
        """For each level, the weight of a node's own measurement against the sum of its children's.

        From the leaves up: a node with the variance v whose children are known to V each is known to
        1/(1/v + 1/(b·V)), its own measurement weighing b·V/(v + b·V) (Hay et al. 2010).
        """
        trust, below = [1.0], float(self.variances[-1])
        for own in self.variances[-2::-1]:
            children = self.branching * below
            if np.isinf(children):
                share, below = 1.0, float(own)
            elif np.isinf(own):
                share, below = 0.0, children
            else:
                share, below = children / (own + children), own * children / (own + children)
            trust.insert(0, float(share))
        return trust

    def consistent(self, measured: Sequence[Floats]) -> Floats:
        """The leaves of the tree nearest to what was measured, in which children add up to their parent."""
        best, trust = [np.asarray(measured[-1], np.float64)], self._trust()
        for level in range(len(measured) - 2, -1, -1):
            sums = best[0].reshape(-1, self.branching).sum(axis=1)
            best.insert(0, trust[level] * measured[level] + (1 - trust[level]) * sums)
        known = np.ones(1)
        for shares in best:
            cut = shares.reshape(-1, self.branching)
            known = (cut + ((known - cut.sum(axis=1)) / self.branching)[:, None]).reshape(-1)
        return known

    def weights(self, edges: NDArray[np.int64]) -> list[Floats]:
        """With which weights the measurements of each level enter the sum of the leaves before each edge.

        The steps of `consistent`, each transposed, in the opposite order: rows are edges, columns nodes.
        """
        leaves = self.branching ** len(self.variances)
        pull = (np.arange(leaves) < edges[:, None]).astype(np.float64)
        pulls: list[Floats] = []
        for _ in self.variances:
            cut = pull.reshape(len(edges), -1, self.branching)
            mean = cut.mean(axis=2)
            pulls.insert(0, (cut - mean[:, :, None]).reshape(len(edges), -1))
            pull = mean
        trust = self._trust()
        weights: list[Floats] = []
        passed: Floats = np.zeros((len(edges), 1))
        for level, own in enumerate(pulls):
            total = own if not level else own + np.repeat(passed, self.branching, axis=1)
            weights.append(trust[level] * total)
            passed = (1 - trust[level]) * total
        return weights
