from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from scipy import stats

from sfumato.mechanisms import _private_scale as laws
from sfumato.numeric.figures import ball
from sfumato.testing import assert_discrete, seeded

DRAWS = {
    "laplace": (laws.add_exponential_tails, stats.laplace()),
    "cauchy": (laws.add_cauchy, stats.cauchy()),
    "student": (laws.add_student, stats.t(4)),
}


def rounded(law, value, scale):
    """P(floor(value + scale·Z + 1/2) = k) around the value, and the two tails."""
    edges = np.arange(-40, 41) - 0.5
    below = law.cdf((edges - value) / scale)
    chances = dict(enumerate(np.diff(below).tolist(), start=-40))
    return chances | {-41: float(below[0]), 40: float(1 - below[-1])}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize(("value", "scale"), [("0.3", "1.7"), ("-7/3", "1/50"), ("12", "6")])
def test_draws_follow_the_rounded_law(kind, value, scale):
    draw, law = DRAWS[kind]
    with seeded(kind):
        drawn = np.array([draw(Fraction(value), Fraction(scale)) for _ in range(2500)])
    expected = rounded(law, float(Fraction(value)), float(Fraction(scale)))
    assert_discrete(np.clip(drawn, -41, 40), {k: p for k, p in sorted(expected.items()) if p > 0})


@pytest.mark.parametrize("kind", DRAWS)
def test_a_wrong_scale_is_told_apart(kind):
    draw, law = DRAWS[kind]
    with seeded(kind):
        drawn = np.array([draw(Fraction(0), Fraction(3)) for _ in range(2500)])
    with pytest.raises(AssertionError):
        assert_discrete(np.clip(drawn, -41, 40), dict(sorted(rounded(law, 0.0, 2.0).items())))


@pytest.mark.parametrize("kind", DRAWS)
def test_a_very_fine_grid_draws_more_bits_and_stays_exact(kind):
    # With a scale of 2**150 grid steps the first bits never decide.
    draw, law = DRAWS[kind]
    scale = 2**150
    with seeded(kind):
        drawn = np.array([float(Fraction(draw(Fraction(1, 3), Fraction(scale)), scale)) for _ in range(1500)])
    cells = np.searchsorted(law.ppf(np.arange(1, 10) / 10), drawn)
    assert_discrete(cells, dict.fromkeys(range(10), 0.1))
    with seeded(kind):
        low = [draw(Fraction(1, 3), Fraction(scale)) % 2 for _ in range(1500)]
    assert_discrete(low, {0: 0.5, 1: 0.5})


def test_quantiles_agree_with_the_textbook():
    with ctx.workprec(200):
        for tail in ("1e-9", "0.01", "0.3", "0.49"):
            p = Fraction(tail)
            assert float(laws.cauchy_tail(ball(p))) == pytest.approx(stats.cauchy.isf(float(p)), rel=1e-9)
            assert float(laws.student_tail(ball(p))) == pytest.approx(stats.t(4).isf(float(p)), rel=1e-9)


def test_the_first_and_last_cells_are_enclosed():
    for quantile in (laws.cauchy_tail, laws.student_tail):
        low, high = laws._enclosed(0, 8, quantile)
        assert high is None
        assert low > 2
        low, high = laws._enclosed(2**8 - 1, 8, quantile)
        assert low == 0 < high < 0.1
