"""A loss that holds for neighbours of one kind only, and says so."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar, get_args

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss.base import Adjacency, PrivacyLoss, register
from sfumato.numeric.laws import Term

__all__ = ["AdjacentLoss", "under"]


@register
@dataclass(frozen=True, slots=True)
class AdjacentLoss(PrivacyLoss):
    """Any loss, with the neighbours that its sensitivity was stated for.

    Made by `loss.under("add-remove")`. It costs what the loss costs; it does not combine with losses for
    other neighbours, and a ledger does not take it for a table whose unit has other neighbours.

    Privacy:
        Claim: that of `inner`, for neighbours of `neighbours` alone. Under add/remove it bounds nothing
        about an exchanged unit but what `group(2)` says, since an exchange is a removal and an addition.
    """

    wire: ClassVar[str] = "adjacent.1"
    # Whatever is inside may be an envelope; asking its Rényi curve too is sound for any loss.
    _envelope: ClassVar[bool] = True
    inner: PrivacyLoss
    neighbours: Adjacency

    def __post_init__(self) -> None:
        if not isinstance(self.inner, PrivacyLoss) or self.inner.adjacency is not None:
            raise InvalidParameter("An adjacency is stated of a loss that has none: use loss.under(...).")
        if self.neighbours not in get_args(Adjacency):
            raise InvalidParameter("adjacency must be 'add-remove' or 'exchange'.")

    @property
    def adjacency(self) -> Adjacency:
        """The neighbours it holds for."""
        return self.neighbours

    @property
    def pure(self) -> Fraction | None:
        """That of the loss."""
        return self.inner.pure

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """That of the loss."""
        return self.inner.concentrated

    @property
    def mu(self) -> float | None:
        """That of the loss."""
        return self.inner.mu

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """That of the loss."""
        return self.inner.approximate

    @property
    def failure(self) -> Fraction:
        """That of the loss."""
        return self.inner.failure

    def directions(self) -> tuple[tuple[Term, ...], ...] | None:
        """Those of the loss."""
        return self.inner.directions()

    def renyi(self, alpha: float) -> float:
        """That of the loss."""
        return self.inner.renyi(alpha)

    def curve(self) -> Callable[[float], float]:
        """That of the loss."""
        return self.inner.curve()

    def _kullback_leibler(self) -> float:
        return self.inner._kullback_leibler()

    @property
    def _paired(self) -> bool:
        return self.inner._paired

    def _delta(self, epsilon: float) -> float:
        return self.inner._delta(epsilon)

    def _epsilon(self, delta: Fraction) -> float:
        return self.inner._epsilon(delta)

    def _group(self, size: int) -> PrivacyLoss:
        return under(self.inner.group(size), self.neighbours)


def under(loss: PrivacyLoss, adjacency: Adjacency) -> PrivacyLoss:
    """The loss, stated for one kind of neighbours; a composition states it of each part."""
    from sfumato.loss.composed import NO_LOSS, ComposedLoss

    if adjacency not in get_args(Adjacency):
        raise InvalidParameter("adjacency must be 'add-remove' or 'exchange'.")
    own = loss.adjacency
    if own not in (None, adjacency):
        raise UnsupportedLoss(
            f"This loss holds for {own} neighbours, not for {adjacency}: restate it from its sensitivity."
        )
    if own == adjacency and not isinstance(loss, ComposedLoss):
        return loss
    if isinstance(loss, ComposedLoss):
        return ComposedLoss([(under(part, adjacency), count) for part, count in loss.parts])
    return loss if loss == NO_LOSS else AdjacentLoss(loss, adjacency)
