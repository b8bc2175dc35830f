"""Quantiles of weighted histograms: the exact law, its price over all groups, and where answers land."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import PureLoss
from sfumato.mechanisms import NestedQuantiles, Quantiles, _ranks, quantiles
from sfumato.testing import seeded

HUGE = 3 * 2**30


def distances(mechanism, level, weights):
    """The distance of each cell as it is defined, in fractions."""
    q, n = Fraction(level), sum(weights)
    guard = mechanism.guard(len(weights))
    target = q * n
    if q >= Fraction(19, 20):
        target = min(target, max(Fraction(n, 2), Fraction(n - guard)))
    if q <= Fraction(1, 20):
        target = max(target, min(Fraction(n, 2), Fraction(guard)))
    found = []
    for j, weight in enumerate(weights):
        below = sum(weights[:j])
        found.append(max(Fraction(0), below - target, target - below - weight))
    return found


def law(mechanism, level, weights):
    """P(cell j) = p_j·E[1/(1 + other heads)]: a uniform one of the heads."""
    rate = mechanism.rate(level)
    p = [math.exp(-float(rate * gap)) for gap in distances(mechanism, level, weights)]
    chances = []
    for i, own in enumerate(p):
        heads = np.ones(1)
        for other in p[:i] + p[i + 1 :]:
            heads = np.convolve(heads, [1 - other, other])
        chances.append(own * float((heads / np.arange(1, len(heads) + 1)).sum()))
    return np.array(chances)


def far_apart(mechanism, level, left, right):
    """The greatest log-ratio of either sign between the laws of two histograms."""
    ratios = np.log(law(mechanism, level, left) / law(mechanism, level, right))
    return max(ratios.max(), -ratios.min())


WIDE = st.integers(0, 2**58)  # nine of them, times a denominator of 2**30, stay below the cut at 2**93


@given(
    st.lists(st.one_of(st.integers(0, 9), WIDE), min_size=1, max_size=9),
    st.sampled_from(["0", "1/20", "1/10", "1/4", "1/2", "123456789/1000000000", "2/3", "99/100", "1"]),
    st.sampled_from([1, 7, HUGE]),
)
def test_distances_are_exact_however_large(weights, level, sensitivity):
    mechanism = Quantiles(1, [level], sensitivity=sensitivity)
    table = _ranks.weights_of([weights], 2)
    upto = np.cumsum(table, axis=1)
    high, low = mechanism._distances(Fraction(level), upto - table, upto)
    unit = _ranks.unit_of(Fraction(level))
    told = [Fraction(int(h) * 2**31 + int(w), unit) for h, w in zip(high[0], low[0], strict=True)]
    assert told == distances(mechanism, level, weights)
    assert min(told) == 0
    assert ((low >= 0) & (low < 2**31)).all()


@pytest.mark.parametrize(
    "total", [2**62 // 10_000 - 1, 2**62 // 10_000 + 1, 2**66 // 10_000 + 1, 2**60, 2**61, 2**62, 2**63]
)
def test_python_integers_and_machine_integers_have_the_same_distances(total):
    weights = [total // 3, 5, total - total // 3 - 5]
    mechanism = Quantiles(1, ["9999/10000"], sensitivity=2**62)
    narrow, wide = _ranks.weights_of([weights], 2), np.array([weights], object)
    found = []
    for table in (narrow, wide):
        upto = np.cumsum(table, axis=1)
        found.append(mechanism._distances(Fraction(9999, 10000), upto - table, upto))
    assert narrow.dtype == (np.int64 if total < 2**61 else object)
    for one, other in zip(*found, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize(
    "weights", [[2**63, 1], [1, 2**64 + 1, 3], [2**62, 2**63, 2**70], [2**63 - 1, 2**63]]
)
def test_integers_on_both_sides_of_a_machine_word_stay_exact(weights):
    assert _ranks.weights_of(weights, 1).tolist() == weights
    assert _ranks.weights_of([weights, weights], 2).tolist() == [weights, weights]
    with seeded(4):
        assert Quantiles(1, ["1/2"], sensitivity=1).select(weights)[0] in range(len(weights))


LEVELS = ("0", "1/20", "1/10", "1/4", "1/2", "2/3", "99/100", "1")
DELTA, CELLS = 2, 3
HISTOGRAMS = list(itertools.product(range(5), repeat=CELLS))


def parts(weight):
    """All ways in which a unit's weight lies in the cells of one group."""
    return [part for part in itertools.product(range(weight + 1), repeat=CELLS) if sum(part) == weight]


