"""A stream step by step: the same noise whenever it is computed again, and never the same elsewhere."""

from __future__ import annotations

import copy
import hashlib
import json
import multiprocessing
import pickle
from unittest import mock

import numpy as np
import pytest

from sfumato.continual import Banded, Buffered, Continual, Course, Factorisation, course
from sfumato.errors import InvalidParameter, InvalidValue, Spent
from sfumato.mechanisms._grid import LIMIT
from sfumato.testing import seeded

STEPS, GROUPS = 7, 5
FORMS = {
    "independent": Factorisation(STEPS, Banded()),
    "band": Factorisation(STEPS, Banded.square_root(3)),
    "square root": Factorisation(STEPS, Banded.square_root(STEPS), True),
    "buffered": Factorisation(STEPS, Buffered.square_root(STEPS), touches=2),
    "scaled": Factorisation(STEPS, Buffered.square_root(STEPS), True),
}
FIRST = [308452628009, -1042015373336, -549234423908]
DIGEST = "43c12aa0797334c16114fcdc1c82a877fa1c05570bb64859d72dfe8a9c5623d9"
VALUES = np.arange(STEPS * GROUPS).reshape(STEPS, GROUPS) - 11


def mechanism(form: str, **price: object) -> Continual:
    return Continual(FORMS[form], **({"rho": "0.5", "sensitivity": 1, "groups": GROUPS} | price))


def released(stream: Course, first: int = 0) -> list[list[int]]:
    return [stream.release(VALUES[t], at=t).tolist() for t in range(first, STEPS)]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_secret_gives_the_same_noise(form: str) -> None:
    stream, secret = mechanism(form), Continual.secret()
    assert released(stream.start(secret)) == released(stream.start(secret))
    assert released(stream.start(secret)) != released(stream.start(Continual.secret()))


def replays_alike(form: str) -> bool:
    stream, secret = mechanism(form), Continual.secret()
    return released(stream.start(secret)) == released(stream.start(secret))


def test_fresh_noise_on_replay_is_seen() -> None:
    """Planted: noise from this thread's stream of bits instead of the secret's."""
    from sfumato import random

    def fresh(secret: bytes, variance: int, groups: int, **where: object) -> np.ndarray:
        return random.gaussian_of_key(random.salt(32), variance, groups).near

    assert replays_alike("scaled")
    with mock.patch.object(course, "step_noise", fresh):
        assert not replays_alike("scaled")


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_goes_on_from_any_step_by_its_state_or_by_its_secret(form: str) -> None:
    stream, secret = mechanism(form), Continual.secret()
    whole = released(stream.start(secret, measure=3))
    running = stream.start(secret, measure=3)
    for t in range(STEPS):
        state = running.save()
        assert released(stream.resume(secret, state, measure=3), t) == whole[t:]
        assert released(stream.resume(secret, time=t, measure=3), t) == whole[t:]
        assert stream.resume(secret, state, measure=3).save() == state
        running.release(VALUES[t])
    assert running.time == stream.resume(secret, running.save(), measure=3).time == STEPS


def test_a_state_beyond_64_bits_is_saved_too() -> None:
    stream, secret = mechanism("buffered"), Continual.secret()
    running = stream.start(secret)
    running.release(VALUES[0])
    running._at = 1, running._at[1].astype(object) + 2**90
    again = stream.resume(secret, running.save())
    assert again._at[1].tolist() == running._at[1].tolist()
    assert again.release(VALUES[1]).tolist() == running.release(VALUES[1]).tolist()


def test_the_width_of_the_state_does_not_change_a_release() -> None:
    stream, secret = mechanism("buffered"), Continual.secret()
    wide = stream.start(secret)
    wide._at = 0, wide._at[1].astype(object)
    assert released(wide) == released(stream.start(secret))


