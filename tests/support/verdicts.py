"""Outcomes of attacks, judged so strictly that a test does not hang on the luck of its seed."""

from dataclasses import replace

from sfumato.attacks import Outcome


def sure(outcome: Outcome) -> Outcome:
    """The same outcome, judged so that luck is one in a million."""
    return replace(outcome, confidence=1 - 1e-6)
