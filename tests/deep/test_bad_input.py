"""Absurd arguments are refused in a sentence that says what to give, before anything is paid or read."""

import math

import numpy as np
import pytest
from torch import nn

import sfumato as sf
from deep import torch
from sfumato.errors import InvalidParameter, LedgerMismatch
from sfumato.learn.torch import CorrectedAdam, Named, Quantile, federated, private

X, Y = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 2
SETTINGS = {"epsilon": 1, "delta": 1e-5, "size": 12, "batch": 4, "steps": 2}


class _Unread:
    """A data set that must not be read."""

    def __len__(self):
        return 12

    def __getitem__(self, place):
        raise AssertionError("read")


def _private(ledger=None, data=(X, Y), model=None, optimizer=None, **more):
    model = nn.Linear(3, 2) if model is None else model
    held = list(model.parameters()) if isinstance(model, nn.Module) else []
    sgd = torch.optim.SGD(held or [nn.Parameter(torch.zeros(1))], 0.1)
    paid = {} if ledger is None else {"ledger": ledger, "dataset": "photos"}
    return private(model, sgd if optimizer is None else optimizer, data, **SETTINGS | paid | more)


def _federated(ledger=None, clients=((X, Y),), model=None, **more):
    model = nn.Linear(3, 2) if model is None else model
    held = model.parameters() if isinstance(model, nn.Module) else [nn.Parameter(torch.zeros(1))]
    settings = {"example": (X[0], Y[0]), "epsilon": 1, "delta": 1e-5, "size": 5, "batch": 2, "rounds": 2}
    paid = {} if ledger is None else {"ledger": ledger, "dataset": "photos"}
    return federated(model, torch.optim.SGD(held, 1), clients, **settings | paid | more)


class _Silent(nn.Linear):
    def forward(self, _):
        return None


ARGUMENTS = {
    "model": [("x", "must be a torch.nn.Module, not a str"), (abs, "must be a torch.nn.Module"),
              (nn.Flatten(), "no parameters that are trained"),
              (nn.Linear(3, 2, device="meta"), "has no values"),
              (nn.Linear(3, 2).half(), r"It computes in float16, and they are float32: convert"),
              (nn.Linear(4, 2), "fails on inputs like those of the data, float32 of 3 a record"),
              (_Silent(3, 2), "gives nothing that has a gradient")],
    "optimizer": [("adam", "must be one of PyTorch's"), (3, "must be one of PyTorch's")],
    "data": [(None, "example="), (5, "example="), ("abc", "example="), ({"a": 1}, "example="),
             ((np.zeros((4, 3)), np.zeros(4)), "pair of tensors"), ((X, Y, Y), "pair of tensors"),
             ((X, Y[:5]), "as many"), ((X[0, 0], Y[0]), "a single number"), ((X.to_sparse(), Y), "dense"),
             ((X.double(), Y), r"computes in float32, and they are float64"),
             ((X[:, :2], Y), "float32 of 2 a record")],
    "example": [(3, "one made-up record"), ((None, None), "one made-up record"),
                ((X[0],), "one made-up record")],
    "objective": [(3, "must be a function"), (lambda out: out, "The objective fails on what the model gives"),
                  (lambda *_: None, "not None"), (lambda *_: "x", "not a str"),
                  (lambda out, _: out, "one loss for each record"),
                  (lambda out, _: out.sum(), "one loss for each record"),
                  (lambda out, _: out.detach().sum(1), "no gradient")],
    "epsilon": [(value, "epsilon must be") for value in (-1, 0, math.nan, math.inf, "a", None, X[0, 0])],
    "delta": [(value, "delta must") for value in (0, 1, -1, math.nan, "a", None, 1e-40)],
    "size": [(value, "size must be") for value in (0, -4, 1.5, True, "x", None)],
    "batch": [(value, "batch must") for value in (0, 100, 1.5, "x", None)],
    "steps": [*((value, "steps must be") for value in (0, 1.5, "x")), (None, "epochs or steps")],
    "sampling": [("shuffled", "must be 'poisson' or 'allocation'"), (None, "must be 'poisson'")],
    "clip": [(value, "clip must be") for value in (0, -1, math.nan, math.inf, "a", None)],
    "physical": [(value, "physical must be") for value in (0, 1.5, "x")],
    "users": [(torch.arange(12), "users and records_each")],
    "amp": [(value, "amp must be") for value in ("bf16", torch.int8, np.float32, np.zeros(2))],
    "ledger": [("a.ledger", "must be an open one")],
    "block": [(value, "block must be") for value in (0, 1.5, "x")],
    "analyst": [(3, "analyst must be a name")],
}  # fmt: skip
OF_CLIENTS = {
    "clients": [(None, "must be a sequence"), (4, "must be a sequence"), ({}, "must be a sequence"),
                ("abc", "must be a sequence")],
    "model": [("x", "must be a torch.nn.Module"), (nn.Linear(4, 2), "fails on inputs like those")],
    "example": [(None, "one made-up record"), ((X[0],), "one made-up record"),
                ((torch.zeros(9), Y[0]), "float32 of 9 a record")],
    "rounds": [(0, "rounds must be"), ("x", "rounds must be")],
    "local_rate": [(value, "local_rate must be") for value in (-1, 0, math.nan, math.inf, "a", None)],
    "local_steps": [(0, "local_steps must be"), ("x", "local_steps must be")],
    "objective": [(3, "must be a function"), (lambda out: out, "The objective fails")],
    "clip": [(0, "clip must be")],
    "block": [("x", "block must be")],
}  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    opened = sf.Ledger.open(tmp_path / "deep.ledger")
    opened.register("photos", {"unit": "row", "version": 1}, sf.Budget(epsilon=2, delta=1e-4))
    return opened


