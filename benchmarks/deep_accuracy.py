"""Accuracy of private nets by epsilon, overall and for a rare kind of record, beside no privacy.

The setting is that of Tramèr and Boneh (2021, "Differentially private learning needs better features (or
much more data)"): features by fixed filters and a linear model over them; beside it a small convolutional net
with tanh that learns from pixels (Papernot and others 2021, "Tempered sigmoid activations"). Momentum 0.9,
clip 0.1, large batches, few steps. scikit-learn's digits and generated shapes are in the place of MNIST and
CIFAR-10. `SEEDS=1` makes a trial; `python -m benchmarks.deep_picture` draws the results.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from benchmarks.deep_sets import RARE_DIGIT, RARE_STYLE, Pictures, digits, filtered, shapes
from benchmarks.harness import Report
from sfumato.learn.torch import cross_entropy, private

EPSILONS = (0.5, 1, 2, 4, 8)
DELTA = 1e-5
SEEDS = int(os.environ.get("SEEDS", "4"))
CLIP, MOMENTUM = 0.1, 0.9


def linear(pictures: Pictures) -> nn.Module:
    """All zero at first: nothing is left to chance."""
    model = nn.Linear(filtered(pictures.test[0][:1]).shape[1], pictures.classes)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return model


def convolutional(pictures: Pictures) -> nn.Module:
    """Two convolutions and two layers, with tanh."""
    side = pictures.test[0].shape[-1] // 4
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * side * side, 32),
        nn.Tanh(),
        nn.Linear(32, pictures.classes),
    )


def trained(
    model: nn.Module, given: torch.Tensor, target: torch.Tensor, epsilon: float, steps: int, rate: float
) -> None:
    """All records in every step, at a price or at none."""
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=MOMENTUM)
    if np.isinf(epsilon):
        for each in optimizer.param_groups:
            each["lr"] = rate * CLIP  # gradients are not cut: as long as those of records that are
        for _ in range(10 * steps):
            optimizer.zero_grad()
            cross_entropy(model(given), target).mean().backward()
            optimizer.step()
        return
    many = len(given)
    run = private(
        model,
        optimizer,
        (given, target),
        epsilon=epsilon,
        delta=DELTA,
        size=many,
        batch=many,
        steps=steps,
        clip=CLIP,
    )
    run.fit()


def measured(model: nn.Module, given: torch.Tensor, pictures: Pictures, share: float) -> tuple[float, ...]:
    """Accuracy overall, with rare ones at their own share, and of the rare ones and the others alone."""
    with torch.no_grad():
        right = (model(given).argmax(1) == pictures.test[1]).double()
    rare, others = float(right[pictures.rare].mean()), float(right[~pictures.rare].mean())
    return share * rare + (1 - share) * others, rare, others


def _studied(
    report: Report,
    pictures: Pictures,
    who: str,
    make: Callable[[Pictures], nn.Module],
    *,
    steps: int,
    rate: float,
    seeds: int,
    share: float,
) -> None:
    features = filtered if make is linear else torch.Tensor.contiguous
    given, other = features(pictures.train[0]), features(pictures.test[0])
    for epsilon in (*EPSILONS, float("inf")):
        found = []
        for seed in range(seeds):
            torch.manual_seed(seed)
            model = make(pictures)
            trained(model, given, pictures.train[1], epsilon, steps, rate)
            found.append(measured(model, other, pictures, share))
        overall, rare, others = (list(each) for each in zip(*found, strict=True))
        label = "no privacy" if np.isinf(epsilon) else f"epsilon {epsilon:g}"
        report.row(
            f"{pictures.name}, {who}",
            label,
            *(f"{100 * np.mean(each):.1f} ± {100 * np.std(each):.1f}" for each in (overall, rare, others)),
            epsilon=None if np.isinf(epsilon) else epsilon,
            overall=overall,
            rare=rare,
            others=others,
            rare_kind=pictures.rare_name,
            records=len(given),
            steps=steps,
            rate=rate,
        )


def accuracy(report: Report) -> None:
    """Two sets of pictures, two models, five prices and none."""
    torch.set_num_threads(1)
    title = f"Accuracy in percent (delta {DELTA:g}, clip {CLIP:g}, all records in every step)"
    report.heading(title, "overall", "rare kind", "others")
    written, made = digits(), shapes()
    share = float((written.train[1] == RARE_DIGIT).double().mean())
    few = max(1, SEEDS - 2)
    _studied(report, written, "linear", linear, steps=40, rate=40, seeds=SEEDS, share=share)
    _studied(report, written, "net", convolutional, steps=40, rate=6, seeds=few, share=share)
    _studied(report, made, "linear", linear, steps=40, rate=128, seeds=SEEDS, share=RARE_STYLE)
    for case, at, least in (("digits, linear", 2, 0.85), ("shapes, linear", 1, 0.85)):
        row = next(each for each in report.rows if each["case"] == case and each["epsilon"] == at)
        report.figure(f"{case}: accuracy at epsilon {at}", float(np.mean(row["overall"])), ">=", least)


PARTS = [accuracy]
