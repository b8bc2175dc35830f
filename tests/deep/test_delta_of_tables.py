"""What the noise's tables are off a Gaussian is a part of delta: on both sides, times 1 and e^epsilon."""

import math
from fractions import Fraction

import pytest
from torch import nn

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import law, runs
from sfumato.learn.torch.clients import federated
from sfumato.learn.torch.quantile import Quantile
from sfumato.learn.torch.runs import private

DELTA = Fraction(1, 10**13)  # so small that the part of the tables shows
EPSILON = Fraction(20)


def _model():
    torch.manual_seed(0)
    return nn.Linear(9, 2)


def _private(**more):
    model = _model()
    return private(
        model, torch.optim.SGD(model.parameters(), 0.1), (torch.zeros(20, 9), torch.zeros(20).long()),
        **{"epsilon": EPSILON, "delta": DELTA, "size": 20, "batch": 20, "steps": 3} | more,
    )  # fmt: skip


def _federated():
    model = _model()
    return federated(
        model, torch.optim.SGD(model.parameters(), 1), [(torch.zeros(2, 9), torch.zeros(2).long())],
        example=(torch.zeros(9), torch.tensor(0)), epsilon=EPSILON, delta=DELTA, size=20, batch=20, rounds=3,
    )  # fmt: skip


RUNS = {
    "records": (_private, 20 * 3),
    "a clip that is learned": (lambda: _private(clip=Quantile()), 21 * 3),
    "users": (lambda: _private(users=torch.arange(20), records_each=1), 20 * 3),
    "epochs": (lambda: _private(sampling="allocation", batch=7), 20 * 3),
    "clients": (_federated, 20 * 3),
}


def test_both_sides_count():
    found = law.missing((EPSILON, DELTA), 1000)
    wanted = (1 + math.exp(20)) * 1000 * float(law.DISTANCE)
    assert wanted * (1 - 1e-12) <= found < wanted * (1 + 1e-9)


@pytest.mark.parametrize("kind", RUNS)
def test_every_run_leaves_it_out_of_delta(kind):
    make, draws = RUNS[kind]
    run = make()
    lost = law.missing((EPSILON, DELTA), draws)
    assert DELTA / 10**6 < lost < DELTA / 2
    sampler = run.sampler
    assert run.noise_multiplier == sampler.sigma(EPSILON, DELTA - lost) > sampler.sigma(EPSILON, DELTA)
    assert run.loss.approximate == (EPSILON, DELTA)


def test_once_would_not_be_enough(monkeypatch):
    """Two laws that are as far apart as is allowed; what may be moved is put where it tells most."""
    epsilon, delta, draws = Fraction(5), Fraction(1, 10**5), 10**20
    moved = law.DISTANCE * draws

    def worst(lost):
        ratio = Fraction(math.exp(5))
        second = Fraction(1, 1000)
        first = ratio * second + delta - lost  # an event's chance with a record, and without it
        return (first + moved) - ratio * (second - moved)

    assert worst(law.missing((epsilon, delta), draws)) <= delta
    assert worst(moved) > delta
    monkeypatch.setattr(runs, "missing", lambda _, count: law.DISTANCE * count)
    careless = _private()
    lost = law.missing((EPSILON, DELTA), 60)
    assert careless.noise_multiplier < careless.sampler.sigma(EPSILON, DELTA - lost), "what the mending adds"


def test_what_no_delta_is_enough_for_is_refused():
    with pytest.raises(InvalidParameter, match="epsilon 1000 is too large for the noise"):
        _private(epsilon=1000)
    with pytest.raises(InvalidParameter, match="is too large for the noise"):
        _private(epsilon=10**9)
    with pytest.raises(InvalidParameter, match=r"delta must be at least [\d.e-]+ for epsilon 20"):
        _private(delta=Fraction(1, 10**18))
