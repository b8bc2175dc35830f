"""Layers made of pieces, attention and recurrence: exact for each record, whatever axis records are on."""

import pytest
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.clipping import Bound
from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.recording import Recorder
from sfumato.learn.torch.users import OfUsers

PLACES, WIDTH = 5, 6
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:There is a performance drop")


def _loss(out, target):
    return (out.flatten(1) - target[:, None]).square().mean(1)


def _alone(model, given, target):
    """The gradients of each record by itself."""
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    found = {name: [] for name in trained}
    for at in range(len(given)):
        loss = _loss(model(given[at : at + 1]), target[at : at + 1]).sum()
        parts = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
        for (name, like), part in zip(trained.items(), parts, strict=True):
            found[name].append(torch.zeros_like(like) if part is None else part)
    return {name: torch.stack(parts) for name, parts in found.items()}


def _check(model, records=PLACES):
    """Sums with weights, and norms, against each record by itself."""
    torch.manual_seed(3)
    given, target = torch.randn(records, PLACES, WIDTH).double(), torch.randn(records).double()
    model = model.double()
    wanted = _alone(model, given, target)
    recorder = Recorder(model)
    recorder.survey((given[0] * 0, target[0]), _loss)
    found = recorder.gradients(given, target, _loss)
    assert set(found) == set(wanted)
    factors = torch.rand(records).double() + 0.5
    largest = max(float(each.abs().max()) for each in wanted.values())
    squares = sum(form.settled(lambda _: 1).norms().square for form in found.values())
    lengths = sum(each.flatten(1).square().sum(1) for each in wanted.values())
    assert torch.allclose(squares, lengths, rtol=1e-9)
    for name, each in wanted.items():
        for form in (found[name], found[name].settled(lambda _: 1)):
            summed = form.summed(factors)
            assert summed.shape == each.shape[1:]
            assert (summed - torch.tensordot(factors, each, 1)).abs().max() <= 1e-12 * max(largest, 1)
    recorder.remove()
    assert all("forward" not in vars(layer) for layer in model.modules())
    return found


class Attends(nn.Module):
    """Attention of every shape that people use."""

    def __init__(self, first=True, kind="self", call=None, **more):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.kind, self.call = first, kind, call or {}
        width = {"kdim": 4, "vdim": 3} if kind == "widths" else {}
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=first, **width, **more)
        for each in self.attention.parameters():
            nn.init.normal_(each, std=0.5)
        self.before = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = torch.tanh(self.before(x))
        given = {
            "self": (x, x, x),
            "cross": (x, *[x[:, :3] * 2] * 2),
            "apart": (x, x * 2, x.square()),
            "keys": (x, x, x * 2),
            "widths": (x, x[..., :4], x[..., 1:4]),
        }
        call = {key: value(x) if callable(value) else value for key, value in self.call.items()}
        if self.kind == "both":
            out, _ = self._run(x, x, x, call)
            out, weights = self._run(out, x, x, call)
        else:
            out, weights = self._run(*given[self.kind], call)
        return out if weights is None else torch.cat([out.flatten(1), weights.flatten(1)], 1)

    def _run(self, query, key, value, call):
        if self.first:
            return self.attention(query, key, value, **call)
        turned = {id(each): each.transpose(0, 1) for each in (query, key, value)}
        out, weights = self.attention(turned[id(query)], turned[id(key)], turned[id(value)], **call)
        return out.transpose(0, 1), weights


def _causal(x):
    return torch.ones(PLACES, PLACES, dtype=torch.bool).triu(1)


def _padding(x):
    """The last places of some records, by what is in them."""
    short = x[:, 0, 0] > 0
    return short[:, None] & (torch.arange(PLACES) > 2)


def _each_head(x):
    return x.detach().mean(2)[:, None, :, None].expand(-1, 2, -1, PLACES).reshape(-1, PLACES, PLACES)


