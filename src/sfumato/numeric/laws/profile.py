"""A law known by its curve alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.errors import NotCertified
from sfumato.numeric.laws.base import Complexes, Floats, Smooth

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True, eq=False)
class Profile(Smooth):
    """A dominating profile given as a function: fixed-size sampling, samples of compositions, and the like.

    Two profiles are the same law when they are the same object. Only the grid can compose them: they have
    no moment generating function.

    Privacy:
        The law *is* the function: it must be a valid upper bound on the mechanism's profile for every real
        epsilon, convex and decreasing in e^epsilon (Zhu, Dong, Wang 2022, on which functions are
        profiles), with its mass at infinity as limit.
    """

    curve: Callable[[Floats], Floats]
    name: str = "profile"
    mass: float = 0.0
    ends: tuple[float, float] = (-math.inf, math.inf)

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """Not known."""
        del z, parameters
        raise NotCertified(f"A {self.name} law has no moment generating function; compose it on the grid.")

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """Without bound."""
        del parameters, counts
        return np.full(len(z), np.inf)

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """None known."""
        del t
        return np.zeros((len(c), len(parameters)))

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """The function itself, as both ends."""
        del parameters
        value = np.asarray(self.curve(np.asarray(epsilon, dtype=np.float64)), dtype=np.float64)
        return value, value

    def infinity(self, parameters: tuple[float, ...]) -> float:
        """The stated mass."""
        del parameters
        return self.mass

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """The stated ends."""
        del parameters
        return self.ends

    def renyi(self, alpha: float, parameters: tuple[float, ...]) -> float:
        """Only the largest loss is known."""
        del alpha
        return math.inf if self.mass > 0 else self.support(parameters)[1]
