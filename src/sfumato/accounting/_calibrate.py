"""Calibration: the least noise for a target, found from the safe side."""

from __future__ import annotations

from sfumato.accounting._gaussian import gaussian_classic, gaussian_sigma

__all__ = ["gaussian_classic", "gaussian_sigma"]
