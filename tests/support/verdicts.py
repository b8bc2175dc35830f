"""Outcomes of attacks, judged so strictly that a test does not hang on the luck of its seed."""

from dataclasses import replace

from sfumato.attacks import Outcome


def sure(outcome: Outcome) -> Outcome:
    """The same counts, judged so that luck is one in a million, whatever the attack would have noticed."""
    kept = "" if outcome.power is not None else outcome.undecided
    return replace(outcome, confidence=1 - 1e-6, power=None, undecided=kept)
