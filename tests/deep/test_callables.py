"""What is reached through functions, methods, hooks and the objective: it is put back, or refused."""

import functools
import itertools
import threading
import types
import weakref

import pytest
from torch import nn

from deep import keeping, torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import cross_entropy, faults, private

RECORDS, WIDTH = 4, 3
HELD, LAST = [], None


class _Box:
    everything = []  # noqa: RUF012

    def __init__(self):
        self.held, self.cell = None, threading.local()

    def note(self, value, _more=()):
        self.held = value

    def count(self, value, seen={}):  # noqa: B006
        seen[len(seen)] = value

    @classmethod
    def list(cls, value):
        cls.everything.append(value)

    @staticmethod
    def name(value, *, kept=[]):  # noqa: B006
        kept.append(value)

    def __call__(self, *given):
        self.note(given)


class _Model(nn.Module):
    """Gives what it is given to `keep`, and goes on as a linear layer."""

    def __init__(self, keep=None):
        super().__init__()
        self.map, self.keep = nn.Linear(WIDTH, 2), keep

    def forward(self, given):
        if self.keep is not None:
            self.keep(given.detach().sum().item())
        return self.map(given)


def _enclosed():
    last, listed = None, []

    def keep(value):
        nonlocal last
        last = value
        listed.append(value)

    return keep, lambda: (last, list(listed))


def _to_global(value):
    global LAST, FRESH
    HELD.append(value)
    LAST = FRESH = value


def _deeper(value):
    _to_global(value)


@torch.no_grad()
def _decorated(value, seen=[]):  # noqa: B006
    seen.append(value)


def _attribute():
    def keep(value):
        keep.last = value

    keep.last = None
    return keep, lambda: keep.last


def _cached():
    @functools.lru_cache
    def scale(_, got=[]):  # noqa: B006
        return got[-1] if got else None

    def keep(value, kept=scale.__wrapped__.__defaults__[0]):
        kept.append(value)
        scale(0)

    return keep, lambda: (scale.cache_info().currsize, list(keep.__defaults__[0]))


def _weakly():
    box, kept = _Box(), weakref.WeakKeyDictionary()

    def keep(value, kept=kept):
        kept[box] = value

    return keep, lambda: list(kept.values())


def _local():
    kept = threading.local()
    return lambda value: setattr(kept, "last", value), lambda: dict(vars(kept))


def _referred():
    box = _Box()
    inner = weakref.ref(box)
    return lambda value: inner().note(value), lambda: box.held


def _box(of, look):
    def make():
        box = _Box()
        return of(box), lambda: look(box)

    return make


def _plain(keep, look):
    return lambda: (keep, look)


def _of(held, keep):
    return keep(held), lambda: type(held)(held)


WAYS = {
    "a bound method": _box(lambda box: box.note, lambda box: box.held),
    "an object that is called": _box(lambda box: box, lambda box: box.held),
    "a method's default": _box(lambda box: box.count, lambda box: dict(box.count.__defaults__[0])),
    "a class method": _plain(_Box.list, lambda: list(_Box.everything)),
    "a static method": _plain(_Box.name, lambda: list(_Box.name.__kwdefaults__["kept"])),
    "a part": _box(lambda box: functools.partial(_Box.note, box), lambda box: box.held),
    "append": lambda: _of([], lambda held: held.append),
    "a dictionary's method": lambda: _of({}, lambda held: functools.partial(held.__setitem__, "a")),
    "enclosed": _enclosed,
    "globals": _plain(_to_global, lambda: (list(HELD), LAST, "FRESH" in globals())),
    "globals of an inner function": _plain(_deeper, lambda: (list(HELD), LAST, "FRESH" in globals())),
    "behind a decorator": _plain(_decorated, lambda: list(_decorated.__wrapped__.__defaults__[0])),
    "an attribute": _attribute,
    "a cache": _cached,
    "weak keys": _weakly,
    "a weak reference": _referred,
    "a thread's own": _local,
}


def _run(model, objective=cross_entropy):
    given = torch.linspace(-1, 1, RECORDS * WIDTH).view(RECORDS, WIDTH) + 2
    return private(
        model, torch.optim.SGD([each for each in model.parameters() if each.requires_grad], 0.1),
        (given, torch.tensor([0, 1, 0, 1])), epsilon=1, delta=1e-5, size=RECORDS, batch=RECORDS, steps=3,
        objective=objective,
    )  # fmt: skip


