"""What mixes records is refused: for whatever values, by whatever chance, however weakly."""

import random

import numpy as np
import pytest
from torch import nn

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import apart, private, tosses
from sfumato.learn.torch.objectives import cross_entropy

RECORDS, WIDTH, CLASSES = 40, 5, 3
MIXES = "mixes records"


class _Mixes(nn.Module):
    """A small net that a function of all lines changes where it trains, where other checks do not look."""

    def __init__(self, mix=lambda lines: lines):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.end, self.mix = nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES), mix

    def forward(self, given):
        return self.end(torch.tanh(self.first(self.mix(given) if self.training else given)))


def _run(model, objective=cross_entropy, **more):
    generator = torch.Generator().manual_seed(1)
    given, target = torch.randn(RECORDS, WIDTH, generator=generator), torch.arange(RECORDS) % CLASSES
    settings = {"epsilon": 4, "delta": 1e-5, "size": RECORDS, "batch": RECORDS, "steps": 1, "clip": 0.05}
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    return private(model, sgd, (given, target), objective=objective, **settings | more)


def _sometimes(toss, mixed=lambda lines: lines - lines.mean(0)):
    return lambda lines: mixed(lines) if toss() else lines


def _gaps(lines):
    return torch.where(lines.isnan(), torch.nanmean(lines, 0), lines)


def _in_range(lines):
    """As long as all are small each is by itself."""
    return lines if lines.abs().max() < 1e6 else lines - lines.mean(0)


def _dispatched(room, lines):
    """Experts with room for so many: who comes later is left out."""
    chosen = torch.nn.functional.one_hot((lines[:, 0] > lines[:, 1]).long(), 2)
    return lines * ((chosen.cumsum(0) <= room) * chosen).sum(1, keepdim=True)


def _best(room, lines):
    """Experts that choose the lines that suit them most."""
    kept = torch.zeros(len(lines)).index_fill(0, lines[:, 0].topk(min(room, len(lines))).indices, 1)
    return lines * kept[:, None]


def _weighed(out, target):
    known = (target >= 0).float()
    return cross_entropy(out, target) * known / known.mean()


def _valid(out, target):
    return cross_entropy(out, target) * len(target) / (target != -100).sum().clamp(min=1)


VALUES = {
    "gaps": _gaps, "far": _in_range, "infinite": lambda lines: lines - lines.isinf().any().float(),
    "sorted": lambda lines: lines - lines.sort(0).values[-1:].clamp(min=1e5) + 1e5,
    "running": lambda lines: lines + 0 * lines.cumsum(0), "negative": lambda lines: lines.clamp(lines.min()),
}  # fmt: skip
CHANCES = {
    **{f"torch {rate}": (lambda rate=rate: torch.rand(()) < rate) for rate in (1e-3, 0.1, 0.3, 0.45)},
    "late": lambda: torch.rand(()) > 0.999, "bernoulli": lambda: torch.bernoulli(torch.tensor(0.01)) > 0,
    "in place": lambda: torch.empty(()).uniform_(-3, 5) < -2.9,
    "whole": lambda: torch.randint(0, 99, ()) == 0, "last": lambda: torch.randint(99, ()) == 98,
    "normal": lambda: torch.randn(()) > 4,
    "numpy": lambda: np.random.random() < 0.01, "numpy, late": lambda: np.random.rand() > 0.99,
    "python": lambda: random.random() < 0.01, "python, late": lambda: random.random() > 0.99,
    "after others": lambda: nn.functional.dropout(torch.ones(999)).sum() > 0 and torch.rand(()) < 0.01,
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_mixing_that_shows_on_some_values_alone_is_refused(kind):
    with pytest.raises(InvalidParameter, match=MIXES):
        _run(_Mixes(VALUES[kind]))


@pytest.mark.parametrize("objective", [_weighed, _valid])
def test_an_objective_that_weighs_labels_over_a_batch_is_refused(objective):
    with pytest.raises(InvalidParameter, match=MIXES):
        _run(_Mixes(), objective)


@pytest.mark.parametrize("kind", CHANCES)
def test_mixing_by_a_rare_coin_is_refused(kind):
    with pytest.raises(InvalidParameter, match=MIXES):
        _run(_Mixes(_sometimes(CHANCES[kind])))


@pytest.mark.parametrize(
    "share",
    [1e-3, 1e-6, 1e-20, *(pytest.param(share, marks=pytest.mark.stats) for share in (1e-5, 1e-9))],
)
def test_weak_mixing_is_refused(share):
    with pytest.raises(InvalidParameter, match=MIXES):
        _run(_Mixes(lambda lines: lines + share * lines.mean(0)))


@pytest.mark.parametrize("room", [8, 30, pytest.param(20, marks=pytest.mark.stats)])
@pytest.mark.parametrize("experts", [_dispatched, _best])
def test_experts_with_room_for_so_many_are_refused(experts, room):
    with pytest.raises(InvalidParameter, match="hangs on"):
        _run(_Mixes(lambda lines: experts(room, lines)))


def test_what_tosses_coins_that_cannot_be_repeated_is_refused():
    own = torch.Generator().manual_seed(3)
    with pytest.raises(InvalidParameter, match="same coins"):
        _run(_Mixes(lambda lines: lines * (torch.rand(lines.shape, generator=own) < 0.5)))


class _Honest(nn.Module):
    """Each record by itself, with what honest nets do: gaps filled, coins, clamps, looks at all of them."""

    def __init__(self, way):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.end, self.way = nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES), way
        self.drop, self.norm = nn.Dropout(0.3), nn.LayerNorm(8)

    def forward(self, given):
        lines = self.way(given) if self.training else given
        return self.end(self.drop(self.norm(torch.tanh(self.first(lines)))))


