"""Calling what the user gave: training, scoring, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from sfumato.errors import InvalidParameter, SfumatoError

__all__ = ["Chance", "called"]

Chance: TypeAlias = Any
"""What `random.simulation` gives: NumPy's generator, whose own name belongs to that module alone."""


def called(name: str, function: Callable[..., Any], *given: Any) -> Any:
    """What the function gives.

    Raises:
        InvalidParameter: if it fails. Its own error may quote rows, so that only the kind of it is told.
    """
    try:
        return function(*given)
    except SfumatoError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise InvalidParameter(f"{name} failed with {kind}; try it alone on a few rows.") from None
