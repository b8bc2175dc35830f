"""Which mechanism to use for what somebody wants to publish, with its expected error and the next best.

Everything follows from what is said and from the package's own calibration. No row is read.
"""

from __future__ import annotations

from sfumato.advice.advising import advise
from sfumato.advice.result import Advice, Option
from sfumato.advice.said import WANTS

__all__ = ["WANTS", "Advice", "Option", "advise"]