@pytest.mark.parametrize("form", FORMS)
def test_a_step_that_was_cut_off_is_the_same_when_it_is_done_again(form: str) -> None:
    """An interrupt after the state was worked on and before the time went on."""
    stream, secret = mechanism(form), Continual.secret()
    whole = released(stream.start(secret))
    running = stream.start(secret)
    for t in range(STEPS):
        for _ in range(2):
            stopped = running._at
            running._advance(b"")
            running._at = stopped
        assert running.release(VALUES[t]).tolist() == whole[t]


def test_the_noise_of_a_secret_is_that_of_earlier_versions() -> None:
    """If this fails, a stream cannot be resumed from its secret, only from a state: say so."""
    noise = [
        course.step_noise(bytes(range(32)), 3**50, groups, time=time, measure=measure).tolist()
        for groups, time, measure in ((3, 0, 0), (3, 1, 0), (3, 0, 1), (1000, 5, 0))
    ]
    told = hashlib.sha256(json.dumps(noise).encode()).hexdigest()
    assert noise[0] == FIRST
    assert told == DIGEST


def test_a_state_that_was_changed_or_is_anothers_is_refused() -> None:
    stream, secret = mechanism("scaled"), Continual.secret()
    state = stream.start(secret).save()
    others = [
        lambda: stream.resume(Continual.secret(), state),
        lambda: stream.resume(secret, state[:-1] + bytes([state[-1] ^ 1])),
        lambda: stream.resume(secret, bytes([state[0] ^ 1]) + state[1:]),
        lambda: stream.resume(secret, b""),
        lambda: stream.resume(secret, "state"),
        lambda: stream.resume(secret, state, measure=1),
        lambda: mechanism("buffered").resume(secret, state),
        lambda: mechanism("scaled", rho="0.4").resume(secret, state),
        lambda: mechanism("scaled", groups=4).resume(secret, state),
    ]
    for resume in others:
        with pytest.raises(InvalidParameter, match="state"):
            resume()


@pytest.mark.parametrize("form", FORMS)
def test_no_two_steps_groups_or_measures_share_noise(form: str) -> None:
    stream, secret = mechanism(form), Continual.secret()
    noise = [
        course.step_noise(secret, stream.variance, GROUPS, time=t, measure=m)
        for t in range(STEPS)
        for m in (0, 1)
    ]
    assert len(np.unique(np.concatenate(noise))) == 2 * STEPS * GROUPS


def test_a_salt_gives_a_step_noise_of_its_own_and_is_needed_again() -> None:
    stream, secret = mechanism("scaled"), Continual.secret()

    def shown(first: bytes, second: bytes) -> list[list[int]]:
        running = stream.start(secret)
        return [
            running.release(VALUES[0], salt=first).tolist(),
            running.release(VALUES[0], salt=second).tolist(),
        ]

    both = shown(b"a", b"b")
    assert both == shown(b"a", b"b")
    assert both[0] != shown(b"b", b"b")[0]
    assert both[1] != shown(b"b", b"b")[1]  # what is taken back of the first step differs
    skipped = stream.start(secret)
    skipped.skip(salt=b"a")
    assert skipped.release(VALUES[0], salt=b"b").tolist() == both[1]


def test_noise_shared_among_groups_is_seen() -> None:
    """Planted: one draw a step for all groups."""

    def distinct() -> int:
        stream = mechanism("scaled")
        return len(np.unique(stream.start(Continual.secret()).release([0] * GROUPS)))

    one = course.step_noise

    def shared(secret: bytes, variance: int, groups: int, **where: object) -> np.ndarray:
        return np.repeat(one(secret, variance, 1, **where), groups)

    assert distinct() == GROUPS
    with mock.patch.object(course, "step_noise", shared):
        assert distinct() == 1


def test_beyond_the_horizon_nothing_is_released() -> None:
    stream = mechanism("scaled").start(Continual.secret())
    released(stream)
    state = stream.save()
    for _ in range(2):
        with pytest.raises(Spent, match="horizon"):
            stream.release(VALUES[0])
    with pytest.raises(Spent, match="horizon"):
        stream.skip()
    assert stream.save() == state
    with pytest.raises(InvalidParameter, match="horizon"):
        mechanism("scaled").resume(Continual.secret(), time=STEPS + 1)


