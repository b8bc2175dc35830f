"""Words and figures: inputs print as they were given, and computed figures are rounded to their safe side."""

import re
from fractions import Fraction

import numpy as np
import pytest

from sfumato.explain import Posterior, compare, delta_advice, posterior, words
from sfumato.explain.figures import given, number_down, number_up, percent_given
from sfumato.loss import ApproximateLoss, PureLoss

rng = np.random.default_rng(12)
# Decimals of one to nine digits and of every size, as people give them.
DECIMALS = [
    f"{int(digits)}e{int(power)}"
    for digits, power in zip(
        rng.integers(1, 10 ** rng.integers(1, 10, 300)), rng.integers(-18, -8, 300), strict=True
    )
]


def numbers(text, before):
    return re.findall(rf"{before}\s*([0-9.]+(?:e-?[0-9]+)?)", " ".join(text.split()))


@pytest.mark.parametrize("prior", ["0.1", "0.5", "0.01", "0.123456789", "0.7", "0.001", 0.1, Fraction(1, 8)])
def test_a_prior_prints_as_it_was_given(prior):
    (shown,) = numbers(str(posterior(PureLoss(1), prior)), "a belief of")
    assert Fraction(shown) == Fraction(str(prior)) * 100


def test_every_input_prints_as_it_was_given():
    for text in DECIMALS:
        exact = Fraction(text)
        assert Fraction(given(float(text))) == exact
        assert Fraction(percent_given(float(text)).removesuffix(" %")) == exact * 100
        (failure,) = numbers(str(Posterior(0.5, 0.0, 1.0, float(text), 1.0)), "probability")
        assert Fraction(failure) == exact
        (delta,) = numbers(str(delta_advice(text, 1000)), "δ =")
        assert Fraction(delta) == exact
        summary = compare(Fraction(text) * 10**9, text, "person").summary
        assert Fraction(numbers(summary, "ε =")[0]) == exact * 10**9
        assert Fraction(numbers(summary, "δ =")[0]) == exact


def test_computed_figures_are_on_their_safe_side():
    for text in DECIMALS:
        exact = Fraction(text)
        assert Fraction(number_down(exact)) <= exact <= Fraction(number_up(exact))
        assert Fraction(number_up(exact)) <= exact * Fraction(11, 10)
        for size in (7, 12_345, 10**7):
            advice = delta_advice(text, size)
            (exposed,) = numbers(str(advice), "reveal")
            assert Fraction(exposed) >= exact * size
            odds = re.search(r"in ([0-9]+) of 100", advice.odds)
            assert odds is None or int(odds[1]) >= 100 * Fraction(advice.chance) > int(odds[1]) - 1.0001


@pytest.mark.parametrize("times", [10, 1000])
def test_what_is_set_aside_is_explained_where_it_is_not_the_delta(times):
    told = " ".join(words(ApproximateLoss(3, "1e-6"), delta=Fraction(times, 10**6)).split())
    assert f"{times} times the delta of 1e-06, because delta alone sets no limit to beliefs" in told
    assert "times the delta" not in words(PureLoss(3))


def test_the_command_explains_it_too():
    from commands import invoke
    from sfumato.cli.app import app

    out = " ".join(invoke(app, ["explain", "3", "--delta", "1e-6"]).output.split())
    assert "at most 1e-05, when anything may be learned (10 times the delta of 1e-06" in out


def test_the_usual_format_would_be_caught():
    assert sum(Fraction(f"{float(text):g}") != Fraction(text) for text in DECIMALS) > 50
    assert percent_given(0.1) == "10 %"
    assert any(Fraction(f"{float(text):.2g}") < Fraction(text) for text in DECIMALS)
