"""The edges of composed curves: few events, tiny and huge figures, curves that must not rise."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import NotCertified
from sfumato.loss import (
    ApproximateLoss,
    BoundedRangeLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    PureLoss,
    ResponseLoss,
)
from sfumato.numeric import compose
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.laws import SAMPLED_GAUSSIAN_ADD, SAMPLED_GAUSSIAN_REMOVE, Term


def drawn(pick: random.Random) -> PrivacyLoss:
    """A composition of a few random losses."""
    e = round(10 ** pick.uniform(-2, 0.7), 3)
    kinds = (
        lambda: PureLoss(e),
        lambda: LaplaceLoss(e),
        lambda: DiscreteLaplaceLoss(e, pick.randint(1, 4)),
        lambda: ResponseLoss(e, pick.randint(2, 6)),
        lambda: BoundedRangeLoss(e),
        lambda: GaussianLoss(e),
        lambda: DiscreteGaussianLoss(round(10 ** pick.uniform(-0.3, 3), 2)),
        lambda: ApproximateLoss(e, "1e-7"),
        lambda: GaussianLoss(e).sampled(round(10 ** pick.uniform(-3, -0.3), 4)),
        lambda: LaplaceLoss(e).sampled(round(10 ** pick.uniform(-2, -0.3), 4)),
        lambda: ConcentratedLoss(e),
    )
    total = pick.choice(kinds)() * pick.choice([1, 2, 3, 7, 20])
    return total + pick.choice(kinds)() * pick.choice([1, 2, 5]) if pick.random() < 0.5 else total


def rises(loss: PrivacyLoss, pick: random.Random) -> int:
    """How often δ rises with ε, or ε with δ, between points of which some are close together."""
    found = 0
    points = [0.0, *(pick.uniform(0, float(min(loss.pure or 20, 20))) for _ in range(3))]
    points += [point + 10 ** pick.uniform(-5, -2) for point in points]
    for read, places in (
        (loss.delta, sorted(points)),
        (loss.epsilon, sorted(10 ** pick.uniform(-11, -0.5) for _ in range(3))),
    ):
        last = math.inf
        for place in places:
            try:
                value = read(place)
            except NotCertified:
                continue
            found += value > last
            last = value
    return found


@pytest.mark.parametrize("seed", [2, 5])
def test_a_curve_never_rises(seed: int) -> None:
    pick = random.Random(seed)
    assert sum(rises(drawn(pick), pick) for _ in range(4)) == 0


def test_a_grid_that_is_narrow_by_chance_does_not_make_a_curve_rise() -> None:
    loss = GaussianLoss("2.518").sampled("0.2364") * 3 + DiscreteLaplaceLoss("2.518") * 5
    assert loss.delta("3.465403913299124e-05") <= loss.delta(0)


@pytest.mark.stats
@pytest.mark.parametrize("seed", range(100, 112))
def test_many_curves_never_rise(seed: int) -> None:
    pick = random.Random(seed)
    assert sum(rises(drawn(pick), pick) for _ in range(4)) == 0


def test_a_curve_that_rises_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    read = compose.delta
    noise = np.random.default_rng(1)

    def shaken(*args: object, **more: object) -> Bracket:
        found = read(*args, **more)  # type: ignore[arg-type]
        return Bracket(found.lower, found.upper * (1 + 0.01 * noise.random()))

    monkeypatch.setattr(compose, "delta", shaken)
    pick = random.Random(2)
    assert sum(rises(GaussianLoss(1), pick) for _ in range(10)) > 0


# The Laplace loss is two atoms and a density e^((l-ε)/2)/4 between: this is exact for two of them at 0.
def two_laplace(e: float) -> float:
    atoms = (0.5, 0.5 * math.exp(-e))
    top = -math.expm1(-2 * e) * atoms[0] ** 2
    # One atom and one in between, both in between: by quadrature on a fine grid of the sum.
    x = np.linspace(-e, e, 200_001)
    one = np.exp((x - e) / 2) / 4
    mixed = 2 * atoms[0] * np.trapezoid(one * np.maximum(0, -np.expm1(-(x + e))), x)
    s = np.linspace(0, 2 * e, 200_001)
    both = np.exp((s - 2 * e) / 2) / 16 * (2 * e - s)
    return top + mixed + float(np.trapezoid(both * -np.expm1(-s), s))


@pytest.mark.parametrize("e", [0.1, 1.0, 3.0])
def test_two_laplace_releases_at_epsilon_0(e: float) -> None:
    found = compose.bracket_of_delta((LaplaceLoss(e) * 2).directions() or (), 0.0)
    assert found.lower <= two_laplace(e) * (1 + 1e-9)
    assert two_laplace(e) * (1 - 1e-9) <= found.upper <= two_laplace(e) * (1 + 1e-6)


@pytest.mark.parametrize(("rho", "rate", "count"), [(1, "0.001", 2), (1, "0.001", 10), ("0.3", "0.05", 5)])
def test_either_direction_tells_delta_at_epsilon_0(rho: float | str, rate: str, count: int) -> None:
    ways = (GaussianLoss(rho).sampled(rate) * count).directions() or ()
    quick = compose.bracket_of_delta(ways, 0.0, swapped=True)
    slow = [compose.bracket_of_delta((way,), 0.0) for way in ways]
    assert all(way.lower <= quick.upper and quick.lower <= way.upper for way in slow)
    assert quick.upper <= min(way.upper for way in slow) * (1 + 1e-5)


# Rates this small make a tail that is no exponential: the figure is twice that of one step, or nearly.
@pytest.mark.parametrize("epsilon", [0.003, 0.05, 1.0])
def test_two_rare_samples_far_out(epsilon: float) -> None:
    ((term,), *_) = (GaussianLoss("0.1").sampled("0.0001") * 2).directions() or ()
    rate, sigma = term.parameters
    y = np.linspace(-12.0, 40.0, 400_001)
    ratio = np.log1p(rate * np.expm1(y / sigma - 0.5 / sigma**2))
    density = np.exp(-0.5 * y * y + ratio) / math.sqrt(2 * math.pi)
    truth = float(np.trapezoid(density * term.law.delta(epsilon - ratio, term.parameters), y))
    found = compose.bracket_of_delta(((term,),), epsilon)
    assert found.lower * (1 - 1e-9) <= truth <= found.upper * (1 + 1e-9)
    assert found.meets(1e-2, 0.0)


@pytest.mark.parametrize(("sigma", "count"), [(20, 2), (20, 50), (100, 10), (1000, 25)])
def test_composed_discrete_gaussians_of_ordinary_size_have_an_answer(sigma: int, count: int) -> None:
    loss = DiscreteGaussianLoss(sigma**2) * count
    near = GaussianLoss(Fraction(count, 2 * sigma**2))
    assert loss.delta(0) == pytest.approx(near.delta(0), rel=2e-3)
    assert loss.epsilon("1e-6") == pytest.approx(near.epsilon("1e-6"), rel=2e-3)
    found = loss.bracket(delta="1e-6")
    assert found.lower <= loss.epsilon("1e-6") == found.upper <= found.lower * (1 + 1e-4)
    assert loss.bracket(epsilon=0).upper == loss.delta(0)


def test_a_refusal_names_what_both_directions_leave_open(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first direction's own interval, [1, 9], need not hold the answer: the larger of both does.
    found = iter([Bracket(1.0, 9.0), Bracket(5.0, 9.5)])
    monkeypatch.setattr(compose, "_epsilon", lambda *_: next(found))
    ways = [[Term(SAMPLED_GAUSSIAN_REMOVE, (0.1, 1.0))], [Term(SAMPLED_GAUSSIAN_ADD, (0.1, 1.0))]]
    with pytest.raises(NotCertified, match=r"between epsilon 5 and 9\.5"):
        compose.epsilon(ways, 1e-6)


@pytest.mark.parametrize(
    "loss",
    [GaussianLoss(1000), GaussianLoss(400) + LaplaceLoss(1), GaussianLoss(900).sampled("0.5")],
)
def test_a_large_epsilon_is_read_where_it_is(loss: PrivacyLoss) -> None:
    assert loss.delta(1501) < loss.delta(700)


@pytest.mark.parametrize(
    ("loss", "epsilon"),
    [
        (GaussianLoss(1), 60),
        (PureLoss(1) * 3000, 2990),
        (LaplaceLoss(1) * 2000, 1999),
        (ResponseLoss(1, 3) * 900 + PureLoss(2), 901),
        (DiscreteGaussianLoss(1), 60),
        (ConcentratedLoss(1), 100),
    ],
)
def test_a_positive_delta_too_small_for_a_float_is_rounded_up(loss: PrivacyLoss, epsilon: int) -> None:
    assert loss.delta(epsilon) > 0


@pytest.mark.parametrize("small", ["0", "2e-9", "1e-7", "3e-6"])
@pytest.mark.parametrize(
    "loss",
    [
        LaplaceLoss(1) * 3,
        GaussianLoss("0.5").sampled("0.01"),
        GaussianLoss("0.5").sampled("0.01") * 3,
        PureLoss(1).sampled("0.1") * 40,
    ],
    ids=["laplace", "sampled", "sampled, three", "response, sampled"],
)
def test_next_to_nothing_can_be_added(loss, small):
    alone, both = loss.epsilon(1e-6), (loss + ApproximateLoss(small, "1e-12")).epsilon(1e-6)
    assert alone - 1e-7 <= both <= alone + 2 * float(small) + 1e-6
