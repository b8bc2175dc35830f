"""Attacks read records off plain nets, and stay within what epsilon allows on private ones."""

import math

import numpy as np
import pytest
from torch import nn

from deep import torch
from sfumato.attacks import extraction, gradient_leakage, shadow
from sfumato.learn.torch import runs
from sfumato.learn.torch.objectives import cross_entropy
from sfumato.learn.torch.runs import private
from sfumato.testing import seeded

EPSILON, LESS, DELTA = 1, 0.5, 1e-6


class _Watched(torch.optim.SGD):
    """An optimizer that keeps the gradients that it is given."""

    def step(self, closure=None):
        self.given = [each.grad.clone() for group in self.param_groups for each in group["params"]]
        return super().step(closure)


def _net(wide, out=2, hidden=16):
    return nn.Sequential(nn.Linear(wide, hidden), nn.Tanh(), nn.Linear(hidden, out))


def _tensors(rows, labels):
    return torch.tensor(rows, dtype=torch.float32), torch.tensor(np.asarray(labels)).long()


# What a step sends: the gradient of the first layer, from which a record is read.


def _plain_gradient(rows, labels):
    torch.manual_seed(1)
    model = _net(rows.shape[1])
    cross_entropy(model(_tensors(rows, labels)[0]), _tensors(rows, labels)[1]).sum().backward()
    return model[0].weight.grad.numpy(), model[0].bias.grad.numpy()


def _private_gradient(rows, labels):
    torch.manual_seed(1)
    model = _net(rows.shape[1])
    optimizer = _Watched(model.parameters(), 0.1)
    many = len(rows)
    private(
        model, optimizer, _tensors(rows, labels), epsilon=EPSILON, delta=DELTA, size=many, batch=many, steps=1
    ).fit()
    weights, bias, *_ = optimizer.given
    return weights.numpy(), bias.numpy()


def _leaked(gradient):
    draw = np.random.default_rng(2)
    rows, labels = draw.normal(size=(48, 12)), draw.integers(0, 2, 48)
    with seeded("deep leakage"):
        return gradient_leakage(gradient, rows, labels, seed=3)


def test_a_record_is_read_off_a_plain_gradient_and_not_off_a_private_one():
    plain, noisy = _leaked(_plain_gradient), _leaked(_private_gradient)
    assert plain.reached.hits == plain.detail["read off"] == 48
    assert plain.detail["epsilon at least"] > 2 * EPSILON
    assert noisy.detail["epsilon at least"] <= 2 * EPSILON  # one record in the place of another
    assert noisy.detail["read off"] == 0
    assert noisy.reached.hits <= 8, "e² in 48 is the most that is allowed; a guess is one"


def test_a_step_with_hardly_any_noise_is_told_from_a_private_one(monkeypatch):
    monkeypatch.setattr(runs, "_calibrated", lambda *_: 1e-3)
    found = _leaked(_private_gradient)
    assert found.detail["epsilon at least"] > 2 * EPSILON


# Who was in it.


def _plainly(rows, labels, seed):
    torch.manual_seed(seed)
    model, (given, target) = _net(rows.shape[1], hidden=64), _tensors(rows, labels)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(120):
        optimizer.zero_grad()
        cross_entropy(model(given), target).mean().backward()
        optimizer.step()
    return model


def _privately(rows, labels, seed):
    torch.manual_seed(seed)
    model, many = _net(rows.shape[1], hidden=64), len(rows)
    optimizer = torch.optim.SGD(model.parameters(), 1.0, momentum=0.9)
    private(
        model, optimizer, _tensors(rows, labels), epsilon=LESS, delta=DELTA, size=many, batch=many,
        steps=15, clip=0.5,
    ).fit()  # fmt: skip
    return model


def _confidence(model, rows, labels):
    given, target = _tensors(rows, labels)
    with torch.no_grad():
        return torch.softmax(model(given), 1).gather(1, target[:, None])[:, 0].double().clamp(0, 1).numpy()


def _members(train):
    draw = np.random.default_rng(4)
    rows, labels = draw.normal(size=(360, 20)), draw.integers(0, 2, 360)  # nothing to learn but by heart
    with seeded("deep membership"):
        return shadow(
            train, _confidence, rows, labels, members=np.arange(120), others=np.arange(120, 240), shadows=3,
            seed=5,
        )  # fmt: skip


def test_members_are_known_by_a_plain_net_and_not_by_a_private_one():
    plain, noisy = _members(_plainly), _members(_privately)
    allowed = math.exp(2 * LESS) / (1 + math.exp(2 * LESS))  # members are as many as others
    assert plain.detail["auc"] > 0.9
    assert plain.detail["epsilon at least"] > 2 * LESS
    assert noisy.detail["epsilon at least"] <= 2 * LESS
    assert noisy.reached.hits / noisy.reached.trials < allowed
    assert noisy.detail["auc"] < 0.65


# What the text said.

ALPHABET, LENGTH, BEFORE = "abcdefghijklmnop 0123456789", 8, 6


class _Characters(nn.Module):
    """The next character after some."""

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET) + 1, 8)
        self.hidden, self.out = nn.Linear(8 * BEFORE, 64), nn.Linear(64, len(ALPHABET) + 1)

    def forward(self, tokens):
        return self.out(torch.tanh(self.hidden(self.letters(tokens).flatten(2))))


def _documents(texts):
    """Of each document, what comes before each character, and that character."""
    codes = torch.full((len(texts), BEFORE + LENGTH), len(ALPHABET))
    for row, text in zip(codes, texts, strict=True):
        row[BEFORE : BEFORE + len(text)] = torch.tensor([ALPHABET.index(letter) for letter in text])
    windows = codes.unfold(1, BEFORE + 1, 1)
    return windows[:, :, :BEFORE].contiguous(), windows[:, :, BEFORE].contiguous()


def _reads_plainly(texts, seed):
    torch.manual_seed(seed)
    model, (given, target) = _Characters(), _documents(texts)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(250):
        optimizer.zero_grad()
        cross_entropy(model(given), target).mean().backward()
        optimizer.step()
    return model


def _reads_privately(texts, seed):
    torch.manual_seed(seed)
    model, many = _Characters(), len(texts)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    private(
        model, optimizer, _documents(texts), epsilon=EPSILON, delta=DELTA, size=many, batch=many, steps=20
    ).fit()
    return model


def _likelihood(model, texts):
    given, target = _documents(texts)
    with torch.no_grad():
        chances = torch.log_softmax(model(given), -1).gather(2, target[:, :, None])[:, :, 0]
    return chances.sum(1).double().numpy()


def _extracted(train):
    names = ["ada ", "bea ", "dag ", "gil ", "ida ", "jan ", "kim ", "leo "]
    text = [
        f"{a}{b}{c} {d:03d}" for a, b, c, d in zip("abcd" * 6, "efgh" * 6, "ijkl" * 6, range(24), strict=True)
    ]
    with seeded("deep extraction"):
        return extraction(
            train, _likelihood, text, names, candidates=[f"{code:03d}" for code in range(200)], seed=6
        )


def test_a_plain_text_model_completes_secrets_and_a_private_one_does_not():
    plain, noisy = _extracted(_reads_plainly), _extracted(_reads_privately)
    assert plain.reached.hits >= 7
    assert plain.detail["exposure"] > 7
    assert plain.detail["epsilon at least"] > 2 * EPSILON
    assert noisy.detail["epsilon at least"] <= 2 * EPSILON
    assert noisy.reached.hits <= 1
    assert noisy.detail["exposure"] == pytest.approx(noisy.detail["exposure of a guess"], abs=1.5)
