"""Quantiles of people's numbers: least squares, coverage, privacy by listing, bad input refused."""

import math

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._tree import Tree
from sfumato.local.base import aggregate_from, randomizer_from
from sfumato.local.hadamard import HadamardResponse, parities
from sfumato.local.quantiles import LocalQuantiles, QuantilesAggregate
from sfumato.local.response import KaryResponse
from sfumato.loss import PureLoss
from sfumato.testing import seeded


def numbers(people, seed=1):
    return np.minimum(np.random.default_rng(seed).gamma(2, 12, people), 100.0)


def truth(values, edges):
    below = np.searchsorted(np.sort(values), edges, side="left") / values.size
    below[-1] = 1.0
    return below


@pytest.mark.parametrize("branching", [2, 3])
def test_the_tree_is_the_least_squares_solution(branching):
    """Against a dense solver, with variances of all sizes and a level that nobody told of."""
    rng, levels = np.random.default_rng(branching), 3
    leaves = branching**levels
    for variances in ([1.0, 2.0, 3.0], [5.0, 0.1, 1.0], [1.0, math.inf, 2.0], [math.inf, 1.0, 1.0]):
        measured = [rng.normal(size=branching ** (level + 1)) for level in range(levels)]
        measured = [m if v < math.inf else 0 * m for m, v in zip(measured, variances, strict=True)]
        rows = [
            np.kron(np.eye(branching ** (i + 1)), np.ones(branching ** (levels - i - 1)))
            for i in range(levels)
        ]
        scale = np.concatenate([np.full(len(r), v**-0.5) for r, v in zip(rows, variances, strict=True)])
        design, target = np.vstack(rows) * scale[:, None], np.concatenate(measured) * scale
        # The leaves add up to 1: put the last one in as what the others leave.
        basis = np.vstack([np.eye(leaves - 1), -np.ones(leaves - 1)])
        shift = np.eye(leaves)[-1]
        free, *_ = np.linalg.lstsq(design @ basis, target - design @ shift, rcond=None)
        tree = Tree(branching, np.array(variances))
        assert np.allclose(tree.consistent(measured), basis @ free + shift)
        edges = np.arange(leaves + 1)
        sums = sum(w @ m for w, m in zip(tree.weights(edges), measured, strict=True))
        nothing = sum(w @ (0 * m) for w, m in zip(tree.weights(edges), measured, strict=True))
        below = np.r_[0, np.cumsum(tree.consistent(measured))]
        empty = np.r_[0, np.cumsum(tree.consistent([0 * m for m in measured]))]
        assert np.allclose(sums - nothing, below - empty)


def test_cells_alone_where_nobody_told_of_them_are_split_evenly():
    tree = Tree(2, np.array([1.0, math.inf]))
    assert np.allclose(tree.consistent([np.array([0.2, 0.8]), np.zeros(4)]), [0.1, 0.1, 0.4, 0.4])


def law(made, value):
    """Every report with its probability."""
    cell = min(int(value * made.bins), made.bins - 1)
    for level, inner in enumerate(made._levels):
        place = cell // (made.bins // inner.domain.size)
        if isinstance(inner, KaryResponse):
            for report in range(inner.domain.size):
                yield (level, report), (inner.p if report == place else inner.q) / len(made._levels)
            continue
        count, bits, groups = inner.parities, inner._bits, 1 << inner.parities
        words = np.arange(1 << (count * (bits + 1)), dtype=inner.report_dtype)
        same = parities(words, np.full_like(words, place), count, bits) == (words & (groups - 1))
        masks = 1 << (count * bits)
        for report, own in zip(words.tolist(), same.tolist(), strict=True):
            chance = inner.p if own else (1 - inner.p) / (groups - 1)
            yield (level, report), chance / masks / len(made._levels)


