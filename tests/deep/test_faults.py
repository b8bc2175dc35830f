"""Records on which something fails: they count as none, and nobody hears of it."""

import warnings

import numpy as np
import pytest
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.data import TensorDataset

from deep import made, torch
from sfumato.learn.torch import cross_entropy, descent, federated, private
from sfumato.learn.torch.noise import Drawn

EXAMPLE = (torch.zeros(7), torch.tensor(0))


def _gradients(data, model=None, **more):
    """What the optimizer is given in one step over all records, without noise."""
    seen, model = [], made("dense", 1, torch.float32)[0] if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    optimizer.register_step_pre_hook(lambda *_: seen.extend(each.grad for each in model.parameters()))
    settings = {"epsilon": 1, "delta": 1e-5, "size": 8, "batch": 8, "steps": 1, "physical": 8}
    run = private(model, optimizer, data, example=EXAMPLE, **settings | more)
    run._descent.noise.draw = lambda count: Drawn(lambda: torch.zeros(count, dtype=torch.int32))
    run.fit()
    return torch.cat([each.flatten() for each in seen])


def _records():
    _, given, target = made("dense", 8, torch.float32)
    return given, target


class _Special(torch.Tensor):
    pass


ODD = {
    "sparse": (torch.ones(7).to_sparse(), torch.tensor(1)),
    "meta": (torch.ones(7, device="meta"), torch.tensor(1)),
    "complex": (torch.ones(7), torch.tensor(1 + 2j)),
    "whole": (torch.ones(7).long(), torch.tensor(1)),
    "text": (torch.ones(7), "one"),
    "three": (torch.ones(7), torch.tensor(1), 3),
    "one": (torch.ones(7),),
    "nothing": None,
}


@pytest.mark.parametrize("kind", ODD)
def test_records_of_odd_kinds_are_none(kind):
    given, target = _records()
    data = [ODD[kind], *zip(given, target, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _gradients(_Listed(data))
    assert torch.allclose(found, _gradients((given, target)), atol=1e-6)


@pytest.mark.parametrize(
    "value", [torch.ones(7, requires_grad=True), torch.ones(7).as_subclass(_Special), [1.0] * 7, np.ones(7)]
)
def test_other_ways_to_write_a_record_are_read(value):
    given, target = _records()
    data = _Listed([(value, 1), *zip(given, target, strict=True)])
    wanted = _gradients((torch.cat([torch.ones(1, 7), given]), torch.cat([torch.tensor([1]), target])))
    assert torch.allclose(_gradients(data), wanted, atol=1e-6)


class _Listed:
    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, place):
        return self.records[place]


def test_a_data_set_that_changes_what_it_gives_is_asked():
    class Doubled(TensorDataset):
        def __getitem__(self, place):
            given, target = super().__getitem__(place)
            return given * 2, target

    given, target = _records()
    assert torch.allclose(_gradients(Doubled(given, target)), _gradients((given * 2, target)), atol=1e-6)
    assert torch.allclose(_gradients(TensorDataset(given, target)), _gradients((given, target)), atol=1e-6)


class _Picky(nn.Module):
    """A model that raises on some records, or where there are too many of a kind."""

    def __init__(self, many=1):
        super().__init__()
        self.inner, self.many = made("dense", 1, torch.float32)[0], many

    def forward(self, x):
        if int((x[:, 0] > 50).sum()) >= self.many:
            raise ValueError(f"the secret {float(x[:, 0].max())}")
        return self.inner(x)


def _plain(out, target):
    return F.cross_entropy(out, target, reduction="none")  # raises for a label that is none


@pytest.mark.parametrize("users", [False, True])
@pytest.mark.parametrize("kind", ["model", "objective", "both"])
def test_a_record_on_which_a_pass_fails_counts_for_nothing(kind, users):
    given, target = _records()
    bad, wrong = given.clone(), target.clone()
    if kind != "objective":
        bad[2, 0] = 77.25
    if kind != "model":
        wrong[5] = 99
    kept = [at for at in range(8) if torch.equal(bad[at], given[at]) and wrong[at] == target[at]]
    ids = torch.arange(8)
    both = [
        _gradients(data, _Picky(), objective=_plain, **({"users": whose, "records_each": 2} if users else {}))
        for data, whose in (((bad, wrong), ids), ((given[kept], target[kept]), ids[kept]))
    ]
    assert torch.allclose(*both, atol=1e-6)


def test_otherwise_a_record_would_decide_an_error(monkeypatch):
    given, target = _records()
    target[5] = 99
    monkeypatch.setattr(descent, "summed", lambda engine, batch, *_: engine.sums(*batch))
    with pytest.raises(IndexError, match="99"):
        _gradients((given, target), objective=_plain)


def test_what_made_up_records_raise_is_shown():
    def broken(out, target):
        if len(out) in (8, 32):  # not in what is tried before anything is paid
            raise ValueError("as anybody may know")
        return cross_entropy(out, target)

    with pytest.raises(ValueError, match="as anybody may know"):
        _gradients(_records(), objective=broken)


def test_a_model_that_fails_on_records_together_says_nothing_of_them():
    given, target = _records()
    given[1:3, 0] = 77.25
    assert torch.allclose(_gradients((given, target), _Picky(2)), _gradients((given, target)), atol=1e-6)


@pytest.mark.parametrize("kind", ["sparse", "meta", "complex"])
def test_clients_of_odd_kinds_are_none(kind):
    given, target = (value[None] if isinstance(value, torch.Tensor) else value for value in ODD[kind])
    model = made("dense", 1, torch.float32)[0]
    run = federated(
        model, torch.optim.SGD(model.parameters(), 1), [(given, target)], example=EXAMPLE, epsilon=1,
        delta=1e-5, size=1, batch=1, rounds=1,
    )  # fmt: skip
    run.fit()
    assert run.taken == 1
