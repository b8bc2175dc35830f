"""A small net that learns handwritten digits privately: an ordinary loop, three lines more.

Needs PyTorch: pip install 'sfumato[torch]'.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

from sfumato.learn.torch import private


def main(epsilon: float = 4, steps: int = 40) -> None:
    """Learns from 1,437 digits at a price, and is measured on 360 that are public."""
    digits = load_digits()
    x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    x = x / x.norm(dim=1, keepdim=True)
    places = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    train, test = places[:1437], places[1437:]

    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), 8.0, momentum=0.9)
    run = private(model, optimizer, (x[train], y[train]), epsilon=epsilon, delta=1e-5,
                  size=1437, batch=1437, steps=steps, clip=0.1)  # fmt: skip
    print(run)
    run.fit()
    right = (model(x[test]).argmax(1) == y[test]).float().mean()
    print(f"{right:.1%} of 360 other digits are read rightly")


if __name__ == "__main__":
    main()
