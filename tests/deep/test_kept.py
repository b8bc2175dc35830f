"""What layers keep in attributes, at every depth: it is put back after each pass, or the model is refused."""

import io
import random
import types
from array import array
from collections import OrderedDict, defaultdict, deque
from functools import partial

import numpy as np
import pytest
from torch import nn

from deep import keeping, torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import faults, private
from sfumato.learn.torch.kept import Kept

RECORDS, WIDTH = 8, 3


class _Slots:
    __slots__ = ("inner", "value")

    def __init__(self):
        self.value, self.inner = 0.0, [0.0]


class _Thing:
    def __init__(self):
        self.value, self.deep = 0.0, {"a": [deque([np.zeros(1)])]}


class _Listed(list):
    """A list that has attributes, and its own idea of what is in it."""

    def __iter__(self):
        return iter(())


def _plus(array_like, value):
    array_like[0] += value


def _tensor(at, value):
    at.add_(value)


def _resized(at, value):
    at.resize_(at.numel() + 1).fill_(value)


def _grown(at, value):
    at.append(value)
    at.rotate(1)


def _inner(at, value):
    at.inner[0] += value
    at.value = value


def _attribute(at, value):
    at.fresh = at.value = value
    at.deep["a"][0][0][0] += value
    at.deep["a"].append(value)


KEEPS = {
    "array": (lambda: np.zeros(2), _plus),
    "an array of lists": (lambda: np.array([[0.0], None], object), lambda at, value: at[0].append(value)),
    "a tensor in a list": (lambda: [torch.zeros(2)], lambda at, value: at[0].add_(value)),
    "a tensor": (lambda: torch.zeros(2), _tensor),
    "another shape": (lambda: torch.zeros(2), _resized),
    "an expanded tensor": (lambda: torch.zeros(1).expand(3), lambda at, value: at[:1].add_(value)),
    "deque": (lambda: deque([1, 2, 3], maxlen=3), _grown),
    "nested lists": (lambda: [[[0.0]]], lambda at, value: at[0][0].append(value)),
    "a list that hides": (lambda: _Listed([0.0]), lambda at, value: at.append(value)),
    "dictionaries": (lambda: {"a": {"b": [0.0]}}, lambda at, value: at["a"].update(b=value, c=value)),
    "an order": (lambda: OrderedDict(a=1, b=2), lambda at, value: at.move_to_end("a") if value else None),
    "a default": (lambda: defaultdict(list), lambda at, value: at["new"].append(value)),
    "set": (set, lambda at, value: at.add(value)),
    "bytes": (lambda: bytearray(b"abc"), lambda at, value: at.append(int(abs(value)) % 256)),
    "an object": (_Thing, _attribute),
    "slots": (_Slots, _inner),
    "a part": (lambda: partial(print, [0.0]), lambda at, value: at.args[0].append(value)),
    "a tuple": (lambda: ([0.0], 1), lambda at, value: at[0].append(value)),
    "names": (types.SimpleNamespace, lambda at, value: setattr(at, "kept", value)),
    "a module that is none": (lambda: [nn.Linear(1, 1)], lambda at, value: setattr(at[0], "kept", value)),
}
SEALED = {
    "a file in memory": (io.BytesIO, lambda at, value: at.write(b"abc")),
    "an array of numbers": (lambda: array("d", [0.0]), lambda at, value: at.append(value)),
    "a generator of numbers": (lambda: random.Random(1), lambda at, value: at.seed(value)),
    "weights in a list": (
        lambda: [nn.Parameter(torch.zeros(2))],
        lambda at, value: at[0].data.add_(abs(value) + 1),
    ),
}


class _Keeps(nn.Module):
    """Adds what it has kept so far, and keeps something of what it is given."""

    def __init__(self, kind):
        super().__init__()
        make, self._keep = (KEEPS | SEALED)[kind]
        self.map, self.kept = nn.Linear(WIDTH, 1), make()

    def forward(self, given):
        self._keep(self.kept, float(given.detach().sum()))
        return self.map(given)


def _run(model, given=None, objective=None):
    given = torch.randn(RECORDS, WIDTH) if given is None else given
    return private(
        model, torch.optim.SGD(model.parameters(), 0.1), (given, torch.zeros(len(given))), epsilon=1,
        delta=1e-5, size=RECORDS, batch=RECORDS, steps=2, physical=4,
        objective=objective or (lambda out, _: out[:, 0]),
    )  # fmt: skip


