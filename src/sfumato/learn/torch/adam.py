"""`CorrectedAdam`: Adam for gradients with noise of a known size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.checking import as_rate

__all__ = ["CorrectedAdam"]


class CorrectedAdam(torch.optim.Optimizer):
    """Adam that takes the noise's variance off the second moments before it divides by their root.

    Adam divides by the root of a mean of squared gradients. In a private run these squares are mostly noise,
    the same for all parameters, and what is left of Adam is descent with momentum. The noise's variance is
    public: without it the second moments are those of the gradients again (Tang et al. 2024, DP-AdamBC).

    Args:
        params: As of any optimizer.
        lr: The rate of learning.
        betas: How slowly the means of gradients, and of their squares, forget.
        floor: What a second moment is at least, in variances of the noise: how sure it must be that it is
            none. One that is all noise is off by about √(2·(1 − betas[1])/(1 + betas[1])) of these.
        eps: What is divided by, at least.

    A private run says before each step how large its noise is; used without one, this is Adam.

    Privacy:
        Claim: post-processing. The gradients it is given are private already, and the noise's variance
        follows from the declared price, batch and clip, or from a clip that was paid for.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        floor: float = 0.1,
        eps: float = 1e-8,
    ) -> None:
        for name, value in (("lr", lr), ("eps", eps)):
            as_rate(value, name)
        if floor != 0:
            as_rate(floor, "floor")
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise InvalidParameter("betas must be a pair of numbers, such as (0.9, 0.999).")
        for beta in betas:
            if beta != 0:
                as_rate(beta, "each of betas", most=1.0)
        defaults = {"lr": lr, "betas": betas, "floor": floor, "eps": eps, "steps": 0, "noise": 0.0}
        super().__init__(params, defaults)
        self._variance = 0.0

    def hear(self, variance: float) -> None:
        """Takes the variance of the noise in each number of the next gradient."""
        self._variance = variance

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One step, by the gradients that the parameters have."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                self._move(group)
        return loss

    def _move(self, group: dict[str, Any]) -> None:
        slow, slower = group["betas"]
        group["steps"] += 1
        group["noise"] = slower * group["noise"] + (1 - slower) * self._variance
        once, twice = (1 - beta ** group["steps"] for beta in (slow, slower))
        noise = group["noise"] / twice
        least = max(group["floor"] * noise, group["eps"] ** 2)
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            held = self._held(parameter)
            held["mean"].lerp_(parameter.grad, 1 - slow)
            held["square"].lerp_(parameter.grad.square(), 1 - slower)
            by = (held["square"] / twice - noise).clamp_(min=least).sqrt_()
            parameter.addcdiv_(held["mean"], by, value=-group["lr"] / once)

    def _held(self, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
        held: dict[str, torch.Tensor] = self.state[parameter]
        if not held:
            held["mean"], held["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        return held
