"""Fixed marginals in closed form: exact, within their claim, as good as linear ones get; bugs are seen."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import chi2

from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.loss import GaussianLoss
from sfumato.synth._model.contrasts import STEP, contrasts, parts_of, scales, share_of_a_row, tables
from sfumato.synth._model.domain import Domain
from sfumato.synth._private import residuals as private
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.residuals import residuals
from sfumato.synth.methods import residual as module
from sfumato.synth.methods.residual import Parts, Plan, learn, measured, planned
from sfumato.testing.fits import check_answers
from sfumato.testing.stream import seeded

F = Fraction
PAID = GaussianLoss(F(1, 2))


def domain_of(*sizes):
    return Domain(tuple(f"x{at}" for at in range(len(sizes))), sizes)


def rows_of(draw, domain, count):
    return [draw.integers(0, size, count) for size in domain.sizes]


def any_wanted(draw, domain):
    cliques = [c for k in range(4) for c in combinations(range(len(domain)), k)]
    some = draw.choice(len(cliques), int(draw.integers(1, 4)), replace=False)
    return {cliques[at]: float(10 ** draw.uniform(-1, 1)) for at in some}


def helmert(size):
    """The orthonormal rows that contrasts are multiples of."""
    rows = np.zeros((size - 1, size))
    for k in range(1, size):
        rows[k - 1, :k], rows[k - 1, k] = 1, -k
        rows[k - 1] /= math.sqrt(k * (k + 1))
    return rows


@pytest.mark.parametrize("shape", [(), (2,), (7,), (3, 4), (2, 5, 3)])
def test_contrasts_are_coordinates_and_lead_back_to_the_table(shape):
    counts = np.random.default_rng(len(shape)).integers(0, 50, shape)
    dense, norms = counts.astype(float), np.ones(())
    for axis, size in enumerate(shape):
        dense = np.moveaxis(np.tensordot(helmert(size), dense, (1, axis)), 0, axis)
        rank = np.arange(1, size)
        norms = np.multiply.outer(norms, np.sqrt(rank * (rank + 1)))
    found = contrasts(counts)
    assert found.dtype == np.int64
    np.testing.assert_allclose(found / norms, dense, atol=1e-9)
    centred = counts.astype(float)
    for axis in range(len(shape)):
        centred = centred - centred.mean(axis, keepdims=True)
    np.testing.assert_allclose(tables(found.astype(float)), centred, atol=1e-9)


@pytest.mark.parametrize("shape", [(), (2,), (300,), (16, 16), (9, 2, 40)])
@pytest.mark.parametrize("reach", [1.0, 0.2571])
def test_scales_are_never_above_and_hardly_below(shape, reach):
    whole = scales(shape, reach)
    squares = np.ones((), object)
    for size in shape:
        squares = np.multiply.outer(squares, np.array([k * (k + 1) for k in range(1, size)], object))
    for scale, square in zip(whole.ravel().tolist(), np.ravel(squares).tolist(), strict=True):
        assert scale**2 * square <= (F(reach) / STEP) ** 2
        assert math.sqrt(square) * scale * STEP >= reach * (1 - 1e-4)


def test_a_row_is_as_long_in_every_cell():
    for shape in [(2,), (5,), (2, 3), (4, 2, 3)]:
        for cell in np.ndindex(shape):
            row = np.zeros(shape, np.int64)
            row[cell] = 1
            squares = np.ones((), object)
            for size in shape:
                squares = np.multiply.outer(squares, np.array([F(k * (k + 1)) for k in range(1, size)]))
            assert sum(np.ravel(contrasts(row).astype(object) ** 2 / squares)) == share_of_a_row(shape)


def neighbours(seed):
    """Rows with and without one more unit, or with another one where units are exchanged."""
    draw = np.random.default_rng(seed)
    domain = domain_of(*draw.integers(1, 6, 4))
    most, exchange = int(draw.integers(1, 4)), bool(draw.integers(2))
    kept = rows_of(draw, domain, int(draw.integers(0, 9)))

    def with_unit():
        one = [np.full(most, column[0]) for column in rows_of(draw, domain, 1)]
        unit = one if draw.integers(2) else rows_of(draw, domain, most)
        return [np.concatenate(pair) for pair in zip(kept, unit, strict=True)]

    pair = [
        Cells(domain, table, max_rows=most, exchange=exchange)
        for table in (with_unit() if exchange else kept, with_unit())
    ]
    return draw, domain, pair, exchange


def moves(seed):
    draw, domain, (left, right), exchange = neighbours(2 * seed)
    cliques = sorted({part for clique in any_wanted(draw, domain) for part in parts_of(domain, clique)})
    reaches = draw.uniform(0.25, 1, len(cliques)).tolist()
    mine, theirs = (residuals(cells, cliques, reaches) for cells in (left, right))
    assert (mine.sensitivity, mine.step) == (theirs.sensitivity, theirs.step)
    moved = sum((int(a) - int(b)) ** 2 for a, b in zip(mine.values, theirs.values, strict=True))
    return math.sqrt(moved) / float(mine.sensitivity * (2 if exchange else 1))


def test_no_unit_moves_residuals_by_more_than_is_claimed_and_some_move_them_as_far():
    found = [moves(seed) for seed in range(60)]
    assert max(found) <= 1
    assert max(found) > 1 - 1e-6


def test_many_rows_are_held_by_integers_of_any_size():
    domain, draw = domain_of(3, 4), np.random.default_rng(0)
    cells = Cells(domain, rows_of(draw, domain, 30))
    usual = residuals(cells, [(0,), (0, 1)], [1.0, 0.3])
    with patch.object(private, "_ROWS", 1):
        large = residuals(cells, [(0,), (0, 1)], [1.0, 0.3])
        assert Meter.alone(PAID).noisy(large, 1).shape == (8,)
    assert (usual.values.dtype, large.values.dtype) == (np.int64, object)
    assert usual.values.tolist() == large.values.tolist()


def workload(domain, wanted):
    """All wanted counts as rows over all cells of the table, each times the root of its weight."""
    cells = list(np.ndindex(domain.sizes))
    rows = []
    for clique, weight in wanted.items():
        for cell in np.ndindex(domain.shape(clique)):
            row = [tuple(one[at] for at in clique) == cell for one in cells]
            rows.append(math.sqrt(weight) * np.array(row))
    return np.array(rows, float)


@pytest.mark.parametrize("seed", range(6))
def test_the_sum_of_variances_is_the_least_of_all_linear_measurements(seed):
    draw = np.random.default_rng(seed)
    domain = domain_of(*draw.integers(1, 5, 4))
    wanted = any_wanted(draw, domain)
    plan = planned(domain, wanted)
    error = sum(weight * domain.cells(c) * plan.variance(c) for c, weight in wanted.items())
    bound = np.linalg.norm(workload(domain, wanted), "nuc") ** 2 / math.prod(domain.sizes)
    assert error == pytest.approx(bound, rel=1e-7)  # the singular value bound of Li and Miklau
    assert sum(plan.shares.values()) <= 1


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_variance_is_least(seed):
    draw = np.random.default_rng(seed)
    domain = domain_of(*draw.integers(2, 9, 4))
    wanted = any_wanted(draw, domain)
    plan = planned(domain, wanted, "max")

    def largest(shares):
        return max(weight * Plan(domain, wanted, shares).variance(c) for c, weight in wanted.items())

    least = largest(plan.shares)
    assert least <= largest(planned(domain, wanted).shares) * 1.001
    for _ in range(40):
        tilted = {part: share * F(2 ** draw.normal(0, 0.1)) for part, share in plan.shares.items()}
        whole = sum(tilted.values())
        assert largest({part: share / whole for part, share in tilted.items()}) >= least * (1 - 0.0011)


def test_without_noise_all_marginals_are_the_counts():
    domain, draw = domain_of(3, 1, 4, 2), np.random.default_rng(5)
    cells = Cells(domain, rows_of(draw, domain, 40))
    wanted = {(0, 1, 2): 1.0, (2, 3): 2.0, (1,): 1.0, (): 1.0}
    meter = Meter(F(10) ** 14, lambda _: None)
    for marginal in learn(cells, meter, wanted):
        exact = cells.counts(marginal.clique).values.reshape(domain.shape(marginal.clique))
        np.testing.assert_allclose(marginal.values, exact, atol=1e-4)
        assert marginal.sigma < 1e-5
    parts = measured(cells, meter, planned(domain, wanted))
    np.testing.assert_allclose(parts.marginal((0, 2)).values.sum(1), parts.marginal((0,)).values)


def check_noise(*, max_rows=2, exchange=False):
    """The error of every part and of every marginal against what was claimed, at an alarm rate of 1e-9."""
    domain, draw = domain_of(3, 4, 5), np.random.default_rng(6)
    cells = Cells(domain, rows_of(draw, domain, 40), max_rows=max_rows, exchange=exchange)
    wanted = dict.fromkeys(combinations(range(3), 2), 1.0)
    plan = planned(domain, wanted)
    squares, count, cell = 0.0, 0, []
    with seeded("residual noise"):
        for _ in range(30):
            parts = measured(cells, Meter.alone(PAID, exchange=exchange), plan)
            for part, values in parts.values.items():
                exact = contrasts(cells.counts(part).values.reshape(domain.shape(part)))
                off = (values - exact) * scales(domain.shape(part), 1.0) * float(STEP)
                squares += float(np.sum(off**2)) / parts.sigmas[part] ** 2
                count += off.size
            marginal = parts.marginal((1, 2))
            cell.append(marginal.values.ravel() - cells.counts((1, 2)).values)
    assert chi2.ppf(5e-10, count) <= squares <= chi2.isf(5e-10, count)
    claimed = plan.variance((1, 2)) * (max_rows * (2 if exchange else 1)) ** 2  # 2·rho is 1
    assert marginal.sigma**2 == pytest.approx(claimed, rel=1e-6)
    assert np.mean(np.square(cell)) == pytest.approx(claimed, rel=0.35)


def test_the_noise_is_what_the_plan_says():
    check_noise()
    check_noise(max_rows=1, exchange=True)


def released(cells, wanted, objective="sum"):
    return lambda meter: {
        str(one.clique): one.values for one in learn(cells, meter, wanted, objective=objective)
    }


def check(*seeds):
    for seed in seeds:
        draw, domain, (left, right), exchange = neighbours(seed)
        wanted = any_wanted(draw, domain)
        objective = ("sum", "max")[seed % 2]
        forge = (None, lambda total, _: np.full(total.values.shape, 1e30))[seed // 2 % 2]
        mine, theirs = (released(cells, wanted, objective) for cells in (left, right))
        check_answers(mine, theirs, PAID, exchange=exchange, forge=forge)


def test_fits_keep_their_claim_on_neighbours():
    check(*range(16))


def test_a_row_that_is_taken_for_shorter_is_seen():
    short = patch.object(private, "share_of_a_row", lambda shape: share_of_a_row(shape) / 4)
    with short, pytest.raises(AssertionError, match="and claims"):
        check(*range(8))


def test_reaches_that_are_claimed_and_not_kept_are_seen():
    kept = patch.object(private, "scales", lambda shape, _: scales(shape, 1.0))
    with kept, pytest.raises(AssertionError, match="and claims"):
        check(*range(8))


def test_the_true_number_of_rows_is_seen():
    honest = module.measured

    def exact_total(cells, meter, plan):
        parts = honest(cells, meter, plan)
        return Parts(parts.domain, {**parts.values, (): cells.counts(()).values[0]}, parts.sigmas)

    with (
        patch.object(module, "measured", exact_total),
        pytest.raises(AssertionError, match="beyond the noisy"),
    ):
        check(*range(8))


def test_single_columns_that_are_measured_but_left_out_of_the_price_are_seen():
    honest = module.planned

    def but_single_columns(domain, wanted, objective):
        plan = honest(domain, wanted, objective)
        counted = sum(share for part, share in plan.shares.items() if len(part) != 1)
        shares = {
            part: share if len(part) == 1 else share / counted * F(999, 1000)
            for part, share in plan.shares.items()
        }
        return Plan(domain, wanted, shares)

    spent = patch.object(module, "planned", but_single_columns)
    with (
        spent,
        pytest.raises((BudgetExceeded, InvalidParameter), match=r"share is at most 1|above the budget"),
    ):
        check(*range(8))


def test_what_cannot_be_planned_is_refused_before_anything_is_paid():
    domain = domain_of(2**14, 2**13, 3)
    for wanted in ({}, {(2,): 0.0}, {(2,): math.nan}, {(2,): math.inf}):
        with pytest.raises(InvalidParameter, match="weight above 0"):
            planned(domain, wanted)
    with pytest.raises(InvalidParameter, match="fewer columns"):
        planned(domain, {(0, 1): 1.0})
