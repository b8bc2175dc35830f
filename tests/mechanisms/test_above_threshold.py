from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._scores import ScoreGrid
from sfumato.mechanisms._threshold import split
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.testing import assert_bernoulli, assert_discrete, seeded


def at_least(t, scale):
    """P(X ≥ t) for a discrete Laplace X."""
    q = np.exp(-1 / scale)
    return np.where(t > 0, q ** np.maximum(t, 0) / (1 + q), 1 - q ** np.maximum(1 - t, 0) / (1 + q))


def law(values, outer, inner, *, threshold=0, reach=45):
    """The exact probability of each first index, and of None, for integer values and these two scales."""
    bars = np.arange(-int(reach * outer), int(reach * outer) + 1)
    weights = np.exp(-np.abs(bars) / outer)
    weights /= weights.sum()
    chances = {}
    for i, value in enumerate(values):
        above = at_least(threshold + bars - value, inner)
        chances[i] = float((weights * above).sum())
        weights = weights * (1 - above)
    chances[None] = float(weights.sum())
    return chances


def scales(epsilon, sensitivity, *, monotone=False):
    first, second = split(Fraction(epsilon), 1, monotone=monotone)
    return float(sensitivity / first), float((1 if monotone else 2) * sensitivity / second)


def worst_ratio(left, right, outer, inner):
    p, q = law(left, outer, inner), law(right, outer, inner)
    return max(abs(np.log(p[k] / q[k])) for k in p)


def coarse(mechanism):
    """The same mechanism on the integers themselves with sensitivity 1, where the law can be listed."""
    gate = mechanism._gate
    outer, inner = (scale / gate.grid.sensitivity for scale in (gate.outer, gate.inner))
    fields = {"grid": ScoreGrid(0, 1), "outer": outer, "inner": inner, "threshold": int(mechanism.threshold)}
    for name, value in fields.items():
        object.__setattr__(gate, name, value)
    return mechanism


VALUES = [0, 2, 1, 5]


@pytest.mark.parametrize("make", [list, iter, np.array])
def test_answers_follow_the_exact_law(make):
    mechanism = coarse(AboveThreshold(1, 3, sensitivity=1))
    expected = {-1 if k is None else k: p for k, p in law(VALUES, *scales(1, 1), threshold=3).items()}
    assert sum(expected.values()) == pytest.approx(1, abs=1e-12)
    with seeded(1):
        found = [mechanism.first(make(VALUES)) for _ in range(4000)]
    assert_discrete([-1 if k is None else k for k in found], expected)


def test_half_the_noise_is_told_apart():
    mechanism = coarse(AboveThreshold(2, 3, sensitivity=1))
    expected = {-1 if k is None else k: p for k, p in law(VALUES, *scales(1, 1), threshold=3).items()}
    with seeded(1):
        found = [mechanism.first(VALUES) for _ in range(4000)]
    with pytest.raises(AssertionError):
        assert_discrete([-1 if k is None else k for k in found], expected)


PAIRS = [
    ([0] * 8 + [1], [1] * 8 + [0]),
    ([1] * 8 + [0], [0] * 8 + [1]),
    ([0] * 30, [1] * 30),
    ([-3, 5, 0, 2], [-2, 4, 1, 1]),
    ([0] * 20 + [8], [1] * 20 + [7]),
]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_no_neighbours_are_told_apart_by_more_than_epsilon(left, right):
    left, right = ([x * 4 for x in side] for side in (left, right))
    assert worst_ratio(left, right, *scales(1, 4)) <= 1 + 1e-9


def test_epsilon_is_reached():
    assert worst_ratio(*PAIRS[0], *scales(1, 1)) > 0.9


def test_a_longer_stream_costs_no_more():
    ratios = [worst_ratio([0] * n + [4], [4] * n + [0], *scales(1, 4)) for n in (4, 40, 400)]
    assert max(ratios) <= 1 + 1e-9


def test_monotone_values_need_half_the_noise_and_only_they():
    up = [
        ([0] * 6 + [-2], [1] * 6 + [-2]),
        ([0] * 9, [1] * 9),
        ([3, 0, 1], [3, 1, 1]),
        ([0] * 6 + [-2], [0] * 6 + [-1]),
    ]
    for left, right in up:
        assert worst_ratio(left, right, *scales(1, 1, monotone=True)) <= 1 + 1e-9
    assert worst_ratio(*up[0], *scales(1, 1, monotone=True)) > 0.75
    # The planted bug: the monotone noise on values that move both ways.
    assert worst_ratio([0] * 8 + [1], [1] * 8 + [0], *scales(1, 1, monotone=True)) > 1.2


