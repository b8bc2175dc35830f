"""Estimates against the least of the same objective over all joint tables, written out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from joint_tables import explicit, structures, summed
from sfumato.random import simulation
from sfumato.synth._model.domain import Marginal
from sfumato.synth._model.estimating import estimate


def objective(marginals, of):
    return sum(float(np.sum((of(m.clique) - m.values) ** 2)) / (2 * m.sigma**2) for m in marginals)


def least(domain, marginals, total, zeros=None):
    """The joint table of least objective: least squares with no number below 0, and a sum that holds."""
    cells = math.prod(domain.sizes)
    joint = np.arange(cells).reshape(domain.sizes)
    matrix, wanted = [], []
    for marginal in marginals:
        for place, value in np.ndenumerate(marginal.values):
            index = [slice(None)] * len(domain)
            for column, cell in zip(marginal.clique, place, strict=True):
                index[column] = cell
            row = np.zeros(cells)
            row[joint[tuple(index)].ravel()] = total / marginal.sigma
            matrix.append(row)
            wanted.append(value / marginal.sigma)
    open_ = np.ones(domain.sizes, bool)
    for clique, mask in (zeros or {}).items():
        shape = [domain.sizes[place] if place in clique else 1 for place in range(len(domain))]
        open_ &= ~np.reshape(mask, shape)
    heavy = 1e4 * max(1.0, max(np.abs(row).max() for row in matrix))
    full = np.vstack([*matrix, np.full(cells, heavy)])[:, open_.ravel()]
    found = np.zeros(cells)
    found[open_.ravel()] = nnls(full, np.array([*wanted, heavy]))[0]
    return (found * total / found.sum()).reshape(domain.sizes)


def noisy(domain, cliques, seed, *, rows=1000.0, sigmas=(1.0, 30.0)):
    rng = simulation(seed)
    truth = rng.dirichlet(np.full(math.prod(domain.sizes), 0.3)).reshape(domain.sizes) * rows
    marginals = []
    for clique in cliques:
        sigma = float(np.exp(rng.uniform(*np.log(sigmas))))
        exact = summed(truth, clique)
        marginals.append(Marginal(clique, exact + rng.normal(0, sigma, exact.shape), sigma))
    return marginals


def check(domain, marginals, total, fitted, zeros=None):
    """The gap is true, and small: the model is as near to the best joint table as it says."""
    model = fitted.model
    best = least(domain, marginals, total, zeros)
    lowest = objective(marginals, lambda clique: summed(best, clique))
    reached = objective(marginals, model.marginal)
    slack = 1e-6 * (1 + reached)
    assert fitted.converged
    assert fitted.objective == pytest.approx(reached, rel=1e-6, abs=1e-6) or len(marginals) > len(
        {m.clique for m in marginals}
    )
    assert lowest - slack <= reached <= lowest + fitted.gap + slack
    distance = sum(
        float(np.sum((model.marginal(m.clique) - summed(best, m.clique)) ** 2)) / m.sigma**2
        for m in marginals
    )
    assert distance <= 2 * fitted.gap + slack
    assert fitted.gap <= 1e-5 * (sum(m.values.size for m in marginals) + reached)
    joint, _ = explicit(domain, model.potentials, model.total)
    for marginal in marginals:
        np.testing.assert_allclose(
            model.marginal(marginal.clique), summed(joint, marginal.clique), rtol=1e-8, atol=1e-9 * total
        )


SIGMAS = [(1, 30), (0.01, 0.1), (100, 1e4), (0.1, 100)]


@settings(max_examples=30)
@given(
    structures(most=4), st.integers(0, 2**32), st.sampled_from([(1, 30), (0.01, 0.1), (100, 1e4), (0.1, 100)])
)
def test_an_estimate_is_as_near_to_the_best_joint_table_as_its_gap_says(structure, seed, sigmas):
    domain, cliques = structure
    marginals = noisy(domain, cliques, seed, sigmas=sigmas)
    fitted = estimate(domain, marginals, 1000.0, tolerance=1e-5)
    if not marginals:
        assert (fitted.converged, fitted.gap) == (True, 0)
        return
    check(domain, marginals, 1000.0, fitted)
