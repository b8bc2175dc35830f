"""Weights that a pass changes, frozen or trained: for some records only, so that no survey sees it."""

import contextlib

import numpy as np
import pytest
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch import cross_entropy, faults, federated, private
from sfumato.learn.torch.weights import Weights, check_traced

WIDTH, ODD = 3, 7.3125


def _swapped(weight, value):
    weight.data = weight.data + value


def _numpys(weight, value):
    weight.detach().numpy()[:] += float(value)


def _shortened(weight, value):
    F.embedding(torch.zeros(1, dtype=torch.int64), weight, max_norm=1e-3)


WAYS = {
    "in place": lambda weight, value: weight.add_(value),
    "past the counter": lambda weight, value: weight.data.add_(value),
    "an array": _numpys,
    "other memory": _swapped,
    "other strides": lambda weight, value: setattr(weight, "data", (weight.data * 2).t().contiguous().t()),
    "a norm": _shortened,
    "one line": lambda weight, value: weight[0].fill_(value),
}


class _Odd(nn.Module):
    """A model that changes a weight when it sees one number, which no made-up record has."""

    def __init__(self, way, which):
        super().__init__()
        self.map, self.book = nn.Linear(WIDTH, 2), nn.Parameter(torch.ones(2, WIDTH), requires_grad=False)
        self.loose, self.way, self.which = [nn.Parameter(torch.ones(2, WIDTH))], way, which

    def changed(self):
        return {"trained": self.map.weight, "frozen": self.book, "in a list": self.loose[0]}[self.which]

    def forward(self, given):
        with torch.no_grad():
            if bool((given == ODD).any()):
                WAYS[self.way](self.changed(), given.max())
        return self.map(given - self.book[0])


def _records(odd):
    given = torch.linspace(-1, 1, 4 * WIDTH).view(4, WIDTH)
    given[2, 1] = ODD if odd else 0.5
    return given, torch.tensor([0, 1, 0, 1])


def _run(model, odd=True):
    return private(
        model, torch.optim.SGD([model.map.weight, model.map.bias], 0.0), _records(odd), epsilon=1, delta=1e-5,
        size=4, batch=4, steps=2,
    )  # fmt: skip


def _sums(run, drawn):
    return torch.cat([each.flatten() for each in run._descent.sums(np.array(drawn))])


@pytest.mark.parametrize("which", ["frozen", "trained", "in a list"])
def test_what_a_record_changes_of_weights_is_taken_back(which, monkeypatch):
    for way in WAYS:
        torch.manual_seed(0)
        model = _Odd(way, which)
        run, weight = _run(model), model.changed()
        before, memory = weight.detach().clone(), weight.untyped_storage()._cdata
        found, without = _sums(run, [0, 1, 2, 3]), _sums(run, [0, 1, 3])
        assert torch.equal(weight, before), way
        assert weight.untyped_storage()._cdata == memory, way
        assert (found - without).abs().max() <= 1, f"{way}: the record counts as none"
        with monkeypatch.context() as patch:
            patch.setattr(Weights, "taken_back", lambda *_: contextlib.nullcontext())
            _sums(run, [0, 1, 2, 3])
        assert weight.shape != before.shape or not torch.equal(weight, before), "otherwise it would stay"


def test_weights_that_nobody_changes_are_not_copied():
    model = _Odd("in place", "frozen")
    run, places = _run(model, odd=False), [each.data_ptr() for each in model.parameters()]
    shared = []

    class Seen(Weights):
        def taken_back(self, more=()):
            inner = super().taken_back(more)

            @contextlib.contextmanager
            def around():
                with inner:
                    yield
                    shared.extend(torch._C._is_cow_tensor(each) for each in model.parameters())

            return around()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "Weights", Seen)
        run.fit()
    assert shared
    assert all(shared)
    assert [each.data_ptr() for each in model.parameters()] == places


def test_a_client_that_changes_weights_counts_for_nothing():
    model = _Odd("in place", "frozen")
    given, target = _records(True)
    clients = [(given[at : at + 1], target[at : at + 1]) for at in range(4)]
    run = federated(
        model, torch.optim.SGD([model.map.weight, model.map.bias], 1), clients, epsilon=1, delta=1e-5, size=4,
        batch=4, rounds=1, example=(torch.zeros(WIDTH), torch.tensor(0)),
    )  # fmt: skip
    assert torch.equal(_sums(run, [0, 1, 2, 3]), _sums(run, [0, 1, 3]))
    assert (model.book == 1).all()


TABLES = {
    "bag": lambda: nn.EmbeddingBag(5, WIDTH, max_norm=1.0),
    "frozen bag": lambda: nn.EmbeddingBag(5, WIDTH, max_norm=1e9).requires_grad_(False),
    "frozen table": lambda: nn.Embedding(5, WIDTH, max_norm=1e9).requires_grad_(False),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_that_shorten_their_lines_are_refused(kind):
    model = nn.Sequential(TABLES[kind](), nn.Flatten(), nn.Linear(WIDTH, 2))
    trained = [each for each in model.parameters() if each.requires_grad]
    data = torch.zeros(4, 1, dtype=torch.int64), torch.zeros(4).long()
    with pytest.raises(InvalidParameter, match="max_norm"):
        private(model, torch.optim.SGD(trained, 0.1), data, epsilon=1, delta=1e-5, size=4, batch=4, steps=1)


def _written(how):
    def run(weights, given):
        how(weights[0], given)
        return weights[0] @ given, cross_entropy(given[None], torch.zeros(1).long())

    weights = [torch.ones(2, 3), torch.ones(2)]
    traced = make_fx(run)(weights, torch.ones(3))
    check_traced(traced, len(weights))


@pytest.mark.parametrize(
    "how",
    [
        lambda weight, _: weight.add_(1),
        lambda weight, given: weight[0].copy_(given),
        lambda weight, given: weight.t().view(3, 2).detach().mul_(2),
        lambda weight, given: torch.add(weight, 1, out=weight),
        lambda weight, given: torch._foreach_mul_([given, weight], 2),
    ],
)
def test_a_traced_pass_that_writes_to_weights_is_refused(how):
    with pytest.raises(InvalidParameter, match="changes its own parameters"):
        _written(how)


def test_a_traced_pass_may_write_to_what_it_makes():
    _written(
        lambda weight, given: (
            weight.clone().add_(1),
            weight.mul(2).t().zero_(),
            (weight + 1)[0].copy_(given),
        )
    )