def added(histogram, part):
    return [a + b for a, b in zip(histogram, part, strict=True)]


def worst(mechanism, level, weight):
    """The most that this weight tells in one group, over all small histograms."""
    laws = {}

    def logs(histogram):
        key = tuple(histogram)
        if key not in laws:
            laws[key] = np.log(law(mechanism, level, list(histogram)))
        return laws[key]

    return max(
        np.abs(logs(histogram) - logs(added(histogram, part))).max()
        for histogram in HISTOGRAMS
        for part in parts(weight)
    )


def check_price(level, *, epsilon=6):
    """However a unit divides its weight over two groups, it is told apart by at most epsilon."""
    mechanism = Quantiles(epsilon, [level], sensitivity=DELTA)
    one, both = worst(mechanism, level, 1), worst(mechanism, level, 2)
    # Groups are independent: the greatest ratio of two is the product of their greatest ratios.
    assert both <= epsilon * (1 + 1e-9)
    assert 2 * one <= epsilon * (1 + 1e-9)
    assert one <= epsilon / 2 * (1 + 1e-9)
    return both / epsilon


@pytest.mark.parametrize("level", LEVELS)
def test_all_groups_together_cost_epsilon(level):
    assert check_price(level) > 0.55


def test_the_joint_law_of_two_groups_is_told_apart_by_at_most_epsilon():
    mechanism = Quantiles(4, ["1/4"], sensitivity=2)
    left, right = ([0, 4, 0], [1, 4, 0]), ([3, 1, 2], [3, 1, 3])
    before, after = (
        np.outer(law(mechanism, "1/4", left[side]), law(mechanism, "1/4", right[side])) for side in (0, 1)
    )
    assert np.isclose(before.sum(), 1)
    loss = np.abs(np.log(before / after)).max()
    assert 0.3 * 4 < loss <= 4


@pytest.mark.parametrize("level", ["0", "1/4", "1"])
def test_a_score_bound_by_the_lesser_side_is_found_out(level, monkeypatch):
    lesser = max(2 * min(Fraction(level), 1 - Fraction(level)), Fraction(1, 2))
    monkeypatch.setattr(quantiles, "_costs", lambda _: (lesser, lesser))
    with pytest.raises(AssertionError):
        check_price(level)


@pytest.mark.parametrize("level", LEVELS)
def test_half_the_sensitivity_is_found_out(level, monkeypatch):
    true = quantiles._costs
    monkeypatch.setattr(quantiles, "_costs", lambda q: tuple(cost / 2 for cost in true(q)))
    with pytest.raises(AssertionError):
        check_price(level)


@pytest.mark.parametrize("level", [*LEVELS, "9/10", "95/100", "11/100"])
def test_scores_move_by_the_stated_part_of_the_weight_and_no_less_would_do(level):
    mechanism = Quantiles(6, [level], sensitivity=DELTA)
    found = {h: distances(mechanism, level, h) for h in itertools.product(range(7), repeat=CELLS)}
    moves = [
        abs(a - b)
        for histogram in HISTOGRAMS
        for part in parts(2)
        for a, b in zip(found[histogram], found[tuple(added(histogram, part))], strict=True)
    ]
    assert max(moves) == 2 * quantiles._move(Fraction(level))


@pytest.mark.parametrize("level", ["0", "1/4", "1/2", "1"])
def test_exchange_costs_epsilon_in_one_group_and_over_two(level):
    epsilon = 6
    mechanism = Quantiles(epsilon, [level], sensitivity=1, exchange=True)
    single = worst(mechanism, level, 1)
    assert 2 * single <= epsilon  # one unit leaves one group, another enters a second one
    seen = 0.0
    for histogram in itertools.product(range(5), repeat=CELLS):
        for leaves, enters in itertools.permutations(range(CELLS), 2):
            if histogram[leaves]:
                moved = list(histogram)
                moved[leaves] -= 1
                moved[enters] += 1
                seen = max(seen, far_apart(mechanism, level, list(histogram), moved))
    assert seen <= epsilon
    assert max(seen, 2 * single) > 0.5 * epsilon
    plain = Quantiles(epsilon, [level], sensitivity=1)
    assert plain.rate(level) == 2 * mechanism.rate(level)
    assert 2 * worst(plain, level, 1) > epsilon


