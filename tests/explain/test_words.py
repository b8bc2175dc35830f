"""Words that stay true: figures on the safe side, lines that fit, the right neighbours."""

import math
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.explain import NOT_PROMISED, advantage, tradeoff, words
from sfumato.explain.words import percent_down, percent_up
from sfumato.loss import NO_LOSS, ApproximateLoss, ConcentratedLoss, GaussianLoss, LaplaceLoss, PureLoss


def flat(text):
    return " ".join(text.split())


def figures(text):
    return [float(found) for found in re.findall(r"([\d.]+) %", flat(text))]


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "4", "15"])
def test_the_figures_are_ceilings(epsilon):
    loss = LaplaceLoss(epsilon)
    fifty, largest, smallest, right, coin, hits = figures(words(loss))
    assert (fifty, coin) == (50, 50)
    truth = 100 / (1 + math.exp(-float(epsilon)))
    assert truth <= largest <= truth + 0.1
    assert 100 - truth - 0.1 <= smallest <= 100 - truth
    assert 50 + 50 * advantage(loss) - 1e-12 <= right <= 50.1 + 50 * advantage(loss)
    ceiling = 100 * float(tradeoff(loss, 0.01))
    assert ceiling <= hits <= ceiling + 0.1


@pytest.mark.parametrize(
    "loss",
    [
        LaplaceLoss(1),
        GaussianLoss("0.125"),
        ConcentratedLoss("0.1"),
        PureLoss(100),
        ApproximateLoss(1, "1e-5"),
        NO_LOSS,
    ],
)
@pytest.mark.parametrize("unit", ["person", "visit to a hospital"])
def test_lines_fit_and_name_the_unit(loss, unit):
    text = words(loss, unit=unit)
    assert max(map(len, text.splitlines())) <= 80
    assert unit in flat(text)
    assert "\u00a0" not in text


def test_a_delta_is_said_to_be_an_exception():
    assert "whatever is released" in flat(words(LaplaceLoss(1)))
    assert "except with a probability of at most 0.001, when anything may be learned" in flat(
        words(GaussianLoss("0.1"))
    )
    assert "at most 1e-09, when" in flat(words(GaussianLoss("0.1"), delta="1e-9"))
    calibrated = GaussianLoss("0.01", point=(1, "1e-7"))
    assert "at most 0.0001, when" in flat(words(calibrated))
    assert "No limit can be given" in flat(words(ApproximateLoss(1, "0.1")))


def test_the_neighbours_choose_the_words():
    assert "whether one row is in the data" in flat(words(LaplaceLoss(1), unit="row"))
    assert "which of two contents one row has" in flat(
        words(LaplaceLoss(1), unit="row", adjacency="exchange")
    )


def test_the_limits_are_one_sentence_and_always_said():
    assert NOT_PROMISED.count(".") == 1
    assert "smoking" in NOT_PROMISED
    assert "privacy is not security" in NOT_PROMISED
    assert flat(words(LaplaceLoss(1))).endswith(NOT_PROMISED)


@given(st.floats(0, 1))
def test_percentages_are_on_the_safe_side(share):
    up, down = percent_up(share), percent_down(share)
    assert Decimal(down.removesuffix(" %")) <= Decimal(share) * 100 <= Decimal(up.removesuffix(" %"))
    assert Decimal(up.removesuffix(" %")) <= 100
    assert "e" not in (up + down).lower()


def test_percentages_tell_small_from_nothing():
    assert (percent_up(0), percent_up(1), percent_down(1)) == ("0 %", "100 %", "100 %")
    assert percent_up(0.000123) == "0.013 %"
    assert percent_down(0.000123) == "0.012 %"
    assert percent_down(0.99987) == "99.987 %"
    assert percent_up(1 - 1e-12) == "100 %"
    assert percent_down(1e-12) == "0 %"
    assert percent_up(0.5) == "50 %"
