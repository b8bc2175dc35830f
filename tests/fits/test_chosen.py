"""Choices under the meter: paid before the draw, by the law that was paid for, and held to their claims."""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

from sfumato.accounting import selection_epsilon
from sfumato.errors import BudgetExceeded, InvalidParameter, InvalidValue
from sfumato.fits import meter as module
from sfumato.fits.meter import Meter, Total
from sfumato.loss import GaussianLoss
from sfumato.mechanisms import Exponential
from sfumato.testing.fits import check_answers
from sfumato.testing.statistics import assert_discrete
from sfumato.testing.stream import seeded

F = Fraction
PAID = GaussianLoss(F(1, 2))
SCORES = [0, 0, 0, 8]


def check_law(*, exchange=False):
    meter = Meter(PAID.rho, lambda _: None, exchange=exchange)
    law = Exponential(selection_epsilon(F(1, 4)), 4 if exchange else 2).probabilities(SCORES)
    with seeded("choices"):
        drawn = [meter.chosen(SCORES, 2, "1/2") for _ in range(500)]
    assert_discrete(np.array(drawn), dict(enumerate(law)))


@pytest.mark.parametrize("exchange", [False, True])
def test_a_choice_follows_the_law_that_its_share_pays_for(exchange):
    check_law(exchange=exchange)


def test_a_wrong_price_or_a_forgotten_exchange_shows_in_the_law():
    twice = patch.object(module, "selection_epsilon", lambda rho: 2 * selection_epsilon(rho))
    with twice, pytest.raises(AssertionError):
        check_law()
    honest = Meter.__init__
    kept = patch.object(Meter, "__init__", lambda self, rho, take, exchange: honest(self, rho, take))
    with kept, pytest.raises(AssertionError):
        check_law(exchange=True)


def test_a_choice_is_paid_before_it_is_drawn_and_the_whole_is_never_exceeded():
    meter = Meter.alone(PAID)
    meter.chosen([1, 2], 1, "1/3")
    meter.noisy(Total(np.zeros(2, np.int64), F(1), F(1)), "1/3")
    part = meter.part("1/3")
    part.chosen([1, 2], 1, "1/2")
    part.part("1/2").chosen(np.array([1, 2]), 1, 1)
    with (
        patch.object(Exponential, "select", side_effect=AssertionError("drawn")),
        pytest.raises(BudgetExceeded),
    ):
        meter.chosen([1, 2], 1, "1/1000000")
    assert part.selection(1, 1) == Exponential(selection_epsilon(F(1, 6)), 1)


def test_a_part_pays_through_the_whole():
    paid = []
    part = Meter(F(1, 2), paid.append).part("1/4").part("1/2")
    part.chosen([5, 6], 1, "1/2")
    assert paid == [GaussianLoss(F(1, 32))]


def test_scores_are_whole_numbers_of_any_size():
    meter = Meter(F(1000), lambda _: None)
    assert meter.chosen([-(10**40), 10**40], 1, 1) == 1
    assert meter.chosen([2**63, -1], 1, 1) == 0
    assert meter.chosen([2**64 + 300, 2**64], 1, 1) == 0
    assert meter.chosen(np.array([7], np.uint64), 1, 1) == 0
    for scores in ([], [1.0, 2.0], np.array([1.5]), np.array([[1]]), [True], ["1"]):
        with pytest.raises(InvalidValue, match="whole numbers"):
            meter.chosen(scores, 1, 1)
    for sensitivity, share in ((0, 1), (1, 0), (1, 2)):
        with pytest.raises(InvalidParameter):
            meter.chosen([1], sensitivity, share)


def counts_of(rows, *, sensitivity=1, share="1/4", first=0, last=4, times=1):
    """A fit that chooses a value and then counts it."""

    def run(meter):
        tally = np.bincount(rows, minlength=4)
        place = 0
        for _ in range(times):
            place = meter.chosen(times * tally[first:last], sensitivity, share)
        count = meter.noisy(Total(tally[place : place + 1], F(1), F(1)), "1/2")
        return {"place": np.array(place), "count": count}

    return run


ROWS = [0, 1, 1, 3, 3, 3]


@pytest.mark.parametrize("pick", [None, lambda size: size - 1, lambda _: 0])
def test_the_kit_holds_choices_to_their_claims(pick):
    check_answers(counts_of(ROWS), counts_of([*ROWS, 2]), PAID, pick=pick)
    check_answers(counts_of([0, *ROWS]), counts_of([*ROWS, 2]), PAID, exchange=True, pick=pick)
    check_answers(counts_of(ROWS, times=2, sensitivity=2), counts_of(ROWS[1:], times=2, sensitivity=2), PAID)


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        ({"sensitivity": "1/2"}, {"sensitivity": "1/2"}, "moves by 1, and claims 0.5"),
        ({}, {"sensitivity": 2}, "claim of question"),
        ({}, {"share": "1/8"}, "price of question"),
        ({}, {"last": 3}, "candidates"),
        ({}, {"times": 2}, "depends on the data"),
        ({"times": 3}, {"times": 3}, "above the budget"),
    ],
)
def test_the_kit_sees_choices_that_break_them(mine, theirs, words):
    with pytest.raises((AssertionError, BudgetExceeded), match=words):
        check_answers(counts_of(ROWS, **mine), counts_of([*ROWS, 2], **theirs), PAID)


def test_the_kit_sees_what_is_made_of_rows_beside_the_choice():
    def greedy(rows):
        def run(meter):
            meter.chosen([0, 0], 1, 1)
            return {"best": np.bincount(rows).argmax()}

        return run

    with pytest.raises(AssertionError, match="beyond the noisy answers"):
        check_answers(greedy([0, 1, 1]), greedy([0, 0, 1, 1]), PAID)