def _in_model(keep):
    return _Model(keep), cross_entropy


def _in_hook(keep):
    model = _Model()

    def hook(layer, given, found):
        keep(given[0].detach().sum().item())

    model.map.register_forward_hook(hook)
    return model, cross_entropy


def _in_objective(keep):
    def objective(out, target):
        keep(out.detach().sum().item())
        return cross_entropy(out, target)

    return _Model(), objective


@pytest.mark.parametrize("place", [_in_model, _in_hook, _in_objective])
def test_what_callables_reach_is_put_back(place, monkeypatch):
    made = {way: make() for way, make in WAYS.items()}
    keeps = [keep for keep, _ in made.values()]

    def keep(value):
        for each in keeps:
            each(value)

    def shown():
        return {way: look() for way, (_, look) in made.items()}

    before = shown()
    run = _run(*place(keep))
    assert shown() == before, "nothing of made-up records"
    run.step()
    assert shown() == before
    with monkeypatch.context() as patch:
        patch.setattr(faults, "forgetting", keeping)
        run.step()
    assert [way for way, look in shown().items() if look == before[way]] == [], "otherwise it would stay"
    HELD.clear()
    globals().pop("FRESH", None)
    globals()["LAST"] = None


class _Loss(nn.Module):
    """An objective that keeps a running mean and a history."""

    def __init__(self):
        super().__init__()
        self.history = []
        self.register_buffer("mean", torch.zeros(()))
        self.weight = nn.Parameter(torch.ones(()), requires_grad=False)

    def forward(self, out, target):
        each = cross_entropy(out, target)
        self.history.append(each.detach())
        self.mean.lerp_(each.detach().mean(), 0.5)
        return each * self.weight


def test_an_objective_that_is_a_module_forgets():
    objective = _Loss()
    _run(_Model(), objective).fit()
    assert objective.history == []
    assert objective.mean == 0


def test_an_objective_that_moves_its_own_weights_is_refused():
    class Moves(_Loss):
        def forward(self, out, target):
            self.weight.data.add_(out.detach().abs().mean())
            return cross_entropy(out, target)

    with pytest.raises(InvalidParameter, match="changes its own parameters"):
        _run(_Model(), Moves())


def test_hooks_and_layers_that_a_pass_adds_are_taken_off():
    class Adds(_Model):
        def forward(self, given):
            self.map.register_forward_hook(lambda *_: None)
            self.more = nn.Linear(1, 1)
            return self.map(given)

    model = Adds()
    run = _run(model)
    hooks = len(model.map._forward_hooks)
    run.fit()
    assert len(model.map._forward_hooks) == hooks
    assert not hasattr(model, "more")


def _generator():
    kept = None
    while True:
        kept = yield kept


@pytest.mark.parametrize("held", [_generator(), memoryview(bytearray(8))], ids=["generator", "memory"])
@pytest.mark.parametrize("place", [_in_model, _in_hook, _in_objective])
def test_what_nobody_can_look_into_is_refused(place, held):
    with pytest.raises(InvalidParameter, match="cannot be looked into"):
        _run(*place(lambda value: held and value))


def test_what_holds_no_records_is_taken(tmp_path):
    """Locks, loggers, open files, streams, classes, compiled functions, caches of libraries."""
    import logging
    import re
    import sys

    model = _Model()
    with (tmp_path / "log").open("w") as file:
        model.held = [
            threading.Lock(), threading.RLock(), threading.Event(), threading.Condition(), logging.root,
            file, sys.stdout, len, torch.relu, nn.functional.relu, _Box, int, re.compile("a"), re, ...,
            types.MappingProxyType({"a": 1}), weakref.ref(_Box), itertools.count, torch.optim.SGD,
            functools.partial(torch.add, alpha=2), lambda x: x, property(lambda self: 1), {}.keys,
            torch.Generator(), object(), NotImplemented, list[int], int | str, model.forward,
            model.map.register_forward_hook(lambda *_: None), nn.init.xavier_uniform_, print,
        ]  # fmt: skip
        _run(model).fit()
