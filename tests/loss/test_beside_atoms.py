"""A sampled loss beside a pure or approximate one: two atoms move its curve, and the answer is known."""

from __future__ import annotations

import math
import random

import pytest

from sfumato.errors import NotCertified
from sfumato.loss import ApproximateLoss, GaussianLoss, LaplaceLoss, PrivacyLoss, PureLoss
from sfumato.numeric import compose, grid, grid_dots, grid_fft, grid_passes
from sfumato.numeric.bracket import Bracket


def drawn(pick: random.Random) -> tuple[PrivacyLoss, float, float]:
    """A sampled loss, some steps of it, and the epsilon and delta of a release beside it."""
    size = round(10 ** pick.uniform(-1.3, 0.7), 2)
    rate = round(10 ** pick.uniform(-3, -0.3), 4)
    inner = pick.choice((GaussianLoss, GaussianLoss, LaplaceLoss))(size)
    steps = pick.choice((1, 1, 2, 3, 7, 20, 50))
    return inner.sampled(rate) * steps, round(10 ** pick.uniform(-1, 0.5), 2), pick.choice((0.0, 1e-7, 1e-4))


def moved(sampled: PrivacyLoss, atom: float, failure: float, epsilon: float) -> Bracket:
    """The profile of the two together: E over the atoms ± of the sampled loss's own profile at epsilon ∓."""
    up = 1 / (1 + math.exp(-atom))
    lower = upper = 0.0
    for way in sampled.directions() or ():
        right, left = (compose.delta((way,), epsilon + move) for move in (-atom, atom))
        lower = max(lower, up * right.lower + (1 - up) * left.lower)
        upper = max(upper, up * right.upper + (1 - up) * left.upper)
    return Bracket(
        (failure + (1 - failure) * lower) * (1 - 1e-12), (failure + (1 - failure) * upper) * (1 + 1e-12)
    )


def problems(seed: int, rounds: int) -> list[str]:
    """What was refused, or contradicts the sum over the two atoms."""
    pick = random.Random(seed)
    found = []
    for _ in range(rounds):
        sampled, atom, failure = drawn(pick)
        beside = ApproximateLoss(atom, failure) if failure else PureLoss(atom)
        total = sampled + beside
        epsilon = pick.uniform(0, 2 * atom + 1)
        try:
            answer, truth = total.bracket(epsilon=epsilon), moved(sampled, atom, failure, epsilon)
            if not truth.lower <= answer.upper <= max(truth.upper * 1.01, 1e-13):
                found.append(f"{total}: delta({epsilon}) is {answer}, not {truth}")
            target = 10 ** pick.uniform(-6, -1) + failure
            reached = total.epsilon(target)
            if moved(sampled, atom, failure, reached).lower > target * (1 + 1e-9):
                found.append(f"{total}: epsilon({target}) is {reached}, which is too small")
        except NotCertified as error:
            found.append(f"{total}: {error}")
    return found


def test_a_sampled_loss_beside_an_approximate_one_has_an_epsilon() -> None:
    total = GaussianLoss("3.7").sampled("0.01") * 2 + ApproximateLoss(1, "1e-7")
    found = total.bracket(delta="1e-5")
    assert found.lower <= found.upper <= found.lower * (1 + 1e-5)
    assert 8.2 < found.upper < 8.3


def test_sampled_losses_beside_two_atoms() -> None:
    assert problems(3, 12) == []


@pytest.mark.stats
@pytest.mark.parametrize("seed", range(40, 60))
def test_many_sampled_losses_beside_two_atoms(seed: int) -> None:
    assert problems(seed, 20) == []


def test_the_search_would_see_a_window_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    # What was so before: below the lowest atoms only Chernoff's bound counted.
    monkeypatch.setattr(grid_fft, "_under", lambda *_: math.inf)
    monkeypatch.setattr(grid_passes, "_other_side", lambda *_: None)  # which would hide it
    grid_dots.clear()
    total = GaussianLoss("3.7").sampled("0.01") * 2 + ApproximateLoss(1, "1e-7")
    found = [grid.epsilon(way, 1e-5) for way in total.directions() or ()]
    assert max(one.upper - one.lower for one in found) > 5
