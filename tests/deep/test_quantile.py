"""A clip that is learned: the count it is learned from is paid for, and it ends where it should."""

import math

import numpy as np
import pytest
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from deep import made, objective, torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import Quantile, engine, private, squared_error
from sfumato.learn.torch.law import SIGMA
from sfumato.learn.torch.noise import Drawn
from sfumato.learn.torch.quantile import Adaptive, below

CPU = torch.device("cpu")


class Watched(torch.optim.SGD):
    """An optimizer that keeps the gradients that it is given."""

    def step(self, closure=None):
        self.given = torch.cat([each.grad.flatten() for each in self.param_groups[0]["params"]])
        return super().step(closure)


def _silent(run):
    run._descent.noise.draw = lambda count: Drawn(lambda: torch.zeros(count, dtype=torch.int32))
    return run


@pytest.mark.parametrize("noise", [None, 2.0, 1000.0])
def test_the_count_is_paid_for(noise):
    for sigma, batch in ((0.7, 100), (3.0, 20), (1.0, 10**6)):
        adaptive = Adaptive(Quantile(noise=noise), sigma, batch, CPU)
        together = 1 / adaptive.sigma**2 + (65 * adaptive.worth / SIGMA) ** 2
        assert sigma * (1 - 1e-9) < 1 / math.sqrt(together)
        assert 1 / math.sqrt(together) >= sigma
        # As in the paper: a count that is centred moves by one half.
        of_count = SIGMA / (2 * 65 * adaptive.worth)
        assert 1 / sigma**2 == pytest.approx(1 / adaptive.sigma**2 + 1 / (2 * of_count) ** 2)


def _most_moved():
    """How far one record moves the sum and the count of a step, in what is paid for."""
    model, given, target = made("dense", 12, torch.float32)
    moved = 0.0
    for left_out in (None, 0, 5, 11):
        kept = [at for at in range(12) if at != left_out]
        run = private(
            model, Watched(model.parameters(), 0.0), (given[kept] * 50, target[kept]), epsilon=1, delta=1e-5,
            size=12, batch=12, steps=1, physical=12, objective=objective,
            clip=Quantile(first=0.01, noise=0.7 * 3.8),
        )  # fmt: skip
        _silent(run)
        seen = []
        run._descent.adaptive.follow = seen.append
        run.step()
        vector = run._descent.optimizer.given.double() * 12 / (run._descent.sigma * 0.01)
        vector = torch.cat([vector, torch.tensor([seen[0] / SIGMA])])
        if left_out is None:
            whole = vector
        else:
            moved = max(moved, float((whole - vector).norm()) * run.noise_multiplier)
    return moved


def test_a_record_moves_sum_and_count_by_what_is_paid():
    assert 0.9 < _most_moved() <= 1


def test_a_count_that_is_not_centred_would_cost_more(monkeypatch):
    def plain(factors, mask):
        return below(factors, mask) - 64 * (mask > 0).sum()  # 0 if below, 128 units if above

    monkeypatch.setattr(engine, "below", plain)
    assert _most_moved() > 1.1


def test_records_weigh_the_same_and_one_on_the_edge_turns_slowly():
    ones = torch.ones(5)
    assert below(torch.tensor([1.0, 1, 1, 0.5, 0]), ones) == 64
    assert below(torch.tensor([1.0, 1, 1, 0.5, 0]), torch.tensor([1.0, 0, 0, 1, 1])) == -64
    assert below(torch.full((5,), 0.9), ones) == 0
    for factor in (0.79, 0.8, 0.85, 0.97, 0.9999, 1.0):
        one, other = (below(torch.tensor([value]).double(), ones[:1]) for value in (factor, factor - 1e-6))
        assert 0 <= one - other <= 1


def _line(scales, **more):
    """A model whose gradients have a length that is known: those of their records."""
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(0.0)
    settings = {"epsilon": 40, "delta": 1e-5, "size": len(scales), "batch": len(scales) // 2, "steps": 60}
    return private(
        model, Watched(model.parameters(), 0.0), (torch.ones(len(scales), 1), scales),
        objective=squared_error, **settings | more,
    )  # fmt: skip


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_the_clip_ends_at_the_quantile(share):
    torch.manual_seed(1)
    lengths = torch.randn(1000).mul(0.7).exp() * 30
    run = _line(lengths, clip=Quantile(share, first=1, rate=0.5))
    run.fit()
    wanted = float(lengths.quantile(share))
    assert abs(math.log(run.clip / wanted)) < 0.2
    assert not run._descent.adaptive.scale.isnan()


def test_gradients_are_those_of_that_clip():
    torch.manual_seed(1)
    lengths = torch.randn(300).abs() + 0.1
    learned, fixed = (_silent(_line(lengths, batch=300, clip=clip)) for clip in (Quantile(first=4), 0.8))
    learned._descent.adaptive.move(0.8)
    for run in (learned, fixed):
        run.step()
    one, other = (float(run._descent.optimizer.given) for run in (learned, fixed))
    assert one == pytest.approx(other, rel=1e-4)
    assert learned.clip != 0.8
    assert fixed.clip == 0.8


def test_a_pass_that_is_traced_follows_the_clip():
    run = _line(torch.linspace(0.1, 3, 16), batch=16, clip=Quantile(first=4))
    passed, batch = run._descent.engine, next(iter(run._descent.records.batches(np.arange(16), 16, CPU)))
    traced = make_fx(passed.functional())(passed.values(), *batch)
    run._descent.adaptive.move(0.8)
    for one, other in zip(traced(passed.values(), *batch), passed.sums(*batch), strict=True):
        assert torch.equal(one, other)


@pytest.mark.stats
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_pass_follows_the_clip():
    torch.manual_seed(1)
    lengths = torch.randn(64).abs() + 0.1
    run = _silent(_line(lengths, batch=64, clip=Quantile(first=4), compiled=True))
    for clip in (4.0, 0.8):
        run._descent.adaptive.move(clip)
        run.step()
        plain = _silent(_line(lengths, batch=64, clip=clip))
        plain.step()
        assert float(run._descent.optimizer.given) == pytest.approx(
            float(plain._descent.optimizer.given), rel=1e-4
        )


def test_a_checkpoint_has_the_clip():
    run = _line(torch.ones(100), clip=Quantile(first=8))
    run.step()
    again = _line(torch.ones(100), clip=Quantile(first=8))
    again.load_state_dict(run.state_dict())
    assert again.clip == run.clip != 8
    assert float(again._descent.adaptive.scale) == pytest.approx(8 / run.clip)
    assert _line(torch.ones(100), clip=8)._declared() != run._declared()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"share": 2}, "share"),
        ({"first": 0}, "first"),
        ({"rate": 0}, "rate"),
        ({"noise": -1}, "noise must"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(InvalidParameter, match=words):
        Quantile(**settings)


def test_a_count_with_too_little_noise_is_refused():
    with pytest.raises(InvalidParameter, match="noise must be above"):
        Adaptive(Quantile(noise=0.4), 1.0, 100, CPU)
