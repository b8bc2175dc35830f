"""No record moves the sums by more than the clip, whatever it holds and wherever it stands."""

import itertools
import math

import pytest
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from deep import MODELS, made, objective, torch
from sfumato.learn.torch import clipping, engine, forms, recording
from sfumato.learn.torch.clipping import Bound
from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.forms import Looked, Outer, Tied
from sfumato.learn.torch.precision import Precision, precision_of
from sfumato.learn.torch.tape import bounded

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")
WORST = [math.nan, math.inf, -math.inf, 3e38, -1e30]
WITHOUT = torch.tensor([1.0, 1, 0, 1, 1, 1])


def _length(one, other):
    return math.sqrt(sum(float((a - b).square().sum()) for a, b in zip(one, other, strict=True)))


@pytest.mark.parametrize("value", WORST)
@pytest.mark.parametrize("name", [name for name, (_, shape) in MODELS.items() if shape])
def test_a_record_that_is_no_number_moves_no_more_than_others(name, value):
    model, given, target = made(name, kind=torch.float32)
    passed = Engine(model, objective, Bound(0.1))
    for where in (slice(None), (0,)):
        bad = given.clone()
        bad[2].view(-1)[where] = value
        sums = passed.sums(bad, target, torch.ones(6))
        without = passed.sums(bad, target, torch.tensor([1.0, 1, 0, 1, 1, 1]))
        assert all(torch.isfinite(part).all() for part in sums + without)
        assert _length(sums, without) <= 0.1
        assert _length(without, passed.sums(given, target, torch.tensor([1.0, 1, 0, 1, 1, 1]))) <= 0.01


class _Hostile(torch.autograd.Function):
    """What it is given; the gradient of one record is another."""

    @staticmethod
    def forward(context, value, record, other):
        context.record, context.other = record, other
        return value.clone()

    @staticmethod
    def backward(context, gradient):
        changed = gradient.clone()
        changed[context.record] = context.other
        return changed, None, None


def _layers(name):
    """Models whose layers are wider than what goes in, narrower, or as wide, in every place."""
    if name == "deep":
        widths = [3, 5, 2, 2, 6, 4]
        layers = [nn.Linear(*pair) for pair in itertools.pairwise(widths)]
        return nn.Sequential(*[part for layer in layers for part in (layer, nn.Tanh())]), torch.randn(6, 3)
    model, given, _ = made(name, kind=torch.float32)
    return model, given


def _poisoned(model, value):
    def objective(out, _):
        return _Hostile.apply(out, 2, value).flatten(1).square().sum(1)

    return Engine(model, objective, Bound(0.1))


def _harmless(sums, without):
    assert all(torch.isfinite(part).all() for part in sums + without)
    assert _length(sums, without) <= 0.1


@pytest.mark.parametrize("name", ["deep", *MODELS])
def test_a_gradient_that_is_no_number_harms_nobody_in_any_layer(name):
    torch.manual_seed(1)
    model, given = _layers(name)
    for value in WORST:
        passed = _poisoned(model, value)
        _harmless(*(passed.sums(given, torch.zeros(6), mask) for mask in (torch.ones(6), WITHOUT)))


def test_a_gradient_that_is_no_number_harms_nobody_in_a_pass_that_is_traced():
    torch.manual_seed(1)
    model, given = _layers("deep")
    passed = _poisoned(model, math.nan)
    batch = (passed.values(), given, torch.zeros(6))
    traced = make_fx(passed.functional())(*batch, WITHOUT)
    _harmless(traced(*batch, torch.ones(6)), traced(*batch, WITHOUT))


def test_weights_that_overflow_harm_nobody():
    model, given, target = made("dense", kind=torch.float32)
    with torch.no_grad():
        model[0].weight.fill_(3e38)
    assert all(
        torch.isfinite(part).all()
        for part in Engine(model, objective, Bound(1.0)).sums(given, target, torch.ones(6))
    )


