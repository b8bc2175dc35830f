"""RAPPOR: what is kept, what is reported, and what one or many reports cost, by listing everything."""

import math
from itertools import product

import numpy as np
import pytest

from sfumato.audit import lower_bound
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local import Rappor, UnaryEncoding
from sfumato.local._bits import put
from sfumato.testing import assert_bernoulli, seeded

TWO = Rappor(2, 11, one="3/4", zero="1/2")


def test_one_time_is_symmetric_unary_encoding():
    once, unary = Rappor(1, 20), UnaryEncoding(1, 20, optimised=False)
    assert (once.p, once.q, once.gap, once.loss) == (unary.p, unary.q, unary.gap, unary.loss)
    assert once.loss_of(1) == once.loss_of(7) == once.loss
    kept = once.permanent([3, 4])
    assert np.array_equal(once.report(kept), kept)
    assert once.report(kept) is not kept


def test_figures_are_those_of_the_paper():
    f = 2 / (math.exp(1) + 1)  # f/2 = 1/(e^(ε/2) + 1)
    q, p = 0.75, 0.5
    assert math.exp(2) == pytest.approx(((1 - f / 2) / (f / 2)) ** 2)
    assert TWO.p == pytest.approx(f * (p + q) / 2 + (1 - f) * q, rel=1e-14)
    assert TWO.q == pytest.approx(f * (p + q) / 2 + (1 - f) * p, rel=1e-14)
    assert TWO.gap == pytest.approx(TWO.p - TWO.q, rel=1e-12)
    single = math.log(TWO.p * (1 - TWO.q) / (TWO.q * (1 - TWO.p)))
    assert float(TWO.loss_of(1).pure) == pytest.approx(single, rel=1e-12)


def _listed(made, reports):
    """The loss of so many reports from one permanent response, by listing all of them for two bits."""
    a, ends = (
        math.exp(float(made.epsilon) / 2) / (math.exp(float(made.epsilon) / 2) + 1),
        (made.zero, made.one),
    )

    def chance(real, seen):
        return sum(
            (a if kept == real else 1 - a)
            * math.prod(float(ends[kept]) if bit else 1 - float(ends[kept]) for bit in seen)
            for kept in (0, 1)
        )

    rows = list(product((0, 1), repeat=reports))
    ratios = [
        chance(1, first) * chance(0, second) / (chance(0, first) * chance(1, second))
        for first in rows
        for second in rows
    ]
    return math.log(max(ratios))


@pytest.mark.parametrize("reports", [1, 2, 3, 4])
@pytest.mark.parametrize(("one", "zero"), [("3/4", "1/2"), ("0.9", "0.05"), ("0.3", "0.2")])
def test_the_loss_of_several_reports_is_exact(reports, one, zero):
    made = Rappor("1.5", 4, one=one, zero=zero)
    assert float(made.loss_of(reports).pure) == pytest.approx(_listed(made, reports), rel=1e-12)


def test_more_reports_cost_more_and_never_more_than_all():
    losses = [float(TWO.loss_of(k).pure) for k in (1, 2, 5, 20, 100, 10**9)]
    assert losses == sorted(losses)
    assert losses[0] < 0.5
    assert losses[-1] <= float(TWO.epsilon)
    assert losses[-1] == pytest.approx(2, rel=1e-9)
    with pytest.raises(InvalidParameter):
        TWO.loss_of(0)


def test_permanent_and_reported_bits_have_their_probabilities():
    people, own = 100_000, 10
    with seeded("bits"):
        kept = TWO.permanent(np.full(people, own))
        reports = TWO.report(kept)
    true = math.e / (math.e + 1)
    state, bits = (np.unpackbits(rows, axis=1, bitorder="little") for rows in (kept, reports))
    assert not bits[:, 11:].any()
    for i in range(11):
        assert_bernoulli(int(state[:, i].sum()), people, true if i == own else 1 - true)
        assert_bernoulli(int(bits[:, i].sum()), people, TWO.p if i == own else TWO.q)
        ones = int(state[:, i].sum())
        assert_bernoulli(int((bits[:, i] & state[:, i]).sum()), ones, 0.75)


def test_a_kept_response_stays_and_reports_differ():
    kept = TWO.permanent([1] * 100)
    before = kept.copy()
    assert not np.array_equal(TWO.report(kept), TWO.report(kept))
    assert np.array_equal(kept, before)


@pytest.mark.parametrize("made", [Rappor(2, 256), Rappor(4, 256, one="3/4", zero="1/4")], ids=repr)
def test_errors_have_the_variance_of_theory(made):
    people, size = 100_000, 256
    values = np.arange(people) % size
    with seeded(f"theory {made}"):
        found = made.aggregate(made.encode(values)).estimate()
    true = np.bincount(values, minlength=size)
    ratio = float(np.mean((found.counts - true) ** 2)) / (people * made.variance)
    assert abs(ratio - 1) < 6.5 * math.sqrt(2 / size)
    assert np.mean((found.low <= true) & (true <= found.high)) > 0.95 - 6 * math.sqrt(0.05 * 0.95 / size)


@pytest.mark.parametrize("made", [Rappor(3, 8), Rappor(3, 8, one="3/4", zero="1/2")], ids=repr)
def test_a_true_bit_that_is_never_flipped_is_caught(made):
    def never_flips(value, count):
        kept = made.permanent([value] * count)
        put(kept, np.full(count, value), np.ones(count, np.bool_))
        return np.unpackbits(made.report(kept), axis=1, bitorder="little")

    with seeded("never flips"):
        planted = lower_bound(never_flips(0, 50_000), never_flips(5, 50_000), confidence=1 - 1e-9)
        honest = lower_bound(made.encode([0] * 50_000), made.encode([5] * 50_000), confidence=1 - 1e-9)
    assert planted.epsilon > float(made.loss_of(1).pure) >= honest.epsilon


def test_unusable_parameters_and_states():
    for ends in ({"one": "1/2"}, {"zero": "1/2"}, {"one": "1/2", "zero": "1/2"}, {"one": 1, "zero": 0}):
        with pytest.raises(InvalidParameter):
            Rappor(1, 4, **ends)
    for bad in (np.zeros((1, 3), np.uint8), np.zeros(2, np.uint8), np.full((1, 2), 255, np.uint8)):
        with pytest.raises(InvalidValue):
            TWO.report(bad)
    with pytest.raises(InvalidValue):
        TWO.permanent([11])
    with pytest.raises(InvalidParameter):
        TWO.start() + Rappor(2, 11).start()
