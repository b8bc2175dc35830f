"""Whose each line of a layer is: models that route, sort or leave out lines move a step by a clip at most."""

import contextlib

import numpy as np
import pytest
from torch import nn
from torch.utils.checkpoint import checkpoint

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import descent, private, recording
from sfumato.learn.torch.lines import Followed, Layout

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")
RECORDS, PLACES, WIDTH = 14, 4, 6


def _far(out, _):
    """Each record's loss has a gradient that is far beyond the clip."""
    return 1000 * out.flatten(1).sum(1)


def _data():
    """Records of two kinds in turn, each with a gradient in one of two layers; the last one comes first."""
    given = torch.zeros(RECORDS, PLACES, WIDTH)
    given[::2, :, :3] = 1
    given[1::2, :, 3:] = 1
    given[:-1, -1] = 0  # what fills up
    given[-1] *= 2
    return given, torch.arange(RECORDS).float()


def _run(model, **more):
    torch.manual_seed(0)
    settings = {"epsilon": 1, "delta": 1e-5, "size": RECORDS, "batch": RECORDS, "steps": 1} | more
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return private(model, optimizer, settings.pop("data", _data()), objective=_far, **settings)


def _sum(run, drawn):
    parts = [each.double().flatten() for each in run._descent.sums(np.array(drawn, np.int64))]
    return torch.cat(parts) * run._descent.step_of_grid / run._descent.clip


def _moved(run):
    """The most that one record moves the sum of a step, in clips, before there is noise."""
    every = list(range(RECORDS))
    whole = _sum(run, every)
    return max(float((whole - _sum(run, [*every[:at], *every[at + 1 :]])).norm()) for at in every)


class _Two(nn.Module):
    """A layer over one half of each line, and one over the other half that is given lines in its own way."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(3)
        self.how, self.first, self.second = how, nn.Linear(3, 1, bias=False), nn.Linear(3, 1, bias=False)

    def forward(self, given):
        own, routed = given[..., :3], given[..., 3:]
        return (self.first(own) + getattr(self, self.how)(routed, (given != 0).any(2), given)).mean(1)

    def _ordered(self, lines, there):
        return self.second(lines[there])[torch.argsort(there)]

    def longest_first(self, lines, kept, _):
        """As before `pack_padded_sequence`."""
        return self._ordered(lines, torch.argsort(kept.sum(1), descending=True, stable=True))

    def shortest_first(self, lines, kept, _):
        return self._ordered(lines, torch.argsort(kept.sum(1), stable=True))

    def largest_first(self, lines, _, given):
        """As an expert that chooses among the lines of all."""
        return self._ordered(lines, given.sum((1, 2)).topk(len(given)).indices)

    def turned(self, lines, *_):
        return self._ordered(lines, torch.arange(len(lines)).roll(1))

    def plain(self, lines, *_):
        return self.second(lines.flatten(0, 1)).view(*lines.shape[:2], 1)

    def places_first(self, lines, *_):
        return self.second(lines.transpose(0, 1).flatten(0, 1)).view(PLACES, -1, 1).transpose(0, 1)

    def mask(self, lines, kept, _):
        return lines.new_zeros(*kept.shape, 1).masked_scatter(kept[..., None], self.second(lines[kept]))

    def nonzero(self, lines, kept, _):
        places = kept.flatten().nonzero()[:, 0]
        found = self.second(lines.flatten(0, 1).index_select(0, places))
        return lines.new_zeros(kept.numel(), 1).index_copy(0, places, found).view(*kept.shape, 1)

    def kept_first(self, lines, kept, _):
        """Lines that count before those that do not: as many as ever, and whose they are hangs on values."""
        there = torch.argsort(kept.flatten().int(), descending=True, stable=True)
        return self._ordered(lines.flatten(0, 1), there).view(*kept.shape, 1)

    def listed(self, lines, kept, _):
        """The same, by numbers that PyTorch knows nothing of."""
        counts = kept.flatten().tolist()
        there = torch.tensor(sorted(range(len(counts)), key=lambda at: not counts[at]))
        return self._ordered(lines.flatten(0, 1), there).view(*kept.shape, 1)

    def one_by_one(self, lines, *_):
        return torch.stack([self.second(record) for record in lines])

    def some(self, lines, *_):
        return lines[..., :1] + self.second(lines[: len(lines) // 2 + 1]).sum(0)


MIXED = [
    "longest_first", "shortest_first", "largest_first", "turned", "places_first", "mask", "nonzero",
    "kept_first", "listed", "one_by_one", "some",
]  # fmt: skip


@pytest.mark.parametrize("kind", MIXED)
def test_a_model_that_gives_a_layer_lines_in_another_order_is_refused(kind):
    with pytest.raises(InvalidParameter):
        _run(_Two(kind))


@pytest.fixture
def _unlooked(monkeypatch):
    """Plants the bug: each line is taken for its place's, and nobody asks whether it is."""
    for name in ("compare", "check_apart"):
        monkeypatch.setattr(recording, name, lambda *_, **__: None)
    monkeypatch.setattr(descent, "check_places", lambda *_: None)


