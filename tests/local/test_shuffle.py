"""Shuffled reports: cheaper with more people, never above the local price, exact where it can be listed."""

import math
from collections import Counter
from itertools import product

import pytest

from sfumato import accounting
from sfumato.errors import InvalidParameter
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.means import DuchiMean, HybridMean, PiecewiseMean
from sfumato.local.quantiles import LocalQuantiles
from sfumato.local.response import BinaryResponse, KaryResponse
from sfumato.local.shuffle import shuffled

ALL = [
    BinaryResponse(1),
    KaryResponse(1, 5),
    HadamardResponse(1, 64),
    DuchiMean(1, 0, 1),
    PiecewiseMean(1, 0, 1),
    HybridMean(1, 0, 1),
    LocalQuantiles(1, 0, 1),
]


@pytest.mark.parametrize("made", [ALL[0], ALL[-2]], ids=lambda made: type(made).__name__)
def test_a_crowd_hides_and_one_person_does_not(made):
    assert shuffled(made, 1, 1e-6) <= 1
    assert shuffled(made, 1, 1e-6) > 0.999
    prices = [shuffled(made, people, 1e-6) for people in (10**3, 10**5, 10**7)]
    assert prices == sorted(prices, reverse=True)
    assert prices[1] < 0.1
    # The root of the number of people, by which the crowd helps.
    assert prices[1] / prices[2] == pytest.approx(10, rel=0.3)


def test_only_two_answers_take_the_sharper_figure():
    for made in ALL:
        two = isinstance(made, BinaryResponse | DuchiMean)
        figure = accounting.shuffled_response if two else accounting.shuffled
        assert shuffled(made, 10_000, 1e-6) == figure(1, 10_000, 1e-6)
    assert shuffled(KaryResponse(1, 2), 10_000, 1e-6) == accounting.shuffled_response(1, 10_000, 1e-6)
    # One parity is one bit, too, but with a mask that says which: not two answers.
    made = HadamardResponse(1, 2, parities=1)
    assert shuffled(made, 10_000, 1e-6) == accounting.shuffled(1, 10_000, 1e-6)


def exactly(laws, others, epsilon):
    """The δ at ε of a multiset of reports: one person of either law, the others of fixed laws, by listing."""
    chances = [Counter(), Counter()]
    for side, first in enumerate(laws):
        for reports in product(*(law.items() for law in (first, *others))):
            chance = math.prod(mass for _, mass in reports)
            chances[side][tuple(sorted(report for report, _ in reports))] += chance
    both = set(chances[0]) | set(chances[1])
    return max(
        sum(max(0.0, chances[i][each] - math.exp(epsilon) * chances[1 - i][each]) for each in both)
        for i in (0, 1)
    )


@pytest.mark.parametrize("made", [KaryResponse(1, 3), BinaryResponse(1)], ids=["kary", "binary"])
@pytest.mark.parametrize("people", [2, 4, 6])
def test_it_is_never_below_the_truth(made, people):
    size = made.domain.size
    laws = [{i: made.p if i == own else made.q for i in range(size)} for own in range(size)]
    for delta in (0.01, 0.1):
        claimed = shuffled(made, people, delta)
        for value in range(size):
            assert exactly(laws[:2], [laws[value]] * (people - 1), claimed) <= delta


def test_numbers_between_the_ends_hide_no_less_than_ends():
    """Duchi's ends by listing: every number is a mixture of two answers."""
    q = 1 / (1 + math.e)
    laws = {t: {1: q + t * (1 - 2 * q), 0: 1 - q - t * (1 - 2 * q)} for t in (0.0, 0.3, 0.5, 1.0)}
    for delta in (0.01, 0.1):
        claimed = shuffled(DuchiMean(1, 0, 1), 5, delta)
        for other in laws.values():
            for left, right in product(laws.values(), repeat=2):
                assert exactly([left, right], [other] * 4, claimed) <= delta


def test_parameters_are_checked():
    for people, delta in ((0, 1e-6), (10, 0), (10, 1), (10**13, 1e-6)):
        with pytest.raises(InvalidParameter):
            shuffled(BinaryResponse(1), people, delta)
