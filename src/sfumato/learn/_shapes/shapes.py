"""A shape: scores by bin of one column, or of two, fitted to noisy sums of residuals; post-processing."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_banded

from sfumato._dataclasses import dataclass

__all__ = ["FREE", "PAIR", "PLAIN", "SMOOTH", "Prior", "Shape"]

Floats: TypeAlias = NDArray[np.float64]

_LONGEST_STEP = 3.0


@dataclass(frozen=True, slots=True)
class Prior:
    """How scores of bins are expected to differ, before anything is seen; in the scale of the outcome.

    Attributes:
        ridge: One over the variance of a bin's score.
        smooth: One over the variance of the step from bin to bin, for each bin; 0: bins have no order. Steps
            follow a law with heavy tails (Student's, one degree of freedom), so that jumps stay jumps.
    """

    ridge: float
    smooth: float = 0.0


SMOOTH = Prior(1.0, 0.4)
PLAIN = Prior(4.0)
PAIR = Prior(11.0)
FREE = Prior(0.25)


class Shape:
    """Scores by bin, for each output, and how sure they are.

    What is measured of a shape with scores s are sums of residuals g ≈ H·(s* − s) with noise, H the curvature
    and s* the best scores. So H·s + g tells of s* alike in every round; the estimate is the mean of s* given
    it under the prior, and rounds are averaged with weights 2/(t + 2): the noise of all rounds together is
    that of one with the whole budget.

    Attributes:
        curvature: Bins × outputs.
        prior: What is expected of scores.
        scores: Bins × outputs, in the scale of the outcome.
        seen: In how many rounds.
    """

    def __init__(self, curvature: Floats, prior: Prior) -> None:
        self.curvature, self.prior = curvature, prior
        self.scores = np.zeros_like(curvature)
        self.seen = 0

    def step(self, sums: Floats, variance: float, spread: float, scale: float) -> Floats:
        """How the scores move for noisy sums of residuals; they are not moved yet.

        Args:
            sums: Bins × outputs.
            variance: Of the noise of these sums when all rounds are averaged.
            spread: The variance of a residual for each unit of curvature.
            scale: How far scores are expected to differ.
        """
        moves = np.empty_like(self.scores)
        for output in range(sums.shape[1]):
            curve, scores = self.curvature[:, output], self.scores[:, output]
            ratio = (variance + spread * curve) / curve  # of the variance of curve·s* to the curvature
            best = self._posterior(curve, scores, ratio, curve * scores + sums[:, output], scale)
            moves[:, output] = best - scores
        self.seen += 1
        held = np.clip(
            np.where(np.isfinite(moves), moves, 0.0), -_LONGEST_STEP * scale, _LONGEST_STEP * scale
        )
        return np.asarray(held * (2 / (self.seen + 1)))

    def _posterior(self, curve: Floats, scores: Floats, ratio: Floats, told: Floats, scale: float) -> Floats:
        """Solves (H + ratio·Q)·s = told for the scores s, with Q the precision of the prior."""
        ridge = np.full(len(curve), self.prior.ridge / scale**2)
        if not self.prior.smooth or len(curve) < 2:
            return np.asarray(told / (curve + ratio * ridge))
        usual = scale**2 / (self.prior.smooth * len(curve))
        # The precision of a step under Student's law, given the step as it is: never above the usual.
        tied = np.minimum(2 / (usual + np.diff(scores) ** 2), 1 / usual)
        bands = np.zeros((3, len(curve)))
        bands[1] = curve + ratio * (ridge + np.append(tied, 0.0) + np.insert(tied, 0, 0.0))
        bands[0, 1:] = -ratio[:-1] * tied
        bands[2, :-1] = -ratio[1:] * tied
        return np.asarray(solve_banded((1, 1), bands, told))