def test_steps_out_of_order_change_nothing() -> None:
    stream = mechanism("scaled").start(Continual.secret())
    stream.release(VALUES[0], at=0)
    state = stream.save()
    for at in (0, 2, -1):
        with pytest.raises(InvalidParameter, match="out of order"):
            stream.release(VALUES[1], at=at)
    assert stream.save() == state


@pytest.mark.parametrize(
    "values", [[1] * 4, [1] * 6, [[1] * 5], [1.0] * 5, [True] * 5, [None] * 5, "12345", np.ones(5), 3, None]
)
def test_values_that_are_not_one_integer_a_group_change_nothing(values: object) -> None:
    stream = mechanism("scaled").start(Continual.secret())
    state = stream.save()
    with pytest.raises(InvalidValue, match="integers, one a group"):
        stream.release(values)
    assert stream.save() == state


@pytest.mark.parametrize("sensitivity", [1, 10**9])
def test_values_of_every_size_and_type_are_read_alike(sensitivity: int) -> None:
    stream, secret = mechanism("scaled", sensitivity=sensitivity), Continual.secret()
    assert (stream.exponent > 0) == (sensitivity > 1)
    lists = [[7, -7, 0, 100, 1], np.array([7, -7, 0, 100, 1], np.int8), np.array([7, -7, 0, 100, 1], object)]
    assert len({tuple(stream.start(secret).release(values).tolist()) for values in lists}) == 1
    ends = [[end, -end, 2**63 - 1, -(2**63), 0] for end in (10**30, 10**60)]
    huge = [stream.start(secret).release(values).tolist() for values in ends]
    assert huge[0] == huge[1]
    assert max(map(abs, huge[0])) <= LIMIT
    words = np.array([2**63 - 1, -(2**63), 2**61, -(2**61) - 1, 5])
    assert (
        stream.start(secret).release(words).tolist() == stream.start(secret).release(words.tolist()).tolist()
    )


def test_releases_are_values_with_noise_of_the_stated_size() -> None:
    stream = mechanism("scaled", groups=1000)
    with seeded(5):
        running = stream.start(Continual.secret())
    errors = np.array([stream.floats(running.release([50 * t] * 1000)) - 50 * t for t in range(STEPS)])
    for t in range(STEPS):
        spread = np.sqrt((errors[: t + 1].sum(axis=0) ** 2).mean())
        assert spread == pytest.approx(stream.deviation_running(t + 1), rel=0.2)


def test_a_course_is_not_copied_pickled_or_printed_with_its_secret() -> None:
    secret = Continual.secret()
    stream = mechanism("scaled").start(secret)
    for action in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied"):
            action(stream)
    assert repr(stream) == "<a stream after 0 of 7 steps>"


def _in_child(stream: Course, answers: object) -> None:
    try:
        stream.release(VALUES[0])
    except Spent:
        answers.put("refused")  # type: ignore[attr-defined]
    else:
        answers.put("released")  # type: ignore[attr-defined]


def test_a_forked_copy_releases_nothing() -> None:
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(mechanism("scaled").start(Continual.secret()), answers))
    child.start()
    assert answers.get() == "refused"
    child.join()


@pytest.mark.parametrize("secret", [b"", b"x" * 31, "x" * 32, None])
def test_a_secret_has_32_bytes(secret: object) -> None:
    with pytest.raises(InvalidParameter, match="32 bytes"):
        mechanism("scaled").start(secret)


def test_a_stream_is_resumed_in_one_way() -> None:
    for ways in ({}, {"state": b"x", "time": 1}):
        with pytest.raises(InvalidParameter, match="not both"):
            mechanism("scaled").resume(Continual.secret(), **ways)
