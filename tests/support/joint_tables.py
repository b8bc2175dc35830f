"""Small grids with cliques of all kinds, and the joint table that potentials on them make, written out."""

import math

import numpy as np
from hypothesis import strategies as st

from sfumato.random import simulation
from sfumato.synth._model.domain import Domain


def grid(sizes):
    return Domain(tuple(f"c{place}" for place in range(len(sizes))), tuple(sizes))


@st.composite
def structures(draw, most=5, largest=4, cliques=6):
    """A domain with cliques of any kind: nested, empty, apart, of columns with one cell."""
    sizes = draw(st.lists(st.integers(1, largest), min_size=1, max_size=most))
    column = st.integers(0, len(sizes) - 1)
    chosen = draw(st.lists(st.sets(column, max_size=3), max_size=cliques))
    return grid(sizes), sorted({tuple(sorted(clique)) for clique in chosen})


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
