"""The index of an aggregate among the results of an extra question."""

from __future__ import annotations

from sfumato._dataclasses import dataclass

__all__ = ["Slot"]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where an aggregate of a report is, if the main question does not measure it.

    Attributes:
        extra: Which of the extra questions; −1: the selection of groups.
        place: Which of its results.
        whole: Whether it is a whole number.
    """

    extra: int
    place: int = 0
    whole: bool = False
