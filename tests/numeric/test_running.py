from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.numeric import compose, running
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.laws import (
    DOUBLE,
    GAUSSIAN,
    LAPLACE,
    PURE,
    SAMPLED_GAUSSIAN_ADD,
    SAMPLED_GAUSSIAN_REMOVE,
    Profile,
    Term,
)
from sfumato.numeric.running import Running


def spends(count: int) -> list[Term]:
    rng = np.random.default_rng(20240601)
    laplace, sigma = rng.uniform(0.001, 0.1, count), rng.uniform(20, 200, count)
    return [Term(LAPLACE, (laplace[i],)) if i % 2 else Term(GAUSSIAN, (1 / sigma[i],)) for i in range(count)]


def test_every_total_agrees_with_a_fresh_composition(monkeypatch: pytest.MonkeyPatch) -> None:
    total, fallbacks = Running(1e-6), []
    road = compose.epsilon

    def counted(directions: object, delta: float) -> Bracket:
        fallbacks.append(1)
        return road(directions, delta)  # type: ignore[arg-type]

    monkeypatch.setattr(running.compose, "epsilon", counted)
    before = 0.0
    for index, term in enumerate(spends(400)):
        total.add(term)
        found = total.epsilon()
        assert found.meets()
        assert found.upper >= before
        before = found.lower
        if index in (1, 2, 7, 30, 100, 200, 399):
            truth = road([total.terms], 1e-6)
            assert found.lower <= truth.upper
            assert truth.lower <= found.upper
            assert found.upper <= truth.upper * (1 + 1e-9)
    assert len(fallbacks) <= 3, "the bank must answer by itself"


def test_repeats_and_counts_are_the_same_thing() -> None:
    one, many = Running(1e-5), Running(1e-5)
    for _ in range(4):
        one.add(Term(SAMPLED_GAUSSIAN_REMOVE, (0.02, 1.5), 50))
        one.add(Term(GAUSSIAN, (0.2,)))
    many.add(Term(SAMPLED_GAUSSIAN_REMOVE, (0.02, 1.5), 200))
    many.add(Term(GAUSSIAN, (0.2,), 4))
    assert one.terms == many.terms
    assert one.epsilon().upper == pytest.approx(many.epsilon().upper, rel=1e-8)
    truth = compose.epsilon([many.terms], 1e-5)
    assert one.epsilon().lower <= truth.upper
    assert truth.lower <= one.epsilon().upper


def test_mass_at_infinity_is_taken_off_delta() -> None:
    total = Running(1e-6)
    for term in (Term(GAUSSIAN, (0.3,)), Term(LAPLACE, (0.1,), 10), Term(DOUBLE, (0.1, 2e-7), 3)):
        total.add(term)
    truth = compose.epsilon([total.terms], 1e-6)
    without = compose.epsilon([[*total.terms[:2], Term(PURE, (0.1,), 3)]], 1e-6)
    found = total.epsilon()
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.lower > without.upper, "the planted bug, forgetting the mass, is visible"
    total.add(Term(DOUBLE, (0.1, 5e-7)))
    assert total.epsilon().upper == math.inf


def test_what_the_bank_cannot_certify_goes_to_the_composer() -> None:
    total = Running(1e-3)
    total.add(Term(PURE, (0.5,)))
    total.add(Term(PURE, (0.4,)))
    assert total.epsilon().upper == pytest.approx(compose.epsilon([total.terms], 1e-3).upper)
    total.add(Term(SAMPLED_GAUSSIAN_ADD, (0.1, 1.0), 2))
    assert total.epsilon().meets()
    curve = Running(1e-3)
    curve.add(Term(Profile(lambda x: LAPLACE.delta(x, (0.5,)), "copy", 0.0, (-0.5, 0.5)), ()))
    assert curve.epsilon().upper == pytest.approx(compose.epsilon([[Term(LAPLACE, (0.5,))]], 1e-3).upper)


def test_nothing_spent_is_zero_and_nonsense_is_refused() -> None:
    assert Running(1e-6).epsilon() == Bracket(0.0, 0.0)
    with pytest.raises(InvalidParameter, match="delta"):
        Running(0.0)