def test_a_unit_with_little_weight_in_many_groups_pays_by_weight():
    # Scores rounded to a grid of 2**-20 of the sensitivity could move by a step for a weight of one.
    mechanism = Quantiles(1, ["1/2"], sensitivity=HUGE)
    rate = mechanism.rate("1/2")
    seen = mpmath.mpf(0)
    with mpmath.workdps(60):

        def exact(weights):
            p = [
                mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
                for x in (rate * gap for gap in distances(mechanism, "1/2", weights))
            ]
            a, b = p
            return [a * (1 - b) + a * b / 2, b * (1 - a) + a * b / 2]

        for offset in range(0, 2**13, 257):
            for part in ((1, 0), (0, 1)):
                left = [HUGE + offset, 2 * HUGE]
                pairs = zip(exact(left), exact(added(left, part)), strict=True)
                seen = max(seen, *(abs(mpmath.log(p / q)) for p, q in pairs))
        assert mpmath.mpf("0.4") / HUGE < seen <= mpmath.mpf(1) / HUGE


def test_levels_share_epsilon_and_the_loss_says_so():
    mechanism = Quantiles("0.6", [0, "1/2", 1], sensitivity=3)
    assert mechanism.loss == PureLoss(Fraction(6, 10))
    assert mechanism.rate("1/2") == Fraction(6, 10) / 3 / (2 * Fraction(1, 2) * 3)
    assert mechanism.rate(1) == mechanism.rate(0) == Fraction(6, 10) / 3 / (2 * 3)
    assert Quantiles(1, ["1/2"], sensitivity=1).loss == PureLoss(Fraction(1))


def test_levels_apart_have_a_price_each():
    mechanism = Quantiles("0.6", ["1/4", "1/2", "3/4"], sensitivity=3, together=False)
    assert mechanism.loss.pure == Fraction(6, 10)
    assert mechanism.loss.rho == pytest.approx(0.6**2 / 2 / 3)
    assert mechanism.rate("1/4") == Fraction(6, 10) / 3 / (2 * Fraction(3, 4) * 3)


def test_together_no_level_is_worse_off_and_deciles_are_better_off_by_a_seventh():
    deciles = [Fraction(each, 10) for each in range(1, 10)]
    for levels in (deciles, ["1/4", "3/4"], ["3/4", "9/10"], [0, "1/3", 1], ["1/2"]):
        together, apart = (Quantiles(1, levels, sensitivity=1, together=each) for each in (True, False))
        assert all(together.rate(level) >= apart.rate(level) for level in levels)
    gain = Quantiles(1, deciles, sensitivity=1).rate("1/2") * 9
    assert gain == 9 / (5 + Fraction(5, 6) + Fraction(5, 7) + Fraction(5, 8) + Fraction(5, 9))
    assert gain > 1 + Fraction(1, 7)


def joint_price(levels, *, weight=2, top=4, cells=CELLS):
    """The most that a weight in one group tells through all levels together, over all small histograms."""
    mechanism = Quantiles(6, levels, sensitivity=weight)
    laws = {}

    def logs(histogram):
        if histogram not in laws:
            laws[histogram] = [np.log(law(mechanism, level, list(histogram))) for level in levels]
        return laws[histogram]

    seen = 0.0
    for histogram in itertools.product(range(top), repeat=cells):
        for part in parts(weight):
            pairs = list(zip(logs(histogram), logs(tuple(added(histogram, part))), strict=True))
            # Levels are independent: the greatest ratio of all is the product of their greatest ratios.
            seen = max(seen, *(abs(sum(np.max(way * (p - q)) for p, q in pairs)) for way in (1, -1)))
    return seen / 6


JOINT = (
    ["1/4", "1/2", "3/4"],
    ["1/10", "3/10", "1/2", "7/10", "9/10"],
    ["3/4", "9/10"],
    [0, "1/3", "2/3", 1],
)


