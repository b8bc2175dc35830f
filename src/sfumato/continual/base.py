"""What a factor is: a Toeplitz matrix C by its first column, and the recursion that applies its inverse."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Factor", "Floats", "Words", "halved"]

Floats: TypeAlias = NDArray[np.float64]
Words: TypeAlias = NDArray[Any]
"""Integers: of 64 bits, or Python's own where those do not hold them."""


class Factor(Protocol):
    """A lower triangular Toeplitz matrix C; its coefficients start at 1, never rise and stay above 0.

    The noise ν of a stream solves C ν = z for independent z, step by step: ν_t = z_t − Σ_{j≥1} c_j·ν_{t−j}.
    What is taken away is computed in whole numbers, so that it is off by a little; `slack` says how much.

    Attributes:
        kind: The name by which a record finds it.
        bits: Products of noise and coefficients need so many more bits than the noise.
        slack: What `carried` may be off by, in units of the noise, for whatever noise came before.
        words: How many words a group needs.
    """

    kind: ClassVar[str]

    @property
    def bits(self) -> int: ...  # noqa: D102

    @property
    def slack(self) -> Fraction: ...  # noqa: D102

    @property
    def words(self) -> int: ...  # noqa: D102

    def coefficients(self, count: int) -> Floats:
        """c_0 … c_{count−1}, each within 2·count + 64 roundings and 2**-990 of the exact number."""
        ...

    def inverse(self, count: int) -> Floats:
        """The coefficients of C⁻¹, for accuracy figures."""
        ...

    def exact(self, count: int) -> list[Fraction]:
        """The same as fractions, for small counts."""
        ...

    def carried(self, state: Words, time: int) -> Words:
        """Σ_{j≥1} c_j·ν_{time−j} for each group, as whole numbers, within `slack`."""
        ...

    def advanced(self, state: Words, time: int, noise: Words) -> Words:
        """The state after the noise of a step, in 64 bits as long as nothing can overflow.

        Until the time goes on, `carried` of the old state is as before: a step that was cut off can be done
        again.
        """
        ...

    def record(self) -> dict[str, Any]:
        """Its parameters, exact, as JSON knows them."""
        ...


def halved(values: Words, shift: int | Words) -> Words:
    """Divided by 2**shift and rounded to whole numbers, halves upwards; a shift is at least 1."""
    half = 1 << (shift - 1) if isinstance(shift, int) else np.left_shift(np.int64(1), shift - 1)
    moved: Words = (values + half) >> shift
    return moved
