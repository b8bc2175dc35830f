"""One step of learning: plain, private and by peers, each from the same weights and the same batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.deep_models import Case, losses
from benchmarks.harness import peer

Step = Callable[[], Any]
Backward = Callable[[Any], None]
RATE, CLIP, SIGMA = 1e-3, 1.0, 1.0


def _mean_backward(each: Any) -> None:
    each.mean().backward()


def plain(case: Case, device: str, amp: bool, *, compiled: bool = False) -> Step:
    """The step of a loop that is not private."""
    model, given, target = case.made(device)
    net = torch.compile(model) if compiled else model
    return _step(net, torch.optim.SGD(model.parameters(), RATE), given, target, amp)


def _step(
    net: Any, optimizer: Any, given: Any, target: Any, amp: bool, backward: Backward = _mean_backward
) -> Step:
    """A step of an ordinary loop, whatever the model and the optimizer are wrapped in."""

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(given.device.type, torch.bfloat16, enabled=amp):
            out = net(given)
        backward(losses(out, target))
        optimizer.step()

    return step


def ours(case: Case, device: str, amp: bool, *, compiled: bool = True) -> Step:
    """A whole step of a run: drawing records (all of them: one full batch), gradients, noise, update."""
    from sfumato.learn.torch import private

    model, given, target = case.made(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = private(
            model,
            torch.optim.SGD(model.parameters(), RATE),
            (given, target),
            epsilon=32, delta=1e-3, size=case.batch, batch=case.batch, steps=400, clip=CLIP,
            physical=case.batch, objective=losses, amp=torch.bfloat16 if amp else None, compiled=compiled,
        )  # fmt: skip

    def step() -> None:
        run.step()

    step.run = run  # type: ignore[attr-defined]
    return step


def opacus(case: Case, device: str, amp: bool, mode: str) -> Step:
    """Opacus's step, in one of its modes: hooks, functorch, or ghost clipping."""
    warnings.filterwarnings("ignore")
    if peer("opacus") is None:
        raise ModuleNotFoundError("opacus")
    model, given, target = case.made(device)
    if mode == "ghost":
        return _ghost(model, given, target, amp)
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    wrapped = GradSampleModule(model, force_functorch=mode == "functorch")
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), RATE),
        noise_multiplier=SIGMA, max_grad_norm=CLIP, expected_batch_size=len(given),
    )  # fmt: skip
    return _step(wrapped, optimizer, given, target, amp)


def _ghost(model: Any, given: Any, target: Any, amp: bool) -> Step:
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

    wrapped = GradSampleModuleFastGradientClipping(
        model, max_grad_norm=CLIP, use_ghost_clipping=True, loss_reduction="mean"
    )
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(model.parameters(), RATE),
        noise_multiplier=SIGMA, max_grad_norm=CLIP, expected_batch_size=len(given),
    )  # fmt: skip

    def backward(each: Any) -> None:
        DPTensorFastGradientClipping(wrapped, optimizer, each, "mean").backward()

    return _step(wrapped, optimizer, given, target, amp, backward)
