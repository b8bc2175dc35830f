"""The replay kit by itself: honest programs pass, and every planted leak beside the noise is found."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest

import sfumato as sf
from sfumato.testing import compare, record
from sfumato.testing.replaying import lost

PEOPLE = (3.0, 9.0, 4.0, 7.5)
LAPLACE = sf.Laplace(epsilon=1, sensitivity=10)


def honest(values):
    return LAPLACE.release(float(np.clip(values, 0, 10).sum()))


def on(program, left=PEOPLE, right=(*PEOPLE, 10.0), **options):
    return compare(lambda: program(left), lambda: program(right), **options)


def test_an_honest_program_is_alike_on_both_sides():
    assert on(honest) == []
    assert on(honest, inside=True) == []


def test_frozen_answers_are_those_of_the_first_run():
    answers = []
    program = lambda values: answers.append(honest(values))  # noqa: E731
    assert on(program) == []
    assert answers[0] == answers[1]


def unclamped(values):
    return LAPLACE.release(float(sum(values)))


def scaled_by_the_data(values):
    return sf.Laplace(epsilon=1, sensitivity=float(max(values))).release(1.0)


def as_many_calls_as_rows(values):
    return [LAPLACE.release(0.0) for _ in values]


def noise_left_out_if_it_is_small(values):
    total = float(sum(values))
    return LAPLACE.release(total) if total < 30 else total


def shape_of_the_data(values):
    return LAPLACE.release(np.zeros(len(values)))


def one_row_decides_the_type(values):
    whole = all(float(value).is_integer() for value in values)
    return LAPLACE.release(int(sum(values)) if whole else float(sum(values)))


def raises_for_a_row(values):
    if 10.0 in values:
        raise sf.errors.InvalidValue("Values must be finite.")
    return honest(values)


def says_how_many(values):
    raise sf.errors.InvalidValue(f"{len(values)} rows are too few.")


def answers_and_tells(values):
    return honest(values), len(values)


def prints(values):
    print(len(values))
    return honest(values)


def logs(values):
    logging.getLogger("sfumato").warning("%d rows", len(values))
    return honest(values)


def warns(values):
    warnings.warn(f"{len(values)} rows", stacklevel=1)
    return honest(values)


def keeps_the_cause(values):
    try:
        raise ValueError(f"bad row {values[-1]}")
    except ValueError as error:
        raise sf.errors.InvalidValue("A value is unusable.") from error


PLANTED = (
    scaled_by_the_data,
    as_many_calls_as_rows,
    noise_left_out_if_it_is_small,
    shape_of_the_data,
    raises_for_a_row,
    says_how_many,
    answers_and_tells,
    prints,
    logs,
    warns,
    keeps_the_cause,
)


@pytest.mark.parametrize("program", PLANTED, ids=lambda each: each.__name__)
def test_a_planted_leak_is_found(program):
    assert on(program)


def test_values_further_apart_than_the_sensitivity_are_found():
    found = on(unclamped, right=(*PEOPLE, 1000.0))
    assert len(found) == 1
    assert "values at distance 1000" in found[0]


def test_a_row_that_decides_the_type_is_found():
    assert on(one_row_decides_the_type, left=(1.0, 2.0), right=(1.0, 2.0, 0.5))


def test_a_mechanism_that_fails_on_one_side_is_found():
    assert on(lambda values: LAPLACE.release(values[-1]), right=(*PEOPLE, float("nan")))


def test_outlines_leave_values_to_the_mechanism():
    count = lambda values: sf.Geometric(1, 1).release(np.array([len(values)]))  # noqa: E731
    assert on(count, inside=True)
    assert on(count, inside=True, outline=True) == []


def test_what_draws_lose_adds_up_to_the_price():
    first = record(lambda: LAPLACE.release(0.0), inside=True)
    second = record(lambda: LAPLACE.release(10.0), inside=True)
    epsilon, rho = lost(first, second)
    assert 0.999 < float(epsilon) <= 1
    assert rho == 0
    gaussian = sf.Gaussian(rho=0.5, sensitivity=1)
    tapes = [record(lambda value=value: gaussian.release(value), inside=True) for value in (0.0, 1.0)]
    assert 0.499 < float(lost(*tapes)[1]) <= 0.5