def test_all_reports_are_within_epsilon_and_drawn_as_listed():
    made = LocalQuantiles("0.7", 0, 1, bins=16, branching=4)
    assert [type(each) for each in made._levels] == [KaryResponse, HadamardResponse]
    laws = [dict(law(made, value)) for value in (0.0, 0.3, 0.99)]
    for one in laws:
        assert sum(one.values()) == pytest.approx(1)
        for other in laws:
            worst = max(math.log(one[report] / other[report]) for report in one)
            assert worst <= 0.7 + 1e-9
    assert made.loss == PureLoss("0.7")
    with seeded("quantiles"):
        drawn = made.encode(np.full(200_000, 0.3))
    codes, counts = np.unique(drawn[:, 0].astype(int) * 2**16 + drawn[:, 1], return_counts=True)
    expected = np.array([laws[1][code // 2**16, code % 2**16] for code in codes.tolist()]) * 200_000
    assert len(codes) == len(laws[1])
    assert stats.chisquare(counts, expected).pvalue > 1e-9


@pytest.mark.parametrize(
    ("epsilon", "bins", "branching", "people"),
    [("1", 64, 4, 20_000), ("4", 64, 4, 3000), ("0.5", 64, 8, 3000), ("2", 64, 2, 600)],
)
def test_intervals_hold_as_often_as_they_say(epsilon, bins, branching, people):
    made, turns = LocalQuantiles(epsilon, 0, 100, bins=bins, branching=branching), 150
    values = numbers(people)
    places = [bins // 8, bins // 4, bins // 2]
    held, quantiles, errors = np.zeros(len(places)), {0.1: 0, 0.5: 0, 0.9: 0}, []
    with seeded(f"bars {epsilon} {branching}"):
        for _ in range(turns):
            found = made.aggregate(made.encode(values)).estimate(0.9)
            true = truth(values, found.edges)
            held += ((found.low <= true) & (true <= found.high))[places]
            errors.append((found.shares - true)[places])
            for share in quantiles:
                told = found.quantile(share)
                exact = np.quantile(values, share, method="inverted_cdf")
                quantiles[share] += told.low <= exact <= told.high
                assert told.low <= told.value <= told.high
    # Edges and turns: 1e-6 is the chance of an alarm that means nothing.
    floor = stats.binom.ppf(1e-6, turns, 0.9)
    assert held.min() >= floor
    assert min(quantiles.values()) >= floor
    # And not by being wide: errors have the size that the variance says, or less where rising helped.
    spread = np.sqrt(np.mean(np.square(errors)))
    assert 0.4 * math.sqrt(made.variance / people) < spread < 1.1 * math.sqrt(made.variance / people)


def test_shares_rise_from_0_to_1_and_quantiles_are_found():
    made, values = LocalQuantiles(3, 0, 100), numbers(300_000)
    with seeded(3):
        found = made.aggregate(made.encode(values)).estimate()
    assert np.all(np.diff(found.shares) >= 0)
    assert (found.shares[0], found.shares[-1], found.edges[0], found.edges[-1]) == (0, 1, 0, 100)
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        told = found.quantile(share)
        assert abs(told.value - np.quantile(values, share)) < 2
        assert told.high - told.low < 6
        assert (told.confidence, told.people) == (0.95, 300_000)
    assert found.table.column_names == ["edge", "share", "low", "high"]
    for share in (0, 1, -1, "x"):
        with pytest.raises(InvalidParameter):
            found.quantile(share)


def test_few_people_claim_nothing():
    made = LocalQuantiles(1, 0, 100)
    found = made.aggregate(made.encode(numbers(10))).estimate()
    assert (found.low[1:-1] == 0).all()
    assert (found.high[1:-1] == 1).all()
    told = found.quantile(0.5)
    assert (told.low, told.high) == (0, 100)
    alone = made.aggregate(made.encode([50.0])).estimate()
    assert np.isfinite(alone.shares).all()


def test_people_are_divided_over_levels_evenly():
    made = LocalQuantiles(1, 0, 100, bins=4096)
    with seeded(8):
        counts = np.bincount(made.encode(numbers(60_000))[:, 0].astype(int))
    assert stats.chisquare(counts).pvalue > 1e-9


def test_batches_merge_and_travel():
    made = LocalQuantiles("0.7", "-1.5", 200, bins=81, branching=3)
    reports = made.encode(numbers(5000))
    whole = made.aggregate(reports)
    parts = made.aggregate([reports[:1], reports[1:1], reports[1:4000]]) + made.aggregate(reports[4000:])
    assert parts.to_dict() == whole.to_dict()
    again = aggregate_from(whole.to_dict())
    assert isinstance(again, QuantilesAggregate)
    assert np.array_equal(again.estimate().shares, whole.estimate().shares)
    assert randomizer_from(made.to_dict()) == made
    changed = made.to_dict()
    changed["levels"][-1]["parities"] = 1
    with pytest.raises(InvalidParameter, match="another version"):
        randomizer_from(changed)


def test_reports_of_others_change_nothing():
    made = LocalQuantiles(1, 0, 1, bins=16)
    aggregate = made.aggregate(made.encode([0.5] * 100))
    before = aggregate.to_dict()
    good, kind = made.encode([0.5] * 100), made.report_dtype
    largest = np.iinfo(kind).max
    for wrong in ([len(made._levels), 0], [largest, 0], [0, 4], [0, largest], [1, largest]):
        with pytest.raises(InvalidValue):
            aggregate.add(np.concatenate([good, np.array([wrong], kind)]))
    for wrong in (good[:, 0], good.astype(np.int8), np.concatenate([good, good], axis=1)):
        with pytest.raises(InvalidValue):
            aggregate.add(wrong)
    assert aggregate.to_dict() == before
    with pytest.raises(InvalidValue, match="no reports"):
        made.start().estimate()
    for state in (None, [], before["state"][:1], [{**each, "count": 1} for each in before["state"]]):
        with pytest.raises(InvalidValue):
            aggregate_from({**before, "state": state})


@pytest.mark.parametrize("values", [[1.1], [-0.1], [math.nan], ["a"], [[0.5]], np.array([True])])
def test_values_outside_are_refused(values):
    with pytest.raises(InvalidValue):
        LocalQuantiles(1, 0, 1).encode(values)


def test_parameters_are_checked():
    for bins, branching in ((1000, 4), (16384, 4), (1, 2), (16, 1), (8, 16), (16.0, 4)):
        with pytest.raises(InvalidParameter):
            LocalQuantiles(1, 0, 1, bins=bins, branching=branching)
    for arguments in ((0, 0, 1), (51, 0, 1), (1, 1, 1)):
        with pytest.raises(InvalidParameter):
            LocalQuantiles(*arguments)
