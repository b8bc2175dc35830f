"""What a pass would leave in a model without noise, and models that change while a run goes on."""

import numpy as np
import pytest
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from deep import keeping, made, torch
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.learn.torch import faults, private

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")
SETTINGS = {"epsilon": 1, "delta": 1e-5, "size": 20, "batch": 20, "steps": 3}


def _run(model, optimizer=torch.optim.SGD, **more):
    _, given, target = made("dense", 20, torch.float32)
    return private(model, optimizer(model.parameters(), lr=0.1), (given, target), **SETTINGS | more)


class _Keeps(nn.Module):
    """A layer that keeps what it is given in every way that it has."""

    def __init__(self):
        super().__init__()
        self.map, self.last, self.calls = nn.Linear(7, 4), None, 0
        self.listed, self.named, self.own = [], {"at": None}, set()
        self.register_buffer("late", None)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x):
        self.last, self.late, self.fresh = x.detach(), x.detach().mean(0), x.detach()
        self.calls += 1
        self.listed.append(x.detach())
        self.named["at"] = x.detach()
        self.own.add(len(x))
        self.register_buffer("new", x.detach().sum(0))
        self.scale = x.detach()[:3, :2]
        return self.map(x)


def _left():
    model = _Keeps()
    run = _run(model)
    run.step()
    return [
        name
        for name, kept in {
            "last": model.last is not None,
            "calls": model.calls != 0,
            "fresh": hasattr(model, "fresh"),
            "listed": model.listed != [],
            "named": model.named["at"] is not None,
            "own": model.own != set(),
            "late": model.late is not None,
            "new": hasattr(model, "new"),
            "scale": model.scale.shape != (2,) or bool((model.scale != 1).any()),
            "state": set(model.state_dict()) != {"map.weight", "map.bias", "scale"},
        }.items()
        if kept
    ]


def test_nothing_of_a_record_stays_in_a_layer():
    assert _left() == []


def test_otherwise_all_of_it_would(monkeypatch):
    monkeypatch.setattr(faults, "forgetting", keeping)
    assert len(_left()) == 10


class _Learns(nn.Module):
    """A layer that learns a mean by itself, in a parameter that no gradient has."""

    def __init__(self, data):
        super().__init__()
        self.map, self.mean, self.data = nn.Linear(7, 4), nn.Parameter(torch.zeros(7), False), data

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                (self.mean.data if self.data else self.mean).add_(x.mean(0))
        return self.map(x)


@pytest.mark.parametrize("data", [True, False])
def test_a_model_that_learns_past_the_gradients_is_refused(data):
    with pytest.raises(InvalidParameter, match="changes its own parameters"):
        _run(_Learns(data))


def _frozen(model):
    model[0].requires_grad_(False)


def _thawed(model):
    model[0].weight.requires_grad_(True)


def _added(model):
    model.register_parameter("more", nn.Parameter(torch.zeros(2)))


def _replaced(model):
    model[0].weight = nn.Parameter(torch.zeros(9, 7))


def _normed(model):
    model.insert(1, nn.BatchNorm1d(9))


def _other(model):
    model[1] = nn.Tanh()


@pytest.mark.parametrize("change", [_frozen, _thawed, _added, _replaced, _normed, _other])
def test_a_model_that_is_changed_is_refused_and_takes_no_step(change):
    model = made("dense", 1, torch.float32)[0]
    if change is _thawed:
        model[0].weight.requires_grad_(False)
    trained = [each for each in model.parameters() if each.requires_grad]
    run = _run(model, lambda _, lr: torch.optim.SGD(trained, lr))
    run.step()
    change(model)
    with pytest.raises(InvalidParameter, match="make the run anew"):
        run.step()
    assert (run.taken, run.left) == (1, 2)


def test_modes_and_values_may_change():
    model = made("dense", 1, torch.float32)[0]
    run = _run(model)
    run.step()
    model.eval()
    model.load_state_dict(made("dense", 1, torch.float32, seed=3)[0].state_dict())
    run.fit()
    with pytest.raises(BudgetExceeded):
        run.step()


def test_optimizers_that_a_gradient_is_not_enough_for_are_refused():
    for kind, words in ((torch.optim.LBFGS, "several times a step"), (torch.optim.SparseAdam, "sparse")):
        with pytest.raises(InvalidParameter, match=words):
            _run(made("dense", 1, torch.float32)[0], kind)


@pytest.mark.parametrize(
    "kind", [torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.NAdam]
)
def test_others_are_taken(kind):
    run = _run(made("dense", 1, torch.float32)[0], kind)
    torch.optim.lr_scheduler.StepLR(run.optimizer, 1)
    run.fit()
    assert run.taken == 3


class _Running(nn.Module):
    """A layer that takes a running mean off: the old one, or in training the one with this batch in it."""

    def __init__(self, fresh):
        super().__init__()
        self.map, self.fresh = nn.Linear(7, 4), fresh
        self.register_buffer("mean", torch.zeros(7))

    def forward(self, x):
        before = self.mean
        if self.training:
            self.mean = self.mean * 0.5 + x.detach().mean(0)
        return self.map(x - (self.mean if self.fresh else before))


def _second_pass(first):
    """What a step gives of the second of two records, each in a pass of its own, beside one of that first."""
    given = torch.stack([torch.full((7,), first), torch.arange(7.0)])
    torch.manual_seed(0)
    model = _Running(False)
    run = private(
        model, torch.optim.SGD(model.parameters(), 0.1), (given, torch.tensor([9, 1])), epsilon=1, delta=0.1,
        size=2, batch=2, steps=1, physical=1,
    )  # fmt: skip
    sums = run._descent.sums(np.array([0, 1]))  # the first one's label is none: it moves nothing by itself
    return torch.cat([each.flatten() for each in sums])


def test_what_is_kept_of_one_pass_is_not_for_the_next(monkeypatch):
    assert torch.equal(_second_pass(0.0), _second_pass(50.0))
    monkeypatch.setattr(faults, "forgetting", keeping)
    assert not torch.equal(_second_pass(0.0), _second_pass(50.0))


def test_a_model_that_mixes_records_in_training_is_refused():
    with pytest.raises(InvalidParameter, match="mixes records"):
        _run(_Running(True))
    _run(_Running(True).eval())
    _run(nn.Sequential(nn.Dropout(0.5), nn.Linear(7, 4)))


class _Own(nn.LSTM):
    """A recurrent layer that may compute something else than the one that is known."""


class _Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = _Own(7, 4, batch_first=True)

    def forward(self, x):
        return self.layer(x[:, None])[0][:, 0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Sequential(nn.LazyLinear(4)), "Lazy layers"),
        (lambda: nn.Linear(7, 4).requires_grad_(False), "no parameters that are trained"),
        (nn.Flatten, "no parameters that are trained"),
        (lambda: weight_norm(nn.Linear(7, 4)), "remove_parametrizations"),
        (_Sequence, "_Own cannot be run for each record"),
    ],
    ids=["lazy", "frozen", "none", "weight-norm", "subclass"],
)
def test_models_that_cannot_be_trained_are_refused_in_a_sentence(make, words):
    given, target = torch.randn(6, 7), torch.zeros(6).long()
    model, some = make(), nn.Parameter(torch.zeros(1))
    held = [*model.parameters()] or [some]
    with pytest.raises(InvalidParameter, match=words):
        private(model, torch.optim.SGD(held, 0.1), (given, target), **SETTINGS)
