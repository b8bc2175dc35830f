"""Accounting: what several releases cost together, and how much noise a target asks for."""

from __future__ import annotations

from sfumato.accounting._gaussian import gaussian_classic, gaussian_sigma

__all__ = ["gaussian_classic", "gaussian_sigma"]
