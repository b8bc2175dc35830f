"""Coins of dropout and augmentation: secret, fresh, and not to be read off what is tossed after a step."""

import random
from collections import Counter

import numpy as np
import pytest
from torch import nn

from deep import torch
from sfumato.learn.torch import coins
from sfumato.learn.torch.clients import federated
from sfumato.learn.torch.coins import Coins, Once
from sfumato.learn.torch.objectives import squared_error
from sfumato.learn.torch.runs import private

CPU = torch.device("cpu")
TOSSED = {"torch": lambda: torch.rand(1).item(), "numpy": np.random.random, "python": random.random}
SETTINGS = {"epsilon": 1, "delta": 1e-5, "objective": squared_error}


def _seed():
    """Makes public what generators give next."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def _next():
    """What they give now; every other one of normals is a half of a pair."""
    normals = torch.randn(3).tolist(), np.random.standard_normal(2).tolist(), random.gauss(0, 1)
    return torch.rand(2).tolist(), np.random.random(), random.random(), normals


class _Signs(nn.Module):
    """Its only weight's gradient is one clip, up or down, by a coin of each record."""

    def __init__(self):
        super().__init__()
        self.end = nn.Linear(1, 1)
        self.end.weight.requires_grad_(False).fill_(1.0)
        nn.init.zeros_(self.end.bias)

    def forward(self, given):
        return self.end(nn.functional.dropout(given, 0.5, self.training))[:, 0]


def _run(model, records=2, **more):
    given = torch.tensor([[100.0], [-100.0]]).repeat(records, 1)[:records]
    optimizer = torch.optim.SGD([model.end.bias], 1.0)
    settings = {"size": records, "batch": records, "steps": 4} | SETTINGS | more
    return private(model, optimizer, (given, given[:, 0].clone()), **settings)


def _sums(run, drawn):
    """The sum of a step in clips, behind a seed that everybody knows."""
    _seed()
    total = torch.cat([each.double().flatten() for each in run._descent.sums(np.array(drawn))])
    return [round(each) for each in (total * run._descent.step_of_grid).tolist()]


def test_no_seed_says_what_masks_are():
    run = _run(_Signs())
    alone = Counter(_sums(run, [0])[0] for _ in range(60))
    assert set(alone) == {-1, 1}, "the same seed, another mask"
    both = Counter(_sums(run, [0, 1])[0] for _ in range(60))
    assert set(both) == {-2, 0, 2}, "each record has a coin of its own"


def test_passes_of_one_step_toss_other_coins():
    run = _run(_Signs(), records=2, physical=1)
    assert set(Counter(_sums(run, [0, 1])[0] for _ in range(60))) == {-2, 0, 2}


class _Tossed:
    """A data set whose records toss coins while they are read."""

    def __init__(self, records, kind):
        self.records, self.kind, self.seen = records, kind, []

    def __len__(self):
        return self.records

    def __getitem__(self, place):
        self.seen.append(TOSSED[self.kind]())
        return torch.ones(3) + self.seen[-1], torch.tensor(0.0)


@pytest.mark.parametrize("kind", TOSSED)
def test_what_is_tossed_after_a_step_does_not_hang_on_it(kind):
    _seed()
    wanted, seen = _next(), []
    for records in (0, 5, 6):
        data, model = _Tossed(records, kind), nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.5), nn.Flatten(0))
        run = private(
            model, torch.optim.SGD(model.parameters(), 0.1), data, size=5, batch=5, steps=1,
            example=(torch.zeros(3), torch.tensor(0.0)), **SETTINGS,
        )  # fmt: skip
        _seed()
        run.step()
        assert _next() == wanted
        assert len(data.seen) == records
        seen += data.seen
    assert len(set(seen)) == len(seen), "no seed says what augmentation gives"


def test_ids_that_toss_coins_do_not_show_how_many_there_are():
    shown = []
    for records in (3, 4):
        model = _Signs()
        run = _run(
            model, records, users=lambda place: str(place) if torch.rand(1) < 2 else "", records_each=1,
            size=3, batch=3,
        )  # fmt: skip
        _seed()
        run.step()
        shown.append(_next())
    assert shown[0] == shown[1]


