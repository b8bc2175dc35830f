"""How the parts of a pipeline share one price, and how that is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import GaussianLoss
from sfumato.numeric.exact import positive

__all__ = ["Part", "Split", "shares_of"]

_MODEL = 4
"""What the last part weighs if nobody says, where each part before it weighs 1."""


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a pipeline.

    Attributes:
        name: The step's.
        share: Its part of the whole price; 0: it is free.
        rho: What it costs.
        epsilon: What it would cost by itself, at the delta of the whole.
    """

    name: str
    share: Fraction
    rho: Fraction
    epsilon: float


@dataclass(frozen=True, slots=True, repr=False)
class Split:
    """Who gets what of a price.

    Attributes:
        parts: A step each, in their order.
        epsilon: Of the whole.
        delta: Likewise.
        rho: Likewise: the sum of those of the parts.
    """

    parts: tuple[Part, ...]
    epsilon: Fraction
    delta: Fraction
    rho: Fraction

    @classmethod
    def of(cls, names: Sequence[str], shares: Mapping[str, Fraction], paid: GaussianLoss) -> Split:
        """The parts of a price."""
        assert paid.point is not None  # prices of fits are calibrated
        epsilon, delta = paid.point
        parts = []
        for name in names:
            rho = paid.rho * shares.get(name, 0)
            alone = GaussianLoss(rho).epsilon(delta) if rho else 0.0
            parts.append(Part(name, shares.get(name, Fraction(0)), rho, alone))
        return cls(tuple(parts), epsilon, delta, paid.rho)

    def __str__(self) -> str:
        """A line for each step, and one for the whole."""
        wide = max(len(part.name) for part in self.parts)
        lines = [
            f"{part.name:<{wide}}  {part.share} of the price: rho {float(part.rho):.4g}, "
            f"by itself epsilon {part.epsilon:.4g}"
            if part.share
            else f"{part.name:<{wide}}  free"
            for part in self.parts
        ]
        whole = f"epsilon {float(self.epsilon):.4g}, delta {float(self.delta):.4g}"
        return "\n".join([*lines, f"{'all':<{wide}}  rho {float(self.rho):.4g}: {whole}"])

    def __repr__(self) -> str:
        return str(self)


def shares_of(split: Any, paying: Sequence[str]) -> dict[str, Fraction]:
    """Which part of the price each step gets that costs something; together 1.

    Args:
        split: Weights by step; None: the last one weighs 4, and each before it 1.
        paying: The steps that cost something.

    Raises:
        InvalidParameter: for weights of other steps, or not of all of them.
    """
    if split is None:
        split = {name: _MODEL if name == paying[-1] else 1 for name in paying}
    if not isinstance(split, Mapping):
        raise InvalidParameter('split must be weights by step, such as {"scale": 1, "model": 4}.')
    for name in split:
        if name not in paying:
            raise InvalidParameter(f"split names {str(name)[:60]!r}, which is no step that costs anything.")
    for name in paying:
        if name not in split:
            raise InvalidParameter(f"split says nothing of {name[:60]!r}, which costs something: add it.")
    weights = {name: positive(split[name], "split") for name in paying}
    whole = sum(weights.values(), Fraction(0))
    return {name: weight / whole for name, weight in weights.items()}
