"""Clients that train on their own: what one of them moves, what it costs, and that it learns."""

import math

import numpy as np
import pytest
from torch import nn

import sfumato as sf
from deep import keeping, made, torch
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.learn.torch import clients, cross_entropy, federated
from sfumato.learn.torch.clients import Rounds
from sfumato.learn.torch.noise import Drawn
from sfumato.learn.torch.sampling import Poisson

EXAMPLE = (torch.zeros(7), torch.tensor(0))


class Watched(torch.optim.SGD):
    """An optimizer that keeps the gradients that it is given."""

    def step(self, closure=None):
        self.given = torch.cat([each.grad.flatten() for each in self.param_groups[0]["params"]])
        return super().step(closure)


def _clients(count=9, seed=0, size=1.0):
    torch.manual_seed(seed)
    return [(torch.randn(at % 4 + 1, 7) * size, torch.randint(0, 4, (at % 4 + 1,))) for at in range(count)]


def _run(clients, rate=1.0, silent=False, **more):
    model = made("dense", 1, torch.float32)[0]
    settings = {"epsilon": 1, "delta": 1e-5, "size": 9, "batch": 9, "rounds": 3, "clip": 0.05}
    run = federated(model, Watched(model.parameters(), rate), clients, example=EXAMPLE, **settings | more)
    if silent:
        run._descent.noise.draw = lambda count: Drawn(lambda: torch.zeros(count, dtype=torch.int32))
    return run


def _given(clients, **more):
    run = _run(clients, rate=1e-9, silent=True, **more)
    run.step()
    return run._descent.optimizer.given.double() * 9


def test_a_round_is_the_mean_of_what_clients_changed():
    clients = _clients(3)
    found, model = (
        _given(clients, clip=5, local_steps=4, local_rate=0.2),
        made("dense", 1, torch.float32)[0],
    )
    start = torch.cat([each.detach().flatten() for each in model.parameters()]).double()
    wanted = torch.zeros_like(start)
    for given, target in clients:
        own = made("dense", 1, torch.float32)[0]
        descent = torch.optim.SGD(own.parameters(), 0.2)
        for _ in range(4):
            descent.zero_grad()
            cross_entropy(own(given), target).mean().backward()
            descent.step()
        wanted += start - torch.cat([each.detach().flatten() for each in own.parameters()]).double()
    assert (found - wanted).abs().max() < 1e-4


def _most_moved():
    clients, moved = _clients(size=30.0), 0.0
    clients[4] = (clients[4][0].repeat(200, 1), clients[4][1].repeat(200))
    whole = _given(clients, local_steps=6)
    for left_out in (0, 4, 8):
        kept = [each for at, each in enumerate(clients) if at != left_out]
        moved = max(moved, float((whole - _given(kept, local_steps=6)).norm()) / 0.05)
    return moved


def test_a_client_moves_a_round_by_one_clip_at_most():
    assert 0.9 < _most_moved() <= 1


def test_without_a_cut_it_would_move_more(monkeypatch):
    monkeypatch.setattr(
        Rounds, "_cut", lambda self, change: (change / self.step_of_grid).round().to(torch.int64)
    )
    assert _most_moved() > 2


BAD = [
    (torch.full((2, 7), math.nan), torch.tensor([0, 1])),
    (torch.full((2, 7), math.inf), torch.tensor([0, 1])),
    (torch.ones(2, 6), torch.tensor([0, 1])),
    (torch.ones(2, 7), torch.tensor([0, 1, 1])),
    (torch.ones(0, 7), torch.zeros(0).long()),
    (torch.ones(2, 7), torch.tensor([10**9, -3])),
    None,
    "abc",
]


@pytest.mark.parametrize("bad", range(len(BAD)))
def test_a_client_that_cannot_be_trained_on_counts_for_nothing(bad):
    clients = _clients(4)
    assert torch.equal(_given([BAD[bad], *clients]), _given(clients))
    assert torch.isfinite(_given([BAD[bad]])).all()


def test_nobody_is_told_that_there_are_no_clients():
    noise = []
    for held in ([], _clients(1)):
        run = _run(held)
        run.fit()
        assert run.taken == 3
        noise.append(run._descent.optimizer.given.std())
    assert 0.5 < noise[0] / noise[1] < 2
    assert not _given([]).any()


class _Lazy:
    """Clients that are read when they are asked for; some cannot be."""

    def __init__(self, clients):
        self.clients, self.read = clients, []

    def __len__(self):
        return len(self.clients)

    def __getitem__(self, place):
        self.read.append(place)
        if place == 1:
            raise OSError("this file is broken")
        return self.clients[place]


