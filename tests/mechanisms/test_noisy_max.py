from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._scores import ScoreGrid
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.noisy_max import NoisyMax
from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
from sfumato.testing import assert_bernoulli, assert_discrete, seeded


def law(scores, rate, *, reach=60.0):
    """The exact law of the index: integer scores, discrete Laplace noise, ties to the lowest index."""
    q = np.exp(-rate)
    width = int(reach / rate)
    support = np.arange(min(scores) - width, max(scores) + width + 1)

    def mass(v):
        return (1 - q) / (1 + q) * q ** np.abs(support - v)

    def at_most(v, t):
        d = t - v
        return np.where(d >= 0, 1 - q ** np.maximum(d + 1, 0) / (1 + q), q ** np.maximum(-d, 0) / (1 + q))

    chances = []
    for i, v in enumerate(scores):
        chance = mass(v)
        for j, w in enumerate(scores):
            if j != i:
                chance = chance * at_most(w, support - 1 if j < i else support)
        chances.append(chance.sum())
    return np.array(chances)


def coarse(mechanism, sensitivity=1):
    """The same mechanism on the integers themselves, where ties happen and the law can be listed."""
    grid = ScoreGrid(0, sensitivity)
    object.__setattr__(mechanism, "_grid", grid)
    object.__setattr__(
        mechanism, "_rate", mechanism.epsilon / (sensitivity if mechanism.monotone else 2 * sensitivity)
    )
    return mechanism


@pytest.mark.parametrize("scores", [[2, 2, 2], [0, 1, 1, 3], [5, 0]])
def test_choices_follow_the_exact_law_with_ties_to_the_lowest_index(scores):
    expected = law(scores, 0.5)
    assert expected.sum() == pytest.approx(1, abs=1e-12)
    mechanism = coarse(NoisyMax(1, 1))
    with seeded(1):
        drawn = [mechanism.select(scores) for _ in range(6000)]
    assert_discrete(drawn, dict(enumerate(expected)))
    with pytest.raises(AssertionError):  # ties to the highest index are told apart
        assert_discrete([len(scores) - 1 - i for i in drawn], dict(enumerate(expected)))


def test_on_its_own_grid_ties_are_invisible():
    mechanism = NoisyMax(1, 1)
    with seeded(2):
        drawn = [mechanism.select([2.5, 2.5, 2.5]) for _ in range(6000)]
    assert_discrete(drawn, dict.fromkeys(range(3), 1 / 3))
    assert mechanism.scale == pytest.approx(2, rel=1e-5)
    assert NoisyMax(1, 1, monotone=True).scale == pytest.approx(1, rel=1e-5)


def neighbours(scores, sensitivity, *, monotone):
    """All integer moves of every score by at most the sensitivity (one way only if monotone)."""
    steps = range(0 if monotone else -sensitivity, sensitivity + 1)
    moves = np.stack(np.meshgrid(*[steps] * len(scores)), -1).reshape(-1, len(scores))
    return [tuple(np.array(scores) + move) for move in moves.tolist()]


def worst_ratio(scores, rate, sensitivity, *, monotone):
    here = law(scores, rate)
    return max(
        np.abs(np.log(here / law(there, rate))).max()
        for there in neighbours(scores, sensitivity, monotone=monotone)
    )


CASES = [(0, 0, 0), (0, 12, 12), (3, 0, 1), (0, 20)]


@pytest.mark.parametrize("scores", CASES)
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_no_neighbours_are_told_apart_by_more_than_epsilon(scores, sensitivity):
    assert worst_ratio(scores, 1 / (2 * sensitivity), sensitivity, monotone=False) <= 1 + 1e-9
    assert worst_ratio(scores, 1 / sensitivity, sensitivity, monotone=True) <= 1 + 1e-9


def test_epsilon_is_nearly_reached():
    assert worst_ratio((0, 60), 1 / 2, 1, monotone=False) > 0.96


def test_scale_for_monotone_scores_breaks_epsilon_on_others():
    # The planted bug: Lap(Δ/ε) on scores of which one falls while the others rise.
    assert worst_ratio((0, 12, 12), 1.0, 1, monotone=False) > 1.5
    assert worst_ratio((0, 12, 12), 1.0, 1, monotone=True) <= 1


def test_gumbel_noise_is_the_exponential_mechanism_and_exponential_noise_is_permute_and_flip():
    scores = [0.0, 1.5, 2.0]
    for noise, twin in (("gumbel", Exponential(1, 1)), ("exponential", PermuteAndFlip(1, 1))):
        mechanism = NoisyMax(1, 1, noise=noise)
        with seeded(5):
            ours = [mechanism.select(scores) for _ in range(200)]
        with seeded(5):
            theirs = [twin.select(scores) for _ in range(200)]
        assert ours == theirs
        assert mechanism.error(0.95, candidates=20) == twin.error(0.95, candidates=20)
        assert mechanism.loss == twin.loss


@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
def test_added_noise_of_that_law_gives_the_same_choices(noise):
    # The identities behind the two: simulated with floats, compared with the law that is drawn.
    scores, n = np.array([0.0, 1.5, 2.0]), 200_000
    generator = np.random.default_rng(7)
    added = (
        generator.gumbel(scale=2.0, size=(n, 3)) if noise == "gumbel" else generator.exponential(2.0, (n, 3))
    )
    simulated = np.bincount(np.argmax(scores + added, axis=1), minlength=3)
    mechanism = NoisyMax(1, 1, noise=noise)
    with seeded(8):
        drawn = np.bincount([mechanism.select(scores) for _ in range(6000)], minlength=3)
    for i in range(3):
        assert_bernoulli(int(drawn[i]), 6000, simulated[i] / n, alpha=1e-6)


def test_losses():
    assert NoisyMax(1, 1).loss.rho == Fraction(1, 2)
    assert NoisyMax(1, 1, noise="exponential").loss.rho == Fraction(1, 2)
    assert NoisyMax(1, 1, noise="gumbel").loss.rho == Fraction(1, 8)
    assert {NoisyMax(1, 1, noise=noise).loss.pure for noise in ("laplace", "gumbel", "exponential")} == {1}


@pytest.mark.parametrize("candidates", [2, 6])
def test_error_of_laplace_noise_covers_the_worst_scores_and_is_close(candidates):
    mechanism = coarse(NoisyMax("0.1", 1))
    width = int(mechanism.error(0.95, candidates=candidates))
    bad = 1 - law([width] + [0] * (candidates - 1), 0.05)[0]
    assert 0.02 < bad <= 0.05
    assert NoisyMax(1, 1).error(0.95, candidates=1) == 0


def test_a_million_candidates():
    scores = np.zeros(1_000_000)
    scores[4242] = 200.0
    with seeded(9):
        assert NoisyMax(2, 1).select(scores) == 4242


def test_unusable_input_is_refused():
    with pytest.raises(InvalidParameter, match="noise"):
        NoisyMax(1, 1, noise="gauss")
    with pytest.raises(InvalidParameter):
        NoisyMax("1e-15", 1)
    with pytest.raises(InvalidParameter, match="candidates"):
        NoisyMax(1, 1).error(0.9)
    for noise in ("laplace", "gumbel", "exponential"):
        for scores in ([], [float("nan"), 1.0], [float("-inf"), 0.0]):
            with pytest.raises(InvalidValue):
                NoisyMax(1, 1, noise=noise).select(scores)