KINDS = {
    "plain": {},
    "places-first": {"first": False},
    "cross": {"kind": "cross"},
    "cross-places-first": {"kind": "cross", "first": False},
    "apart": {"kind": "apart"},
    "keys": {"kind": "keys", "first": False},
    "widths": {"kind": "widths"},
    "widths-places-first": {"kind": "widths", "first": False},
    "no-weights": {"call": {"need_weights": False}},
    "each-head": {"call": {"average_attn_weights": False}, "kind": "apart"},
    "causal": {"call": {"attn_mask": _causal, "is_causal": True, "need_weights": False}},
    "padding": {"call": {"key_padding_mask": _padding}},
    "both-masks": {"call": {"key_padding_mask": _padding, "attn_mask": _causal, "need_weights": False}},
    "mask-of-each-head": {"call": {"attn_mask": _each_head}, "first": False},
    "bias-kv": {"add_bias_kv": True, "call": {"attn_mask": _causal, "key_padding_mask": _padding}},
    "bias-kv-places-first": {"add_bias_kv": True, "first": False, "kind": "apart"},
    "zero": {"add_zero_attn": True, "call": {"attn_mask": _causal}},
    "no-bias": {"bias": False, "kind": "apart"},
    "used-twice": {"kind": "both"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_exact_for_each_record(kind):
    found = _check(Attends(**KINDS[kind]))
    assert any(name.startswith("attention.out_proj") for name in found)


@pytest.mark.parametrize("part", ["out_proj", "in_proj"])
def test_attention_that_is_trained_in_part(part):
    model = Attends()
    for name, each in model.named_parameters():
        each.requires_grad_(part in name)
    assert len(_check(model)) == 2


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", ["layer", "norm-first", "encoder", "padded", "decoder"])
def test_transformers_take_no_way_past_their_layers(kind, first, training):
    torch.manual_seed(0)
    more = {"dim_feedforward": 7, "dropout": 0.0, "batch_first": first}
    layer = nn.TransformerEncoderLayer(WIDTH, 2, norm_first=kind == "norm-first", **more)
    if kind in ("encoder", "padded"):
        layer = nn.TransformerEncoder(layer, 2)
    if kind == "decoder":
        layer = nn.TransformerDecoderLayer(WIDTH, 2, **more)
    model = _Turned(layer, first, kind).train(training)
    assert any("in_proj_weight" in name for name in _check(model, 4))


class _Turned(nn.Module):
    """A layer given batches as it wants them."""

    def __init__(self, layer, first, kind=""):
        super().__init__()
        self.layer, self.first, self.kind = layer, first, kind

    def forward(self, x):
        more = {"src_key_padding_mask": _padding(x)} if self.kind == "padded" else {}
        x = x if self.first else x.transpose(0, 1)
        out = self.layer(x, x * 2) if self.kind == "decoder" else self.layer(x, **more)
        out = out[0] if isinstance(out, tuple) else out
        return out if self.first else out.transpose(0, 1)


class Recurs(nn.Module):
    """A recurrent layer, of which outputs and ends are used."""

    def __init__(self, kind, first, start=False, **more):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.begin = first, nn.Linear(WIDTH, 4) if start else None
        self.layer = kind(WIDTH, 4, batch_first=first, **more)
        for each in self.layer.parameters():
            nn.init.normal_(each, std=0.6)

    def forward(self, x):
        several = self.layer.num_layers * (2 if self.layer.bidirectional else 1)
        start = ()
        if self.begin is not None:
            own = torch.tanh(self.begin(x[:, 0])).expand(several, -1, -1).contiguous()
            start = ((own, own * 2),) if isinstance(self.layer, nn.LSTM) else (own,)
        out, end = self.layer(x if self.first else x.transpose(0, 1), *start)
        out = out if self.first else out.transpose(0, 1)
        ends = end if isinstance(end, tuple) else (end,)
        return torch.cat([out.flatten(1), *(each.transpose(0, 1).flatten(1) for each in ends)], 1)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize(
    "more",
    [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "start": True, "bidirectional": True}],
    ids=["one", "deep", "started"],
)
def test_recurrence_is_exact_for_each_record(kind, first, more):
    found = _check(Recurs(kind, first, **more))
    assert ("layer.bias_hh_l0" in found) == more.get("bias", True)


def test_recurrence_of_other_bends_and_parts():
    _check(Recurs(nn.RNN, True, nonlinearity="relu"))
    model = Recurs(nn.GRU, True)
    for name, each in model.named_parameters():
        each.requires_grad_("bias_hh" in name)
    assert set(_check(model)) == {"layer.bias_hh_l0"}


class _Cells(nn.Module):
    """A cell that is used step by step: it gives two tensors, of which one may have no gradient."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.cell = kind(WIDTH, 4)

    def forward(self, x):
        state = None
        for at in range(3):
            state = self.cell(x[:, at], state)
        return state[0] if isinstance(state, tuple) else state


class _Named(nn.Module):
    """A layer that no rule knows, which gives a dictionary and is given things by name."""

    def __init__(self):
        super().__init__()
        self.inner, self.map = _Inner(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        out = self.inner(self.map(input=x), more=x * x)
        return out["sum"] + out["product"]


class _Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.rand(WIDTH))

    def forward(self, x, *, more):
        return {"sum": x * self.by + more, "product": more * self.by.square(), "places": x.shape[1]}


@pytest.mark.parametrize(
    "model",
    [
        _Cells(nn.LSTMCell),
        _Cells(nn.GRUCell),
        _Named(),
        nn.ConvTranspose1d(PLACES, 3, 2, stride=2, output_padding=1, dilation=2),
        nn.Sequential(nn.Unflatten(1, (1, PLACES)), nn.ConvTranspose2d(1, 4, 3, padding=1), nn.Tanh()),
        nn.InstanceNorm1d(PLACES, affine=True),
        nn.Sequential(nn.Unflatten(1, (1, PLACES)), nn.InstanceNorm2d(1, affine=True), nn.Tanh()),
        nn.Bilinear(WIDTH, WIDTH, 3),
        nn.PReLU(),
    ],
    ids=["lstm-cell", "gru-cell", "named", "turned-1d", "turned-2d", "instance", "image", "pairs", "prelu"],
)
def test_layers_that_no_rule_knows_are_exact(model):
    if isinstance(model, nn.Bilinear):
        model = _Squared(model)
    _check(model, 4)


class _Squared(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x + 1)


class _Packs(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(WIDTH, 4, batch_first=True)

    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.full((len(x),), 3), batch_first=True)
        return self.layer(packed)[1][0][0]


class _Own(nn.Module):
    """Parameters beside a layer that tosses coins."""

    def __init__(self, p):
        super().__init__()
        self.first, self.drop, self.map = nn.Parameter(torch.zeros(WIDTH)), nn.Dropout(p), nn.Linear(WIDTH, 2)

    def forward(self, x):
        return self.map(self.drop(x + self.first))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (_Packs(), "PackedSequence"),
        (_Turned(nn.LSTM(WIDTH, 4, proj_size=2, batch_first=True), True), "proj_size"),
        (Attends(call={"is_causal": True}), "attn_mask"),
        (_Own(0.5), "a module of their own"),
        (nn.InstanceNorm1d(PLACES, affine=True, track_running_stats=True), "track_running_stats"),
        (_Turned(nn.LSTM(WIDTH, 4), True), "mixes records|its own part"),
    ],
    ids=["packed", "projected", "hint", "coins", "statistics", "wrong-axis"],
)
def test_what_cannot_be_exact_is_refused_before_anything_is_paid(model, words):
    given, target = torch.zeros(PLACES, WIDTH), torch.tensor(0.0)
    with pytest.raises(InvalidParameter, match=words):
        Recorder(model).survey((given, target), _loss)


def test_parameters_without_dropout_beside_them_are_trained():
    _check(_Own(0.0))


class _Past(nn.Module):
    """An adapter whose weights are used without calling its layers; one of them starts at zero."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, WIDTH, bias=False)
        nn.init.zeros_(self.up.weight)
        self.base = nn.Linear(WIDTH, WIDTH).requires_grad_(False)

    def forward(self, x):
        return F.linear(self.up(F.linear(x, self.down.weight)), torch.eye(WIDTH)) + self.base(x)


def test_a_parameter_that_would_never_move_is_refused():
    """Behind an adapter that starts at zero no gradient shows that the other half is passed by."""
    with pytest.raises(InvalidParameter, match=r"'down\.weight' is used past the layer"):
        Recorder(model := _Past()).survey((torch.zeros(PLACES, WIDTH), torch.tensor(0.0)), _loss)
    assert not model.up.weight.any(), "the weights are as they were"


class _Same(nn.Module):
    """Attention that is given records as they are."""

    def __init__(self, layer, times=1):
        super().__init__()
        self.layer, self.times = layer, times

    def forward(self, x):
        return self.layer(x, x if self.times == 1 else x * self.times, x, need_weights=False)[0]


class _Given(nn.Module):
    """A cell that starts with what a record holds."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        return self.cell(x[:, 0], x[:, 1])


@pytest.mark.parametrize("kind", ["attention", "cross", "lstm", "gru", "cell"])
def test_a_record_of_nothing_harms_nobody(kind):
    torch.manual_seed(0)
    model = {
        "attention": lambda: _Same(nn.MultiheadAttention(WIDTH, 2, batch_first=True)),
        "cross": lambda: _Same(nn.MultiheadAttention(WIDTH, 2, batch_first=True), 2),
        "lstm": lambda: Recurs(nn.LSTM, True),
        "gru": lambda: Recurs(nn.GRU, False, bidirectional=True),
        "cell": lambda: _Given(nn.GRUCell(WIDTH, WIDTH)),
    }[kind]()
    given, target = torch.randn(4, PLACES, WIDTH), torch.randn(4)
    engine = Engine(model, _loss, Bound(0.1))
    mask = torch.tensor([1.0, 1, 0, 1])
    wanted = engine.sums(given, target, mask)
    for wrong in (float("nan"), float("inf"), 1e38):
        bad = given.clone()
        bad[2] = wrong
        for found, one in zip(engine.sums(bad, target, torch.ones(4)), wanted, strict=True):
            assert torch.isfinite(found).all()
            if wrong != 1e38:
                assert torch.allclose(found, one, atol=0.11)


@pytest.mark.parametrize("kind", ["attention", "lstm"])
def test_a_traced_pass_gives_the_same(kind):
    model = Attends(kind="cross") if kind == "attention" else Recurs(nn.LSTM, False)
    torch.manual_seed(0)
    given, target, mask = torch.randn(4, PLACES, WIDTH), torch.randn(4), torch.tensor([1.0, 1, 0, 1])
    engine = Engine(model, _loss, Bound(0.5))
    traced = make_fx(engine.functional())(engine.values(), given, target, mask)
    other = torch.randn(4, PLACES, WIDTH)
    for found, wanted in zip(
        traced(engine.values(), other, target, mask), engine.sums(other, target, mask), strict=True
    ):
        assert torch.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("kind", ["apart", "lstm"])
def test_users_with_several_records_have_one_gradient(kind):
    model = (Attends(kind="apart") if kind == "apart" else Recurs(nn.LSTM, False)).double()
    torch.manual_seed(0)
    given, target = torch.randn(4, 3, PLACES, WIDTH).double(), torch.randn(4, 3).double()
    found = OfUsers(model, _loss, Bound(1.0)).forms(given, target)
    wanted = {
        name: each.unflatten(0, (4, 3)).mean(1)
        for name, each in _alone(model, given.flatten(0, 1), target.flatten()).items()
    }
    weights = torch.rand(4).double()
    for name, each in wanted.items():
        assert torch.allclose(found[name].summed(weights), torch.tensordot(weights, each, 1), atol=1e-12)
