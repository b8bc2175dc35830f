"""Partition selection by its draws: a unit alone in many groups stays unseen, and noise follows its law.

What is exact is in `tests/mechanisms`; here the whole release is run, random bits and all.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from sfumato.audit.bounds import clopper_pearson
from sfumato.mechanisms.partition_selection import PartitionSelection, _Law, examples
from sfumato.testing import assert_discrete, check_mechanism, seeded
from sfumato.testing.mechanisms import examine

GROUPS = 1000
FAILS = 1e-4  # a limit holds with 99.99 % confidence
LAWS = {
    "usual": PartitionSelection(1, "1e-5"),
    "exchange": PartitionSelection("1.5", "0.01", groups=2, exchange=True),
    "steep": PartitionSelection(5, "1e-8"),
    "flat": PartitionSelection("0.05", "1e-3"),
    "nearly uniform": PartitionSelection("1e-6", "0.1"),
    "two steps": PartitionSelection(1, "0.4"),
    "one half": PartitionSelection(1, "0.5"),
    "mostly delta": PartitionSelection(1, "0.9"),
}


def with_law(mechanism: PartitionSelection, rate: Fraction, risk: Fraction) -> PartitionSelection:
    """A planted bug: the claim of one mechanism with the noise of another."""
    planted = PartitionSelection(mechanism.epsilon, mechanism.delta, groups=mechanism.groups)
    law = _Law.of(rate, risk)
    for name, value in (("_law", law), ("_threshold", law.centre())):
        object.__setattr__(planted, name, value)
    return planted


class AtLeast(PartitionSelection):
    """A planted bug: the threshold itself is enough."""

    __slots__ = ()

    def release(self, counts):
        noisy = counts + (self.threshold - self._law.draw(counts.size)).reshape(counts.shape)
        kept = (noisy >= self.threshold) & (counts > 0)
        return kept, np.where(kept, noisy, 0)


def seen(mechanism: PartitionSelection, trials: int, *, groups: int = GROUPS) -> int:
    """How often at least one group shows, of a unit that is alone in each of so many."""
    total, counts = 0, np.ones((100, groups), np.int64)
    with seeded(f"alone {mechanism} {type(mechanism).__name__}"):
        for _ in range(trials // 100):
            total += int(mechanism.release(counts)[0].any(axis=1).sum())
    return total


def refuted(mechanism: PartitionSelection, trials: int, *, groups: int = GROUPS) -> bool:
    """Whether the rate is above delta, with 99.99 % confidence."""
    low, _ = clopper_pearson(seen(mechanism, trials, groups=groups), trials, FAILS)
    return bool(low > float(mechanism.delta))


def alone(delta: str, trials: int) -> None:
    mechanism = PartitionSelection(1, delta, groups=GROUPS)
    low, high = clopper_pearson(seen(mechanism, trials), trials, FAILS)
    expected = 1 - (1 - float(mechanism.per_group[1])) ** GROUPS
    assert low <= expected <= high  # no more, and no less: they were really looked for
    assert expected <= float(mechanism.delta)


@pytest.mark.parametrize("delta", ["0.01", "0.1"])
def test_a_unit_in_a_thousand_groups_is_seen_at_a_rate_of_delta(delta) -> None:
    alone(delta, 3_000)


@pytest.mark.stats
@pytest.mark.parametrize("delta", ["0.01", "0.001"])
def test_a_unit_in_a_thousand_groups_is_seen_at_a_rate_of_delta_over_many_trials(delta) -> None:
    alone(delta, 80_000)


@pytest.mark.stats
@pytest.mark.parametrize("delta", ["0.01", "0.001"])
def test_a_unit_in_one_group_is_seen_at_a_rate_of_delta_over_many_trials(delta) -> None:
    mechanism = PartitionSelection(1, delta)
    low, high = clopper_pearson(seen(mechanism, 80_000, groups=1), 80_000, FAILS)
    assert low <= float(mechanism.delta) <= high


def test_planted_bugs_show_a_unit_too_often() -> None:
    honest = PartitionSelection(1, "0.1", groups=GROUPS)
    rate, risk = honest.per_group
    assert not refuted(honest, 1_000)
    assert refuted(with_law(honest, rate, honest.delta), 1_000)  # delta not divided
    assert refuted(with_law(honest, rate, 2 * risk), 1_000)  # nor by half of the groups
    assert refuted(AtLeast(1, "0.1", groups=GROUPS), 1_000)
    assert refuted(AtLeast(1, "0.01"), 10_000, groups=1)


@pytest.mark.parametrize("mechanism", LAWS.values(), ids=LAWS)
def test_draws_follow_the_law(mechanism) -> None:
    shares = [mechanism.keep_probability(n) for n in range(mechanism.certain + 1)]
    law = {j: shares[j + 1] - shares[j] for j in range(mechanism.certain)}
    with seeded(1):
        drawn = mechanism._law.draw(30_000)
    assert_discrete(drawn, law)
    with pytest.raises(AssertionError):
        assert_discrete(drawn, {j + 1: p for j, p in law.items()})


@pytest.mark.parametrize("count", [1, 3, 6, 9, 14])
def test_intervals_cover_the_survivors(count) -> None:
    mechanism = PartitionSelection(1, "0.01")
    with seeded(2):
        kept, noisy = mechanism.release(np.full(200_000, count))
    low, high = mechanism.interval(noisy[kept], "0.9")
    inside = int(((low <= count) & (count <= high)).sum())
    assert clopper_pearson(inside, int(kept.sum()), FAILS)[1] >= 0.9


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_examples_keep_their_claims(example) -> None:
    check_mechanism(example, samples=20_000)


@pytest.mark.parametrize(
    ("rate", "risk"),
    [(2, Fraction(1, 100)), (1, Fraction(1, 10)), (Fraction(1, 2), Fraction(1, 100))],
    ids=["half the noise", "ten times the delta", "twice the noise"],
)
def test_the_kit_sees_planted_bugs(rate, risk) -> None:
    honest = examples()[0]
    planted = with_law(honest.mechanism, Fraction(rate), risk)

    def draw(side, count):
        return planted.release(np.full(count, honest.input(side)))[1]

    failures = examine(dataclasses.replace(honest, draw=draw), samples=20_000).failures
    assert {failure.check for failure in failures} & {"loss", "law"}
