"""Counts are exact, scores stay within their claim for any rows and any public counts, and bugs are seen."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from unittest.mock import patch

import numpy as np
import pytest

from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.loss import GaussianLoss
from sfumato.synth._model.domain import Domain
from sfumato.synth._private import scores as module
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.scores import Candidates, Scores, if_independent, likely_error, likely_misfit
from sfumato.testing.fits import check_answers
from sfumato.testing.stream import seeded

F = Fraction


def domain_of(*sizes):
    return Domain(tuple(f"x{at}" for at in range(len(sizes))), sizes)


def rows_of(draw, domain, count):
    return [draw.integers(0, size, count) for size in domain.sizes]


@pytest.mark.parametrize("sizes", [(2, 3, 4), (1, 255, 256), (257, 300, 1), (70_000, 2, 1)])
def test_counts_are_those_of_a_loop(sizes):
    domain, draw = domain_of(*sizes), np.random.default_rng(sum(sizes))
    columns = rows_of(draw, domain, 50)
    for column, size in zip(columns, sizes, strict=True):
        column[0], column[1] = size - 1, 0
    cells = Cells(domain, columns, max_rows=3)
    for clique in [(), (0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        if domain.cells(clique) > 10**6:
            continue
        slow = np.zeros(domain.shape(clique), np.int64)
        for row in zip(*columns, strict=True):
            slow[tuple(row[at] for at in clique)] += 1
        total = cells.counts(clique)
        assert total.values.tolist() == slow.ravel().tolist()
        assert (total.sensitivity, total.step) == (3, 1)


def test_no_rows_and_numbers_beyond_the_cells_are_counted_like_any_others():
    domain = domain_of(2, 3)
    assert Cells(domain, []).counts((0, 1)).values.tolist() == [0] * 6
    assert Cells(domain, [np.zeros(0, np.int64)] * 2).counts(()).values.tolist() == [0]
    odd = Cells(domain, [np.array([-5, 9]), np.array([300, 1])])
    assert odd.counts((0, 1)).values.tolist() == [0, 0, 1, 0, 1, 0]
    with pytest.raises(InvalidParameter, match="each of the domain's columns"):
        Cells(domain, [np.zeros(3)])


def slow_scores(domain, columns, cliques, expected, weights, allowances):
    found = []
    for clique, counts, weight, spared in zip(cliques, expected, weights, allowances, strict=True):
        cells = list(product(*[range(domain.sizes[at]) for at in clique]))
        rows = [tuple(int(columns[at][row]) for at in clique) for row in range(len(columns[0]))]
        misfit = sum(abs(rows.count(cell) - counts[cell]) for cell in cells)
        found.append(weight * (misfit - spared))
    return found


def test_scores_are_the_formula_in_parts_of_a_row():
    domain, draw = domain_of(2, 3, 4), np.random.default_rng(1)
    columns, cliques = rows_of(draw, domain, 30), list(combinations(range(3), 2))
    expected = [draw.uniform(-1, 5, domain.shape(clique)) for clique in cliques]
    weights, allowances = [1.0, 0.5, 2.0], [3.0, 0.0, 1.5]
    scores = Candidates(Cells(domain, columns), cliques).scores(
        range(3), expected, weights=weights, allowances=allowances
    )
    one_row = float(scores.sensitivity) / max(weights)
    slow = slow_scores(domain, columns, cliques, expected, weights, allowances)
    np.testing.assert_allclose(np.array(scores.values, float) / one_row, slow, atol=0.05)


def any_counts(draw, shape):
    """Public counts as noise may leave them: of no size in particular."""
    kinds = (
        lambda: draw.uniform(0, 3, shape),
        lambda: draw.choice([-1e30, 1e30, math.nan, math.inf, -math.inf, 0.3], shape),
        lambda: draw.choice([-1.0, 1.0], shape) * 10 ** draw.uniform(-9, 19, shape),
        lambda: np.full(shape, 0.5 + 2**-12),
    )
    return kinds[draw.integers(4)]()


def moves(seed):
    """The furthest that a score moves between random neighbours, and what is claimed."""
    draw = np.random.default_rng(seed)
    domain = domain_of(*draw.integers(1, 5, 3))
    cliques = [(0,), (1, 2), (0, 2), (0, 1, 2)]
    most = int(draw.integers(1, 4))
    fewer = rows_of(draw, domain, int(draw.integers(0, 6)))
    unit = [np.full(most, cell[0]) if draw.integers(2) else cell for cell in rows_of(draw, domain, most)]
    more = [np.concatenate(pair) for pair in zip(fewer, unit, strict=True)]
    expected = [any_counts(draw, domain.shape(clique)) for clique in cliques]
    weights = draw.choice([0.1, 1.0, 7.3], 4).tolist()
    allowances = draw.choice([0.0, 2.5, 1e300], 4).tolist()
    left, right = (
        Candidates(Cells(domain, columns, max_rows=most), cliques).scores(
            range(4), expected, weights=weights, allowances=allowances
        )
        for columns in (fewer, more)
    )
    assert left.sensitivity == right.sensitivity
    furthest = max(abs(a - b) for a, b in zip(left.values, right.values, strict=True))
    return furthest, left.sensitivity


def test_no_unit_moves_a_score_by_more_than_is_claimed_and_some_move_it_as_far():
    found = [moves(seed) for seed in range(60)]
    assert all(moved <= claimed for moved, claimed in found)
    assert any(moved == claimed for moved, claimed in found)


def test_weights_are_checked_and_memory_is_said_beforehand():
    domain = domain_of(2, 3)
    candidates = Candidates(Cells(domain, []), [(0, 1)])
    for weights in ([0.0], [-1.0], [math.inf], [math.nan]):
        with pytest.raises(InvalidParameter, match="Weights"):
            candidates.scores([0], [np.zeros(6)], weights=weights)
    assert Candidates.memory(domain, [(0, 1), (0,)]) == 32
    assert likely_misfit(2.0, 100) == pytest.approx(159.577, rel=1e-5)


def test_if_columns_had_nothing_to_do_with_each_other():
    ones = [np.array([10.0, 30.0]), np.array([20.0, 10.0, 10.0])]
    pair, one, none = if_independent(ones, 40.0, [(0, 1), (1,), ()])
    assert pair.tolist() == [[5.0, 2.5, 2.5], [15.0, 7.5, 7.5]]
    assert (one.tolist(), none.tolist()) == ([20.0, 10.0, 10.0], 40.0)


def strongest_pair(columns, *, sizes=(2, 3, 3), max_rows=1, exchange=False, rows=None, ones="1/2"):
    """A small fit: all columns, then the pair that is furthest from independence, then its counts."""

    def run(meter):
        domain = domain_of(*sizes)
        cells = Cells(domain, columns, max_rows=max_rows, exchange=exchange)
        counts = [meter.noisy(cells.counts((at,)), F(ones) / len(sizes)) for at in range(len(sizes))]
        total = float(np.mean([one.sum() for one in counts])) if rows is None else rows
        pairs = list(combinations(range(len(sizes)), 2))
        scores = Candidates(cells, pairs).scores(range(len(pairs)), if_independent(counts, total, pairs))
        place = meter.chosen(scores.values, scores.sensitivity, "1/4")
        return {"pair": np.array(place), "counts": meter.noisy(cells.counts(pairs[place]), "1/4")}

    return run


def neighbours(seed, **given):
    draw = np.random.default_rng(seed)
    domain, most = domain_of(2, 3, 3), int(draw.integers(1, 3))
    exchange = bool(draw.integers(2))
    kept = rows_of(draw, domain, int(draw.integers(0, 9)))

    def with_unit():
        return [np.concatenate(pair) for pair in zip(kept, rows_of(draw, domain, most), strict=True)]

    tables = [with_unit() if exchange else kept, with_unit()]
    true = given.pop("true_total", False)
    runs = [
        strongest_pair(
            table, max_rows=most, exchange=exchange, rows=float(len(table[0])) if true else None, **given
        )
        for table in tables
    ]
    return *runs, exchange


def check(*seeds, **given):
    for seed in seeds:
        check_one(seed, **given)


def check_one(seed, **given):
    mine, theirs, exchange = neighbours(seed, **given)
    draw = np.random.default_rng(seed)
    forge = (None, lambda total, _: any_counts(draw, total.values.shape))[seed % 2]
    pick = (None, lambda size: int(draw.integers(size)))[seed // 2 % 2]
    with seeded(str(seed)), np.errstate(all="ignore"):
        check_answers(mine, theirs, GaussianLoss(F(1, 2)), exchange=exchange, forge=forge, pick=pick)


def test_a_fit_that_chooses_keeps_its_claim():
    check(*range(12))


def half(self, *arguments, **given):
    values, sensitivity = HONEST(self, *arguments, **given)
    return Scores(values, sensitivity / 2)


HONEST = Candidates.scores


def test_half_the_sensitivity_is_seen():
    with patch.object(module.Candidates, "scores", half), pytest.raises(AssertionError, match="and claims"):
        check(*range(12))


def test_the_true_number_of_rows_is_seen():
    with pytest.raises(AssertionError):
        check(0, 4, 8, true_total=True)


def test_columns_that_are_measured_beside_a_whole_price_are_seen():
    with pytest.raises(BudgetExceeded):
        check(0, ones="3/5")


@pytest.mark.parametrize("cells", [1, 2, 40, 3000, 20_000])
@pytest.mark.parametrize("sigma", [0.0, 1.0, 50.0, 1e9])
def test_what_is_left_of_noise_is_least_where_cells_are_empty(cells, sigma):
    """As an average over noise of its own says, of counts held to be at least 0 with the same sum."""
    rng = np.random.default_rng(cells)
    for counts in (np.full(cells, 1e4), rng.gamma(0.02, 5e3, cells), np.zeros(cells)):
        found, raw = likely_error(counts, sigma), likely_misfit(sigma, cells)
        assert 0 <= found <= min(2.5 * raw, 2 * counts.sum()) + 1e-6
        slow = np.mean([_slow_error(counts, sigma * rng.standard_normal(cells)) for _ in range(40)])
        assert found == pytest.approx(slow, rel=0.35 if cells > 100 else 5, abs=1e-6 + raw * (cells < 100))
    if cells > 100 and sigma == 50:
        assert likely_error(np.full(cells, 1e4), sigma) > 0.8 * raw
        assert likely_error(np.where(np.arange(cells) < 5, 1e4, 0.1), sigma) < 0.5 * raw


def _slow_error(counts, noise):
    """The nearest counts by halving what is taken off each."""
    low, high = -1e12, 1e12
    for _ in range(200):
        middle = (low + high) / 2
        rest = np.maximum(counts + noise - middle, 0).sum()
        low, high = (middle, high) if rest > counts.sum() else (low, middle)
    return np.abs(np.maximum(counts + noise - low, 0) - counts).sum()