class _Free(nn.Module):
    """A layer of some places whose inputs and gradients a record chooses freely; another may be before it."""

    def __init__(self, places, inputs, outputs, inner):
        super().__init__()
        self.sizes = [places * inputs, places * outputs]
        self.first = nn.Linear(inputs, inputs, bias=False) if inner else None
        self.map = nn.Linear(inputs, outputs, bias=False)
        with torch.no_grad():
            self.map.weight.zero_()

    def forward(self, x):
        inputs, gradients = x.split(self.sizes, 1)
        inputs = inputs.unflatten(1, (-1, self.map.in_features))
        if self.first is not None:
            inputs = inputs + self.first(inputs * 0)
        out = self.map(inputs)
        return (out * gradients.view(out.shape)).flatten(1).sum(1)


def _farthest(places, inputs, outputs, clip):
    """The longest part, in clips, that a record has in a sum, of records with numbers of all sizes."""
    sizes = torch.cartesian_prod(*[torch.exp2(torch.arange(127.0, -149, -3))] * 2)
    left, right = (
        (sizes[:, side] * by)[:, None, None].expand(-1, places, width).contiguous()
        for side, by, width in ((0, 1.3, outputs), (1, 1.7, inputs))
    )
    short = precision_of(torch.float32, torch.device("cpu"))
    outer = Outer(left, right, torch.Size((outputs, inputs)), short, finite=outputs > inputs)
    cut = clipping.clipped({"weight": outer}, torch.ones(len(left)), Bound(clip), short.given, short.added)
    sides, which = [left, right], 0 if outer.scales_left else 1
    sides[which] = forms._scaled(sides[which], cut.factors.float())
    parts = forms.multiplied(sides[0].transpose(1, 2), sides[1], short)
    return float(parts.double().flatten(1).norm(dim=1).max()) / clip


SHAPES = [(1, 3, 5), (1, 5, 3), (16, 32, 64), (16, 64, 32)]


@pytest.mark.parametrize("clip", [1.0, 0.001, 1e-7])
@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_too_small_or_too_large_for_a_product_lengthen_nobody(shape, clip):
    assert 0.7 < _farthest(*shape, clip) <= 1


@pytest.mark.parametrize(
    ("where", "name", "value", "shape", "clip"),
    [(forms, "_LEAST", 0.0, (16, 32, 64), 0.001), (forms, "_MOST", math.inf, (1, 3, 5), 1e-7),
     (clipping, "_SHORTEST", 0.0, (1, 3, 5), 1e-7)],
    ids=["lost in lengths", "lost in factors", "short factors"],
)  # fmt: skip
def test_without_care_for_them_some_would_be(where, name, value, shape, clip, monkeypatch):
    monkeypatch.setattr(where, name, value)
    assert _farthest(*shape, clip) > 1.1


def test_two_uses_whose_product_overflows_are_not_taken_to_cancel():
    short = precision_of(torch.float32, torch.device("cpu"))
    table = torch.Size((2, 4))
    looked = Looked(torch.full((1, 1, 4), -(2.0**61)), torch.zeros(1, 1).long(), table, short)
    outer = Outer(torch.full((1, 1, 2), 2.0**10), torch.full((1, 1, 4), 2.0**61), table, short)
    whole = looked.summed(torch.ones(1)) + outer.summed(torch.ones(1))
    assert Tied(looked, outer).norms().square >= whole.square().sum()


@pytest.mark.parametrize("value", [math.nan, math.inf, 3.4e38])
@pytest.mark.parametrize("inner", [True, False], ids=["inner", "first"])
@pytest.mark.parametrize(("inputs", "outputs"), [(16, 24), (24, 16)])
def test_gradients_that_are_no_numbers_harm_nobody(inputs, outputs, inner, value):
    torch.manual_seed(0)
    given = torch.randn(4, 5 * (inputs + outputs))
    passed, mask = Engine(_Free(5, inputs, outputs, inner), lambda out, _: out, Bound(0.1)), torch.ones(4)
    mask[2] = 0
    wanted = passed.sums(given, torch.zeros(4), mask)
    given[2, 5 * inputs :] = value
    for sums in (passed.sums(given, torch.zeros(4), mask), passed.sums(given, torch.zeros(4), torch.ones(4))):
        assert all(torch.isfinite(part).all() for part in sums)
        assert _length(sums, wanted) <= 0.1


