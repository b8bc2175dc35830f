from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._scores import ScoreGrid
from sfumato.mechanisms._threshold import split
from sfumato.mechanisms.sparse_vector import NumericSparseVector, SparseVector
from sfumato.testing import assert_continuous, assert_discrete, seeded


def at_least(t, scale):
    q = np.exp(-1 / scale)
    return np.where(t > 0, q ** np.maximum(t, 0) / (1 + q), 1 - q ** np.maximum(1 - t, 0) / (1 + q))


def law(values, count, outer, inner, *, threshold=0, reach=45):
    """The exact probability of each list of indices, for integer values and these two scales."""
    bars = np.arange(-int(reach * outer), int(reach * outer) + 1)
    noise = np.exp(-np.abs(bars) / outer)
    noise /= noise.sum()
    above = [at_least(threshold + bars - value, inner) for value in values]
    chances = {}
    for size in range(count + 1):
        for found in combinations(range(len(values)), size):
            end = len(values) if size < count else found[-1] + 1
            weights = noise
            for i in range(end):
                weights = weights * (above[i] if i in found else 1 - above[i])
            chances[found] = float(weights.sum())
    return chances


def scales(epsilon, count, *, monotone=False, share=1):
    first, second = split(Fraction(epsilon), count, monotone=monotone)
    return float(1 / first), float((1 if monotone else 2) * share * count / second)


def worst_ratio(left, right, count, outer, inner):
    p, q = law(left, count, outer, inner), law(right, count, outer, inner)
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


@pytest.mark.parametrize("make", [list, iter])
def test_lists_follow_the_exact_law(make):
    mechanism = coarse(SparseVector(2, 3, count=2, sensitivity=1))
    expected = law(VALUES, 2, *scales(2, 2), threshold=3)
    assert sum(expected.values()) == pytest.approx(1, abs=1e-12)
    with seeded(1):
        drawn = [tuple(mechanism.above(make(VALUES))) for _ in range(4000)]
    assert_discrete(drawn, expected)


PAIRS = [
    ([0] * 6 + [1, 1], [1] * 6 + [0, 0]),
    ([0] * 7, [1] * 7),
    ([-3, 5, 0, 2, 2], [-2, 4, 1, 1, 3]),
    ([1, 1] + [0] * 5, [0, 0] + [1] * 5),
]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_no_neighbours_are_told_apart_by_more_than_epsilon(left, right, count):
    assert worst_ratio(left, right, count, *scales(1, count)) <= 1 + 1e-9


def test_epsilon_is_nearly_reached():
    assert worst_ratio([0] * 8 + [1, 1], [1] * 8 + [0, 0], 2, *scales(1, 2)) > 0.85


def test_monotone_values_need_half_the_noise_and_only_they():
    up = [([0] * 6 + [-2, -2], [1] * 6 + [-2, -2]), ([0] * 7, [1] * 7), ([0] * 6, [0] * 3 + [1] * 3)]
    for left, right in up:
        assert worst_ratio(left, right, 2, *scales(1, 2, monotone=True)) <= 1 + 1e-9
    assert worst_ratio([0] * 8 + [1, 1], [1] * 8 + [0, 0], 2, *scales(1, 2, monotone=True)) > 1.15


def test_noise_that_forgets_the_count_breaks_epsilon():
    # A published variant: the noise of the values is not scaled by how many may be found.
    pair = ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)
    assert worst_ratio(*pair, 4, *scales(1, 4)) <= 1 + 1e-9
    assert worst_ratio(*pair, 4, *scales(1, 4, share=Fraction(1, 4))) > 1.5


def test_the_split_is_the_published_one():
    first, second = split(Fraction(1), 4, monotone=False)
    assert first + second == 1
    assert float(second / first) == pytest.approx(8 ** (2 / 3), rel=1e-3)
    first, second = split(Fraction(1), 8, monotone=True)
    assert second / first == 4


def test_it_stops_after_the_last_and_takes_nothing_more():
    taken = []

    def values():
        for value in (1e6, -1e6, 1e6, -1e6, 1e6):
            taken.append(value)
            yield value

    with seeded(2):
        assert SparseVector(1, 0, count=2, sensitivity=1).above(values()) == [0, 2]
    assert len(taken) == 3


