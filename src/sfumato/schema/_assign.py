"""Filling the fields of a frozen value inside its own `__init__`."""

from __future__ import annotations

__all__ = ["assign"]


def assign(target: object, **values: object) -> None:
    """Set the fields of a frozen dataclass that writes its own `__init__`; nothing else may call it."""
    for name, value in values.items():
        object.__setattr__(target, name, value)
