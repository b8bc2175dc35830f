"""One hypothesis that can be called and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from numpy.typing import ArrayLike

from sfumato._dataclasses import dataclass

__all__ = ["Rule"]


@dataclass(frozen=True, slots=True, repr=False)
class Rule:
    """A function from features to labels that says what it does.

    Attributes:
        words: Such as `x ≥ 45`.
    """

    words: str
    _answers: Callable[[Any], ArrayLike] = field(compare=False)

    def __call__(self, features: Any) -> ArrayLike:
        """A label for each row."""
        return self._answers(features)

    def __repr__(self) -> str:
        return self.words
