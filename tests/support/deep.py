"""What tests of deep learning share: PyTorch or a visible skip, and small models of every kind."""

import contextlib
import os
import types
from importlib.util import find_spec

import pytest

if find_spec("torch") is None:
    if os.environ.get("CI") == "true":
        raise RuntimeError("PyTorch is not installed, and nothing is skipped with CI=true.")
    pytest.skip("PyTorch is not installed: pip install torch==2.13.0.", allow_module_level=True)

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

torch.set_num_threads(1)


@contextlib.contextmanager
def threads(many):
    """As many threads of PyTorch as that, where tests have one."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(many)
        yield
    finally:
        torch.set_num_threads(before)


class Attention(nn.Module):
    """A transformer's block."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.first, self.three, self.out = (
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )
        self.second, self.up, self.down = (
            nn.RMSNorm(width),
            nn.Linear(width, 2 * width),
            nn.Linear(2 * width, width),
        )

    def forward(self, x):
        records, places, width = x.shape
        q, k, v = self.three(self.first(x)).view(records, places, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(records, places, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Language(nn.Module):
    """A small model of tokens; its head may be the table of tokens itself."""

    def __init__(self, tied, words=17, width=8, places=6):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width, padding_idx=0), nn.Embedding(places, width)
        self.block, self.norm = Attention(width, 2, True), nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1])[None])
        return self.head(self.norm(self.block(x)))


class Scale(nn.Module):
    """A layer that no rule knows."""

    def __init__(self, width):
        super().__init__()
        self.by = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return x * self.by


class Twice(nn.Module):
    """A layer that is used twice."""

    def __init__(self):
        super().__init__()
        self.own, self.end = nn.Linear(7, 7), nn.Linear(7, 4)

    def forward(self, x):
        return self.end(torch.tanh(self.own(torch.tanh(self.own(x)))))


class Adapted(nn.Module):
    """A frozen layer with a low-rank change beside it."""

    def __init__(self):
        super().__init__()
        self.frozen, self.down, self.up = (
            nn.Linear(7, 9),
            nn.Linear(7, 2, bias=False),
            nn.Linear(2, 9, bias=False),
        )
        self.end = nn.Linear(9, 4)
        self.frozen.requires_grad_(False)

    def forward(self, x):
        return self.end(torch.relu(self.frozen(x) + self.up(self.down(x))))


class Several(nn.Module):
    """Convolutions of other dimensions, groups, holes and paddings."""

    def __init__(self):
        super().__init__()
        self.cube = nn.Conv3d(2, 4, 3, padding=1, stride=2)
        self.line = nn.Conv1d(4, 6, 3, padding="same", dilation=2, groups=2)
        self.end = nn.Linear(6 * 8, 4)

    def forward(self, x):
        return self.end(torch.relu(self.line(F.relu_(self.cube(x)).flatten(2))).flatten(1))


def _image():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2, bias=False), nn.Flatten(), nn.Linear(6, 4),
    )  # fmt: skip


MODELS = {
    "dense": (lambda: nn.Sequential(nn.Linear(7, 9), nn.ReLU(inplace=True), nn.Linear(9, 4)), (7,)),
    "image": (_image, (2, 8, 8)),
    "several": (Several, (2, 4, 4, 4)),
    "unknown": (lambda: nn.Sequential(nn.Linear(7, 5), Scale(5), nn.ReLU(), nn.Linear(5, 4)), (7,)),
    "twice": (Twice, (7,)),
    "adapted": (Adapted, (7,)),
    "language": (lambda: Language(False), None),
    "tied": (lambda: Language(True), None),
}


def objective(out, target):
    """Cross entropy, a number a record."""
    if out.dim() == 2:
        return F.cross_entropy(out, target, reduction="none")
    return F.cross_entropy(out.flatten(0, 1), target.flatten(), reduction="none").view(target.shape).mean(1)


def made(name, records=6, kind=torch.float64, seed=0):
    """A model, and records for it."""
    torch.manual_seed(seed)
    make, shape = MODELS[name]
    model = make().to(kind)
    if shape is None:
        return model, torch.randint(0, 17, (records, 6)), torch.randint(0, 17, (records, 6))
    return model, torch.randn(records, *shape, dtype=kind), torch.randint(0, 4, (records,))


def keeping(*_):
    """In place of `forgetting`, a planted fault: what a pass leaves stays."""
    return contextlib.nullcontext(types.SimpleNamespace(weights=()))