def _refused(make, ledger, table, name):
    for value, words in table[name]:
        with pytest.raises(InvalidParameter, match=words) as caught:
            make(**{"ledger": ledger} | {name: value})
        assert str(caught.value).rstrip().endswith((".", "…")), "a sentence"
    assert ledger.balance("photos").spent == 0


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_a_run(name, ledger):
    table = ARGUMENTS
    if name == "example":
        _refused(lambda **more: _private(data=_Unread(), **more), ledger, table, name)
    else:
        _refused(_private, ledger, table, name)


@pytest.mark.parametrize("name", OF_CLIENTS)
def test_arguments_of_federated_averaging(name, ledger):
    _refused(_federated, ledger, OF_CLIENTS, name)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Quantile(share=2), "share must"),
        (lambda: Quantile(first=0), "first must"),
        (lambda: Quantile(rate="a"), "rate must be a number"),
        (lambda: Quantile(rate=math.nan), "rate must be a finite number"),
        (lambda: Quantile(noise=-1), "noise must be"),
        (lambda: CorrectedAdam([nn.Parameter(X)], lr="a"), "lr must be a number"),
        (lambda: CorrectedAdam([nn.Parameter(X)], betas=3), "betas must be a pair"),
        (lambda: CorrectedAdam([nn.Parameter(X)], betas=(1, 2)), "each of betas"),
        (lambda: Named(3, {}), "must be a torch.nn.Module"),
        (lambda: Named(nn.Linear(3, 2), 5), "one made-up record"),
        (lambda: Named(nn.Linear(3, 2), {"given": X}), "must have 'labels'"),
    ],
)
def test_other_arguments(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()


def test_data_that_is_no_record_is_not_read(ledger):
    with pytest.raises(InvalidParameter, match="fails on inputs"):
        _private(ledger, data=_Unread(), example=(torch.zeros(5), torch.tensor(0)))
    _private(ledger, data=_Unread(), example=(torch.zeros(3), torch.tensor(0)))
    assert ledger.balance("photos").spent == 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (None, "is a dictionary, not None"),
        ({}, "no checkpoint of a run"),
        ({"taken": -1}, "'taken' of a checkpoint"),
        ({"taken": "x"}, "'taken' of a checkpoint"),
        ({"model": {}}, "lacks 'weight', 'bias'"),
        ({"model": 3}, "'model' of a checkpoint is a dictionary"),
        ({"model": {"weight": X, "bias": Y}}, r"'weight' of shape \(12, 3\) and not \(2, 3\)"),
        ({"optimizer": {}}, "is no state of an optimizer"),
        ({"optimizer": None}, "is no state of an optimizer"),
    ],
)
def test_checkpoints(changed, words):
    run = _private()
    state = {**run.state_dict(), **changed} if changed else changed
    before = [each.clone() for each in run._descent.model.parameters()]
    with pytest.raises(InvalidParameter, match=words):
        run.load_state_dict(state)
    assert all(torch.equal(*pair) for pair in zip(before, run._descent.model.parameters(), strict=True))
    assert run.left == 2


def test_a_checkpoint_of_something_else_is_of_another_run():
    with pytest.raises(LedgerMismatch):
        _private().load_state_dict({**_private().state_dict(), "run": 3})


def test_a_model_that_was_converted_or_moved_is_refused_and_nothing_is_paid(ledger):
    model = nn.Linear(3, 2)
    run = _private(ledger, model=model)
    model.double()
    with pytest.raises(InvalidParameter, match=r"'weight' of the model was torch\.float32"):
        run.step()
    assert ledger.balance("photos").spent == 0
    model.float()
    run.fit()
    assert run.taken == 2


def test_complex_weights_are_refused_with_what_to_do():
    class Turns(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(5, 2, dtype=torch.complex64))

        def forward(self, given):
            return (given.to(torch.complex64) @ self.weight).abs()

    model, data = Turns(), (torch.zeros(8, 5), torch.zeros(8, dtype=torch.int64))
    settings = {"epsilon": 1, "delta": 1e-5, "size": 8, "batch": 8, "steps": 1}
    with pytest.raises(InvalidParameter, match="view_as_real"):
        private(model, torch.optim.SGD(model.parameters(), 0.1), data, **settings)
