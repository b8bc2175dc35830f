"""Standard errors, intervals and p-values of weights, and when they are not to be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import InvalidParameter, NotCertified
from sfumato.learn._weights.told import Summarised

if TYPE_CHECKING:
    from sfumato.learn._core.design import Design
    from sfumato.learn._weights.descent import Field
    from sfumato.learn._weights.standard import Curvature

__all__ = ["Trusted", "may_be_told", "plenty_of", "trust_signs"]

Floats: TypeAlias = NDArray[np.float64]

_PLENTY = 1000.0  # so many rows, in units of the noise of a count, for each weight
_CLEAR = 40.0  # so many times the noise of the second moments must their smallest direction be
_WIDER = 1.08  # room for what the noise of the matrices and skewed errors add


def trust_signs(near: Field, bent: Curvature, plenty: float) -> Floats:
    """What says whether a covariance can be trusted: figures from noisy answers, and public ones."""
    return np.array(
        [plenty, bent.least / bent.ridge, near.standard.clear, near.rows.units is None], np.float64
    )


def plenty_of(near: Field) -> float:
    """How many rows there are for each weight, in units of the noise of a count, and no more than rows."""
    return min(near.plenty, near.count / near.standard.width)


def may_be_told(near: Field, design: Design) -> bool:
    """Whether intervals of a model over these rows may be told, by what is known before its steps."""
    return not design.has_categories and near.rows.units is None and plenty_of(near) >= _PLENTY


class _Withheld(NotCertified, AttributeError):
    """Standard errors that are not told; `hasattr` says no, so `dir` and notebooks can show the model."""


class Trusted(Summarised):
    """Weights with a known covariance, of sampling and of noise together.

    Offered only where a simulation shows that intervals hold no more than 1 % less often than they say
    (docs/learn.md has what it found): columns of numbers, one row for each unit, no penalty, at least a
    thousand rows for each weight in units of the noise that a count would have (about n·epsilon ≥ 4,300 for
    each at delta 1e-6 and epsilon up to 1), columns that are not nearly functions of each other, and bounds
    within 32 spreads. What is estimated is the line through the clamped columns.

    Of least squares, there must also be a thousand rows for each weight. Errors may have any spread that
    depends on the columns, and be as skewed as log-normal ones (of a spread of 1 in logarithms) or have tails
    like Student's t with four degrees of freedom: what rows' gradients vary by is measured, what is lost of
    them by cutting, and to which side. The simulation (`benchmarks/learn_coverage.py`) has 1 to 10 columns
    and epsilon 0.5 to 8.
    """

    design_: Design
    coef_: Floats
    intercept_: Any
    _unclear = "some columns are nearly functions of the others, or hardly vary within their bounds"

    def _trust(self, covariance: Floats, signs: Floats) -> None:
        """Keeps a covariance of the coordinates' weights, and the signs of whether it can be trusted."""
        slopes, start = self.design_.own_scale(np.eye(self.design_.width))
        to = np.vstack([slopes, start[None]])
        self._covariance = to @ covariance @ to.T * _WIDER**2
        self._signs = np.asarray(signs)

    def _refusal(self) -> str | None:
        """Why there is no interval; None: there is."""
        plenty, clear, whole, single = (float(sign) for sign in self._signs)
        if self.design_.has_categories:
            return (
                "weights of categories beside an intercept can all be shifted, and have no value of their own"
            )
        if not single:
            return "somebody has several rows, which do not vary by themselves"
        if plenty < _PLENTY:
            return "there are too few rows for this epsilon and so many weights"
        if clear < _CLEAR:
            return self._unclear
        if not whole:
            return "some column varies over less than a 32nd of its bounds: declare narrower ones"
        return None

    def _known(self) -> Floats:
        check_is_fitted(self, "design_")
        refusal = self._refusal()
        if refusal is not None:
            raise _Withheld(f"No standard errors here: {refusal}.")
        return self._covariance

    @property
    def standard_errors_(self) -> Floats:
        """The standard error of each weight, the intercept's last: of sampling and of noise together.

        Raises:
            NotCertified: where they are not known to hold.
        """
        return np.asarray(np.sqrt(np.diag(self._known())))

    def confidence_intervals(self, level: float = 0.95) -> Floats:
        """The lower and the upper end of an interval for each weight, the intercept's last.

        Args:
            level: How often it holds the true weight.

        Raises:
            InvalidParameter: if the level is not between 0 and 1.
            NotCertified: where they are not known to hold.
        """
        if not 0 < level < 1:
            raise InvalidParameter("level must be between 0 and 1.")
        weights, errors = np.append(self.coef_, self.intercept_), self.standard_errors_
        reach = float(ndtri((1 + level) / 2)) * errors
        return np.column_stack([weights - reach, weights + reach])

    def _ends_told(self, level: float) -> tuple[Any, Any]:
        return self.confidence_intervals(level), self.standard_errors_

    @property
    def p_values_(self) -> Floats:
        """For each weight, the intercept's last: how likely one this far from 0 were if it was 0.

        Raises:
            NotCertified: where they are not known to hold.
        """
        weights, errors = np.append(self.coef_, self.intercept_), self.standard_errors_
        return np.asarray(2 * ndtr(-np.abs(weights) / errors))
