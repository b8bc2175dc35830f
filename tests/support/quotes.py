"""Quotes of plans without a session."""

from __future__ import annotations

from typing import Any

from sfumato.plan.prices import quoting
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.quote import Quote
from sfumato.plan.prices.terms import Terms
from sfumato.plan.questions.nodes import Report
from sfumato.plan.questions.relations import Readable, as_rows

__all__ = ["make_quote"]


def make_quote(
    report: Report, table: Readable, *, why: str | None = None, adds: bool = True, **terms: Any
) -> Quote:
    """What answering a report about a table would cost."""
    return quoting.make_quote(Plan(report, as_rows(table)), Terms.of(**terms), why=why, adds=adds)
