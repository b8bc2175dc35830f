"""A wanted accuracy in the local model: how many people, or what price, and whether that is true."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato import local
from sfumato.errors import InvalidParameter
from sfumato.testing import assert_coverage, seeded

KINDS = [
    {"domain": 2},
    {"domain": 5},
    {"domain": ["a", "b", "c"]},
    {"domain": 1024},
    {"lower": 0, "upper": 10},
]


def width(kind):
    """How wide the range is that an error is a part of."""
    return 10.0 if "lower" in kind else 1.0


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("epsilon", ["0.1", 1, 4])
def test_the_two_ways_agree_and_are_least(kind, epsilon):
    error = 0.02 * width(kind)
    there = local.design(error, epsilon=epsilon, **kind)
    assert there.epsilon == Fraction(epsilon)
    assert error * 0.95 < there.error <= error or there.people < 100
    back = local.design(error, people=there.people, **kind)
    assert back.error <= error
    # Of reports that err about the same the shorter ones are taken, which may be others at a price nearby.
    assert 0.93 * float(epsilon) <= float(back.epsilon) <= 1.00002 * float(epsilon)
    if there.people > 100:
        fewer = local.design(error, people=there.people * 4 // 5, **kind)
        assert fewer.epsilon > there.epsilon * Fraction(101, 100)


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3], KINDS[4]], ids=str)
def test_people_grow_as_one_over_squares_of_price_and_error(kind):
    def people(epsilon, error):
        return local.design(error * width(kind), epsilon=epsilon, **kind).people

    assert people("0.1", 0.01) / people("0.1", 0.02) == pytest.approx(4, rel=1e-3)
    assert people("0.05", 0.01) / people("0.1", 0.01) == pytest.approx(4, rel=0.02)
    assert people("0.1", 0.01) * 0.01**2 * 0.1**2 < 4.1 * 1.96**2  # n ~ 1/(ε²α²), with a small constant


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ({"domain": 2}, [0, 1]),
        ({"domain": 2}, [1]),
        ({"domain": 6}, [0]),
        ({"domain": 6}, [1, 2, 3]),
        ({"domain": 300}, [0]),
        ({"domain": 300}, [7, 8]),
        ({"lower": 0, "upper": 10}, [0.0, 10.0]),
        ({"lower": 0, "upper": 10}, [5.0]),
    ],
    ids=str,
)
def test_estimates_are_as_close_as_was_asked_for(kind, values):
    """Whether a value is rare, shared by all or in between, for the worst of them and for others."""
    error, runs = 0.08 * width(kind), 400
    found = local.design(error, epsilon=1, confidence=0.9, **kind)
    truth = np.resize(np.array(values), found.people)
    off = []
    with seeded(4):
        reports = found.randomizer.encode(np.resize(truth, found.people * runs))
    client = found.randomizer
    for part in np.split(reports, runs):
        if "lower" in kind:
            off.append(client.aggregate(part).estimate(0.9).value - truth.mean())
        else:  # as `estimate` has it, without the intervals of all values
            off.append(
                (client._supports(part)[0] / found.people - client.q) / client.gap - (truth == 0).mean()
            )
    assert_coverage(np.array(off), error, 0.88, exact=False)
    # Half of the people, planted: not enough for the worst values.
    if values in ([0, 1], [0.0, 10.0]):
        with pytest.raises(AssertionError):
            assert_coverage(np.array(off) * math.sqrt(2), error, 0.9, exact=False, alpha=1e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 1},
        {"domain": 2},
        {"epsilon": 1, "people": 10, "domain": 2},
        {"epsilon": 1, "domain": 2, "lower": 0, "upper": 1},
        {"epsilon": 1, "lower": 0},
        {"epsilon": 1, "upper": 0},
        {"epsilon": 0, "domain": 2},
        {"epsilon": 51, "domain": 2},
        {"epsilon": 1, "domain": 1},
        {"people": 0, "domain": 2},
        {"epsilon": 1, "domain": 2, "error": 1},
        {"epsilon": 1, "domain": 2, "error": 0},
        {"epsilon": 1, "domain": 2, "confidence": 1},
        {"epsilon": "0.000001", "domain": 2, "error": "1e-9"},
        {"people": 1, "lower": 0, "upper": 1, "error": "1e-12"},
        {"epsilon": 1, "domain": 2**40},
    ],
    ids=str,
)
def test_what_cannot_be_designed_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        local.design(**{"error": "0.01", **wrong})


def test_it_says_what_it_takes_in_words():
    told = str(local.design(0.01, epsilon=1, domain=2))
    assert told.startswith("35,368 people at epsilon 1 each: any value's share is about ± 1 % of them (95 %")
    assert "BinaryResponse" in told
    assert "steward" in told
    assert "a mean is about ± 0.5" in str(local.design(0.5, epsilon=1, lower=0, upper=100))
