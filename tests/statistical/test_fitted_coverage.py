"""How often the bound on what limits cut holds where a tail goes on as its profile shows, and its width.

Tables are drawn anew each time, so that chance in the data is part of what is tested; profiles have the noise
of their price. The whole way to an interval is in tests/session/test_fitted.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions import tail as tails
from sfumato.plan.questions.profile import WEIGHT, Profile, ladder
from sfumato.plan.questions.tail import Tail

RISK = 0.05
LIMITS = (1, 5, 20, 100)


def zipf(power):
    return lambda draw, many: draw.zipf(power, many)


def log_normal(spread):
    return lambda draw, many: np.ceil(np.exp(draw.normal(0.5, spread, many)))


def few_with_hundreds(draw, many):
    return np.where(draw.random(many) < 0.01, draw.integers(100, 1000, many), draw.integers(1, 5, many))


FAMILY = {
    **{f"Zipf {power}": zipf(power) for power in (1.5, 2.0, 2.5, 3.0)},
    **{f"log-normal {spread}": log_normal(spread) for spread in (0.7, 1.0, 1.5)},
    "1 % with hundreds": few_with_hundreds,
}
SIZES = {"few": (3_000, 1.0), "many at a low price": (30_000, 0.2), "many": (30_000, 1.0)}


def profile_of(rows, ceiling, epsilon, draw, law="laplace"):
    """A profile of this price, a quarter of it for units, as `session.profile` divides it."""
    rungs = np.array(ladder(ceiling))
    cells = np.searchsorted(rungs, rows)
    scales = 4 / epsilon, 4 / 3 / epsilon * WEIGHT
    noise = [
        draw.laplace(scale=scale, size=len(rungs))
        if law == "laplace"
        else draw.normal(0, scale, size=len(rungs))
        for scale in scales
    ]
    units = np.bincount(cells, minlength=len(rungs)) + noise[0]
    weighted = np.bincount(cells, weights=rows, minlength=len(rungs)) * (WEIGHT // rungs) + noise[1]
    return Profile.of(ceiling, units, weighted, [Noise(law, scale) for scale in scales])


def held(draw, times, name, size, *, ceiling=1000, law="laplace", bent=lambda tail: tail):
    """How often each limit's bound is too low, how wide it is over the covering one, how many there are."""
    many, epsilon = SIZES[size]
    missed, ratios, seen = dict.fromkeys(LIMITS, 0), [], 0
    for _ in range(times):
        rows = np.minimum(FAMILY[name](draw, many), ceiling).astype(np.int64)
        profile = profile_of(rows, ceiling, epsilon, draw, law)
        tail = Tail.of(profile)
        if tail is None:
            continue
        seen += 1
        for limit in LIMITS:
            bound = bent(tail).most_cut(limit, RISK)
            missed[limit] += bound < np.maximum(rows - limit, 0).sum()
            ratios.append(bound / max(1.0, profile.most_cut(limit, RISK)))
    return max(missed.values()), float(np.median(ratios)) if ratios else 1.0, seen


@pytest.mark.parametrize("name", ["Zipf 2.5", "log-normal 1.5", "1 % with hundreds"])
def test_the_tail_that_goes_on_is_bounded(name):
    missed, ratio, seen = held(np.random.default_rng(4), 6, name, "many")
    assert seen == 6
    assert missed <= 4  # beyond this with probability 1e-5 at most
    assert ratio <= 1.1  # never much wider than the bound that assumes nothing


def test_it_is_narrower_where_few_have_very_many():
    ratios = [
        held(np.random.default_rng(4), 4, name, "many at a low price", ceiling=10_000)[1]
        for name in ("Zipf 3.0", "log-normal 1.0")
    ]
    assert max(ratios) < 0.5


def test_a_hump_further_up_is_no_tail(monkeypatch):
    """Many with few rows, nobody, some with hundreds: what falls before the gap tells nothing of these."""

    def chosen():
        draw = np.random.default_rng(8)
        rows = [np.append(draw.integers(1, 5, 3000), draw.integers(100, 1000, 26)) for _ in range(150)]
        tails_ = [Tail.of(profile_of(own, 1000, 1.0, draw)) for own in rows]
        return [tail.ends[1] for tail in tails_ if tail is not None and tail.ends[0] < 5]

    assert len(chosen()) <= 2
    monkeypatch.setattr(tails, "_more_above", lambda *known: False)  # the planted bug: nobody looks there
    assert len(chosen()) > 8


def test_planted_bug_a_count_taken_without_its_noise_is_seen():
    """The noisy number of units above the rung, as if it were the true one, and no chance in the data."""

    class Sure(Tail):
        def most_cut(self, limit, risk):
            known = replace(self.profile, noise=(Noise("laplace", 1e-9), self.profile.noise[1]))
            bare = Tail(known, self.place)
            return bare.most_cut(limit, 1 - 1e-9)

    missed, _, seen = held(
        np.random.default_rng(4), 20, "Zipf 3.0", "many", bent=lambda tail: Sure(tail.profile, tail.place)
    )
    assert missed > 0.25 * seen


def test_planted_bug_a_tail_without_chance_in_it_is_seen():
    """The expected rows above the rung in place of a quantile of theirs, given the law as it is."""
    rarer = (5 / np.arange(50, 10_000)) ** 2
    draw, count = np.random.default_rng(4), 900
    sums = np.array(
        [np.maximum(np.minimum(5 * draw.random(count) ** -0.5, 10_000) - 50, 0).sum() for _ in range(300)]
    )
    honest = tails._most_of_sum(count, rarer, RISK)
    assert (sums > honest).mean() <= RISK + 4 * np.sqrt(RISK / 300)
    assert (sums > count * rarer.sum()).mean() > 2 * RISK


@pytest.mark.parametrize("count", [1, 40, 5_000])
def test_the_quantile_of_a_sum_is_neither_low_nor_high(count):
    exceeds = np.array([0.5, 0.2, 0.2, 0.05])
    draw = np.random.default_rng(2)
    each = np.array([0.5, 0.3, 0.0, 0.15, 0.05])
    sums = draw.multinomial(count, each, size=20_000) @ np.arange(5)
    bound = tails._most_of_sum(count, exceeds, RISK)
    assert (sums > bound).mean() <= RISK + 4 * np.sqrt(RISK / 20_000)
    step = max(1, np.ceil(2 * (count * exceeds.sum() + 12) / 2**13))
    assert (sums > bound - 1 - (step - 1) * count).mean() >= RISK - 4 * np.sqrt(RISK / 20_000)


@pytest.mark.stats
@pytest.mark.parametrize(
    ("ceiling", "size", "law"),
    [
        *((ceiling, size, "laplace") for ceiling in (1_000, 10_000) for size in SIZES),
        (1_000, "many", "gaussian"),
    ],
)
@pytest.mark.parametrize("name", FAMILY)
def test_every_tail_that_goes_on_is_bounded(name, ceiling, size, law):
    missed, ratio, seen = held(np.random.default_rng(7), 150, name, size, ceiling=ceiling, law=law)
    assert missed <= 0.06 * seen + 3 * np.sqrt(0.05 * seen)
    assert ratio <= 1.1
