"""`LogRank`: whether groups survive alike, from counts that were measured already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.learn.survival._curve import Curve

__all__ = ["LogRank", "logrank"]

Floats: TypeAlias = NDArray[np.float64]

_FEWEST = 12.0
_CLEAR = 8.0


@dataclass(frozen=True, slots=True)
class LogRank:
    """The log-rank test of groups.

    Attributes:
        statistic: How far events are from what equal hazards would give, in squared deviations of sampling
            and noise together.
        degrees: Of freedom: groups less one.
        p_value: How often equal hazards give as much or more.
        excess: Of each group, about how many events more than equal hazards would give.
    """

    statistic: float
    degrees: int
    p_value: float
    excess: tuple[float, ...]


def logrank(curves: Sequence[Curve]) -> LogRank:
    """The test of these groups.

    The variance is that of the hypergeometric law, plus what the known noise of all counts adds by their
    derivatives. Cells count from the start as long as every group has enough people at risk.

    Raises:
        InvalidParameter: if there is no such cell.
    """
    several = len(curves)
    risks, noises = np.array([curve.at_risk for curve in curves]), np.array([curve.noise for curve in curves])
    enough = np.asarray((risks >= np.maximum(_FEWEST, _CLEAR * noises)).all(axis=0))
    clear = len(enough) if enough.all() else int(np.argmin(enough))
    if not clear:
        raise InvalidParameter(
            "Some group has too few people beside the noise for this test: raise epsilon, or join groups."
        )
    risk, events = risks[:, :clear], np.array([curve.events[:clear] for curve in curves])
    whole, happened = risk.sum(axis=0), events.sum(axis=0)
    share = risk / whole
    excess = (events - share * happened).sum(axis=1)
    weights = happened * np.clip(1 - happened / whole, 0, 1)
    hyper = np.diag(share @ weights) - (share * weights) @ share.T
    variance = _positive(hyper) + _noise(curves, share, happened / whole)
    some = np.linalg.pinv(variance[1:, 1:], hermitian=True)
    statistic = float(max(excess[1:] @ some @ excess[1:], 0.0))
    return LogRank(
        statistic, several - 1, float(chi2.sf(statistic, several - 1)), tuple(float(each) for each in excess)
    )


def _noise(curves: Sequence[Curve], share: Floats, rates: Floats) -> Floats:
    """What the noise of all groups' counts adds to the variance of their excesses."""
    several, clear = share.shape
    found = np.zeros((several, several))
    for at, curve in enumerate(curves):
        mine = (np.arange(several) == at)[:, None] - share
        moved = -(mine * rates) @ curve.risk[:clear]
        moved[:, :clear] += mine
        noise = moved @ curve.spread
        found += noise @ noise.T
    return found


def _positive(matrix: Floats) -> Floats:
    values, directions = np.linalg.eigh(matrix)
    return np.asarray((directions * np.maximum(values, 0)) @ directions.T)
