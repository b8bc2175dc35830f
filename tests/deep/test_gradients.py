"""Gradients of each record, found in one pass: against each record by itself."""

import pytest
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from deep import MODELS, made, objective, torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.clipping import Bound, clipped
from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.forms import Looked, Outer, Stored, Tied
from sfumato.learn.torch.precision import precision_of
from sfumato.learn.torch.recording import Recorder
from sfumato.learn.torch.unknown import one_by_one

CPU = torch.device("cpu")
pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")


def _reference(model, given, target, length):
    """The sums of cut gradients, each record by itself in 64-bit floats, and the norms."""
    each = one_by_one(model, given, target, objective)
    norms = sum(value.flatten(1).double().square().sum(1) for value in each.values()).sqrt()
    factors = (length / norms).clamp(max=1)
    return {name: torch.tensordot(factors, value.double(), 1) for name, value in each.items()}, norms


def _sums(model, given, target, bound, mask=None):
    precision = precision_of(next(model.parameters()).dtype, CPU)
    mask = torch.ones(len(given)) if mask is None else mask
    forms = Recorder(model).gradients(given, target, objective)
    return clipped(forms, mask, bound, precision.given, precision.added).sums


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MODELS)
def test_sums_are_those_of_each_record_by_itself(name, seed):
    model, given, target = made(name, seed=seed)
    _, norms = _reference(model, given, target, 1)
    bound = Bound(float(norms.median()), spread=1e6, room=1e-4)
    wanted, _ = _reference(model, given, target, bound.length)
    found = _sums(model, given, target, bound)
    assert set(found) == set(wanted)
    largest = max(value.abs().max() for value in wanted.values())
    assert all((found[each] - wanted[each]).abs().max() <= 1e-12 * largest for each in wanted)


@pytest.mark.parametrize("name", MODELS)
def test_short_floats_lose_little_and_never_lengthen(name):
    model, given, target = made(name, kind=torch.float32)
    _, norms = _reference(model, given, target, 1)
    bound = Bound(float(norms.min()) / 2)
    wanted, _ = _reference(model, given, target, bound.length)
    found = _sums(model, given, target, bound)
    largest = max(value.abs().max() for value in wanted.values())
    assert all((found[each] - wanted[each]).abs().max() <= 2e-3 * largest for each in wanted)
    for record in range(len(given)):
        alone = _sums(model, given, target, bound, torch.eye(len(given))[record])
        length = sum(float(part.square().sum()) for part in alone.values()) ** 0.5
        assert length <= bound.length * (1 + 2.0**-22)  # what is multiplied and added in 32 bits


def test_every_form_is_met():
    met = set[type]()
    for name in MODELS:
        model, given, target = made(name)
        for form in Recorder(model).gradients(given, target, objective).values():
            met |= {type(form), type(form.settled(lambda _: 1))}
    assert met == {Outer, Stored, Looked, Tied}


def test_both_forms_of_a_product_agree():
    torch.manual_seed(1)
    left, right = torch.randn(5, 6, 3).double(), torch.randn(5, 6, 4).double()
    outer = Outer(left, right, torch.Size((3, 4)), precision_of(torch.float64, CPU))
    factors = torch.rand(5).double()
    assert torch.allclose(outer.norms().square, outer.made().norms().square, rtol=1e-10)
    assert torch.allclose(outer.summed(factors), outer.made().summed(factors), rtol=1e-12)
    assert isinstance(outer.settled(lambda _: 1), Stored)


@pytest.mark.parametrize("name", ["dense", "image", "language"])
def test_a_traced_pass_gives_the_same(name):
    model, given, target = made(name, kind=torch.float32)
    engine, mask = Engine(model, objective, Bound(0.5)), torch.tensor([1.0, 0, 1, 1, 1, 0])
    plain = engine.sums(given, target, mask)
    traced = make_fx(engine.functional())(engine.values(), given, target, mask)
    other = made(name, kind=torch.float32, seed=4)[1:]
    for found, wanted in zip(traced(engine.values(), given, target, mask), plain, strict=True):
        assert torch.allclose(found, wanted, atol=1e-7)
    for found, wanted in zip(traced(engine.values(), *other, mask), engine.sums(*other, mask), strict=True):
        assert torch.allclose(found, wanted, atol=1e-7)


def test_a_model_is_left_as_it_was():
    model, given, target = made("dense", kind=torch.float32)
    before = model(given)
    recorder = Recorder(model)
    recorder.gradients(given, target, objective)
    assert torch.equal(model(given), before)
    assert all(each.requires_grad and each.grad is None for each in model.parameters())
    recorder.remove()
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in model.modules())


def test_what_is_frozen_is_not_recorded():
    model, given, target = made("adapted")
    found = Recorder(model).gradients(given, target, objective)
    assert set(found) == {"down.weight", "up.weight", "end.weight", "end.bias"}


@pytest.mark.parametrize(
    ("layer", "advice"),
    [(nn.BatchNorm1d(7), "GroupNorm"), (nn.Embedding(5, 7, max_norm=1.0), "max_norm")],
    ids=["batch-norm", "max-norm"],
)
def test_layers_that_no_record_has_to_itself_are_refused(layer, advice):
    with pytest.raises(InvalidParameter, match=advice):
        Recorder(nn.Sequential(nn.Linear(7, 7), layer))


def test_an_objective_that_adds_records_up_is_refused():
    model, given, target = made("dense")
    with pytest.raises(InvalidParameter, match="one loss for each record"):
        Recorder(model).gradients(given, target, nn.functional.cross_entropy)
