"""Adam without the noise's part of the second moments."""

import copy
import math

import pytest
from torch import nn

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import CorrectedAdam, Quantile, private


def _noise_alone(told=1.0, **more):
    """What is left of the second moments, in variances of the noise, after steps that saw no record."""
    model = nn.Linear(50, 40)
    optimizer = CorrectedAdam(model.parameters(), 1e-6)
    hear = optimizer.hear
    optimizer.hear = lambda variance: hear(variance * told)
    data = (torch.zeros(0, 50), torch.zeros(0).long())
    settings = {"epsilon": 1, "delta": 1e-5, "size": 10, "batch": 10, "steps": 30, "clip": 0.3}
    private(model, optimizer, data, **settings | more).fit()
    (group,) = optimizer.param_groups
    squares = torch.cat([optimizer.state[each]["square"].flatten() for each in group["params"]])
    return float((squares - group["noise"]).mean()) / group["noise"]


def test_nothing_is_left_of_noise():
    assert abs(_noise_alone()) < 0.04


def test_noise_of_a_clip_that_moves_is_known_step_by_step():
    assert abs(_noise_alone(clip=Quantile(0.9, first=0.3, rate=0.5))) < 0.05


def test_another_size_of_noise_would_be_seen():
    assert _noise_alone(told=0.5) > 0.5
    assert _noise_alone(told=2.0) < -0.3


def _moved(optimizer, weight, slope, deviation, steps=400):
    start = weight.detach().clone()
    torch.manual_seed(0)
    for _ in range(steps):
        weight.grad = slope + deviation * torch.randn_like(weight)
        if isinstance(optimizer, CorrectedAdam):
            optimizer.hear(deviation**2)
        optimizer.step()
    return float((start - weight.detach()).mean()) / steps


def test_it_moves_as_if_there_were_no_noise():
    slope, found = 0.5, []
    for kind in (CorrectedAdam, torch.optim.Adam):
        weight = nn.Parameter(torch.zeros(3000))
        found.append(_moved(kind([weight], 1e-3), weight, slope, 1.0) / 1e-3)
    assert found[0] == pytest.approx(1, abs=0.1)
    assert found[1] == pytest.approx(slope / math.sqrt(1 + slope**2), abs=0.1)


def test_without_a_run_it_is_adam():
    ends = []
    for kind in (CorrectedAdam, torch.optim.Adam):
        weight = nn.Parameter(torch.zeros(20))
        optimizer = kind([weight], 1e-2)
        for step in range(20):
            weight.grad = torch.linspace(0.1, 1 + step, 20)
            optimizer.step()
        ends.append(weight.detach())
    assert torch.allclose(*ends, rtol=1e-3)


def test_its_state_goes_on():
    weights = [nn.Parameter(torch.zeros(5)) for _ in range(2)]
    first, second = (CorrectedAdam([weight], 1e-2) for weight in weights)
    first.hear(0.25)
    weights[0].grad = torch.ones(5)
    first.step()
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert second.param_groups[0]["noise"] == first.param_groups[0]["noise"] > 0
    weights[1].data.copy_(weights[0].data)
    for optimizer, weight in zip((first, second), weights, strict=True):
        weight.grad = torch.ones(5)
        optimizer.hear(0.25)
        assert optimizer.step(lambda: 3.0) == 3.0
    assert torch.equal(*(weight.data for weight in weights))


@pytest.mark.parametrize("settings", [{"lr": 0}, {"floor": -1}, {"betas": (0.9, 1)}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(InvalidParameter):
        CorrectedAdam([nn.Parameter(torch.zeros(2))], **settings)
