"""Laws: one direction of a dominating pair each, one family a file."""

from __future__ import annotations

from sfumato.numeric.laws.base import Law, Term
from sfumato.numeric.laws.bounded_range import BOUNDED_RANGE
from sfumato.numeric.laws.discrete import DISCRETE_LAPLACE, K_RESPONSE
from sfumato.numeric.laws.discrete_gaussian import DISCRETE_GAUSSIAN
from sfumato.numeric.laws.gaussian import GAUSSIAN
from sfumato.numeric.laws.laplace import LAPLACE
from sfumato.numeric.laws.mixture import GAUSSIAN_MIXTURE_ADD, GAUSSIAN_MIXTURE_REMOVE
from sfumato.numeric.laws.profile import Profile
from sfumato.numeric.laws.pure import DOUBLE, PURE
from sfumato.numeric.laws.sampled import (
    SAMPLED_GAUSSIAN_ADD,
    SAMPLED_GAUSSIAN_REMOVE,
    SAMPLED_LAPLACE_ADD,
    SAMPLED_LAPLACE_REMOVE,
)

__all__ = [
    "BOUNDED_RANGE",
    "DISCRETE_GAUSSIAN",
    "DISCRETE_LAPLACE",
    "DOUBLE",
    "GAUSSIAN",
    "GAUSSIAN_MIXTURE_ADD",
    "GAUSSIAN_MIXTURE_REMOVE",
    "K_RESPONSE",
    "LAPLACE",
    "PURE",
    "SAMPLED_GAUSSIAN_ADD",
    "SAMPLED_GAUSSIAN_REMOVE",
    "SAMPLED_LAPLACE_ADD",
    "SAMPLED_LAPLACE_REMOVE",
    "Law",
    "Profile",
    "Term",
]
