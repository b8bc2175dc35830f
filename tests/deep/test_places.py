"""A record has the same numbers at every place of a pass, and passes in which it has not are refused."""

from fractions import Fraction

import numpy as np
import pytest
from torch import nn

from deep import threads, torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import places, private
from sfumato.learn.torch.places import check_places, places_of, usual

CPU = torch.device("cpu")


def _absolute(out, target):
    return (out.flatten(1).sum(1) - target).abs()


def _run(model, given, target, **more):
    many = len(given)
    settings = {"epsilon": 1, "delta": 1e-5, "size": many, "batch": many, "steps": 1} | more
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    return private(model, sgd, (given, target), objective=_absolute, **settings)


def _sum(run, drawn):
    scale = run._descent.step_of_grid / run._descent.clip
    return torch.cat([each.double().flatten() for each in run._descent.sums(np.array(drawn))]) * scale


def _farthest(run, many):
    """The most that one record moves a sum, wherever in a pass it comes, another one taking its place."""
    without = _sum(run, range(many - 1))
    orders = ([*range(at), many - 1, *range(at, many - 1)] for at in {0, 1, many // 2, many - 2, many - 1})
    return max(float((_sum(run, order) - without).norm()) for order in orders)


def _on_an_edge(model, many, width, seed=5):
    """Equal records whose outputs have several last bits in such a product, and the target in between."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(20_000):
        lines = (torch.randn(width, generator=generator) * 3).expand(many, width).contiguous()
        out = model(lines).detach()[:, 0]
        middle = torch.nextafter(out.min(), out.max())
        if out.min() < middle < out.max():
            return lines, middle.expand(many).clone()
    return lines, out.clone()


@pytest.mark.parametrize("many", [15, 26])
def test_a_record_that_takes_anothers_place_moves_a_step_by_one_clip(many):
    torch.manual_seed(0)
    model = nn.Linear(16, 1)
    given, target = _on_an_edge(model, many, 16)
    for far in (-1e3, 1e3):
        run = _run(model, given, target.index_fill(0, torch.tensor([many - 1]), far))
        assert run._descent.physical == 32
        assert _farthest(run, many) <= 1


def test_without_more_places_it_would_move_it_further_where_tails_differ(monkeypatch):
    torch.manual_seed(0)
    model, many = nn.Linear(16, 1), 26
    given, target = _on_an_edge(model, many, 16)
    if (model(given)[:, 0] == model(given)[0, 0]).all():
        pytest.skip("Tails of products are computed as all else on this processor.")
    monkeypatch.setattr("sfumato.learn.torch.runs.places_of", lambda physical, _: physical)
    monkeypatch.setattr("sfumato.learn.torch.runs.usual", lambda batch, _: batch)
    with pytest.raises(InvalidParameter, match="place in a pass of 26"):
        _run(model, given, target)
    monkeypatch.setattr("sfumato.learn.torch.descent.check_places", lambda *_: None)
    runs = (_run(model, given, target.index_fill(0, torch.tensor([many - 1]), far)) for far in (-1e3, 1e3))
    assert max(_farthest(run, many) for run in runs) > 1.5


def test_passes_have_a_multiple_of_32_places():
    assert [places_of(each, CPU) for each in (1, 2, 31, 32, 33, 64, 100)] == [1, 32, 32, 32, 64, 64, 128]
    assert [usual(each, Fraction(1)) for each in (1, 26, 32, 33, 96)] == [32, 32, 32, 64, 96]
    assert usual(26, Fraction(1, 10)) == 64
    assert places_of(7, torch.device("cuda")) == 7


@pytest.mark.parametrize("physical", [None, 1, 7, 50])
def test_users_have_so_many_places_too(physical):
    given, target = torch.randn(30, 4), torch.zeros(30)
    people = np.arange(30) // 3
    run = _run(
        nn.Linear(4, 1), given, target, users=people, records_each=3, size=10, batch=10, physical=physical
    )
    assert run._descent.physical == {None: 32, 1: 1, 7: 32, 50: 64}[physical]
    run.fit()


class _Slanted(nn.Module):
    """Gives some places other last bits, as a processor does with the tail of a product."""

    def __init__(self, where, much=2.0**-23):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.end = nn.Linear(4, 6), nn.Linear(6, 1)
        self.where, self.much = where, much

    def forward(self, given):
        out = torch.tanh(self.first(given))
        at = torch.arange(len(out))
        return self.end(torch.where(self.where(at, len(out))[:, None], out * (1 + self.much), out))


WHERE = {
    "the last": lambda at, many: at == many - 1,
    "a tail": lambda at, many: (at >= many - many % 24) & (many > 3),
    "every other": lambda at, many: (at % 2 == 1) & (many > 3),
    "half": lambda at, many: (at >= many // 2) & (many > 3),
}


@pytest.mark.parametrize(
    ("where", "kind"), [*((each, torch.float32) for each in WHERE), ("half", torch.float64)]
)
def test_a_model_whose_last_bits_hang_on_the_place_is_refused(where, kind):
    model = _Slanted(WHERE[where], 2.0**-22 if kind == torch.float32 else 2.0**-51).to(kind)
    with pytest.raises(InvalidParameter, match="place in a pass of 32"):
        _run(model, torch.randn(20, 4, dtype=kind), torch.zeros(20, dtype=kind))
    _run(model, torch.randn(20, 4, dtype=kind), torch.zeros(20, dtype=kind), physical=1)


def test_a_compiled_pass_is_looked_at_by_its_sums():
    descent = _run(nn.Linear(4, 1), torch.randn(20, 4), torch.zeros(20))._descent
    engine = descent.engine
    engine.compiled, engine.sums = True, engine._pass
    check_places(engine, descent._example(), 32)
    engine.sums = lambda given, target, mask: [
        each + int(mask[-1]) for each in engine._pass(given, target, mask)
    ]
    with pytest.raises(InvalidParameter, match="place in a pass"):
        check_places(engine, descent._example(), 32)


class _Net(nn.Module):
    """Layers of many kinds, with dropout."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.norm = nn.Conv1d(1, 4, 3), nn.GroupNorm(2, 4)
        self.rows, self.attend = (
            nn.LSTM(4, 5, batch_first=True),
            nn.MultiheadAttention(5, 1, 0.1, batch_first=True),
        )
        self.end, self.drop = nn.Linear(5, 1), nn.Dropout(0.2)

    def forward(self, given):
        lines = torch.sigmoid(self.norm(self.conv(given[:, None]))).transpose(1, 2)
        lines, _ = self.rows(lines)
        lines, _ = self.attend(lines, lines, lines)
        return self.end(self.drop(nn.functional.gelu(lines.mean(1))))


@pytest.mark.parametrize(("physical", "amp", "many"), [(1, None, 1), (9, torch.bfloat16, 1), (100, None, 2)])
def test_honest_models_are_accepted_at_every_size(physical, amp, many):
    with threads(many):
        _run(_Net(), torch.randn(40, 7), torch.zeros(40), physical=physical, amp=amp).fit()


def test_a_sum_with_a_bit_too_many_turns_the_check_red(monkeypatch):
    monkeypatch.setattr(places, "_same", lambda *_: True)
    _run(_Slanted(WHERE["the last"]), torch.randn(20, 4), torch.zeros(20))
