"""`LogRank`: whether groups survive alike, from counts that were measured already."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.learn.survival._curve import Curve, stops

__all__ = ["LogRank", "logrank"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False)
class LogRank:
    """The log-rank test of groups.

    Attributes:
        statistic: How far events are from what equal hazards would give, in squared deviations of sampling
            and noise together; less what the unknown times of leaving within cells could make of it.
        degrees: Of freedom: groups less one.
        p_value: How often equal hazards give as much or more.
        excess: Of each group, about how many events more than equal hazards would give.
    """

    statistic: float
    degrees: int
    p_value: float
    excess: tuple[float, ...]

    def __str__(self) -> str:
        """The test in two sentences."""
        excess = ", ".join(f"{each:+,.4g}" for each in self.excess)
        lines = [
            f"Log-rank test of {len(self.excess)} groups: p {_chance(self.p_value)} (statistic "
            f"{self.statistic:.4g} with {self.degrees} degree{'s' * (self.degrees > 1)} of freedom).",
            f"Events more than equal hazards would give, about: {excess}.",
        ]
        return "\n".join(textwrap.fill(line, 80) for line in lines)

    def __repr__(self) -> str:
        return str(self)


def _chance(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"= {value:.2g}"


def logrank(curves: Sequence[Curve]) -> LogRank:
    """The test of these groups.

    The variance is that of the hypergeometric law, plus what the known noise of all counts adds by their
    derivatives. Cells count from the start as long as every group has enough people at risk, of whom at most
    half leave. When within a cell they do is not known, and may differ between groups: what that could make
    of the excess, at most, is taken away from it. Of several places to stop the one counts that rejects
    least (`stops`).

    Raises:
        InvalidParameter: if there is no such cell.
    """
    found = [_over(curves, clear) for clear in stops(curves)]
    if not found:
        raise InvalidParameter(
            "Some group has too few people beside the noise for this test: raise epsilon, or join groups."
        )
    return max(found, key=lambda test: test.p_value)


def _over(curves: Sequence[Curve], clear: int) -> LogRank:
    """The test over so many cells."""
    several = len(curves)
    risk, least, most, events = (
        np.array([getattr(curve, name)[:clear] for curve in curves])
        for name in ("at_risk", "least", "most", "events")
    )
    whole, happened = risk.sum(axis=0), events.sum(axis=0)
    share = risk / whole
    excess = (events - share * happened).sum(axis=1) + _drift(curves, share, happened / whole, whole)
    weights = happened * np.clip(1 - happened / whole, 0, 1)
    hyper = np.diag(share @ weights) - (share * weights) @ share.T
    variance = _positive(hyper) + _noise(curves, share, happened / whole)
    some = np.linalg.pinv(variance[1:, 1:], hermitian=True)
    length = np.sqrt(max(excess[1:] @ some @ excess[1:], 0.0))
    unknown = _unknown(share, least, most, happened)[1:] @ np.sqrt(np.maximum(np.diag(some), 0))
    statistic = float(max(length - unknown, 0.0)) ** 2
    return LogRank(
        statistic, several - 1, float(chi2.sf(statistic, several - 1)), tuple(float(each) for each in excess)
    )


def _unknown(share: Floats, least: Floats, most: Floats, happened: Floats) -> Floats:
    """By how much each group's excess may be off for when people left within cells."""
    others_least, others_most = least.sum(axis=0) - least, most.sum(axis=0) - most
    lowest, highest = least / (least + others_most), most / (most + others_least)
    off = np.stack([(share - lowest) @ happened, (highest - share) @ happened])
    return np.asarray(np.abs(off).max(axis=0))


def _drift(curves: Sequence[Curve], share: Floats, rates: Floats, whole: Floats) -> Floats:
    """What the noise of shares and events together takes from each group's excess on average."""
    several, clear = share.shape
    found = np.zeros(several)
    for at, curve in enumerate(curves):
        mine = (np.arange(several) == at)[:, None] - share
        at_risk = curve.risk[:clear] @ curve.spread
        both, alone = (at_risk * curve.spread[:clear]).sum(axis=1), (at_risk**2).sum(axis=1)
        found += (mine / whole) @ (both - rates * alone)
    return found


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
