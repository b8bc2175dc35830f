"""What a program logs, without what others of the same process say of themselves at any moment."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

__all__ = ["logged"]


def logged(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What was logged, but for the link to Spark, which hears late that an earlier test is over."""
    return [record for record in caplog.records if "py4j" not in Path(record.pathname).parts]