def _shown(value):
    """All that can be seen of a value, as text; what is equal shows the same."""
    if isinstance(value, torch.Tensor):
        return f"{tuple(value.shape)} {value.tolist()}"
    if isinstance(value, np.ndarray):
        return f"{value.shape} {[_shown(each) for each in value.ravel()]}"
    if isinstance(value, dict):
        return str([(key, _shown(each)) for key, each in value.items()])
    if isinstance(value, list | tuple | set | deque):
        kind = next(each for each in (list, tuple, set, deque) if isinstance(value, each))
        return f"{kind} {[_shown(each) for each in kind.__iter__(value)]}"
    if isinstance(value, partial):
        return _shown(value.args)
    if isinstance(value, _Slots):
        return _shown([value.value, value.inner])
    if isinstance(value, _Thing | types.SimpleNamespace | nn.Module):
        return _shown({name: each for name, each in vars(value).items() if name[0] != "_"})
    return repr(value)


@pytest.mark.filterwarnings("ignore:The model does not use")
@pytest.mark.parametrize("kind", KEEPS)
def test_what_a_layer_keeps_is_put_back(kind, monkeypatch):
    model = _Keeps(kind)
    before, same = _shown(model.kept), model.kept
    run = _run(model)
    assert _shown(model.kept) == before, "nothing of made-up records"
    run.step()
    assert model.kept is same
    assert _shown(model.kept) == before
    with monkeypatch.context() as patch:
        patch.setattr(faults, "forgetting", keeping)
        kept = Kept(model)
        run.step()
        assert _shown(model.kept) != before, "otherwise it would stay"
        kept.put_back()
    assert _shown(model.kept) == before


class _Classes(nn.Module):
    shared, listed = np.zeros(1), []

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(WIDTH, 1)

    def forward(self, given):
        type(self).shared[0] += 1
        type(self).late = given.detach()
        self.listed.append(given.detach())
        return self.map(given)


def test_what_a_layer_keeps_in_its_class_is_put_back():
    _run(_Classes()).fit()
    assert (_Classes.shared, _Classes.listed, hasattr(_Classes, "late")) == (np.zeros(1), [], False)


@pytest.mark.parametrize("kind", SEALED)
def test_what_cannot_be_put_back_is_refused(kind):
    with pytest.raises(InvalidParameter, match="cannot be put back after a step"):
        _run(_Keeps(kind))


@pytest.mark.parametrize("kind", SEALED)
def test_what_does_not_change_may_be_of_any_kind(kind):
    model = _Keeps(kind)
    model._keep = lambda *_: None
    _run(model).fit()


class _Counts(nn.Module):
    """Multiplies what it is given by how often it was asked; fails on a large number."""

    def __init__(self, kind):
        super().__init__()
        self.map, self.kind = nn.Linear(WIDTH, 1, bias=False), kind
        self.array, self.listed, self.seen = np.zeros(1), [], 0
        self.register_buffer("buffer", torch.zeros(1))

    def forward(self, given):
        self.array[0] += 1
        self.listed.append(1)
        self.buffer += 1
        self.seen += 1
        times = {"array": self.array[0], "listed": len(self.listed), "buffer": self.buffer, "seen": self.seen}
        turned = given.roll(int(times[self.kind]) - 1, 1)
        if (given > 50).any():
            raise ValueError(f"too large: {float(given.max())}")
        return self.map(turned)


def _moved(kind):
    """How far a sum is moved by a record on which each pass fails, in clips, before there is noise."""
    given = torch.zeros(4, WIDTH)
    given[:, 0] = 100 / 2.1
    given[3] = 60
    run = _run(_Counts(kind), given, lambda out, _: 1000 * out[:, 0])
    sums = [
        torch.cat([each.double().flatten() for each in run._descent.sums(np.array(drawn))])
        for drawn in ([0, 1, 2, 3], [0, 1, 2])
    ]
    return float((sums[0] - sums[1]).norm()) * run._descent.step_of_grid / run._descent.clip


@pytest.mark.parametrize("kind", ["array", "listed", "buffer", "seen"])
def test_a_record_on_which_passes_fail_moves_no_other(kind, monkeypatch):
    assert _moved(kind) == 0
    monkeypatch.setattr(faults, "forgetting", keeping)
    assert _moved(kind) > 2, "otherwise the next try would find what the last one left"
