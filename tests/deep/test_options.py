"""Every option of every layer that is known: exact for each record, or refused with a sentence."""

import re

import pytest
from torch import nn

from deep import torch
from deep_options import KINDS, RECORDS, Wrapped, made
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.recording import Recorder

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def _loss(out, target):
    return (out.flatten(1) - target[:, None]).square().mean(1)


def _alone(model, given, target):
    """The gradients of each record by itself."""
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    found = {name: [] for name in trained}
    for at in range(len(given)):
        value = _loss(model(given[at : at + 1]), target[at : at + 1]).sum()
        parts = torch.autograd.grad(value, list(trained.values()), allow_unused=True)
        for (name, like), part in zip(trained.items(), parts, strict=True):
            found[name].append(torch.zeros_like(like) if part is None else part)
    return {name: torch.stack(parts) for name, parts in found.items()}


def _check(model, given):
    """Sums with weights, and norms, against each record by itself."""
    target = torch.randn(RECORDS).double()
    recorder = Recorder(model)
    recorder.survey((given[0] * 0, target[0]), _loss)
    found, wanted = recorder.gradients(given, target, _loss), _alone(model, given, target)
    for name in set(wanted) - set(found):
        assert not wanted[name].any(), name
    factors = torch.rand(RECORDS).double() + 0.5
    largest = max(1.0, *(float(each.abs().max()) for each in wanted.values()))
    squares = sum(form.settled(lambda _: 1).norms().square for form in found.values())
    lengths = sum(each.flatten(1).square().sum(1) for each in wanted.values())
    assert torch.allclose(squares, lengths, rtol=1e-9, atol=1e-20)
    for name, form in found.items():
        for one in (form, form.settled(lambda _: 1)):
            apart = (one.summed(factors) - torch.tensordot(factors, wanted[name], 1)).abs().max()
            assert apart <= 1e-12 * largest, (name, apart)


REFUSED = (
    r"none of max_norm, scale_grad_by_freq and sparse\.|no proj_size: put nn\.Linear behind it\.|"
    r"leave the hint out, attn_mask is enough\."
)


def _searched(kind, seeds):
    """How many were exact, of those that PyTorch makes."""
    exact = 0
    for seed in seeds:
        found = made(kind, seed)
        if found is None:
            continue
        try:
            _check(*found)
            exact += 1
        except InvalidParameter as refusal:
            if not re.search(REFUSED, str(refusal)):
                raise
    return exact


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_layers_are_exact_or_refused(kind):
    assert _searched(kind, range(8)) >= 2


@pytest.mark.stats
@pytest.mark.parametrize("kind", KINDS)
def test_many_options_of_layers_are_exact_or_refused(kind):
    assert _searched(kind, range(600)) >= 200


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [(2, 1), "same"])
def test_convolutions_pad_as_they_say(mode, padding):
    torch.manual_seed(0)
    layer = nn.Conv2d(4, 4, (3, 2), padding=padding, padding_mode=mode, groups=2)
    _check(Wrapped(layer, True).double(), torch.randn(RECORDS, 4, 5, 6).double())
