"""What a reviewer asks for: the release dossier of a dataset, and the deployment checklist with evidence.

Everything here is public or declared: the steward's file, the ledger's receipts, free quotes. No row is read.
"""

from __future__ import annotations

from sfumato.dossier.card import Card, card
from sfumato.dossier.check import Step, check
from sfumato.dossier.facts import Facts, Paid, facts, foreseen

__all__ = ["Card", "Facts", "Paid", "Step", "card", "check", "facts", "foreseen"]