@pytest.mark.parametrize("levels", JOINT)
def test_all_levels_together_cost_epsilon(levels):
    assert 0.4 < joint_price(levels) <= 1 + 1e-9


def joint_worst(levels, *, below):
    """What a unit tells that is on the same side of all levels, with a stretch of empty cells beside it."""
    left, right = [1, 0, *[0] * 40, 1000, 0], [1, 4, *[0] * 40, 1000, 0]
    if not below:
        left, right = left[::-1], right[::-1]
    mechanism = Quantiles("0.01", levels, sensitivity=4)
    pairs = [(law(mechanism, level, left), law(mechanism, level, right)) for level in levels]
    return max(sum(np.max(way * np.log(p / q)) for p, q in pairs) for way in (1, -1)) / 0.01


@pytest.mark.parametrize("levels", JOINT[:3])
def test_a_unit_beside_all_levels_nearly_uses_the_price_up(levels):
    seen = max(joint_worst(levels, below=below) for below in (True, False))
    assert 0.95 < seen <= 1 + 1e-9


@pytest.mark.parametrize("levels", JOINT[:3])
def test_levels_that_pay_for_their_cheaper_side_are_found_out(levels, monkeypatch):
    monkeypatch.setattr(quantiles, "_costs", lambda _: (Fraction(1), Fraction(1)))
    assert max(joint_worst(levels, below=below) for below in (True, False)) > 1.1


def test_a_level_listed_twice_is_chosen_and_paid_once():
    mechanism = Quantiles(1, ["1/2", 0.5, 1], sensitivity=1)
    assert mechanism.rate("1/2") == Quantiles(1, ["1/2", 1], sensitivity=1).rate("1/2")
    with seeded(1):
        answers = mechanism.select_many(np.ones((300, 20), np.int64))
    assert (answers[:, 0] == answers[:, 1]).all()


@pytest.mark.parametrize("levels", [["1/4", "1/2", "3/4"], [1, 0, "1/2", "9/10", "1/10"], ["2/5", "1/5"]])
def test_answers_grow_with_the_level(levels):
    mechanism = Quantiles("0.1", levels, sensitivity=5)
    generator = np.random.default_rng(2)
    with seeded(3):
        answers = mechanism.select_many(generator.integers(0, 3, (200, 40)))
    order = np.argsort([Fraction(level) for level in levels])
    assert (np.diff(answers[:, order], axis=1) >= 0).all()
    assert (np.diff(answers[:, order], axis=1) > 0).any()


def rank_errors(level, weights, cells):
    upto = np.cumsum(weights)
    below, target = upto - weights, float(Fraction(level)) * upto[-1]
    errors = np.maximum(0, np.maximum(below - target, target - upto))
    return errors[cells]


@pytest.mark.parametrize("kind", [Quantiles, NestedQuantiles])
def test_the_work_for_levels_grows_with_their_number_and_not_with_its_square(kind, monkeypatch):
    compare, calls = Fraction.__eq__, [0]

    def counted(left, right):
        calls[0] += 1
        return compare(left, right)

    def comparisons(count):
        mechanism = kind(1, [Fraction(i, count + 1) for i in range(count, 0, -1)], sensitivity=1)
        calls[0] = 0
        with monkeypatch.context() as patched:
            patched.setattr(Fraction, "__eq__", counted)
            chosen = mechanism.select_many([[3, 4, 5]])
            if kind is NestedQuantiles:
                assert len(mechanism.rank_variances) == count
        assert (np.diff(chosen[0]) <= 0).all()  # in the order of the levels, greatest first
        return calls[0]

    assert comparisons(120) <= 4 * comparisons(30) + 120


def test_many_levels_of_much_weight_are_nearly_exact():
    weights = np.random.default_rng(5).integers(0, 1000, 512) * 2**30
    levels = ["0", "1/100", "1/4", "1/2", "3/4", "95/100", "1"]
    mechanism = Quantiles(2, levels, sensitivity=HUGE)
    width = mechanism.error(0.999999, cells=512)
    assert width < 0.005 * weights.sum()
    with seeded(6):
        answers = mechanism.select(weights)
    for level, cell in zip(levels, answers, strict=True):
        assert rank_errors(level, weights, cell) <= width


