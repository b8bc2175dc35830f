"""A model is looked at in the modes that its steps are run in, and again whenever these change."""

import numpy as np
import pytest
from torch import nn

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import private
from sfumato.learn.torch.apart import check_apart

RECORDS, WIDTH = 6, 5


def _far(out, target):
    return 1000 * (out.flatten(1).sum(1) - target) ** 2


def _run(model, ledger=None, **more):
    given = torch.randn(RECORDS, WIDTH, generator=torch.Generator().manual_seed(1))
    settings = {"epsilon": 1, "delta": 1e-5, "size": RECORDS, "batch": RECORDS, "steps": 2} | more
    return private(
        model, torch.optim.SGD(model.parameters(), 0.1), (given, torch.arange(RECORDS).float()),
        objective=_far, ledger=ledger, dataset="photos" if ledger else "", **settings,
    )  # fmt: skip


def _moved(run):
    """The most that one record moves the sum of a step, in clips, before there is noise."""
    every, scale = list(range(RECORDS)), run._descent.step_of_grid / run._descent.clip
    sums = [
        torch.cat([each.double().flatten() for each in run._descent.sums(np.array(drawn))]) * scale
        for drawn in (every, *([*every[:at], *every[at + 1 :]] for at in every))
    ]
    return max(float((sums[0] - each).norm()) for each in sums[1:])


class _Swaps(nn.Module):
    """Gives its second layer records in other places: two where it trains, all where it is told to."""

    def __init__(self, way="training"):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second, self.end = (
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, 1),
        )
        self.way = way

    def forward(self, given):
        lines, there = torch.tanh(self.first(given)), torch.arange(len(given))
        if self.training and self.way == "training" and len(given) > 1:
            there[:2] = torch.tensor([1, 0])
        if self.way == "turned":
            there = there.roll(1)
        return self.end(torch.tanh(self.second(lines[there])[torch.argsort(there)]))


def test_a_model_that_mixes_records_in_training_alone_is_refused():
    with pytest.raises(InvalidParameter, match="mixes records"):
        _run(_Swaps())
    assert _moved(_run(_Swaps().eval())) <= 1


def test_a_model_that_is_switched_afterwards_is_looked_at_again(tmp_path):
    import sfumato as sf

    ledger = sf.Ledger.open(tmp_path / "deep.ledger")
    ledger.register("photos", {"unit": "row", "version": 1}, sf.Budget(epsilon=2, delta=1e-4))
    model = _Swaps().eval()
    run = _run(model, ledger)
    model.train()
    with pytest.raises(InvalidParameter, match="mixes records"):
        run.step()
    assert (run.taken, run.left, ledger.balance("photos").spent) == (0, 2, 0)
    model.eval()
    run.step()
    model.train()
    with pytest.raises(InvalidParameter, match="mixes records"):
        run.fit()
    model.eval()
    run.fit()
    assert run.taken == 2


@pytest.mark.parametrize("way", ["another word", "a switch"])
def test_other_switches_and_words_are_modes_too(way):
    model = _Swaps("straight")
    run = _run(model)
    if way == "a switch":
        model.turns = True
        model.forward = lambda given, old=model.forward: old(given).flip(0) * old(given)
    else:
        model.way = "turned"
    with pytest.raises(InvalidParameter):
        run.step()
    assert run.taken == 0


def test_otherwise_one_record_would_move_a_step_by_several_clips(monkeypatch):
    model = _Swaps().eval()
    run = _run(model)
    model.train()
    monkeypatch.setattr(run._descent.built, "_look", lambda *_: None)
    run._descent.built.check()  # as a step begins
    assert _moved(run) > 1.2


def test_modes_are_looked_at_once():
    model, looked = _Swaps("straight"), []
    run = _run(model)
    survey = run._descent.engine.recorder._surveyed
    run._descent.engine.recorder._surveyed = lambda *given: looked.append(1) or survey(*given)
    run.step()
    assert not looked
    for _ in range(3):
        model.eval()
        run._descent.built.check()
        model.train()
        run._descent.built.check()
    assert len(looked) == 1


def test_each_record_is_changed_in_turn():
    """Two that change places show only where one of them is another one."""
    model, batch = nn.Linear(1, 1), (torch.rand(3, 1), torch.zeros(3))

    def swapped(given, _):
        values = given[torch.tensor([1, 0, 2]), 0].double()
        return lambda place: [values[torch.arange(3) != place]]

    with pytest.raises(InvalidParameter, match="mixes records"):
        check_apart(model, batch, swapped)
    check_apart(model, batch, lambda given, _: lambda at: [given[torch.arange(3) != at, 0].double()])


class _Breaks(nn.Module):
    """Fails where it trains, with what it is given in its words."""

    def __init__(self):
        super().__init__()
        self.end = nn.Linear(WIDTH, 1)

    def forward(self, given):
        if self.training:
            raise RuntimeError(f"cannot train on {float(given[0, 0])}")
        return self.end(given)


def test_a_model_that_fails_in_training_is_refused_before_anything_is_paid(tmp_path):
    import sfumato as sf

    ledger = sf.Ledger.open(tmp_path / "deep.ledger")
    ledger.register("photos", {"unit": "row", "version": 1}, sf.Budget(epsilon=2, delta=1e-4))
    with pytest.raises(
        InvalidParameter, match=r"The model fails on inputs like those of the data, float32 of 5"
    ):
        _run(_Breaks(), ledger)
    model = _Breaks().eval()
    run = _run(model, ledger)
    model.train()
    with pytest.raises(InvalidParameter, match="cannot train on"):
        run.step()
    assert ledger.balance("photos").spent == 0
    assert run.left == 2
