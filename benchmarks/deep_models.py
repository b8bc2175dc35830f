"""Models of the sizes that people train privately, and batches of made-up records for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class Case:
    """A model and a batch of records that are made up."""

    name: str
    model: Callable[[], nn.Module]
    batch: int
    given: tuple[int, ...]
    places: tuple[int, ...] = ()
    classes: int = 10
    words: int = 0

    def made(self, device: str) -> tuple[nn.Module, Tensor, Tensor]:
        """The model with its first weights, inputs and targets."""
        torch.manual_seed(0)
        model = self.model().to(device)
        shape = (self.batch, *self.given)
        if self.words:
            given = torch.randint(0, self.words, shape, device=device)
        else:
            given = torch.randn(shape, device=device)
        return model, given, torch.randint(0, self.classes, (self.batch, *self.places), device=device)


def losses(out: Tensor, target: Tensor) -> Tensor:
    """A loss for each record: over the places of a text the mean."""
    if out.dim() == 3:
        each = F.cross_entropy(_wide(out).reshape(-1, out.shape[-1]), target.reshape(-1), reduction="none")
        return each.view(target.shape).mean(1)
    return F.cross_entropy(_wide(out), target, reduction="none")


def _wide(value: Tensor) -> Tensor:
    return value if value.dtype == torch.float64 else value.float()


class Small(nn.Module):
    """Six convolutions with GroupNorm, 0.6 million numbers."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        layers, before = list[nn.Module](), 3
        for at, after in enumerate((width, width, 2 * width, 2 * width, 4 * width, 4 * width)):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(min(16, after), after), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] if at % 2 else []
            before = after
        self.all = nn.Sequential(
            *layers, nn.Flatten(), nn.Linear(4 * width * 16, 128), nn.ReLU(), nn.Linear(128, 10)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.all(x)  # type: ignore[no-any-return]


class _Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.norm, self.first = nn.GroupNorm(16, before), nn.Conv2d(before, after, 3, stride, 1)
        self.middle, self.second = nn.GroupNorm(16, after), nn.Conv2d(after, after, 3, 1, 1)
        self.past = nn.Conv2d(before, after, 1, stride) if before != after or stride != 1 else None

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norm(x))
        past = x if self.past is None else self.past(inner)
        return self.second(F.relu(self.middle(self.first(inner)))) + past


class Wide(nn.Module):
    """WideResNet 16-4 with GroupNorm (De et al. 2022)."""

    def __init__(self, wide: int = 4) -> None:
        super().__init__()
        self.stem, before, blocks = nn.Conv2d(3, 16, 3, 1, 1), 16, list[nn.Module]()
        for group, width in enumerate((16 * wide, 32 * wide, 64 * wide)):
            for place in range(2):
                blocks.append(_Residual(before, width, 2 if group and not place else 1))
                before = width
        self.blocks, self.norm, self.head = (
            nn.Sequential(*blocks),
            nn.GroupNorm(16, before),
            nn.Linear(before, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.norm(self.blocks(self.stem(x)))).mean((2, 3)))  # type: ignore[no-any-return]


class _Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.first, self.three, self.out = (
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )
        self.second, self.up, self.down = (
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        records, places, width = x.shape
        three = self.three(self.first(x)).view(records, places, 3, self.heads, width // self.heads)
        q, k, v = three.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(records, places, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Text(nn.Module):
    """A causal language model; its head is a layer of its own (peers refuse one that is the table)."""

    def __init__(self, words: int, width: int, layers: int, heads: int, places: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks = nn.ModuleList([_Block(width, heads, causal=True) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens).contiguous()
        x = self.words(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))  # type: ignore[no-any-return]


class Vision(nn.Module):
    """A vision transformer: patches, blocks, the mean of all places."""

    def __init__(self, side: int, patch: int, width: int, layers: int, heads: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Embedding((side // patch) ** 2, width)
        self.blocks = nn.ModuleList([_Block(width, heads, causal=False) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        places = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1).contiguous()
        x = x + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))  # type: ignore[no-any-return]


def _digits() -> nn.Module:
    """The net of most papers on private MNIST."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, 3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.ReLU(),
        nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


def _dense() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def _very_dense() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)
    )


ON_GPU = (
    Case("CIFAR CNN", Small, 4096, (3, 32, 32)),
    Case("WideResNet 16-4", Wide, 4096, (3, 32, 32)),
    Case("ViT-S/16", lambda: Vision(224, 16, 384, 12, 6, 1000), 512, (3, 224, 224), classes=1000),
    Case("GPT-2 size", lambda: Text(50304, 768, 12, 12, 512), 32, (512,), (512,), 50304, 50304),
)
ON_CPU = (
    Case("small CNN", _digits, 256, (1, 28, 28)),
    Case("MLP 512", _dense, 256, (784,)),
    Case("MLP 2048", _very_dense, 256, (784,)),
    Case("transformer", lambda: Text(1000, 128, 2, 4, 64), 32, (64,), (64,), 1000, 1000),
)
CASES: dict[str, Any] = {each.name: each for each in (*ON_GPU, *ON_CPU)}