class _Fails(nn.Module):
    """Raises on a record whose coin shows heads, if it is of the kind that does."""

    def __init__(self):
        super().__init__()
        self.end, self.seen = nn.Linear(1, 1), []

    def forward(self, given):
        heads = torch.rand(len(given)) < 0.5
        if (heads & (given[:, 0] == -100)).any():
            raise ValueError
        return self.end(given)[:, 0]


def test_tries_of_one_pass_toss_the_same_coins():
    """A record is left out by its own coin: with other coins for each try some would fail again."""
    run = private(
        model := _Fails(), torch.optim.SGD(model.parameters(), 0.1),
        (torch.tensor([[100.0], [-100.0]]).repeat(8, 1), torch.zeros(16)),
        size=16, batch=16, steps=1, **SETTINGS,
    )  # fmt: skip
    moved = {tuple(_sums(run, list(range(16)))) for _ in range(20)}
    assert len(moved) > 2


def test_clients_have_coins_of_their_own():
    model = _Signs()
    clients = [(torch.full((1, 1), sign), torch.full((1,), sign)) for sign in (100.0, -100.0)]
    run = federated(
        model, torch.optim.SGD([model.end.bias], 1.0), clients, example=(torch.zeros(1), torch.tensor(0.0)),
        epsilon=1, delta=1e-5, size=2, batch=2, rounds=1, local_steps=1, objective=squared_error,
    )  # fmt: skip
    assert set(Counter(_sums(run, [0])[0] for _ in range(60))) == {-1, 1}
    assert set(Counter(_sums(run, [0, 1])[0] for _ in range(60))) == {-2, 0, 2}
    after = []
    for drawn in ([], [0], [0, 1]):
        _sums(run, drawn)
        after.append(_next())
    assert after[0] == after[1] == after[2]


def _toss_and_fail():
    torch.rand(5), np.random.rand(5), random.random()
    raise ZeroDivisionError


def test_generators_are_put_back_whatever_happens():
    _seed()
    wanted = _next()
    _seed()
    with pytest.raises(ZeroDivisionError), Coins(CPU):
        _toss_and_fail()
    assert _next() == wanted


def test_a_data_set_may_seed_its_generators():
    with Coins(CPU):
        _seed()
        first = _next()
        _seed()
        assert _next() == first


class _Engine:
    def sums(self, *_):
        return [torch.rand(2), torch.from_numpy(np.random.rand(2)), torch.tensor(random.random())]


def _flat(parts):
    return [value for part in parts for value in part.flatten().tolist()]


def test_coins_are_made_anew_for_each_pass_and_kept_for_its_tries():
    with Coins(CPU) as tossed:
        passes = [Once(_Engine(), tossed) for _ in range(3)]
        tries = [[_flat(one.sums(0, 0, 0)) for _ in "ab"] for one in passes]
    assert all(first == second for first, second in tries)
    assert len({value for first, _ in tries for value in first}) == 15


def test_a_state_of_a_processor_is_a_whole_mersenne_twister():
    """All of it is drawn, and lies where PyTorch has it: a seed alone would be 32 bits."""
    words = coins._plain().clone().numpy()[coins._AT].view(np.uint64)
    generator = torch.Generator()
    generator.manual_seed(5489)
    state = generator.get_state().numpy()[coins._AT].view(np.uint64)
    assert state.tolist() == np.random.RandomState(5489).get_state()[1].tolist()
    first, second = (coins._seeds().state.numpy()[coins._AT].view(np.uint64) for _ in range(2))
    assert (first != second).sum() > 600 < (first != words).sum()
    made = torch.Generator()
    made.set_state(coins._seeds().state)
    assert 0.4 < float(torch.rand(4000, generator=made).mean()) < 0.6


def test_a_traced_pass_tosses_anew(monkeypatch):
    """What compilers make of dropout follows the same generators, and no mask is a part of it."""
    monkeypatch.setattr(torch, "compile", lambda run, **_: run)
    run = _run(_Signs(), compiled=True)
    run.step()  # traces, with made-up records
    assert set(Counter(_sums(run, [0, 1])[0] for _ in range(60))) == {-2, 0, 2}
