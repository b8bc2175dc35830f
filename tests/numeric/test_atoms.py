from __future__ import annotations

import numpy as np
import pytest

from sfumato.numeric import binomial
from sfumato.numeric.atoms import nothing, outcomes
from sfumato.numeric.laws import DISCRETE_LAPLACE, DOUBLE, GAUSSIAN, K_RESPONSE, PURE, Term


@pytest.mark.parametrize(
    "term",
    [
        Term(PURE, (0.7,)),
        Term(K_RESPONSE, (0.7, 4.0)),
        Term(DISCRETE_LAPLACE, (0.3, 3.0)),
        Term(DISCRETE_LAPLACE, (0.3, 1.0)),
    ],
)
def test_one_event_listed_is_its_own_profile(term: Term) -> None:
    found = outcomes([term])
    assert found is not None
    listed, others = found
    assert not others
    assert listed.masses.sum() == pytest.approx(1.0)
    for epsilon in (-1.0, -0.2, 0.0, 0.25, 0.6):
        low, high = listed.bounds(epsilon, nothing, (0.0, 0.0))
        own_low, own_high = term.law.bounds(epsilon, term.parameters)
        assert low <= own_high
        assert own_low <= high
        assert high == pytest.approx(float(own_high), rel=1e-12)


def test_repeats_are_the_binomial() -> None:
    found = outcomes([Term(PURE, (0.3,), 40)])
    assert found is not None
    for epsilon in (0.0, 1.0, 3.0):
        low, high = found[0].bounds(epsilon, nothing, (0.0, 0.0))
        exact = binomial.delta(0.3, 40, epsilon)
        assert low <= exact.upper
        assert exact.lower <= high
        assert high - low <= 1e-12


def test_what_has_no_list_is_left_over_and_too_many_are_refused() -> None:
    found = outcomes([Term(PURE, (0.3,)), Term(GAUSSIAN, (1.0,)), Term(DOUBLE, (0.1, 1e-3))])
    assert found is not None
    listed, others = found
    assert [term.law for term in others] == [GAUSSIAN]
    assert len(listed.losses) == 4
    assert listed.masses.sum() == pytest.approx(1 - 1e-3)
    assert outcomes([Term(PURE, (0.1 + 0.01 * k,)) for k in range(17)]) is None
    assert outcomes([Term(GAUSSIAN, (1.0,))]) is None
    assert np.all(nothing(np.array([0.0, 1.0]))[1] == 0)
