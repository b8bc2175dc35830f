"""Trees of sums and intervals for quantiles: exact sums, tight widths, and coverage whatever the data."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import Gaussian, Geometric, Laplace
from sfumato.plan.intervals import cdf
from sfumato.plan.intervals.cdf import Tree, quantile_intervals
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.intervals.noise import Noise
from sfumato.testing import seeded
from sfumato.testing.statistics import bernoulli_finding

TREES = (Tree(1), Tree(2), Tree(6), Tree(16), Tree(17), Tree(100, 4), Tree(257), Tree(1024), Tree(37, 2))
SCALE = 4
MECHANISMS = {
    "laplace": Laplace(1, SCALE),
    "geometric": Geometric(Fraction(1, SCALE), 1),
    "gaussian": Gaussian(sigma=SCALE, sensitivity=1),
}
NOISES = {law: Noise.of(mechanism) for law, mechanism in MECHANISMS.items()}


def released(law: str, exact: list[int], groups: int, seed: str) -> Floats:
    with seeded(seed):
        table = np.broadcast_to(np.array(exact, np.int64), (groups, len(exact)))
        return np.asarray(MECHANISMS[law].release(table), dtype=float)


def check(inside: np.ndarray, least: float, most: float = 1.0) -> None:
    """Coverage is between these, at alpha 1e-9."""
    count = int(np.count_nonzero(inside))
    bernoulli_finding(count, inside.size, least, most, "intervals that hold the quantile").require(1e-9)


# --- the tree -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_every_level_covers_each_cell_once(tree: Tree) -> None:
    generator = np.random.default_rng(1)
    weights = [int(x) << 40 for x in generator.integers(0, 2**40, tree.cells)]
    counts, start = tree.counts(weights), 0
    assert len(counts) == tree.nodes
    for size, span in zip(tree.sizes, tree.spans, strict=True):
        assert sum(counts[start : start + size]) == sum(weights)
        assert counts[start] == sum(weights[:span])
        start += size
    assert counts[-tree.cells :] == weights
    assert tree.sizes[0] <= tree.branching
    assert tree.branching ** (tree.levels - 1) < max(2, tree.cells) <= max(2, tree.branching**tree.levels)


@given(st.sampled_from(TREES), st.integers(0, 10**6), st.integers(1, 5))
def test_a_unit_moves_the_counts_by_levels_times_its_weight(tree: Tree, seed: int, weight: int) -> None:
    generator = np.random.default_rng(seed)
    weights = generator.integers(0, 9, tree.cells)
    moved = weights.copy()
    for _ in range(weight):
        moved[generator.integers(tree.cells)] += 1
    change = np.array(tree.counts(moved)) - np.array(tree.counts(weights))
    assert np.abs(change).sum() == tree.levels * weight
    assert np.square(change).sum() <= tree.levels * weight**2


def test_a_usual_grid_has_three_levels_of_like_branching() -> None:
    assert (Tree(1024).levels, Tree(1024).sizes) == (3, (9, 94, 1024))
    assert (Tree(4096).levels, Tree(4096).sizes) == (3, (16, 256, 4096))
    assert Tree(16).levels == 1


def test_unusable_trees_are_refused() -> None:
    for cells, branching in ((0, 16), (5, 1), (-3, 4)):
        with pytest.raises(InvalidParameter):
            Tree(cells, branching)
    for weights in ([1, 2], [1, 2, 3, 4], [1, 2, 0.5], np.ones(3), [1, 2, True]):
        with pytest.raises(InvalidValue):
            Tree(3).counts(weights)  # type: ignore[arg-type]


# --- forms and widths ---------------------------------------------------------------------------------

LEVELS = tuple(Fraction(q) for q in ("0", "1/10", "1/3", "1/2", "99/100", "1"))


@pytest.mark.parametrize("tree", TREES[1:], ids=repr)
@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_forms_are_unbiased(tree: Tree, level: Fraction) -> None:
    weights = np.random.default_rng(2).integers(0, 50, (4, tree.cells))
    nodes = np.array([tree.counts(row) for row in weights], dtype=float)
    upto = np.cumsum(weights, axis=1)
    truth = upto[:, :-1] - float(level) * upto[:, -1:]
    np.testing.assert_allclose(cdf._forms(tree, level).apply(tree, nodes), truth, atol=1e-7)


@pytest.mark.parametrize("tree", [Tree(17), Tree(60, 4), Tree(200), Tree(37, 2)], ids=repr)
@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_terms_are_the_coefficients_and_their_variance_is_near_the_least(tree: Tree, level: Fraction) -> None:
    forms = cdf._forms(tree, level)
    coefficients = forms.apply(tree, np.eye(tree.nodes))  # nodes × boundaries
    sizes, counts = forms.terms()
    squares = (np.square(sizes) * counts).sum(axis=0)
    np.testing.assert_allclose(np.square(coefficients).sum(axis=0), squares, atol=1e-9)
    plain = float(max(level, 1 - level)) ** 2 * tree.levels * tree.branching
    assert (squares <= plain).all()
    # Any multiple of (a node − its children) may be added: all of them together do little more than the path.
    starts = np.cumsum([0, *tree.sizes])
    zeros = []
    for depth in range(tree.levels - 1):
        for i in range(tree.sizes[depth]):
            row = np.zeros(tree.nodes)
            row[starts[depth] + i] = 1
            child = starts[depth + 1] + i * tree._fan
            row[child : min(child + tree._fan, starts[depth + 2])] = -1
            zeros.append(row)
    if zeros:
        basis = np.array(zeros).T
        best = coefficients - basis @ np.linalg.lstsq(basis, coefficients, rcond=None)[0]
        assert (np.square(best).sum(axis=0) <= squares + 1e-9).all()
        if tree._fan >= 4:  # narrower trees would gain from the nodes below the path too
            assert (squares <= 1.35 * np.square(best).sum(axis=0) + 1e-9).all()


def tail_by_convolution(scales: np.ndarray, width: float) -> float:
    """P(Z > width) by a fine lattice: slow, independent of the method under test."""
    step, reach = 0.01, 60.0
    x = np.arange(-reach, reach + step / 2, step)
    spectrum = np.ones(x.size * 2, complex)
    for a in scales:
        edges = np.concatenate([x - step / 2, [x[-1] + step / 2]])
        upper = np.where(edges < 0, np.exp(edges / a) / 2, 1 - np.exp(-edges / a) / 2)
        spectrum *= np.fft.fft(np.diff(upper), x.size * 2)
    law = np.real(np.fft.ifft(spectrum))
    shift = len(scales) * reach
    values = (np.arange(x.size * 2) * step - shift + reach * 2) % (x.size * 2 * step) - reach * 2
    return float(law[values > width].sum())


@pytest.mark.parametrize("risk", [0.4, 0.05, 1e-3])
@pytest.mark.parametrize(
    "scales",
    [[1.0] * 6, [0.5] * 30, [1.0] + [0.1] * 20, [1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1], [0.2] * 8 + [0.9] * 2],
    ids=len,
)
def test_widths_of_laplace_sums_are_quantiles(scales: list[float], risk: float) -> None:
    each, counts = np.unique(scales, return_counts=True)
    width = float(cdf._laplace_widths(each[:, None], counts[:, None].astype(float), risk)[0])
    found = tail_by_convolution(np.array(scales), width)
    assert found <= risk * 1.02  # the lattice is off by up to a step
    assert found >= risk * 0.9


def test_small_risks_and_few_noises_are_bounded() -> None:
    one = float(cdf._laplace_widths(np.array([[2.0]]), np.array([[1.0]]), 0.01)[0])
    assert one == pytest.approx(-2 * math.log(0.02), rel=1e-6)
    sizes, counts = np.array([[1.0], [0.5]]), np.array([[10.0], [20.0]])
    widths = [
        float(cdf._laplace_widths(sizes, counts, risk)[0]) for risk in (1e-3, 1e-8, 1.1e-9, 0.9e-9, 1e-15)
    ]
    assert widths == sorted(widths)
    assert widths[3] < 1.2 * widths[2]
    none = cdf._laplace_widths(np.zeros((2, 1)), np.ones((2, 1)), 0.1)
    assert none.tolist() == [0.0]


@pytest.mark.parametrize("law", MECHANISMS)
@pytest.mark.parametrize("level", ["0", "1/2", "99/100"])
def test_each_boundary_is_missed_as_often_as_told(law: str, level: str) -> None:
    tree, risk, groups = Tree(60), 0.05, 4000
    width = cdf._widths(tree, Fraction(level), NOISES[law], risk)
    noise = cdf._forms(tree, Fraction(level)).apply(tree, released(law, [0] * tree.nodes, groups, "boundary"))
    for boundary in range(0, tree.cells - 1, 6):
        above = noise[:, boundary] > width[boundary]
        check(~above, 1 - risk, 1 - risk / (2.6 if law == "geometric" else 1.25))
        check(noise[:, boundary] >= -width[boundary], 1 - risk)
    understated = Noise(NOISES[law].law, SCALE * 0.75, NOISES[law].slack)
    narrow = cdf._widths(tree, Fraction(level), understated, risk)
    with pytest.raises(AssertionError):
        check(noise <= narrow, 1 - risk)


@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0, 3.0])
def test_geometric_widths_hold_exactly_for_one_and_two_nodes(scale: float) -> None:
    # Lattices are where a continuous stand-in would be too narrow: P(X > w) jumps at whole numbers.
    support = np.arange(-400, 401)
    one = np.exp(-np.abs(support) / scale) * math.tanh(0.5 / scale)
    two = np.convolve(one, one)
    for risk in np.linspace(0.01, 0.45, 23).tolist():
        size = np.ones((1, 1))
        width = cdf._geometric_widths(size, size, scale, risk)[0]
        assert one[support > width].sum() <= risk
        width = cdf._geometric_widths(size, 2 * size, scale, risk)[0]
        assert two[np.arange(-800, 801) > width].sum() <= risk


# --- intervals ----------------------------------------------------------------------------------------

CELLS = 120


def histograms() -> dict[str, list[int]]:
    one, ends, pair = [0] * CELLS, [0] * CELLS, [0] * CELLS
    one[71] = 500
    ends[0] = ends[-1] = 300
    pair[20], pair[100], pair[60] = 400, 400, 1
    single = [0] * CELLS
    single[33] = 1
    thin = [int(x) for x in np.random.default_rng(3).poisson(0.4, CELLS)]
    dense = [int(x) for x in np.random.default_rng(4).poisson(40, CELLS)]
    return {"one": one, "ends": ends, "pair": pair, "single": single, "thin": thin, "dense": dense}


HISTOGRAMS = {**histograms(), "empty": [0] * CELLS}


def quantile_cells(weights: list[int], level: Fraction) -> list[int]:
    """All cells that are quantiles, by the definition."""
    n, below, found = sum(weights), 0, []
    for j, weight in enumerate(weights):
        if below <= level * n <= below + weight:
            found.append(j)
        below += weight
    return found


@pytest.mark.parametrize("law", MECHANISMS)
@pytest.mark.parametrize("data", HISTOGRAMS)
def test_every_quantile_is_covered_whatever_the_data(law: str, data: str) -> None:
    tree, risk = Tree(CELLS), 0.1
    weights = HISTOGRAMS[data]
    noisy = released(law, tree.counts(weights), 1500, f"cover {data}")
    for level in (Fraction(q) for q in ("0", "1/20", "1/4", "1/2", "9/10", "1")):
        low, high = quantile_intervals(tree, noisy, NOISES[law], level, risk)
        assert ((low >= 0) & (low <= high) & (high < CELLS)).all()
        cells = quantile_cells(weights, level)
        for cell in {cells[0], cells[len(cells) // 2], cells[-1]}:
            check((low <= cell) & (cell <= high), 1 - risk)


def test_understated_noise_is_found_out() -> None:
    # The quantile lies exactly between two cells: each of them is at the edge of what can be ruled out.
    tree, risk = Tree(CELLS), 0.1
    weights = [20] * CELLS
    noisy = released("laplace", tree.counts(weights), 4000, "understated")
    level = Fraction(37, CELLS)  # before cell 37 lies exactly this share
    low, high = quantile_intervals(tree, noisy, NOISES["laplace"], level, risk)
    check((low <= 37) & (high >= 37), 1 - risk)
    check((low <= 36) & (high >= 36), 1 - risk)
    halved = Noise("laplace", SCALE / 2, NOISES["laplace"].slack)
    low, high = quantile_intervals(tree, noisy, halved, level, risk)
    with pytest.raises(AssertionError):
        check((low <= 37) & (high >= 37), 1 - risk)


def test_intervals_shrink_to_the_quantile_as_noise_is_left_behind() -> None:
    tree = Tree(CELLS)
    weights = [10_000] * CELLS
    noisy = released("laplace", tree.counts(weights), 200, "narrow")
    for level in ("1/4", "1/2", "9/10"):
        low, high = quantile_intervals(tree, noisy, NOISES["laplace"], level, 0.1)
        assert (high - low <= 1).all()
    low, high = quantile_intervals(tree, noisy, NOISES["laplace"], 0, 0.1)
    assert (low == 0).all()
    assert (high == 0).all()
    low, high = quantile_intervals(tree, noisy, NOISES["laplace"], 1, 0.1)
    assert (low == CELLS - 1).all()
    assert (high == CELLS - 1).all()


def test_less_risk_is_never_narrower() -> None:
    tree = Tree(CELLS)
    noisy = released("laplace", tree.counts(HISTOGRAMS["dense"]), 100, "risk")
    boxes = [
        quantile_intervals(tree, noisy, NOISES["laplace"], "1/2", risk) for risk in (0.5, 0.1, 1e-3, 1e-12)
    ]
    for (low, high), (lower, higher) in pairwise(boxes):
        assert (lower <= low).all()
        assert (high <= higher).all()


@pytest.mark.parametrize("cells", [1, 2, 5])
def test_small_grids_have_intervals_too(cells: int) -> None:
    tree = Tree(cells)
    noisy = released("laplace", tree.counts([50] * cells), 400, "small")
    low, high = quantile_intervals(tree, noisy, NOISES["laplace"], "1/2", 0.1)
    check((low <= (cells - 1) // 2) & ((cells - 1) // 2 <= high), 0.9)
    assert quantile_intervals(tree, noisy[:0], NOISES["laplace"], "1/2", 0.1)[0].shape == (0,)


def test_unusable_questions_are_refused() -> None:
    tree, noise = Tree(4), NOISES["laplace"]
    for level, risk in ((1.5, 0.1), (-1, 0.1), (0.5, 0.0), (0.5, math.nan)):
        with pytest.raises(InvalidParameter):
            quantile_intervals(tree, np.zeros((1, 4)), noise, level, risk)
    for nodes in (np.zeros(4), np.zeros((1, 5)), np.full((1, 4), math.nan)):
        with pytest.raises(InvalidValue):
            quantile_intervals(tree, nodes, noise, 0.5, 0.1)


# --- the whole curve ----------------------------------------------------------------------------------


@pytest.mark.parametrize("data", HISTOGRAMS)
def test_the_curve_is_monotone_and_ends_at_one(data: str) -> None:
    tree = Tree(CELLS)
    curves = tree.cdf(released("laplace", tree.counts(HISTOGRAMS[data]), 50, "curve"))
    assert curves.shape == (50, CELLS)
    assert (np.diff(curves, axis=1) >= 0).all()
    assert ((curves >= 0) & (curves <= 1)).all()
    assert (curves[:, -1] == 1).all()


def test_the_curve_is_exact_without_noise_and_close_with_it() -> None:
    tree, weights = Tree(CELLS), HISTOGRAMS["dense"]
    truth = np.cumsum(weights) / sum(weights)
    exact = np.array([tree.counts(weights)], dtype=float)
    np.testing.assert_allclose(tree.cdf(exact)[0], truth, atol=1e-12)
    noisy = released("laplace", tree.counts(weights), 50, "close")
    assert np.abs(tree.cdf(noisy) - truth).max() < 0.02
    # Regression never takes a curve further from a monotone truth.
    raw = np.column_stack(
        [cdf._forms(tree, Fraction(0)).apply(tree, noisy), noisy[:, : tree.sizes[0]].sum(axis=1)]
    )
    before = np.square(raw - np.cumsum(weights)).sum(axis=1)
    after = [np.square(optimize.isotonic_regression(row).x - np.cumsum(weights)).sum() for row in raw]
    assert (np.array(after) <= before + 1e-9).all()