def test_no_client_is_read_before_it_is_paid_and_drawn():
    lazy = _Lazy(_clients(4))
    run = _run(lazy, silent=True, rate=1e-9)
    assert lazy.read == []
    run.step()
    assert sorted(lazy.read) == [0, 1, 2, 3]
    kept = [each for at, each in enumerate(lazy.clients) if at != 1]
    assert torch.equal(run._descent.optimizer.given.double() * 9, _given(kept))


@pytest.mark.parametrize("clients", [{"a": (torch.ones(1, 7), torch.zeros(1).long())}, iter(())])
def test_clients_that_have_no_numbers_are_refused(clients):
    with pytest.raises(InvalidParameter, match="must be a sequence"):
        _run(clients)


class _Keeping(nn.Module):
    """A model that takes off what it has seen last."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(7, 4)
        self.register_buffer("last", torch.zeros(7))

    def forward(self, x):
        before, self.last = self.last, x.detach().mean(0)
        return self.map(x - before)


def _others_move(monkeypatch=None):
    """How far a client whose own change is nothing moves what others change."""
    if monkeypatch is not None:
        monkeypatch.setattr(clients, "forgetting", keeping)
    found, own = [], _clients(2)
    for size in (0.0, 100.0):
        torch.manual_seed(0)
        silent = (torch.full((1, 7), size), torch.tensor([9]))  # its label is none
        model = _Keeping()
        run = federated(
            model, Watched(model.parameters(), 1e-9), [silent, *own], example=EXAMPLE, epsilon=1, delta=1e-5,
            size=3, batch=3, rounds=1, clip=5, local_steps=1,
        )  # fmt: skip
        found.append(torch.cat([each.flatten() for each in run._descent.sums(np.arange(3))]))
    return float((found[0] - found[1]).double().norm())


def test_what_layers_keep_of_one_client_is_not_for_the_next(monkeypatch):
    assert _others_move() == 0
    assert _others_move(monkeypatch) > 0


def test_batch_norm_is_refused():
    model = nn.Sequential(nn.BatchNorm1d(7), nn.Linear(7, 4))
    with pytest.raises(InvalidParameter, match="GroupNorm"):
        federated(
            model, torch.optim.SGD(model.parameters(), 1), _clients(), example=EXAMPLE, epsilon=1, delta=1e-5,
            size=9, batch=9, rounds=1,
        )  # fmt: skip


def test_both_guarantees_stand_side_by_side():
    run = _run(_clients(), batch=3)
    assert run.sampler == Poisson(run.sampler.rate, 3)
    both = run.account()
    assert both["central"].epsilon == 1
    assert both["central"].loss.approximate == (1, run.delta)
    assert both["local"].loss is None
    assert both["local"].epsilon == math.inf
    assert "private rounds" in repr(run)
    assert "clients by chance" in repr(run)


def test_one_debit_for_all_rounds(tmp_path):
    ledger = sf.Ledger.open(tmp_path / "deep.ledger")
    ledger.register("phones", {"unit": "client", "version": 1}, sf.Budget(epsilon=1.5, delta=1e-4))
    run = _run(_clients(), ledger=ledger, dataset="phones")
    assert ledger.balance("phones").spent == 0
    run.step()
    kept = run.state_dict()
    assert ledger.balance("phones").spent == 1
    again = _run(_clients(), ledger=ledger, dataset="phones")
    again.load_state_dict(kept)
    again.fit()
    assert again.taken == 3
    with pytest.raises(BudgetExceeded):
        run.step()
    assert ledger.balance("phones").spent == 1
    assert ledger.verify().ok


def test_noise_has_the_size_that_was_paid_for():
    run, seen = _run(_clients(), rate=1e-9, rounds=25, local_steps=1), []
    while run.left:
        run.step()
        seen.append(run._descent.optimizer.given)
    noise = float(torch.stack(seen).std(0).mean()) * 9 / (run.noise_multiplier * 0.05)
    assert abs(noise - 1) < 0.05


def test_it_learns():
    torch.manual_seed(2)
    clients = []
    for _ in range(150):
        given = torch.randn(8, 5)
        clients.append((given, (given[:, 0] + given[:, 1] > 0).long()))
    model = nn.Linear(5, 2)
    run = federated(
        model, torch.optim.SGD(model.parameters(), 1.0), clients, example=(torch.zeros(5), torch.tensor(0)),
        epsilon=8, delta=1e-4, size=150, batch=150, rounds=6, local_steps=3, local_rate=0.5, clip=1,
    )  # fmt: skip
    run.fit()
    given = torch.randn(2000, 5)
    assert (model(given).argmax(1) == (given[:, 0] + given[:, 1] > 0)).float().mean() > 0.9
