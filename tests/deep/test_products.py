"""Products that let a record without a number reach another one are refused, wherever they are computed."""

import os
import subprocess
import sys

import numpy as np
import pytest
from torch import nn

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import places, private, products
from sfumato.learn.torch.products import check_products, reaches_others

CPU = torch.device("cpu")


def _squares(out, target):
    return (out - target).square().flatten(1).mean(1)


def _run(model, given, target, **more):
    many = len(given)
    settings = {"epsilon": 1, "delta": 1e-5, "size": many, "batch": many, "steps": 1} | more
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    return private(model, sgd, (given, target), objective=_squares, **settings)


def _net(width, end):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, end))


def _reaching(multiply, lines=(1,)):
    """The same product, but that of four lines one reaches the line before it, if it has no number."""

    def product(given, *more, **named):
        out = multiply(given, *more, **named).clone()
        bad = ~given.flatten(1).isfinite().all(1)
        for place in range(1, len(out)):
            if bad[place] and place % 4 in lines:
                out[place - 1] = float("nan")
        return out

    return product


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_products_keep_lines_apart_here(kind):
    assert not reaches_others(kind)
    check_products(kind, CPU)


@pytest.mark.parametrize("name", ["linear", "conv1d"])
@pytest.mark.parametrize("line", range(4))
def test_a_product_that_mixes_lines_is_found_and_said(monkeypatch, name, line):
    monkeypatch.setattr(products.F, name, _reaching(getattr(products.F, name), (line,)))
    found = reaches_others.__wrapped__(torch.bfloat16)
    assert found
    monkeypatch.setattr(products, "reaches_others", lambda _: found)
    with pytest.raises(InvalidParameter, match="products of bfloat16 mix records"):
        _run(_net(3, 3), torch.randn(40, 4), torch.randn(40, 3), amp=torch.bfloat16)
    _run(_net(3, 3), torch.randn(40, 4), torch.randn(40, 3), physical=1)
    check_products(torch.bfloat16, torch.device("cuda"))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("amp", [None, torch.bfloat16])
@pytest.mark.parametrize(("width", "end"), [(16, 7), (64, 40)])
def test_records_without_targets_change_nothing_of_others(width, end, amp, value):
    model = _net(width, end)
    given, target = torch.randn(70, 4), torch.randn(70, end)
    far = target.index_fill(0, torch.arange(9, 70, 6), value)
    ones = _sums(_run(model, given, target, amp=amp), [at for at in range(70) if (at - 9) % 6 or at < 9])
    others = _sums(_run(model, given, far, amp=amp), range(70))
    assert float((ones - others).norm()) < 1e-4


def _sums(run, drawn):
    """In clips."""
    scale = run._descent.step_of_grid / run._descent.clip
    return torch.cat([each.double().flatten() for each in run._descent.sums(np.array(drawn))]) * scale


class _Backwards(torch.autograd.Function):
    """Of four records one reaches the record before it with a gradient that is no number."""

    @staticmethod
    def forward(_, value):
        return value.clone()

    @staticmethod
    def backward(_, gradient):
        return _reaching(torch.clone)(gradient)


class _Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.end = nn.Linear(4, 6), nn.Linear(6, 1)

    def forward(self, given):
        return self.end(_Backwards.apply(torch.tanh(self.first(given))))


def test_gradients_that_mix_records_are_refused_wherever_the_others_are(monkeypatch):
    with pytest.raises(InvalidParameter, match="hangs on others"):
        _run(_Mixed(), torch.randn(20, 4), torch.zeros(20, 1))
    monkeypatch.setattr(places, "_same", lambda *_: True)
    _run(_Mixed(), torch.randn(20, 4), torch.zeros(20, 1))


_ANYWHERE = """
import torch
from torch import nn
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import private
from sfumato.learn.torch.products import reaches_others
model = nn.Linear(5, 3)
given, target = torch.randn(40, 5), torch.randn(40, 3)
lines = given.bfloat16()
lines[1::2] = float("nan")
weight = torch.randn(64, 5).bfloat16()
mixes = bool((lines @ weight.t())[::2].isnan().any())
try:
    private(
        model, torch.optim.SGD(model.parameters(), 0.1), (given, target), epsilon=1, delta=1e-5, size=40,
        batch=40, steps=1, amp=torch.bfloat16, objective=lambda out, want: (out - want).square().mean(1),
    )
except InvalidParameter as error:
    assert reaches_others(torch.bfloat16) and "ONEDNN_MAX_CPU_ISA" in str(error), error
else:
    assert not reaches_others(torch.bfloat16) and not mixes
"""


def test_a_processor_as_it_is_trains_in_short_floats_or_refuses_them():
    plain = {name: value for name, value in os.environ.items() if name != "ONEDNN_MAX_CPU_ISA"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", _ANYWHERE], env=plain, check=True)
