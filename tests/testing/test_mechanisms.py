"""Each check of the kit fails on a mechanism that breaks just that."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

from sfumato.errors import InvalidValue
from sfumato.mechanisms import Example, Laplace
from sfumato.testing import check_mechanism
from sfumato.testing.mechanisms import CHECKS, examine
from sfumato.testing.mutants import MUTANTS

HONEST = Example.of_release("laplace", Laplace(1, 1), 0.0, 1.0)
SMALL = 20_000


def checks(example):
    return {failure.check for failure in examine(example, samples=SMALL).failures}


@dataclass(slots=True)
class Wrapped:
    """A Laplace mechanism in another coat: all that it promises, none of its care."""

    inner: Laplace

    loss = property(lambda self: self.inner.loss)
    variance = property(lambda self: self.inner.variance)
    bias = property(lambda self: self.inner.bias)

    def error(self, confidence, *, size=1):
        return self.inner.error(confidence, size=size)

    def release(self, value):
        return self.inner.release(value)


@dataclass(frozen=True, slots=True)
class Frozen:
    """The same with its parameters fixed."""

    inner: Laplace

    loss = property(lambda self: self.inner.loss)
    variance = property(lambda self: self.inner.variance)
    bias = property(lambda self: self.inner.bias)
    error = Wrapped.error
    release = Wrapped.release


def test_honest_mechanism_passes_and_is_seen_whole():
    report = check_mechanism(HONEST, samples=SMALL)
    assert 0.8 < report.seen < 1.1
    assert "laplace" in str(report)


def test_parameters_that_can_be_changed_are_found():
    assert checks(dataclasses.replace(HONEST, mechanism=Wrapped(Laplace(1, 1)))) == {"frozen"}
    assert checks(dataclasses.replace(HONEST, mechanism=Frozen(Laplace(1, 1)))) == set()


def test_second_source_of_randomness_is_found():
    noise = np.random.default_rng(1)
    own = dataclasses.replace(
        HONEST, draw=lambda side, n: HONEST.draw(side, n) + noise.integers(0, 2, n) * 2.0**-30
    )
    assert "source" in checks(own)


def test_no_randomness_is_found():
    silent = dataclasses.replace(HONEST, draw=lambda side, n: np.full(n, HONEST.input(side)))
    assert {"source", "loss", "variance"} <= checks(silent)


@dataclass(frozen=True, slots=True)
class Careless(Frozen):
    """Gives back arrays for numbers, and an answer for NaN."""

    def release(self, value):
        try:
            return np.asarray(self.inner.release(value))
        except InvalidValue:
            return 0.0


@dataclass(frozen=True, slots=True)
class Talkative(Frozen):
    """Says in its errors what the private value was."""

    def release(self, value):
        try:
            return self.inner.release(value)
        except InvalidValue as refusal:
            raise InvalidValue(f"{refusal} It was {value}.") from None


def test_lost_shape_and_accepted_nan_are_found():
    assert checks(dataclasses.replace(HONEST, mechanism=Careless(Laplace(1, 1)))) == {"shape", "refusal"}


def test_message_that_shows_a_value_is_found():
    failures = examine(
        dataclasses.replace(HONEST, mechanism=Talkative(Laplace(1, 1))), samples=SMALL
    ).failures
    assert {failure.check for failure in failures} == {"refusal"}
    assert all("shows a private value" in failure.words for failure in failures)


def test_listed_law_is_held_against_samples_and_claim():
    fair = MUTANTS["discrete Gaussian with the continuous curve"].honest
    shifted = dataclasses.replace(fair, pmf=lambda side: {k + 1: p for k, p in fair.pmf(side).items()})
    assert checks(shifted) == {"law"}


def test_all_failures_are_told_at_once():
    with pytest.raises(AssertionError) as caught:
        check_mechanism(MUTANTS["half the noise"].planted, samples=SMALL)
    for check in ("loss", "coverage", "variance"):
        assert check in CHECKS
        assert f"{check}:" in str(caught.value)
