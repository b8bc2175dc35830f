"""What follows from noisy marginals on levels: the best linear estimate, the nearest table, whole counts."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.synth._levels import counting, whole
from sfumato.synth._levels.alike import alike
from sfumato.synth._levels.counting import counted
from sfumato.synth._levels.grid import Grid
from sfumato.synth._levels.linear import best, entry_variance, upward
from sfumato.synth._levels.measuring import design_of
from sfumato.synth._levels.nearest import Group, nearest
from sfumato.synth._levels.totals import public_totals
from sfumato.synth._levels.tree import tree_of


def made_tree(draw, depth, most):
    """A tree whose places have from one to so many within them."""
    paths = [()]
    for level in range(depth):
        paths = [
            (*path, f"{level}.{'.'.join(map(str, path))}.{n}")
            for path in paths
            for n in range(draw.integers(1, most + 1))
        ]
    return tree_of(
        [f"level{at}" for at in range(depth)],
        {f"level{at}": [path[at] for path in paths] for at in range(depth)},
    )


def noisy_levels(draw, tree, grid, sigma=3.0, size=8.0, skip=()):
    """True tables of all levels, and noisy marginals with different variances; some are left out."""
    truth = [draw.poisson(size * draw.random((tree.sizes(len(tree) - 1), *grid.sizes)) ** 3).astype(np.int64)]
    for level in reversed(range(len(tree) - 1)):
        truth.insert(0, tree.added_up(level, truth[0]))
    noisy = []
    for level, table in enumerate(truth):
        found = {}
        for part in grid.parts:
            if (level, part) in skip:
                continue
            spread = sigma * float(draw.uniform(0.5, 2))
            exact = grid.marginal(table, part)
            found[part] = (exact + spread * draw.standard_normal(exact.shape), spread**2)
        noisy.append(found)
    return truth, noisy


def test_places_are_one_tree_however_they_are_written():
    rows = {"state": ["a", "a", "b"], "county": ["x", "y", "x"], "tract": [1, 2, 3]}
    tree = tree_of(["state", "county", "tract"], rows)
    assert tree.names == ("all", "state", "county", "tract")
    assert tree.paths[2] == (("a", "x"), ("a", "y"), ("b", "x"))  # two counties of one name are two places
    assert [*tree.parents[3]] == [0, 1, 2]
    climbed = tree_of(["state", "tract"], {"tract": {1: "a", 2: "a", 3: "b"}})
    assert climbed.paths == tree_of(["state", "tract"], {"state": ["a", "a", "b"], "tract": [1, 2, 3]}).paths
    mixed = tree_of(["state", "tract"], {"state": ["b", "a", "b"], "tract": [1, 2, 3]})
    assert [path[-1] for path in mixed.paths[2]] == [1, 3, 2]  # in the order of their states
    assert tree_of(["tract"], [3, 1]).paths[1] == ((3,), (1,))


@pytest.mark.parametrize(
    ("names", "places", "said"),
    [
        (["all"], ["x"], "above all"),
        (["state", "state"], {"state": ["a"]}, "different names"),
        ([], {}, "from the top"),
        (["state", "tract"], {"state": ["a", "b"], "tract": [1, 1]}, "listed once"),
        (["state", "tract"], {"state": ["a"], "tract": [1, 2]}, "one length"),
        (["state", "tract"], {"tract": [1]}, "no column 'state'"),
        (["state", "tract"], {"state": [None], "tract": [1]}, "needs a value"),
        (["state", "county", "tract"], {"tract": {1: "c"}, "county": {}}, "where 'c' lies"),
        (["tract"], [], "there are none"),
        (["state", "tract"], 7, "a row for each"),
    ],
)
def test_places_that_are_no_tree_are_refused(names, places, said):
    with pytest.raises(InvalidParameter, match=said):
        tree_of(names, places)


@pytest.mark.parametrize("seed", range(4))
def test_the_closed_form_is_generalised_least_squares(seed):
    """Against the normal equations of all marginals at once, on uneven trees, with public totals."""
    draw = simulation(seed)
    tree, grid = made_tree(draw, 2, 3), Grid(("a", "b"), (3, 2))
    last = tree.sizes(2)
    _, noisy = noisy_levels(draw, tree, grid, skip={(1, (0,)), (0, (0, 1))})
    totals = [np.full(tree.sizes(level), np.nan) for level in range(3)]
    totals[1][0] = 40.0
    inside = np.flatnonzero(tree.parents[2] == 0)
    rows, wanted, weights = [], [], []
    eye = np.eye(last * grid.cells).reshape(last, *grid.sizes, -1)
    for level, found in enumerate(noisy):
        tables = (
            eye
            if level == 2
            else np.stack([eye[_within(tree, level, at)].sum(axis=0) for at in range(tree.sizes(level))])
        )
        for part, (values, variance) in found.items():
            axes = tuple(1 + at for at in range(2) if at not in part)
            each = tables.sum(axis=axes).reshape(-1, last * grid.cells)
            rows.append(each)
            wanted.append(values.reshape(-1))
            weights.append(np.full(len(each), 1 / variance))
    rows.append(eye[inside].sum(axis=(0, 1, 2))[None])
    wanted.append([40.0])
    weights.append([1e9])
    matrix, values, weight = np.concatenate(rows), np.concatenate(wanted), np.concatenate(weights)
    normal = matrix.T @ (weight[:, None] * matrix)
    fitted = np.linalg.solve(normal, matrix.T @ (weight * values)).reshape(last, *grid.sizes)
    covariance = np.linalg.inv(normal)
    found = best(tree, grid, upward(tree, grid, noisy, totals))
    np.testing.assert_allclose(grid.joined(found[2].parts, last), fitted, atol=1e-3)
    np.testing.assert_allclose(
        np.repeat(entry_variance(grid, found[2], (0, 1)), grid.cells),
        np.diag(covariance),
        rtol=1e-4,
        atol=1e-5,
    )
    for level in (0, 1):  # and what is below adds up
        above = grid.joined(found[level].parts, tree.sizes(level))
        np.testing.assert_allclose(
            tree.added_up(level, grid.joined(found[level + 1].parts, tree.sizes(level + 1))), above
        )
    one = _within(tree, 1, 0)
    sums = eye[one].sum(axis=(0, 2)).reshape(grid.sizes[0], -1)  # the marginal over "a" in one place
    np.testing.assert_allclose(
        entry_variance(grid, found[1], (0,))[0], np.diag(sums @ covariance @ sums.T), rtol=1e-4
    )


def _within(tree, level, at):
    places = np.array([at])
    for below in range(level + 1, len(tree)):
        places = np.flatnonzero(np.isin(tree.parents[below], places))
    return places


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_table_is_that_of_a_general_solver(seed):
    draw = simulation(seed)
    tree, grid = made_tree(draw, 2, 3), Grid(("a", "b"), (2, 2))
    truth, noisy = noisy_levels(draw, tree, grid, sigma=6.0)
    known = upward(tree, grid, noisy, [np.full(tree.sizes(level), np.nan) for level in range(3)])[2]
    above, parents = truth[1], tree.parents[2]
    totals = truth[2].reshape(len(parents), -1).sum(axis=1)
    group = Group(parents, above.astype(float), alike(grid, known, totals, parents, above))
    fit = nearest(grid, known, totals.astype(float), group)
    assert fit.converged

    def weighed(table, wanted):
        """What is squared and added up: linear in the table, by way of what is wanted of it."""
        parts = [
            (values * np.sqrt(grid.spread(part) / known.variances[part]).reshape(-1, 1, 1)).reshape(-1)
            for part, values in wanted(table).items()
            if part
        ]
        return np.concatenate(parts)

    eye = np.eye(fit.table.size).reshape(-1, *fit.table.shape)
    places, trust = np.arange(len(parents)), np.sqrt(group.alike.weights)
    by_cell = [np.kron(parents == at, cell) for at in range(len(above)) for cell in np.eye(grid.cells)]
    by_place = [np.kron(places == at, np.ones(grid.cells)) for at in places]
    heavy = 1e3  # sums that are weighed so hold but for a millionth
    matrix = [
        np.stack([weighed(one, grid.split) for one in eye], axis=1),
        np.stack([(trust * one).reshape(-1) for one in eye], axis=1),
        heavy * np.stack([*by_cell, *by_place]),
    ]
    wanted = [
        weighed(fit.table, lambda _: known.parts),
        (trust * group.alike.table).reshape(-1),
        heavy * np.concatenate([above.reshape(-1), totals]),
    ]
    solved, _ = nnls(np.concatenate(matrix), np.concatenate(wanted))
    np.testing.assert_allclose(fit.table.reshape(-1), solved, atol=0.01)


@given(st.integers(0, 2**32), st.sampled_from(["near", "far"]))
@settings(max_examples=60)
def test_any_table_becomes_whole_with_both_kinds_of_sums(seed, how):
    draw = simulation(seed)
    sizes = draw.integers(1, 5, draw.integers(1, 4))
    parents = np.repeat(np.arange(len(sizes)), sizes)
    counts = draw.integers(0, 6, (len(parents), 4)) * draw.integers(0, 2, (len(parents), 1))
    above = np.stack([counts[parents == group].sum(axis=0) for group in range(len(sizes))])
    table = (
        np.maximum(0, counts + draw.standard_normal(counts.shape))
        if how == "near"
        else 20 * draw.random(counts.shape)
    )
    found = whole.whole_table(table, counts.sum(axis=1), parents, above)
    check_sums(found, counts.sum(axis=1), parents, above)


def check_sums(found, totals, parents, above):
    assert found.dtype == np.int64
    assert (found >= 0).all()
    assert (found.sum(axis=1) == totals).all()
    assert (np.stack([found[parents == group].sum(axis=0) for group in range(len(above))]) == above).all()


def test_rounding_each_count_by_itself_breaks_sums():
    """The planted bug: what each number is nearest to does not add up."""
    counts = np.array([[1, 2], [2, 1], [0, 3]])
    table, parents, above = np.full((3, 2), 1.5), np.zeros(3, int), counts.sum(axis=0)[None]
    check_sums(
        whole.whole_table(table, counts.sum(axis=1), parents, above), counts.sum(axis=1), parents, above
    )
    with pytest.raises(AssertionError):
        check_sums(np.rint(table).astype(np.int64), counts.sum(axis=1), parents, above)


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_totals_are_shared_out_above_what_is_public_within(seed):
    draw = simulation(seed)
    sizes = draw.integers(1, 5, 3)
    parents = np.repeat(np.arange(3), sizes)
    least = draw.integers(0, 5, len(parents))
    fixed = draw.random(len(parents)) < 0.3
    extra = np.where(fixed, 0, draw.integers(0, 9, len(parents)))
    sums = np.bincount(parents, least + extra, 3).astype(np.int64)
    wanted = 10 * draw.standard_normal(len(parents))
    variances = np.where(fixed, 0.0, draw.uniform(0.5, 3, len(parents)))
    shared = whole.shared_out(wanted, variances, least * 1.0, parents, sums * 1.0)
    np.testing.assert_allclose(np.bincount(parents, shared, 3), sums)
    assert (shared >= least - 1e-9).all()
    held = fixed | (
        shared <= least + 1e-9
    )  # what is free has moved by its variance times what its group moves by
    move = np.where(held, np.nan, (shared - wanted) / np.where(variances > 0, variances, 1))
    for group in range(3):
        own = move[parents == group]
        assert np.nanmax(own, initial=-np.inf) <= np.nanmin(own, initial=np.inf) + 1e-6 or np.isnan(own).all()
    found = whole.whole_totals(shared, least, fixed, parents, sums)
    assert (found >= least).all()
    assert (found[fixed] == least[fixed]).all()
    assert (np.bincount(parents, found, 3) == sums).all()


def declared_totals(draw, tree, truth):
    """Totals of some places: true or not, they agree with each other."""
    made = np.array([draw.integers(0, 60) for _ in range(tree.sizes(len(tree) - 1))])
    invariants = {}
    for level in reversed(range(len(tree))):
        chosen = np.flatnonzero(draw.random(len(made)) < 0.4)
        invariants[tree.names[level]] = {tree.paths[level][at]: int(made[at]) for at in chosen}
        made = tree.added_up(level - 1, made) if level else made
    return invariants


@given(st.integers(0, 2**32), st.sampled_from([(), (3,), (3, 2), (1, 4), (2, 2, 2)]), st.booleans())
@settings(max_examples=25)
def test_counts_agree_on_all_levels_and_keep_public_totals(seed, sizes, public):
    draw = simulation(seed)
    tree, grid = made_tree(draw, int(draw.integers(1, 4)), 3), Grid(tuple("abc"[: len(sizes)]), sizes)
    truth, noisy = noisy_levels(draw, tree, grid, sigma=float(draw.choice([0.1, 5.0, 200.0])))
    invariants = declared_totals(draw, tree, truth) if public else None
    totals = public_totals(tree, invariants)
    with mock.patch.object(counting, "nearest", converged):
        counts = counted(tree, grid, upward(tree, grid, noisy, totals.known), totals)
    check_counts(tree, grid, counts, invariants)


def converged(*problem):
    fit = nearest(*problem)
    assert fit.converged
    return fit


def check_counts(tree, grid, counts, invariants=None):
    for level, table in enumerate(counts):
        assert table.dtype == np.int64
        assert table.shape == (tree.sizes(level), *grid.sizes)
        assert (table >= 0).all()
        if level + 1 < len(tree):
            assert (tree.added_up(level, counts[level + 1]) == table).all()
    for name, places in (invariants or {}).items():
        level = tree.level(name)
        for path, total in places.items():
            assert counts[level][tree.place(level, path)].sum() == total


def test_rounding_that_breaks_a_sum_is_seen(monkeypatch):
    draw = simulation(4)
    tree, grid = made_tree(draw, 3, 3), Grid(("a",), (4,))
    _, noisy = noisy_levels(draw, tree, grid)
    public = public_totals(tree, None)
    known = upward(tree, grid, noisy, public.known)
    check_counts(tree, grid, counted(tree, grid, known, public))
    monkeypatch.setattr(counting, "whole_table", lambda table, *_: np.rint(table).astype(np.int64))
    with pytest.raises(AssertionError):
        check_counts(tree, grid, counted(tree, grid, known, public))


@pytest.mark.parametrize(
    ("invariants", "said"),
    [
        ({"planet": {}}, "no level 'planet'"),
        ({"state": {"z": 1}}, "no place state 'z'"),
        ({"tract": {"x": 1}}, "several places tract 'x'"),
        ({"state": {"a": -1}}, "at least 0"),
        ({"state": {"a": 1.5}}, "whole number"),
        ({"state": 5}, "a dictionary"),
        ({"all": 3, "state": {"a": 4}}, "contradict"),
        ({"all": 9, "state": {"a": 4, "b": 4}}, "contradict"),
        ([1], "totals by level"),
    ],
)
def test_public_totals_that_cannot_be_are_refused(invariants, said):
    tree = tree_of(["state", "tract", "block"], {"state": ["a", "b"], "tract": ["x", "x"], "block": [1, 2]})
    with pytest.raises(InvalidParameter, match=said):
        public_totals(tree, invariants)


def test_shares_follow_from_public_facts_and_add_up_to_at_most_one():
    tree, grid = (
        tree_of(["state", "tract"], {"state": ["a", "b", "b"], "tract": [1, 2, 3]}),
        Grid(("a", "b"), (3, 2)),
    )
    none = public_totals(tree, None)
    plain = design_of(tree, grid, none, None)
    assert len(plain.shares) == 3 * 4
    assert 0.999 < sum(plain.shares.values()) <= 1
    assert 0.499 < sum(share for (level, _), share in plain.shares.items() if level == 2) <= 0.5
    known = design_of(tree, grid, public_totals(tree, {"state": {"a": 3, "b": 4}}), None)
    assert (1, ()) not in known.shares  # what is public is not measured; that of all follows
    assert (0, ()) not in known.shares
    assert (2, ()) in known.shares
    weighted = design_of(tree, grid, none, {"tract": 3, "state": 1})
    assert {level for level, _ in weighted.shares} == {1, 2}
    assert sum(share for (level, _), share in weighted.shares.items() if level == 2) > 0.749
    for shares, said in (
        ({"state": 1}, "leaves out tract"),
        ({"tract": 0}, "share of tract"),
        (3, "weights by level"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            design_of(tree, grid, none, shares)