def test_no_noise_on_the_threshold_breaks_every_epsilon():
    # One of the published variants: the more values below, the larger the ratio.
    inner = scales(1, 1)[1]
    ratios = [worst_ratio([0] * n, [1] * n, 1e-3, inner) for n in (5, 50)]
    assert ratios[0] < ratios[1]
    assert ratios[1] > 5


def test_a_value_per_user_has_the_sensitivity_of_that_users_data():
    # "Does user j have more than 100 logins?": without user 1 the second value falls from 150 to 0.
    outer, inner = scales(1, 1)
    with_user, without = [20, 150, 30], [20, 0, 30]
    p, q = law(with_user, outer, inner, threshold=100), law(without, outer, inner, threshold=100)
    assert np.log(p[1] / q[1]) > 20  # claimed: 1


def test_it_is_lazy_and_takes_nothing_after_the_answer():
    taken = []

    def values():
        for value in (-1e6, -1e6, 1e6, 1e6):
            taken.append(value)
            yield value

    with seeded(2):
        assert AboveThreshold(1, 100, sensitivity=1).first(values()) == 2
    assert len(taken) == 3


def test_an_endless_stream_ends_at_the_first_above():
    def values():
        n = 0
        while True:
            yield n
            n += 1000

    with seeded(3):
        found = AboveThreshold(1, 50_000, sensitivity=1).first(values())
    assert abs(found - 50) <= 1


def test_nothing_is_made_up_when_nothing_is_found():
    mechanism = AboveThreshold(1, 100, sensitivity=1)
    with seeded(4):
        assert mechanism.first([-1e5] * 1000) is None
        assert mechanism.first([]) is None
        assert mechanism.first(iter(())) is None


def test_array_and_iterator_agree_beyond_one_block():
    values = np.full(2000, -1e6)
    values[1777] = 1e6
    mechanism = AboveThreshold(1, 0, sensitivity=1)
    with seeded(5):
        assert (
            mechanism.first(values)
            == mechanism.first(iter(values.tolist()))
            == mechanism.first(values.tolist())
            == 1777
        )


def test_huge_values_and_thresholds():
    mechanism = AboveThreshold(1, "1e300", sensitivity=1)
    with seeded(6):
        assert mechanism.first([1e299, 1e301]) == 1
        assert mechanism.first(iter([1e299, 10**301])) == 1
        assert mechanism.first([2**62, -(2**62)]) is None


@pytest.mark.parametrize("monotone", [False, True])
def test_error_covers_every_comparison(monotone):
    mechanism = AboveThreshold(1, 0, sensitivity=1, monotone=monotone)
    width = mechanism.error(0.9, size=50)
    values, runs = [-width] * 49 + [width], 300
    with seeded(7):
        right = sum(mechanism.first(values) == 49 for _ in range(runs))
    assert right >= 230  # at least 270 are expected, fewer than 230 with probability below 1e-9
    # No wider than the textbook's 8(ln k + ln 2/β)/ε.
    assert width <= 8 * (np.log(50) + np.log(2 / 0.1))


def test_error_is_not_vacuous():
    mechanism = AboveThreshold(1, 0, sensitivity=1)
    values = [-mechanism.error(0.9, size=50) / 4] * 49 + [mechanism.error(0.9, size=50) / 4]
    with seeded(8):
        right = sum(mechanism.first(values) == 49 for _ in range(200))
    with pytest.raises(AssertionError):
        assert_bernoulli(right, 200, 0.9)


def test_the_whole_price_is_known_up_front():
    mechanism = AboveThreshold(0.3, 10, sensitivity=2)
    assert mechanism.loss.pure == Fraction(3, 10)
    for monotone in (False, True):
        assert sum(split(Fraction(3, 10), 1, monotone=monotone)) == Fraction(3, 10)
    assert repr(mechanism) == "AboveThreshold(epsilon=0.3, threshold=10, sensitivity=2, monotone=False)"


def test_unusable_input_is_refused():
    for parameters in ((0, 1, 1), (1, float("nan"), 1), (1, 1, 0), (1, 1, -1), (1, "x", 1)):
        with pytest.raises(InvalidParameter):
            AboveThreshold(parameters[0], parameters[1], sensitivity=parameters[2])
    mechanism = AboveThreshold(1, 1e9, sensitivity=1)
    for values in (
        [float("nan")],
        iter([float("nan")]),
        [float("inf")],
        iter(["a"]),
        np.array([["a"]]),
        [[1, 2]],
    ):
        with pytest.raises(InvalidValue):
            mechanism.first(values)
    for values in ("12", 5):
        with pytest.raises(InvalidParameter):
            mechanism.first(values)