def test_the_extremes_land_within_the_guard_and_rarely_beyond():
    weights = np.zeros(1000, np.int64)
    weights[300:700] = 5
    mechanism = Quantiles(1, [0, 1], sensitivity=1)
    guard = mechanism.guard(1000)
    width = mechanism.error(0.99, cells=1000)
    assert guard == math.ceil(4 * math.log(16 * 1000))
    assert guard < width < 3 * guard
    with seeded(7):
        low, high = mechanism.select_many(np.broadcast_to(weights, (2000, 1000))).T
    assert np.mean(low < 300) < 1 / 32 + 0.02
    assert np.mean(high >= 700) < 1 / 32 + 0.02
    above = np.concatenate([[0], np.cumsum(weights)])
    assert np.mean(above[low] > width) < 0.02
    assert np.mean(weights.sum() - above[high + 1] > width) < 0.02


def test_without_the_guard_a_maximum_would_be_anywhere_beyond(monkeypatch):
    weights = np.zeros(1000, np.int64)
    weights[300:500] = 5
    monkeypatch.setattr(quantiles, "is_outer", lambda level: False)
    monkeypatch.setattr(quantiles, "side_of", lambda level: 0)
    with seeded(8):
        cells = Quantiles(1, [1], sensitivity=1).select_many(np.broadcast_to(weights, (500, 1000)))
    assert np.mean(cells >= 500) > 0.5


@pytest.mark.parametrize("levels", [["1/2"], [0, "1/2", 1]])
def test_an_empty_histogram_gives_some_cell(levels):
    mechanism = Quantiles(1, levels, sensitivity=HUGE)
    with seeded(9):
        answers = mechanism.select_many(np.zeros((4000, 9), np.int64))
    assert set(answers.ravel()) == set(range(9))
    assert abs(answers.mean() - 4) < 0.2
    assert mechanism.select([0]) == (0,) * len(levels)
    assert mechanism.select_many(np.zeros((0, 9), np.int64)).shape == (0, len(levels))


def test_error_is_the_quantile_of_the_worst_histogram():
    mechanism = Quantiles("0.7", ["1/2"], sensitivity=4)
    width = mechanism.error(0.95, cells=5)
    # One good cell of weight w: all others lie w/2 away.
    good = [law(mechanism, "1/2", [0, 0, weight, 0, 0])[2] for weight in (2 * width, 1.98 * width)]
    assert good[0] >= 0.95 > good[1]
    assert mechanism.error(0.95, cells=1) == 0
    assert mechanism.error(0.95, cells=5, size=10) > width
    assert mechanism.error(0.99, cells=5) > width
    with pytest.raises(InvalidParameter, match="candidates"):
        mechanism.error(0.95)


@pytest.mark.parametrize(
    "weights",
    [[], [1.0], [1, -1], [[1, 2]], "12", None, [True], [1, None], [1, "2"], [2**70, -1], [[1], [1, 2]]],
)
def test_unusable_weights_are_refused(weights):
    with pytest.raises(InvalidValue):
        Quantiles(1, ["1/2"], sensitivity=1).select(weights)


@pytest.mark.parametrize("weights", [[], [1, 2], [[1.0]], np.zeros((2, 0), np.int64), [[1], [-1]]])
def test_unusable_tables_are_refused(weights):
    with pytest.raises(InvalidValue):
        Quantiles(1, ["1/2"], sensitivity=1).select_many(weights)


@pytest.mark.parametrize("levels", [[], "1/2", 0.5, [1.5], [-0.1], ["x"], [Fraction(1, 2**31)], [None]])
def test_unusable_levels_are_refused(levels):
    with pytest.raises(InvalidParameter):
        Quantiles(1, levels, sensitivity=1)


@pytest.mark.parametrize("sensitivity", [0, -1, 1.5, True])
def test_unusable_sensitivities_are_refused(sensitivity):
    with pytest.raises(InvalidParameter):
        Quantiles(1, ["1/2"], sensitivity=sensitivity)


def test_it_shows_its_parameters():
    mechanism = Quantiles(1, [0.5, 1], sensitivity=2)
    assert (
        repr(mechanism)
        == "Quantiles(epsilon=1, levels=('1/2', '1'), sensitivity=2, exchange=False, together=True)"
    )
    assert mechanism == Quantiles(1, ["1/2", "1"], sensitivity=2)
