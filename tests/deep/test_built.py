"""What is changed after a run was made: it is looked at again before the next step, or refused."""

import types

import pytest
from torch import nn

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import private
from sfumato.learn.torch.descent import Descent
from sfumato.learn.torch.kept import Kept

WIDTH = 3
MIX = 0.0


def _nothing(hidden):
    return hidden


def _mixed(hidden):
    return hidden - hidden.mean(0)


class _Model(nn.Module):
    """Mixes records as far as one of many things says, none of which says so at first."""

    share = 0.0

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(WIDTH, 4), nn.Linear(4, 2)
        self.number, self.between, self.listed = 0.0, _nothing, [0.0]
        self.config = types.SimpleNamespace(inner={"mix": 0})
        self.plain, self.array = torch.zeros(()), torch.zeros(1).numpy()
        self.register_buffer("gate", torch.zeros(()))
        self.register_buffer("large", torch.zeros(2000))

    def mix(self):
        return self.number + self.listed[0] + self.config.inner["mix"] + self.share + MIX + self.array[0]

    def forward(self, given):
        hidden = self.between(self.first(given))
        mixed = float(self.mix() + self.gate + self.plain + self.large[0])
        return self.last(hidden - mixed * hidden.mean(0) if mixed else hidden)


def _forward(model):
    model.forward = lambda given: model.last(_mixed(model.first(given)))


def _buffer(model):
    model.gate = torch.ones(())


def _class(model):
    _Model.share = 1.0


def _global(model):
    global MIX
    MIX = 1.0


def _hook_of_all(_):
    nn.modules.module.register_module_forward_hook(
        lambda layer, given, out: _mixed(out) if isinstance(layer, nn.Linear) and out.shape[-1] == 4 else None
    )


CHANGES = {
    "a number": lambda model: setattr(model, "number", 1),
    "a number in a list": lambda model: model.listed.__setitem__(0, 1.0),
    "a number in an object": lambda model: model.config.inner.update(mix=1),
    "a number of the class": _class,
    "a global number": _global,
    "a function": lambda model: setattr(model, "between", _mixed),
    "a hook": lambda model: model.first.register_forward_hook(lambda *given: _mixed(given[2])),
    "a hook before": lambda model: model.last.register_forward_pre_hook(lambda _, given: (_mixed(given[0]),)),
    "forward": _forward,
    "a buffer": lambda model: model.gate.fill_(1),
    "a buffer past the counter": lambda model: model.gate.data.fill_(1),
    "a large buffer": lambda model: model.large.fill_(1),
    "another buffer": _buffer,
    "a tensor": lambda model: model.plain.fill_(1),
    "an array": lambda model: model.array.__setitem__(0, 1.0),
    "a hook of all layers": _hook_of_all,
}


def _run(model, **more):
    torch.manual_seed(0)
    settings = {"epsilon": 1, "delta": 1e-5, "size": 4, "batch": 4, "steps": 6} | more
    data = torch.randn(4, WIDTH), torch.tensor([0, 1, 0, 1])
    return private(model, torch.optim.SGD(model.parameters(), 0.1), data, **settings)


@pytest.fixture
def _put_back():
    yield
    globals()["MIX"] = _Model.share = 0.0
    nn.modules.module._global_forward_hooks.clear()


@pytest.mark.usefixtures("_put_back")
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_mixes_records_is_refused(change, monkeypatch):
    model = _Model()
    run = _run(model)
    run.step()
    CHANGES[change](model)
    for _ in range(2):
        with pytest.raises(InvalidParameter, match="mixes records"):
            run.step()
    assert (run.taken, run.left) == (1, 5)
    monkeypatch.setattr(Kept, "changed", lambda _: False)
    run.step()  # otherwise it would be run


def _looks(monkeypatch):
    looks, inner = [], Descent.look
    monkeypatch.setattr(
        Descent, "look", lambda itself, anew=False: [looks.append(anew), inner(itself, anew)][1]
    )
    return looks


def test_a_model_is_looked_at_once(monkeypatch):
    looks, model = _looks(monkeypatch), _Model()
    run = _run(model)
    run.fit()
    assert looks == [False]


def test_other_modes_are_looked_at_once_and_other_numbers_each_time(monkeypatch):
    looks, model = _looks(monkeypatch), _Model()
    run = _run(model)
    surveys, inner = [], run._descent.engine.recorder._surveyed
    run._descent.engine.recorder._surveyed = lambda *given: [surveys.append(1), inner(*given)][1]
    for change in (model.eval, model.train, model.eval, lambda: None, lambda: model.listed.append(3)):
        change()
        run.step()
    assert looks == [False, False, False, False, True]
    assert len(surveys) == 2  # of eval(), and of the list
