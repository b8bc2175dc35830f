"""What a profile says about limits: bounds that hold for all of them at once, and which one is chosen."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.plan.intervals.forms import tail_of_two
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.intervals.sums import width_of_sum
from sfumato.plan.questions.likely import Goal
from sfumato.plan.questions.profile import WEIGHT, Profile, ladder

CEILING = 1000
RUNGS = np.array(ladder(CEILING))


def profile_of(rows, scale, noise):
    """The profile of units with so many rows, with this noise on the rows of its cells."""
    held = np.minimum(rows, CEILING)
    cells = np.searchsorted(RUNGS, held)
    sums = np.bincount(cells, weights=held, minlength=len(RUNGS))
    weighted = sums * (WEIGHT // RUNGS) + noise * WEIGHT
    laws = (Noise("laplace", scale), Noise("laplace", scale * WEIGHT))
    return Profile.of(CEILING, np.bincount(cells, minlength=len(RUNGS)), weighted, laws)


def cuts(rows):
    return {int(rung): int(np.maximum(np.minimum(rows, CEILING) - rung, 0).sum()) for rung in RUNGS}


TABLES = {
    "one each": np.ones(500, dtype=int),
    "at the ceiling": np.full(40, CEILING),
    "one at the ceiling": np.array([CEILING]),
    "on every rung": np.repeat(RUNGS, 3),
    "just above every rung": np.repeat(RUNGS[:-1] + 1, 3),
    "Zipf": np.random.default_rng(1).zipf(1.6, 3000),
    "few heavy": np.array([2] * 990 + [300] * 10),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_bound_holds_for_all_limits_at_once(name):
    rows, draw, risk, times = TABLES[name], np.random.default_rng(5), 0.05, 600
    truth = cuts(rows)
    limits = [*truth, 3, 77, 999]
    truth |= {limit: int(np.maximum(np.minimum(rows, CEILING) - limit, 0).sum()) for limit in limits}
    missed = 0
    for noise in draw.laplace(scale=4.0, size=(times, len(RUNGS))):
        profile = profile_of(rows, 4.0, noise)
        missed += any(profile.most_cut(limit, risk) < truth[limit] - 1e-3 for limit in limits)
    assert missed <= times * risk + 4 * np.sqrt(times * risk)


def test_planted_bug_a_width_for_one_limit_alone_is_seen():
    # The worst for all limits at once: many units right at each rung. Half of the width misses too often.
    rows, draw, times = TABLES["on every rung"], np.random.default_rng(5), 600
    truth, missed = cuts(rows), 0
    for noise in draw.laplace(scale=4.0, size=(times, len(RUNGS))):
        profile = profile_of(rows, 4.0, noise)
        rest = {limit: np.maximum(0, 1 - limit / RUNGS) @ profile.rows for limit in truth}
        halves = {limit: (profile.most_cut(limit, 0.05) + rest[limit]) / 2 for limit in truth}
        missed += any(halves[limit] < truth[limit] for limit in truth)
    assert missed > times * 0.05 + 4 * np.sqrt(times * 0.05)


@pytest.mark.parametrize("limit", [1, 7, 100, 999])
def test_the_bound_allows_for_the_noise_of_all_cells_at_the_risk_that_is_asked_for(limit):
    """What Lévy's inequality needs: all cells' noise together is beyond it with this risk, not with more."""
    noise = np.random.default_rng(3).laplace(scale=4.0, size=len(RUNGS))
    profile = profile_of(TABLES["Zipf"], 4.0, noise)
    seen = np.maximum(0, 1 - limit / RUNGS) @ profile.rows
    for risk in (0.001, 0.05, 0.3):
        all_cells = width_of_sum([(float(rung), Noise("laplace", 4.0)) for rung in RUNGS], risk)
        wide = (1 - limit / CEILING) * all_cells
        assert profile.most_cut(limit, risk) == pytest.approx(max(0, seen + wide), rel=1e-4)


def test_where_nothing_is_cut_nothing_is_said():
    profile = profile_of(TABLES["Zipf"], 4.0, np.zeros(len(RUNGS)))
    assert profile.most_cut(CEILING, 0.05) == 0
    assert profile.most_cut(CEILING + 1, 0.05) == 0
    widths = [profile.most_cut(int(rung), 0.05) for rung in RUNGS]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("name", "most"), [("one each", 1.5), ("Zipf", 1.8), ("at the ceiling", 1.1), ("few heavy", 2.5)]
)
def test_the_limit_is_near_the_best_in_hindsight(name, most):
    # Noise of the profile as of a price of 1, and that of a count at four times that.
    rows, draw, price = np.tile(TABLES[name], 10), np.random.default_rng(2), 1 / 4
    truth = cuts(rows)
    errors = {limit: price * limit + cut for limit, cut in truth.items()}
    found = [
        errors[profile_of(rows, 4 / 3, noise).best_limit([Goal(price)])]
        for noise in draw.laplace(scale=4 / 3, size=(60, len(RUNGS)))
    ]
    assert np.mean(found) <= most * min(errors.values())


def test_a_limit_for_an_error_cuts_no_more_than_that():
    profile = profile_of(TABLES["few heavy"], 1.0, np.zeros(len(RUNGS)))
    assert profile.limit_within(0.1) == 500
    assert profile.limit_within(3_000) == 2
    assert profile.limit_within(2_000, groups=2) == 1


def test_the_width_of_two_noises_is_exact():
    for scales in [(1.0, 0.3), (5.0, 4.0), (2.0, 1e-6)]:
        wide = width_of_sum([(scale, Noise("laplace", 1.0)) for scale in scales], 0.05)
        assert float(tail_of_two(wide, *scales)) == pytest.approx(0.05, rel=1e-6)
    alone = width_of_sum([(2.0, Noise("laplace", 3.0))], 0.01)
    assert alone == pytest.approx(-6 * np.log(0.01), rel=1e-9)
    assert width_of_sum([], 0.05) == 0


@pytest.mark.parametrize("count", [3, 10, 25])
def test_the_width_of_many_noises_is_neither_narrow_nor_wide(count):
    draw = np.random.default_rng(count)
    scales = draw.choice([1.0, 1.0, 2.0, 7.0, 40.0], size=count)
    sums = np.abs(draw.laplace(size=(200_000, count)) @ scales)
    for risk in (0.3, 0.05, 0.001):
        wide = width_of_sum([(scale, Noise("laplace", 1.0)) for scale in scales], risk)
        beyond = (sums > wide).mean()
        assert beyond <= risk + 4 * np.sqrt(risk / len(sums))
        assert (sums > wide / 1.12).mean() >= risk - 4 * np.sqrt(risk / len(sums))


def test_gaussian_noise_adds_up_in_squares():
    wide = width_of_sum([(3.0, Noise("gaussian", 1.0)), (4.0, Noise("gaussian", 1.0))], 0.05)
    assert wide == pytest.approx(5 * 1.959964, rel=1e-6)
    with pytest.raises(InvalidParameter, match="all Gaussian or all Laplace"):
        width_of_sum([(1.0, Noise("gaussian", 1.0)), (1.0, Noise("laplace", 1.0))], 0.05)
