"""Attacks that show why exact answers harm, each beside what a guess would reach. Steward-only on real data.

Every attack works on tables, numbers and functions, and gives an `Outcome`: how often it succeeded, with a
confidence interval, and how often somebody would who has not seen the release.
"""

from __future__ import annotations

from sfumato.attacks.outcome import Outcome, Tally, compare

__all__ = ["Outcome", "Tally", "compare"]
