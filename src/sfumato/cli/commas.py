"""Lists on the command line: names or values with commas between."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from contextlib import suppress

__all__ = ["listed"]


def listed(given: Iterable[str]) -> list[str]:
    """What is between commas, in one text or several; what has a comma itself is in double quotes."""
    return [part.strip() for text in given for part in _split(text) if part.strip()]


def _split(text: str) -> list[str]:
    with suppress(csv.Error):
        return next(csv.reader([text], skipinitialspace=True, strict=True), [])
    return text.split(",")
