"""Groups that join a stream on its way: noise of their own from that step on, for the price that was paid."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.continual import Banded, Buffered, Continual, Factorisation
from sfumato.continual.course import step_noise
from sfumato.continual.factorisation import SCALE_BITS
from sfumato.errors import InvalidParameter
from sfumato.testing import assert_variance, seeded
from streams_dense import inverted, matrix, placed

STEPS, MU = 6, 1.25
PLANS = {
    "independent": Factorisation(STEPS, Banded()),
    "band": Factorisation(STEPS, Banded.square_root(3)),
    "square root, scaled": Factorisation(STEPS, Banded.square_root(STEPS), True),
    "buffered, scaled": Factorisation(STEPS, Buffered.square_root(STEPS), True),
    "two steps": Factorisation(STEPS, Buffered.square_root(STEPS), touches=2),
    "two steps apart": Factorisation(STEPS, Banded.square_root(STEPS), touches=2, apart=3),
}
SINCE = (0, 0, 2, 3, 3, 5)  # when each of six groups joins


def stream_of(plan: Factorisation, moved: int = 4, **more: Any) -> Continual:
    price = {"rho": Fraction(MU) ** 2 / 2, "sensitivity": 1} | more
    return Continual(plan, groups=0, moved=moved, **price)


def view_of(stream: Continual, values: Any, secret: bytes, since: tuple[int, ...] = SINCE) -> dict[Any, int]:
    """The view of each group by itself, from its own step on: {(step, group): …}."""
    factor, states, view = stream.plan.factor, dict[int, Any](), dict[Any, int]()
    for t in range(stream.horizon):
        here = [g for g, first in enumerate(since) if first <= t]
        fresh = step_noise(secret, stream.variance, len(here), time=t, measure=0)
        for g in here:
            state = states.setdefault(g, np.zeros((factor.words, 1), object))
            noise = fresh[g : g + 1].astype(object) - factor.carried(state, t)
            states[g] = factor.advanced(state, t, noise)
            view[t, g] = placed(stream, t, int(values[t][g])) + int(noise[0])
    return view


def means(stream: Continual, values: Any, view: dict[Any, int], since: tuple[int, ...] = SINCE) -> Any:
    """What each step of a view is centred at, given the steps before."""
    factor, found = stream.plan.factor, dict[Any, int]()
    for g, first in enumerate(since):
        state: Any = np.zeros((factor.words, 1), object)
        for t in range(first, stream.horizon):
            fixed = placed(stream, t, int(values[t][g]))
            found[t, g] = fixed - int(factor.carried(state, t)[0])
            state = factor.advanced(state, t, np.array([view[t, g] - fixed], object))
    return found


def shift(stream: Continual, left: Any, right: Any) -> float:
    """How far apart two streams are on a view of the first, in sigmas."""
    view = view_of(stream, left, Continual.secret())
    ours, theirs = means(stream, left, view), means(stream, right, view)
    return math.sqrt(sum((ours[place] - theirs[place]) ** 2 for place in view) / stream.variance)


def neighbours(plan: Factorisation) -> list[Any]:
    """A row more in each of some steps, in a group that has joined by then or not."""
    found = []
    for steps in itertools.combinations(range(STEPS), plan.touches):
        if all(b - a >= plan.apart for a, b in itertools.pairwise(steps)):
            for groups in itertools.product(range(len(SINCE)), repeat=plan.touches):
                right = np.zeros((STEPS, len(SINCE)), int)
                right[list(steps), list(groups)] = 1
                found.append(right)
    return found


@pytest.mark.parametrize("name", PLANS)
def test_groups_that_join_cost_no_more_than_the_price(name: str) -> None:
    stream, nothing = stream_of(PLANS[name]), np.zeros((STEPS, len(SINCE)), int)
    distances = [shift(stream, nothing, right) for right in neighbours(PLANS[name])]
    assert 0.99 * MU <= max(distances) <= MU


def test_what_a_group_had_before_it_joined_would_cost_more() -> None:
    """Planted: with the step in which it joins, a group gets all that it had before."""
    stream = stream_of(PLANS["two steps"])
    left, right = np.zeros((2, STEPS, len(SINCE)), int)
    right[:4, 3] = 1  # in each step until then
    right[3, 3] = right[:4, 3].sum()
    right[:3, 3] = 0
    assert shift(stream, left, right) > 1.5 * MU


@pytest.mark.parametrize("name", PLANS)
def test_a_widened_course_is_each_group_by_itself(name: str) -> None:
    stream, secret = stream_of(PLANS[name]), Continual.secret()
    values = np.arange(STEPS * len(SINCE)).reshape(STEPS, len(SINCE)) - 7
    view, course = view_of(stream, values, secret), stream.start(secret)
    for t in range(STEPS):
        many = sum(first <= t for first in SINCE)
        course.widen(many)
        assert course.groups == many
        unit = Fraction(stream.plan.scale(t), 2**SCALE_BITS) * 2**stream.fine
        shown = course.release(values[t][:many], at=t).tolist()
        assert shown == [math.floor(view[t, g] / unit + Fraction(1, 2)) for g in range(many)]
        saved = stream.resume(secret, course.save())
        assert (saved.groups, saved.time) == (many, t + 1)
        assert saved.save() == course.save()


def test_a_stream_may_begin_without_groups() -> None:
    stream, secret = stream_of(PLANS["buffered, scaled"]), Continual.secret()
    course = stream.start(secret)
    assert course.release([], at=0).tolist() == []
    course.widen(2)
    course.release([5, 6], at=1)
    other = stream.start(secret)
    other.skip()
    other.widen(2)
    other.skip()
    assert other.save() == course.save()


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("since", [0, 1, 4])
def test_variances_of_late_groups_are_those_of_the_block(name: str, since: int) -> None:
    plan = PLANS[name]
    block = [row[since:] for row in matrix(plan)[since:]]
    noise = inverted(block)
    for weights in ([1] * STEPS, [0, 0, 3, 0, -1, 2], [0, 0, 0, 0, 1, 1]):
        parts = [
            sum((w * noise[i][s] for i, w in enumerate(weights[since:])), Fraction(0))
            for s in range(STEPS - since)
        ]
        exact = float(sum(part * part for part in parts))
        assert plan.variance(weights, since=since) == pytest.approx(exact, rel=1e-9)
        assert plan.variance(weights, since=since) <= plan.variance(weights) * (1 + 1e-12)
    for window in (None, 1, 2):
        every = plan.variances(window, since=since)
        for step in range(STEPS):
            weights = [float(step - (window or STEPS) < t <= step) for t in range(step + 1)]
            expected = 0.0 if step < since else plan.variance(weights, since=since)
            assert every[step] == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("name", PLANS)
def test_noise_of_late_groups_has_the_stated_deviation(name: str) -> None:
    stream, many, since = stream_of(PLANS[name], rho="0.5"), 4000, 2
    with seeded(f"late {name}"):
        course = stream.start(Continual.secret())
    shown = []
    for t in range(STEPS):
        course.widen(many if t >= since else 0)
        values = course.release([0] * course.groups)
        shown.append(stream.floats(values) if t >= since else np.zeros(many))
    for weights in ([1.0] * STEPS, [0, 0, 1, 0, 0, -1]):
        assert_variance(np.asarray(weights) @ np.array(shown), stream.deviation(weights, since=since) ** 2)
    if name == "independent":  # four steps, not six
        with pytest.raises(AssertionError):
            assert_variance(np.ones(STEPS) @ np.array(shown), stream.deviation([1.0] * STEPS) ** 2)


def test_rounding_is_paid_for_the_groups_that_a_unit_can_move() -> None:
    plan = Factorisation(3000, Buffered.square_root(3000), True)
    variances = [stream_of(plan, moved).variance for moved in (1, 100)]
    assert variances[0] < variances[1]
    assert (
        stream_of(plan, 7).variance
        == Continual(plan, rho=Fraction(MU) ** 2 / 2, sensitivity=1, groups=7).variance
    )
    assert stream_of(plan, 1).fingerprint != stream_of(plan, 100).fingerprint


def test_what_cannot_be_widened_is_refused() -> None:
    plan = PLANS["band"]
    with pytest.raises(InvalidParameter, match="fixed"):
        Continual(plan, rho=1, sensitivity=1, groups=2).start(Continual.secret()).widen(3)
    with pytest.raises(InvalidParameter, match="groups"):
        Continual(plan, rho=1, sensitivity=1, groups=0)
    with pytest.raises(InvalidParameter, match="moved"):
        stream_of(plan, 0)
    course = stream_of(plan).start(Continual.secret())
    course.widen(3)
    with pytest.raises(InvalidParameter, match="at least 3"):
        course.widen(2)
