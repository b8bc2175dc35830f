"""`Quantile`: a clip that follows a quantile of the gradients' lengths, bought within the price of a run."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.checking import as_rate
from sfumato.learn.torch.law import SIGMA
from sfumato.numeric.exact import Rational, positive, probability

__all__ = ["Adaptive", "Quantile", "below"]

Tensor: TypeAlias = torch.Tensor
_UNITS = 64  # what a record weighs in the count
_MOVED = _UNITS + 1  # what it moves the count by: its own weight, and that of another by a rounding
_WHOLLY_ABOVE = 0.8  # the factor of a gradient of 1.25 clips
_FARTHEST = 2.0**20


@dataclass(frozen=True, slots=True)
class Quantile:
    """A clip that adapts until a given share of the gradients is below it.

    Attributes:
        share: Which share.
        first: The clip of the first step.
        rate: How fast it moves: by this factor, as a power of e, if all are below and none should be.
        noise: The noise of the count, in records; by default a twentieth of the batch, or two times that of
            the sums, in clips, if that is more.
    """

    share: Rational = 0.5
    first: Rational = 1
    rate: float = 0.2
    noise: float | None = None

    def __post_init__(self) -> None:
        probability(self.share, "share")
        positive(self.first, "first")
        if not as_rate(self.rate, "rate") <= 2:
            raise InvalidParameter("rate must be above 0 and at most 2.")
        if self.noise is not None:
            as_rate(self.noise, "noise")


def below(factors: Tensor, mask: Tensor) -> Tensor:
    """How many gradients are below the clip less how many are above it, in units, as a whole number.

    Between 1 and 1.25 clips a gradient is below in part: were it all or nothing, the last bit of a length
    could turn a record over.
    """
    share = ((factors - _WHOLLY_ABOVE) / (1 - _WHOLLY_ABOVE)).clamp(0, 1)
    each = ((2 * share - 1) * _UNITS).round().to(torch.int64)
    return torch.where(mask > 0, each, 0).sum()


class Adaptive:
    """The clip of a run as it is now, and what it is learned from.

    Gradients are scaled, so that the clip of a pass stays what it was compiled with.

    Args:
        quantile: What is asked for.
        sigma: The noise that a step is paid with, in clips.
        batch: The expected number of records of a step.
        device: Where the model is.

    Attributes:
        sigma: The noise of the gradients, in clips: more than is paid for, as the count has its part.
        worth: How many steps of the noise's grid a unit of the count is.
        clip: Now.

    Privacy:
        Claim: the noisy sum of a step and its noisy count are together one Gaussian measurement with the
        noise that is paid for. Proof: a record moves the sum by a clip at most, 1/`sigma` deviations of its
        noise. It moves the count by 64 units at most, as each record weighs between −64 and 64, and by one
        more where another record's weight is rounded otherwise: 65·`worth` of the grid's steps, of which the
        noise has `law.SIGMA`. The two are numbers of one vector with independent noise, so in deviations the
        record moves it by √(1/`sigma`² + (65·`worth`/SIGMA)²), which is what `sigma` was chosen to make one
        over the noise paid for. Source: Andrew et al. 2021, theorem 1: with b records as the deviation of
        the count 1/z² = 1/z₁² + 1/(2b)², since a count that is centred moves by 1/2. The clip of a step
        follows from earlier noisy counts. Condition: what a record weighs does not hang on where in a batch
        it is, but for the rounding (as in `clipping`).
    """

    def __init__(self, quantile: Quantile, sigma: float, batch: int, device: torch.device) -> None:
        noise = max(batch / 20, 2 * sigma) if quantile.noise is None else quantile.noise
        self.worth = max(1, int(SIGMA / (2 * noise * _MOVED)))
        left = 1 / sigma**2 - (self.worth * _MOVED / SIGMA) ** 2
        if left <= 0.01 / sigma**2:
            raise InvalidParameter(
                f"The count's noise must be above {sigma / 2 * 1.01:.3g} records: with less it costs more "
                "than there is."
            )
        self.sigma = math.sqrt(1 / left) * (1 + 2.0**-40)
        self.quantile, self._batch = quantile, batch
        self.first = self.clip = float(positive(quantile.first, "first"))
        self.scale = torch.ones((), device=device)

    def objective(self, objective: Any) -> Any:
        """The same, scaled so that the clip of now is the first one."""
        return lambda out, target: objective(out, target) * self.scale

    def follow(self, count: int) -> None:
        """Moves the clip by a noisy count, in steps of the grid."""
        share = min(max(0.5 + count / (2 * _UNITS * self.worth * self._batch), 0.0), 1.0)
        self.move(self.clip * math.exp(-self.quantile.rate * (share - float(self.quantile.share))))

    def move(self, clip: float) -> None:
        """Goes on with another clip."""
        self.clip = min(max(clip, self.first / _FARTHEST), self.first * _FARTHEST)
        self.scale.fill_(self.first / self.clip)

    def declared(self) -> dict[str, Any]:
        """What a run with it was declared to be."""
        return {"share": str(self.quantile.share), "rate": self.quantile.rate, "worth": self.worth}