def test_what_is_a_number_is_one_in_short_floats():
    for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        worst = bounded(torch.tensor([math.nan, math.inf, -math.inf, torch.finfo(kind).max], dtype=kind))
        assert torch.isfinite(worst.to(torch.bfloat16)).all()


class _Places(nn.Module):
    """A layer of many places whose gradients and inputs a record chooses freely, to cancel or not."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(12, 12, bias=False)

    def forward(self, x):
        inputs, gradients = x.chunk(2, dim=-1)
        return (self.map(inputs) * gradients).sum((1, 2))


def _cancelling(records=32, places=8, size=1e6):
    torch.manual_seed(3)
    given = torch.randn(records, places, 24) * 0.01
    bad = torch.randn(places, 24)
    bad[places // 2 :, :12] = bad[: places // 2, :12]
    bad[places // 2 :, 12:] = -bad[: places // 2, 12:]  # the two halves cancel, each of them is long
    bad[:, 12:] *= size
    given[5] = bad
    return given


def _most_moved(bound):
    given, moved = _cancelling(), 0.0
    passed = Engine(_Places(), lambda out, _: out, bound)
    with torch.no_grad():
        passed.recorder.model.map.weight.zero_()
    order = torch.arange(32)
    for turn in range(8):  # the record that joins takes a place, and whose that was goes to the end
        order = order.roll(turn)
        rows = given[order]
        out = torch.ones(32)
        out[(order == 5).nonzero()] = 0
        moved = max(
            moved,
            _length(passed.sums(rows, rows[:, 0, 0], torch.ones(32)), passed.sums(rows, rows[:, 0, 0], out)),
        )
    return moved


def test_terms_that_cancel_move_no_more_than_the_clip():
    assert _most_moved(Bound(0.01)) <= 0.01


class _Careless(Bound):
    """All records in one block, whatever they hold."""

    def block(self, records, places, added):
        return records


def test_if_floats_were_taken_for_numbers_they_would(monkeypatch):
    for module in (engine, recording):
        monkeypatch.setattr(module, "precision_of", lambda *_: Precision(torch.float32, 0.0, 0.0))
    assert _most_moved(_Careless(0.01, spread=1e9)) > 0.01


@pytest.mark.parametrize("added", [2.0**-24, 2.0**-22])
@pytest.mark.parametrize("places", [1, 7, 196, 512])
@pytest.mark.parametrize("records", [1, 12, 32, 4096])
def test_blocks_are_off_by_no_more_than_the_room(records, places, added):
    bound = Bound(2.0)
    block = bound.block(records, places, added)
    assert records % block == 0
    assert 4 * block * places * added * block * bound.spread <= bound.room


def test_a_mask_leaves_nothing_of_a_record():
    model, given, target = made("image", kind=torch.float32)
    passed, mask = Engine(model, objective, Bound(1.0)), torch.tensor([1.0, 1, 1, 0, 0, 0])
    other = given.clone()
    other[3:] = math.nan
    for one, two in zip(passed.sums(given, target, mask), passed.sums(other, target, mask), strict=True):
        assert torch.equal(one, two)
    assert all((part == 0).all() for part in passed.sums(given, target, torch.zeros(6)))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", ["language", "tied"])
def test_a_token_that_no_table_has_is_no_error(name, frozen):
    model, given, target = made(name, kind=torch.float32)
    if frozen:
        model.words.requires_grad_(False)
    given[2, 1], given[3, 0] = 10**9, -7
    passed = Engine(model, objective, Bound(0.1))
    sums = passed.sums(given, target, torch.ones(6))
    assert all(torch.isfinite(part).all() for part in sums)
    assert _length(sums, passed.sums(given, target, torch.tensor([1.0, 1, 0, 1, 1, 1]))) <= 0.1
