"""Estimates against the least of the same objective over all joint tables, written out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from joint_tables import explicit, grid, structures, summed
from sfumato.errors import InvalidParameter
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


def check(domain, marginals, total, fitted, *, tolerance, zeros=None):
    """The gap is true, and the model is within the tolerance of the best joint table."""
    model = fitted.model
    best = least(domain, marginals, total, zeros)
    lowest = objective(marginals, lambda clique: summed(best, clique))
    reached = objective(marginals, model.marginal)
    slack = 1e-6 * (1 + reached)
    assert fitted.converged
    assert lowest - slack <= reached <= lowest + fitted.gap + slack
    assert reached <= lowest + tolerance * (sum(m.values.size for m in marginals) + reached) + slack
    near = [Marginal(m.clique, summed(best, m.clique), m.sigma) for m in marginals]
    assert 2 * objective(near, model.marginal) <= 2 * (reached - lowest) + 2 * slack
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
    assert fitted.objective == pytest.approx(objective(marginals, fitted.model.marginal), rel=1e-6, abs=1e-6)
    check(domain, marginals, 1000.0, fitted, tolerance=1e-5)


RING = [(0, 1), (1, 2), (2, 3), (0, 3), (1,), (0, 1, 3)]


@pytest.mark.parametrize("seed", range(3))
def test_marginals_of_the_same_columns_count_by_their_variance(seed):
    domain = grid([3, 2, 4, 2])
    marginals = noisy(domain, [*RING, (0, 1), (0, 1), (2,), (2,)], seed)
    fitted = estimate(domain, marginals, 1000.0, tolerance=1e-5)
    check(domain, marginals, 1000.0, fitted, tolerance=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_no_row_is_in_a_structural_zero(seed):
    domain = grid([3, 2, 4, 2])
    rng = simulation(seed)
    zeros = {(0, 2): rng.random((3, 4)) < 0.4, (1, 3): np.array([[False, True], [False, False]])}
    zeros[0, 2][0, 0] = False
    marginals = noisy(domain, RING, seed)
    fitted = estimate(domain, marginals, 1000.0, zeros=zeros, tolerance=1e-5)
    check(domain, marginals, 1000.0, fitted, tolerance=1e-5, zeros=zeros)
    for clique, mask in zeros.items():
        assert not fitted.model.marginal(clique)[mask].any()
    again = estimate(domain, marginals, 1000.0, zeros=zeros, start=fitted.model, tolerance=1e-5)
    check(domain, marginals, 1000.0, again, tolerance=1e-5, zeros=zeros)


@settings(max_examples=15)
@given(structures(most=4), st.integers(0, 2**32), st.data())
def test_a_warm_start_ends_where_a_cold_one_does(structure, seed, data):
    domain, cliques = structure
    marginals = noisy(domain, cliques, seed, sigmas=(2, 20))
    known = data.draw(st.integers(0, len(marginals)))
    first = estimate(domain, marginals[:known], 1000.0)
    warm = estimate(domain, marginals, 1000.0, start=first.model, tolerance=1e-5)
    assert set(warm.model.potentials) == set(cliques)  # nothing else of the start is left
    if marginals:
        check(domain, marginals, 1000.0, warm, tolerance=1e-5)


def test_a_warm_start_is_nearer_than_a_cold_one():
    """Columns of the same size: potentials carried to a wrong axis would be a bad place to start from."""
    domain = grid([6] * 4)
    marginals = noisy(domain, [(0, 1), (1, 2), (2, 3), (0, 3), (0, 1, 2)], 1, rows=1e5)
    first = estimate(domain, marginals[:4])
    cold, warm = (estimate(domain, marginals, start=start) for start in (None, first.model))
    again = estimate(domain, marginals, start=warm.model)
    assert again.converged
    assert warm.steps < cold.steps
    assert again.steps < cold.steps


@pytest.mark.parametrize("scale", [1e-3, 1, 1e5])
def test_counts_and_noise_of_any_size_are_alike(scale):
    """Whether rows are counted one by one or in millions: the same model, in as many steps or so."""
    domain = grid([3, 2, 4, 2])
    marginals = [
        Marginal(m.clique, m.values * scale, m.sigma * scale) for m in noisy(domain, RING, 5, rows=1e4)
    ]
    fitted = estimate(domain, marginals, 1e4 * scale, tolerance=1e-5)
    check(domain, marginals, 1e4 * scale, fitted, tolerance=1e-5)
    assert fitted.steps < 2000


@pytest.mark.parametrize("sigma", [1e-3, 1e7])
@pytest.mark.parametrize("rows", [1, 1e8])
def test_noise_may_be_tiny_or_huge(sigma, rows):
    domain = grid([3, 2, 4, 2])
    marginals = noisy(domain, RING, 6, rows=rows, sigmas=(sigma, sigma * 1.01))
    fitted = estimate(domain, marginals, rows)
    assert fitted.converged
    if sigma < 1:
        for marginal in marginals:
            assert np.abs(fitted.model.marginal(marginal.clique) - marginal.values).max() < 10 * sigma
    for column in range(4):
        assert np.isfinite(fitted.model.marginal((column,))).all()


def test_the_total_is_the_mean_of_what_marginals_say_by_their_variance():
    domain = grid([2, 3])
    marginals = [Marginal((0,), np.array([4.0, 6]), 1.0), Marginal((1,), np.array([5.0, 5, 6]), 2.0)]
    expected = (10 / 2 + 16 / 12) / (1 / 2 + 1 / 12)
    assert estimate(domain, marginals).model.total == pytest.approx(expected)
    assert estimate(domain, [Marginal((0,), np.array([-40.0, 6]), 1.0)]).model.total == 1
    assert estimate(domain, marginals, -3.0).model.total == 1
    assert estimate(domain, []).model.total == 1


def test_nothing_measured_is_uniform():
    model = estimate(grid([2, 1, 3]), [], 60.0).model
    assert (model.marginal((0, 2)) == 10).all()
    alone = estimate(grid([4]), [Marginal((0,), np.array([5.0, -5, 3, 2]), 1.0)], 6.0).model
    np.testing.assert_allclose(alone.marginal((0,)), [11 / 3, 0, 5 / 3, 2 / 3], atol=0.05)


def test_negative_counts_leave_no_rows():
    domain = grid([3])
    fitted = estimate(domain, [Marginal((0,), np.array([-50.0, 20, 80]), 1.0)], 100.0, tolerance=1e-6)
    np.testing.assert_allclose(fitted.model.marginal((0,)), [0, 20, 80], atol=0.05)


def test_counts_beyond_all_sense_still_give_a_model():
    for seed in range(90, 110):
        rng = simulation(seed)
        domain, size = grid(rng.integers(2, 7, 3).tolist()), 10.0 ** rng.integers(12, 18)
        marginals = []
        for clique in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2))[: rng.integers(1, 7)]:
            shape = domain.shape(clique)
            kinds = np.full(shape, size), rng.choice([-size, size], shape), rng.normal(0, size, shape)
            marginals.append(Marginal(clique, kinds[rng.integers(3)], float(rng.choice([1.0, 30.0]))))
        assert np.isfinite(estimate(domain, marginals, most_steps=60).model.marginal((0, 2))).all()


def test_estimates_are_a_function_of_the_marginals():
    domain = grid([3, 2, 4, 2])
    marginals = noisy(domain, RING, 5)
    first, second = (estimate(domain, order) for order in (marginals, marginals[::-1]))
    assert first.steps == second.steps
    for clique, potential in first.model.potentials.items():
        assert second.model.potentials[clique].tobytes() == potential.tobytes()


def test_a_hundred_columns():
    domain = grid([3] * 100)
    rng = simulation(0)
    marginals = [
        Marginal(
            (k, k + 1), rng.dirichlet(np.ones(9)).reshape(3, 3) * 1e4 + rng.normal(0, 100, (3, 3)), 100.0
        )
        for k in range(0, 99, 3)
    ]
    fitted = estimate(domain, [*marginals, Marginal((0,), np.full(3, 3e3), 10.0)])
    assert fitted.converged
    assert fitted.model.rows(10, rng).shape == (10, 100)


def test_too_few_steps_are_told():
    domain = grid([3, 2, 4, 2])
    fitted = estimate(domain, noisy(domain, RING, 5), most_steps=5)
    assert not fitted.converged
    assert fitted.gap > 0


@pytest.mark.parametrize(
    ("marginal", "message"),
    [
        (Marginal((0,), np.zeros(3), 1.0), "cell"),
        (Marginal((0,), np.array([1, math.nan]), 1.0), "finite"),
        (Marginal((0,), np.zeros(2), 0.0), "sigma"),
        (Marginal((0,), np.zeros(2), math.inf), "sigma"),
        (Marginal((1, 0), np.zeros((3, 2)), 1.0), "ascending"),
    ],
)
def test_marginals_that_make_no_sense_are_refused(marginal, message):
    with pytest.raises(InvalidParameter, match=message):
        estimate(grid([2, 3]), [marginal])


def test_what_cannot_be_is_refused():
    domain = grid([2, 3])
    with pytest.raises(InvalidParameter, match="no cell"):
        estimate(domain, [Marginal((0,), np.zeros(2), 1.0)], zeros={(0,): np.array([True, True])})
    with pytest.raises(InvalidParameter, match="no cell"):
        estimate(domain, [], zeros={(0,): np.array([True, True])})
    with pytest.raises(InvalidParameter, match="True or False"):
        estimate(domain, [], zeros={(0,): np.array([True])})
    with pytest.raises(InvalidParameter, match="too many cells"):
        estimate(domain, [Marginal((0, 1), np.zeros((2, 3)), 1.0)], most_cells=5)
    with pytest.raises(InvalidParameter, match="finite"):
        estimate(domain, [], math.nan)
