"""Pictures to learn from: scikit-learn's digits with one of them made rare, and shapes that are generated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

RARE_DIGIT, KEPT = 8, 0.25
SHAPES, SIDE, RARE_STYLE = 5, 12, 0.05


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures for training and for measuring, and which of the latter are of a rare kind."""

    name: str
    train: tuple[torch.Tensor, torch.Tensor]
    test: tuple[torch.Tensor, torch.Tensor]
    rare: torch.Tensor
    rare_name: str

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.test[1].max()) + 1


def digits() -> Pictures:
    """8 × 8 digits: 1,250 or so for training, of which one in forty is an 8, and 450 for measuring."""
    from sklearn.datasets import load_digits

    loaded, draw = load_digits(), np.random.default_rng(1)
    order = draw.permutation(len(loaded.images))
    images = torch.tensor(loaded.images[order] / 8 - 1, dtype=torch.float32)[:, None]
    labels = torch.tensor(loaded.target[order])
    test, rest = np.arange(450), np.arange(450, len(order))
    kept = rest[(labels[rest] != RARE_DIGIT).numpy() | (draw.random(len(rest)) < KEPT)]
    return Pictures(
        "digits",
        (images[kept], labels[kept]),
        (images[test], labels[test]),
        labels[test] == RARE_DIGIT,
        f"the digit {RARE_DIGIT}, one in forty",
    )


def shapes(count: int = 10_000, measured: int = 4_000, seed: int = 2) -> Pictures:
    """12 × 12 pictures of five shapes at any place; one in twenty is dark on a bright ground.

    Half of those that are measured on are dark: overall figures weigh them as they are in training.
    """
    draw = np.random.default_rng(seed)
    images, labels, _ = _drawn(count, RARE_STYLE, draw)
    test_images, test_labels, test_dark = _drawn(measured, 0.5, draw)
    return Pictures(
        "shapes", (images, labels), (test_images, test_labels), test_dark, "dark on bright, one in twenty"
    )


def _drawn(
    count: int, rare: float, draw: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    labels, dark = draw.integers(SHAPES, size=count), draw.random(count) < rare
    down, across = np.mgrid[0:SIDE, 0:SIDE]
    middle = draw.uniform(4, SIDE - 5, (count, 2, 1, 1))
    size = draw.uniform(2.2, 4, (count, 1, 1))
    y, x = np.abs(down - middle[:, 0]), np.abs(across - middle[:, 1])
    thin = 0.9
    kinds = np.stack(
        [
            (y < thin) & (x < size),
            (x < thin) & (y < size),
            ((y < thin) & (x < size)) | ((x < thin) & (y < size)),
            (np.maximum(x, y) < size) & (np.maximum(x, y) > size - 1.3),
            x**2 + y**2 < (0.8 * size) ** 2,
        ]
    )
    inked = kinds[labels, np.arange(count)] * draw.uniform(0.6, 1, (count, 1, 1))
    inked = inked + draw.normal(0, 0.15, inked.shape)
    images = np.where(dark[:, None, None], 1 - inked, inked) * 2 - 1
    return (
        torch.tensor(images, dtype=torch.float32)[:, None],
        torch.tensor(labels),
        torch.tensor(dark),
    )


def filtered(images: torch.Tensor) -> torch.Tensor:
    """Features that nobody's records decide: differences in eight directions, pooled; each picture by itself.

    A small relative of the scattering transform: fixed filters, a modulus, averages over places.
    """
    steps = torch.zeros(4, 1, 3, 3)
    for at, ((a, b), (c, d)) in enumerate(
        [((1, 0), (1, 2)), ((0, 1), (2, 1)), ((0, 0), (2, 2)), ((0, 2), (2, 0))]
    ):
        steps[at, 0, a, b], steps[at, 0, c, d] = -1, 1
    moved = F.conv2d(images, steps, padding=1)
    both = torch.cat([F.relu(moved), F.relu(-moved)], 1)
    pooled = F.avg_pool2d(both, 3, stride=2, padding=1).flatten(2)
    plain = F.avg_pool2d(images, 2).flatten(2)
    groups = [_scaled(pooled[:, at]) for at in range(pooled.shape[1])] + [_scaled(plain[:, 0])]
    whole = torch.cat(groups, 1)
    return whole / whole.norm(dim=1, keepdim=True)


def _scaled(group: torch.Tensor) -> torch.Tensor:
    return (group - group.mean(1, keepdim=True)) / (group.std(1, keepdim=True) + 1e-2)