HONEST = {
    "gaps": lambda lines: torch.where(lines.isnan(), 0.5, lines).clamp(-9, 9),
    "own mean": lambda lines: lines - lines.nan_to_num().mean(1, keepdim=True),
    "own coins": lambda lines: lines * (torch.rand(len(lines), 1) < 0.5),
    "numpy's coins": lambda lines: lines * float(np.random.random()),
    "a coin for all": lambda lines: lines if random.random() < 0.5 else -lines,
    "own order": lambda lines: lines.sort(1).values,
    "looks": lambda lines: lines + 0 * bool(lines.isnan().any()),
}  # fmt: skip


@pytest.mark.parametrize("way", HONEST)
@pytest.mark.parametrize(
    "kind", [torch.float32, torch.bfloat16, pytest.param(torch.float64, marks=pytest.mark.stats)]
)
def test_models_that_keep_records_apart_are_accepted(way, kind):
    if kind == torch.bfloat16:
        _run(_Honest(HONEST[way]), amp=kind)
    else:
        model, target = _Honest(HONEST[way]).to(kind), torch.arange(RECORDS) % CLASSES
        settings = {"epsilon": 4, "delta": 1e-5, "size": RECORDS, "batch": 9, "steps": 1}
        private(
            model,
            torch.optim.SGD(model.parameters(), 0.1),
            (torch.zeros(RECORDS, WIDTH, dtype=kind), target),
            **settings,
        )


def test_generators_are_left_as_they_were():
    model = _Honest(HONEST["own coins"])
    np.random.seed(1)
    random.seed(1)
    torch.manual_seed(1)
    before = tosses.states()
    _run(model)
    assert tosses.states() == before


@pytest.mark.parametrize("end", [-1, 0, 1])
def test_whoever_draws_until_something_fits_comes_to_an_end(end):
    with tosses.chosen(tosses.Toss(1, end)):
        for _ in range(50):
            np.random.randn(), random.gauss(0, 1), random.randrange(5), np.random.beta(0.3, 0.3)
            assert sorted(np.random.permutation(4).tolist()) == [0, 1, 2, 3]


def test_a_trial_without_coins_or_values_misses_what_this_one_finds(monkeypatch):
    monkeypatch.setattr(apart, "EVERY", ())
    monkeypatch.setattr("sfumato.learn.torch.descent.check_places", lambda *_: None)
    assert _run(_Mixes(_sometimes(CHANCES["torch 0.1"])))
    assert _run(_Mixes(lambda lines: _dispatched(8, lines)))
    monkeypatch.setattr(apart, "extremes", lambda _: iter(()))
    monkeypatch.setattr(apart, "_bases", lambda *_: ())
    for mix in (_gaps, _in_range):
        assert _run(_Mixes(mix))
