"""A draw in several passes, and passes in short floats: the same sums, and no record moves them further."""

import gc
import math

import numpy as np
import pytest

from deep import MODELS, made, objective, torch
from sfumato.learn.torch.noise import Drawn
from sfumato.learn.torch.recording import Recorder
from sfumato.learn.torch.runs import private
from sfumato.learn.torch.tape import Tape, Use

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")


class Watched(torch.optim.SGD):
    """An optimizer that keeps the gradients that it is given."""

    def step(self, closure=None):
        self.given = torch.cat([each.grad.double().flatten() for each in self.param_groups[0]["params"]])
        return super().step(closure)


class Fixed:
    """A sampler that draws all records, in an order of its own."""

    def __init__(self, sampler, order):
        self.steps, self.rate, self.order = sampler.steps, sampler.rate, np.asarray(order)

    def draw(self, records):
        return self.order


def _step(name="image", kind=torch.float64, records=48, change=None, order=None, **more):
    """What a step without noise gives, times the batch, and the run."""
    model, given, target = made(name, 48, kind)
    if change is not None:
        given[5] = change
    settings = {"epsilon": 1, "delta": 1e-5, "size": 48, "batch": 48, "steps": 1, "clip": 0.1}
    data = (given[:records], target[:records])
    run = private(model, Watched(model.parameters(), 1e-9), data, objective=objective, **settings | more)
    run._descent.sampler = Fixed(run.sampler, range(records) if order is None else order)
    run._descent.noise.draw = lambda count: Drawn(lambda: torch.zeros(count, dtype=torch.int32))
    run.step()
    return run._descent.optimizer.given * 48, run


@pytest.mark.parametrize("physical", [1, 16, 32])
def test_several_passes_give_the_sums_of_one(physical):
    whole, run = _step(physical=48)
    parts, other = _step(physical=physical)
    passes = -(-48 // other._descent.physical)
    most = float((whole - parts).abs().max()) / run._descent.step_of_grid
    assert most <= (passes + 1) / 2 + 1e-3, "each pass is rounded to a step of the grid, and no more"


def test_the_order_of_passes_changes_no_bit():
    lines = np.resize(np.arange(48), 128).reshape(4, 32)  # some of them twice: a pass has 32
    orders = (lines.ravel(), lines[[2, 0, 3, 1]].ravel())
    found = [_step(kind=torch.float32, physical=32, order=order)[0] for order in orders]
    assert torch.equal(*found)


def test_a_pass_holds_no_more_records_than_it_may():
    seen = []
    model, given, target = made("image", 60, torch.float32)
    run = private(
        model, torch.optim.SGD(model.parameters(), 0.1), (given, target), objective=objective, epsilon=1,
        delta=1e-5, size=60, batch=30, steps=3, physical=7,
    )  # fmt: skip
    engine = run._descent.engine
    sums = engine.sums
    engine.sums = lambda given, *more: [seen.append(len(given)), sums(given, *more)][1]  # a hook would forget
    run.fit()
    assert set(seen) == {32}, "a multiple of 32 on a processor"
    assert len(seen) >= 3


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["dense", "image", "language"])
def test_short_floats_are_close_and_cut_as_long_ones(name, kind):
    long, _ = _step(name, torch.float32, physical=48)
    short, run = _step(name, torch.float32, physical=48, amp=kind)
    assert float((long - short).norm() / long.norm()) < 0.05
    assert {each.dtype for each in run._descent.model.parameters()} == {torch.float32}
    without, _ = _step(name, torch.float32, records=47, physical=48, amp=kind)
    assert 0.3 < float((short - without).norm()) / 0.1 <= 1


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e30, 70000.0])
def test_short_floats_that_overflow_harm_nobody(kind, value):
    found, _ = _step("dense", torch.float32, physical=48, amp=kind, change=value)
    other, _ = _step("dense", torch.float32, physical=48, amp=kind, change=0.0)
    assert torch.isfinite(found).all()
    assert float((found - other).norm()) / 0.1 <= 2


class _Sizes:
    """A sampler that draws so many records, one size after the other."""

    def __init__(self, sampler, sizes):
        self.steps, self.rate, self.sizes = sampler.steps, sampler.rate, list(sizes)

    def draw(self, records):
        return np.arange(self.sizes.pop(0))


@pytest.mark.parametrize(("physical", "usual"), [(64, torch.int32), (32, torch.int64)])
def test_draws_of_other_sizes_compile_nothing(physical, usual, monkeypatch):
    """A step that takes longer than others would show that its draw was larger, or smaller."""
    seen = set()

    def compiled(run, **_):
        def watched(values, *rest):
            if len(rest) == 1:  # what is made of sums and noise
                seen.add(values[0].dtype)
            return run(values, *rest)

        return watched

    monkeypatch.setattr(torch, "compile", compiled)
    model, given, target = made("dense", 48, torch.float32)
    run = private(
        model, Watched(model.parameters(), 0.1), (given, target), objective=objective, epsilon=1, delta=1e-5,
        size=48, batch=40, steps=4, physical=physical, compiled=True,
    )  # fmt: skip
    run._descent.sampler = _Sizes(run._descent.sampler, [20, 7, 40, 12])
    run.fit()
    assert seen == {usual}


@pytest.mark.parametrize("name", MODELS)
def test_nothing_of_a_pass_is_kept(name):
    model, given, target = made(name, 5, torch.float32)
    recorder = Recorder(model)
    recorder.survey((given[0], target[0]), objective)
    recorder.gradients(given, target, objective)
    gc.collect()
    kept = [each for each in gc.get_objects() if type(each) in (Tape, Use)]
    assert not kept, "what a hook holds, and is held by, is freed never"
