"""Products that let a record without a number reach another one are refused, wherever they are computed."""

import os
import subprocess
import sys

import numpy as np
import pytest
from torch import nn

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import engine, places, private, products
from sfumato.learn.torch.precision import as_said, in_full
from sfumato.learn.torch.products import check_precision, check_products, reaches_others, shortens

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


_SAID = {
    "for all": lambda: setattr(torch.backends, "fp32_precision", "bf16"),
    "for products": lambda: torch.set_float32_matmul_precision("medium"),
    "for matrices": lambda: setattr(torch.backends.mkldnn.matmul, "fp32_precision", "bf16"),
    "for convolutions": lambda: setattr(torch.backends.mkldnn.conv, "fp32_precision", "bf16"),
    "for sequences": lambda: setattr(torch.backends.mkldnn.rnn, "fp32_precision", "bf16"),
    "nothing": lambda: None,
}


def _precisions():
    places = [
        torch.backends.mkldnn,
        *(getattr(torch.backends.mkldnn, name) for name in ("matmul", "conv", "rnn")),
    ]
    places += [torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn]
    return [each.fp32_precision for each in places]


@pytest.fixture
def nothing_said():
    def reset():
        torch.set_float32_matmul_precision("highest")
        torch.backends.fp32_precision = "none"
        for name in ("matmul", "conv", "rnn"):
            getattr(torch.backends.mkldnn, name).fp32_precision = "none"
        torch.backends.cuda.matmul.fp32_precision = "none"

    reset()
    yield
    reset()


@pytest.mark.usefixtures("nothing_said")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("way", _SAID)
def test_passes_set_aside_what_is_said_of_products(monkeypatch, way, compiled):
    def looking(function, **_):
        def looked(*given):
            seen.extend(_precisions()[1:4])
            return function(*given)

        return looked

    _SAID[way]()
    before, seen = _precisions(), []
    monkeypatch.setattr(engine, "clipped", looking(engine.clipped))
    monkeypatch.setattr(torch, "compile", looking)
    run = _run(_net(16, 3), torch.randn(40, 4), torch.randn(40, 3), compiled=compiled)
    _sums(run, range(8))
    seen.clear()
    _sums(run, range(8))
    assert seen
    assert set(seen) <= {"ieee", "none"}
    assert _precisions() == before


@pytest.mark.usefixtures("nothing_said")
def test_what_is_said_for_all_later_still_holds():
    torch.backends.fp32_precision = "bf16"
    with in_full(CPU):
        assert "bf16" not in _precisions()[1:4]
    torch.backends.fp32_precision = "none"
    assert _precisions()[1:4] == ["none"] * 3
    with pytest.raises(ZeroDivisionError), as_said(CPU):
        raise ZeroDivisionError
    with as_said(torch.device("cuda")):  # what is said is taken into account there (`precision_of`)
        torch.backends.cuda.matmul.fp32_precision = "tf32"
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"


def test_products_of_shorter_floats_are_found_and_said(monkeypatch):
    assert not shortens()
    plain = products.F.conv2d
    monkeypatch.setattr(products.F, "conv2d", lambda a, b: plain(*(_cut_off(each) for each in (a, b))))
    found = shortens.__wrapped__()
    assert found
    monkeypatch.setattr(products, "shortens", lambda: found)
    for physical in (1, None):
        with pytest.raises(InvalidParameter, match="products of 32-bit floats are those of shorter ones"):
            _run(_net(3, 3), torch.randn(40, 4), torch.randn(40, 3), physical=physical)
    _run(_net(3, 3).double(), torch.randn(40, 4).double(), torch.randn(40, 3).double())
    check_precision(torch.float32, torch.device("cuda"))


def _cut_off(value):
    """Floats of 11 bits, of which 10 are written."""
    return (
        value.view(torch.int32).bitwise_and(-(2**13)).view(torch.float32)
        if value.dtype == torch.float32
        else value
    )


_SHORTENED = """
import numpy as np, torch
from torch import nn
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import private
from sfumato.learn.torch.products import shortens

def sums(said):
    torch.set_float32_matmul_precision(said)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 40))
    given, target = torch.randn(64, 64), torch.randn(64, 40)
    run = private(
        model, torch.optim.SGD(model.parameters(), 0.1), (given, target), epsilon=1, delta=1e-5, size=64,
        batch=64, steps=1, objective=lambda out, want: (out - want).square().mean(1),
    )
    return run._descent.sums(np.arange(64))

try:
    found = [sums(said) for said in ("highest", "medium")]
except InvalidParameter as error:
    assert shortens() and "DEFAULT_FPMATH_MODE" in str(error), error
else:
    assert not shortens()
    assert all(torch.equal(one, two) for one, two in zip(*found))
"""


@pytest.mark.parametrize("named", [None, "ONEDNN_DEFAULT_FPMATH_MODE"])
def test_a_processor_as_it_is_keeps_factors_or_is_refused(named):
    plain = {name: value for name, value in os.environ.items() if name != "ONEDNN_MAX_CPU_ISA"}
    told = {} if named is None else {named: "BF16"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", _SHORTENED], env=plain | told, check=True)


def test_a_processor_as_it_is_trains_in_short_floats_or_refuses_them():
    plain = {name: value for name, value in os.environ.items() if name != "ONEDNN_MAX_CPU_ISA"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", _ANYWHERE], env=plain, check=True)
