"""Small grids with cliques of all kinds, and the joint table that potentials on them make, written out."""

import math

import numpy as np
from hypothesis import strategies as st

from sfumato.random import simulation
from sfumato.synth._model.domain import Domain


def grid(sizes):
    return Domain(tuple(f"c{place}" for place in range(len(sizes))), tuple(sizes))


def structures(most=5, largest=4, cliques=6):
    """Domains with cliques of any kind: nested, empty, apart, in rings, of columns with one cell.

    They are drawn from a seed, because draws of lists of sets are seldom cliques that share columns.
    """

    def structure(seed):
        rng = simulation(seed)
        count = int(rng.integers(1, most + 1, 3).max())
        domain = grid([int(size) for size in rng.integers(1, largest + 1, count)])
        lengths = rng.choice(4, rng.integers(0, cliques + 1, 2).max(), p=[0.05, 0.25, 0.5, 0.2])
        drawn = [rng.choice(count, min(count, length), replace=False) for length in lengths]
        return domain, sorted({tuple(sorted(clique.tolist())) for clique in drawn})

    return st.integers(2**40, 2**48).map(structure)


def lifted(domain, clique, table):
    return np.reshape(table, [domain.sizes[place] if place in clique else 1 for place in range(len(domain))])


def explicit(domain, potentials, total):
    """The whole joint table, and the logarithm of its sum before it is scaled."""
    joint = np.zeros(domain.sizes)
    for clique, potential in potentials.items():
        joint = joint + lifted(domain, clique, potential)
    top = joint.max()
    if top == -math.inf:
        return None, -math.inf
    joint = np.exp(joint - top)
    return joint * (total / joint.sum()), top + math.log(joint.sum())


def summed(joint, clique):
    return joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in clique))


def drawn(domain, cliques, seed, scale, holes):
    rng = simulation(seed)
    potentials = {clique: rng.normal(0, scale, domain.shape(clique)) for clique in cliques}
    for potential in potentials.values():
        potential[rng.random(potential.shape) < holes] = -math.inf
    return potentials