def test_fewer_findings_give_a_shorter_list():
    mechanism = SparseVector(1, 0, count=3, sensitivity=1)
    with seeded(3):
        assert mechanism.above([-1e6, 1e6, -1e6]) == [1]
        assert mechanism.above(np.array([-1e6] * 5)) == []
        assert mechanism.above([]) == []


def test_arrays_of_many_blocks():
    values = np.full(100_000, -1e7)
    values[[10, 5000, 99_999]] = 1e7
    with seeded(4):
        assert SparseVector(1, 0, count=5, sensitivity=1).above(values[:6000]) == [10, 5000]
        assert SparseVector(1, 0, count=3, sensitivity=1).above(np.concatenate([values[:600], [1e7]])) == [
            10,
            600,
        ]


def test_error_covers_every_comparison():
    mechanism = SparseVector(1, 0, count=3, sensitivity=1)
    width = mechanism.error(0.9, size=40)
    values = [-width] * 37 + [width] * 3
    with seeded(5):
        right = sum(mechanism.above(values) == [37, 38, 39] for _ in range(300))
    assert right >= 230  # at least 270 are expected, fewer than 230 with probability below 1e-9


def test_numbers_carry_fresh_noise_of_the_stated_law():
    mechanism = NumericSparseVector(2, 0, count=1, sensitivity=1, share="1/4")
    with seeded(6):
        drawn = np.array([mechanism.above([1000.0])[0][1] for _ in range(3000)]) - 1000
    scale = 1 / 0.5

    def cdf(x):
        return np.where(
            x < 0, 0.5 * np.exp(np.minimum(x, 0) / scale), 1 - 0.5 * np.exp(-np.maximum(x, 0) / scale)
        )

    assert_continuous(drawn, cdf)
    assert mechanism.variance == pytest.approx(2 * scale**2, rel=1e-4)
    assert mechanism.number_error(0.95) == pytest.approx(scale * np.log(20), rel=1e-4)
    with pytest.raises(AssertionError):
        assert_continuous(drawn, lambda x: cdf(x / 1.25))


def test_numbers_are_on_the_public_grid():
    mechanism = NumericSparseVector(2, 0, count=2, sensitivity=1)
    with seeded(7):
        found = mechanism.above([1e6 + 0.1, -1e6, 1e6 + 0.2, 5e6])
    assert [index for index, _ in found] == [0, 2]
    assert all(float(value * 2**20).is_integer() for _, value in found)


def test_the_total_of_the_numeric_kind_is_stated():
    mechanism = NumericSparseVector("0.9", 0, count=3, sensitivity=1, share="1/3")
    assert mechanism.loss.pure == Fraction(9, 10)
    gate, s = mechanism._gate, mechanism._gate.grid.sensitivity
    threshold, values, numbers = s / gate.outer, 2 * 3 * s / gate.inner, 3 * s / mechanism._scale
    assert threshold + values + numbers == Fraction(9, 10)
    assert numbers == Fraction(3, 10)


def test_unusable_input_is_refused():
    for kind in (SparseVector, NumericSparseVector):
        for epsilon, count, sensitivity in ((0, 1, 1), (1, 0, 1), (1, 1.5, 1), (1, 1, 0), (1, True, 1)):
            with pytest.raises(InvalidParameter):
                kind(epsilon, 0, count=count, sensitivity=sensitivity)
        with pytest.raises(InvalidValue):
            kind(1, 0, count=1, sensitivity=1).above(iter([float("nan")]))
        with pytest.raises(InvalidParameter):
            kind("1e-15", 0, count=1, sensitivity=1)
    with pytest.raises(InvalidParameter, match="share"):
        NumericSparseVector(1, 0, count=1, sensitivity=1, share=1)


def test_they_show_their_parameters():
    assert repr(SparseVector(1, 100, count=3, sensitivity=1)) == (
        "SparseVector(epsilon=1, threshold=100, sensitivity=1, count=3, monotone=False)"
    )
    assert "share=0.5" in repr(NumericSparseVector(1, 100, count=3, sensitivity=1))
