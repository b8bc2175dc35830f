"""δ against the size of the data, decided exactly."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.explain import delta_advice


@pytest.mark.parametrize(
    ("delta", "size", "verdict"),
    [
        (0, 10, "none"),
        ("1e-7", 10**5, "small"),  # exactly a hundredth of 1/size
        (Fraction(1, 10**7) + Fraction(1, 10**60), 10**5, "usual"),
        ("1.4e-4", 3_000, "usual"),
        ("1e-5", 5 * 10**4, "large"),
        ("1e-5", 10**5, "too large"),
        ("1e-3", 10**6, "too large"),
        ("1e-11", 10**10, "usual"),  # exactly size^-1.1
        (Fraction(1, 10**11) + Fraction(1, 10**60), 10**10, "large"),
        (Fraction(1, 10**10) - Fraction(1, 10**60), 10**10, "large"),
        ("1e-10", 10**10, "too large"),
    ],
)
def test_verdicts(delta, size, verdict):
    advice = delta_advice(delta, size)
    assert advice.verdict == verdict
    assert max(map(len, str(advice).splitlines())) <= 80
    assert Fraction(repr(advice.exposed)) >= Fraction(delta) * size
    mpmath.mp.dps = 30
    assert 0 < advice.rule <= mpmath.mpf(size) ** mpmath.mpf("-1.1")
    assert advice.rule == pytest.approx(size**-1.1)
    assert advice.chance >= 1 - (1 - mpmath.mpf(advice.delta)) ** size
    assert advice.chance == pytest.approx(-np.expm1(size * np.log1p(-advice.delta)), rel=1e-12)


def test_the_words_say_why():
    assert "reveal 10 records on average" in " ".join(str(delta_advice("1e-5", 10**6)).split())
    assert "pure" in str(delta_advice(0, 3))
    assert "in fewer than one of 100 cases" in " ".join(str(delta_advice("1e-300", 10**9)).split())


@pytest.mark.parametrize("size", [1_000, 3_000, 10_000, 10**6])
def test_the_usual_rule_is_not_called_small(size):
    advice = delta_advice(delta_advice(0, size).rule, size)
    assert advice.verdict == "usual"
    assert 0.2 < advice.chance < 0.4
    told = " ".join(str(advice).split())
    assert "not far below 1/size" in told
    assert f"somebody's in {math.ceil(advice.chance * 100)} of 100 cases" in told
    assert delta_advice(told.split("1/(100·size) = ")[1].split()[0], size).verdict == "small"


def test_the_worst_mechanism_is_what_delta_allows():
    # Each of n records published with probability δ: neighbours differ by δ in total variation.
    assert sf.loss.ApproximateLoss(0, "1e-3").delta(0) == pytest.approx(1e-3)
    shown = np.random.default_rng(0).random((200, 10_000)) < 1e-3
    assert shown.sum(axis=1).mean() == pytest.approx(delta_advice("1e-3", 10_000).exposed, rel=0.1)


@pytest.mark.parametrize(("delta", "size"), [(1, 5), (-0.1, 5), (0.1, 0), (0.1, 2.5)])
def test_unusable_numbers_are_refused(delta, size):
    with pytest.raises(InvalidParameter):
        delta_advice(delta, size)
