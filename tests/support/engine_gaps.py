"""Tests that do not hold on an engine, and why. Strictly: one that is listed and passes fails."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

__all__ = ["GAPS", "mark_gaps"]

_NUL = "PostgreSQL holds no text with the character NUL"

GAPS: Mapping[str, Mapping[str, str]] = {
    "postgres": {
        "session/test_text_rows.py::test_texts_are_read_as_they_are_and_long_ones_are_cut[row-None]": _NUL,
        "session/test_text_rows.py::test_texts_are_read_as_they_are_and_long_ones_are_cut[unit-None]": _NUL,
        "session/test_unknown_keys.py::test_no_key_can_make_the_second_read_fail[\\x00z]": _NUL,
    },
    "spark": {},
}
"""By engine; a function with all of its cases, or one case by its name."""


def mark_gaps(item: pytest.Item, engine: str) -> None:
    """Mark a test that is not expected to hold there."""
    name = item.nodeid.removeprefix("tests/")
    gaps = GAPS.get(engine, {})
    reason = gaps.get(name) or gaps.get(name.split("[")[0])
    if reason is not None:
        item.add_marker(pytest.mark.xfail(strict=True, reason=reason))