@pytest.mark.usefixtures("_unlooked")
@pytest.mark.parametrize("kind", ["longest_first", "largest_first", "turned", "kept_first", "places_first"])
def test_otherwise_one_record_would_move_a_step_by_several_clips(kind):
    assert _moved(_run(_Two(kind))) > 1.2


def test_lines_of_records_one_below_the_other_are_taken():
    assert _moved(_run(_Two("plain"))) <= 1


class _Padded(nn.Module):
    """Leaves out tokens of a number of its own, which is neither 0 nor 1."""

    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(9, 3, padding_idx=5), nn.Linear(3, 1)

    def forward(self, tokens):
        there = torch.argsort((tokens == 5).flatten().int(), stable=True)
        return self.layer(self.table(tokens).flatten(0, 1)[there])[torch.argsort(there)].view(tokens.shape)


def test_made_up_tokens_have_many_values():
    tokens = torch.zeros(RECORDS, PLACES).long(), torch.zeros(RECORDS)
    with pytest.raises(InvalidParameter, match="not those of each record by itself"):
        _run(_Padded(), data=tokens)


class _Sized(nn.Module):
    """Gives a layer more lines, or one call more, if some record holds a large number."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(3)
        self.how, self.first, self.second = how, nn.Linear(3, 1, bias=False), nn.Linear(3, 1, bias=False)

    def forward(self, given):
        own, lines = given[..., :3], given[..., 3:].flatten(0, 1)
        large = bool((given > 50).any())
        if large and self.how == "lines":
            more = torch.cat([lines[-PLACES:].repeat(len(given), 1), lines])
            found = self.second(more)[-len(lines) :]
        else:
            found = self.second(lines)
            if large:
                found = found + self.second(lines.flip(0)).flip(0)
        return (self.first(own) + found.view(*given.shape[:2], 1)).mean(1)


def _large():
    given, target = _data()
    given[3] = 60
    return given, target


@pytest.mark.parametrize("how", ["lines", "calls"])
def test_a_record_that_gives_a_layer_other_lines_counts_for_nothing(how):
    run, every = _run(_Sized(how), data=_large()), list(range(RECORDS))
    assert torch.equal(_sum(run, every), _sum(run, [0, 1, 2, *every[4:]]))
    assert _moved(run) <= 1


@pytest.mark.usefixtures("_unlooked")
def test_otherwise_it_would_move_lines_of_others(monkeypatch):
    monkeypatch.setattr(Layout, "check", lambda self, key, *_: self.axis(key))
    monkeypatch.setattr(Layout, "check_out", lambda self, key, *_: self.axis(key))
    assert _moved(_run(_Sized("lines"), data=_large())) > 1.2


class _Recomputed(nn.Module):
    """A block whose activations are not kept."""

    def __init__(self, again):
        super().__init__()
        self.again, self.layer, self.end = again, nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        self.inner = nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, given):
        given = given * 1.0
        return self.end(checkpoint(self.block, given.requires_grad_(), use_reentrant=self.again)).mean(1)

    def block(self, given):
        return torch.tanh(self.inner(self.layer(given))[0])


@pytest.mark.parametrize("again", [True, False])
def test_checkpointed_blocks_are_refused_in_a_sentence(again):
    with pytest.raises(InvalidParameter, match="turn gradient checkpointing off"):
        _run(_Recomputed(again))


def test_the_layer_that_says_so_is_refused_by_name():
    model = nn.Sequential(nn.Linear(WIDTH, 1))
    model[0].gradient_checkpointing = True
    with pytest.raises(InvalidParameter, match=r"'0' \(Linear\) computes parts of a pass again"):
        _run(model)


def test_what_has_a_size_that_values_say_is_followed():
    given = torch.rand(3, 4)
    sized = {
        "mask": lambda x: x[x > 0.5],
        "nonzero": lambda x: x.nonzero(),
        "where": lambda x: torch.where(x > 0.5)[0],
        "unique": lambda x: torch.unique(x),
        "masked": lambda x: x.masked_select(x > 0.5),
        "repeated": lambda x: x.repeat_interleave((x[:, 0] * 4).long(), 0),
        "later": lambda x: (x[x > 0.5] * 2).view(-1, 1),
    }
    for made in sized.values():
        with Followed(given) as followed:
            out = made(given)
        with pytest.raises(InvalidParameter, match="as many lines as the values of records say"):
            followed.check("layer", (out,))
    plain = {
        "picked": lambda x: x[torch.arange(3), x.argmax(1)],
        "either": lambda x: torch.where(x > 0.5, x, 0.0),
        "filled": lambda x: x.masked_fill(x > 0.5, 0.0),
        "repeated": lambda x: x.repeat_interleave(2, 0),
        "put back": lambda x: x.new_zeros(3, 4).masked_scatter_(x > 0.5, x[x > 0.5]),
    }
    for made in plain.values():
        with Followed(given) as followed:
            out = made(given)
        with contextlib.nullcontext():
            followed.check("layer", (out,))
