"""A question in words: its SQL or what it asks of which rows, and what each column of it estimates."""

from __future__ import annotations

import textwrap

from sfumato.errors import SfumatoError
from sfumato.plan.expressions.written import written
from sfumato.plan.prices.estimands import estimands
from sfumato.plan.prices.plan import Plan
from sfumato.render import definitions

__all__ = ["asked_of", "in_words"]

_WIDTH = 80
_LONGEST = 400


def in_words(plan: Plan, text: str | None) -> str:
    """The question and its columns, as lines of at most 80 characters.

    Args:
        plan: What is asked.
        text: The SQL that it was written in; None: it was written in Python.
    """
    asked = asked_of(plan) if text is None else " ".join(text.split())
    asked = asked if len(asked) <= _LONGEST else asked[: _LONGEST - 1] + "…"
    lines = textwrap.wrap(f"Question: {asked}", _WIDTH, subsequent_indent=" " * len("Question: "))
    return "\n".join((*lines, *definitions(_columns(plan), _WIDTH)))


def asked_of(plan: Plan) -> str:
    """Which rows are asked about, and by what they are grouped: `rows of visits where age > 30, by sex`."""
    node = plan.report.child
    where = "" if node.predicate is None else f" where {written(node.predicate, _LONGEST)}"
    keys = ", ".join(written(key.expression) for key in node.keys)
    return f"rows of {node.table}{where}" + (f", by {keys}" if keys else "")


def _columns(plan: Plan) -> dict[str, str]:
    """What each column estimates; the limit is left out where a profile is to choose it."""
    try:
        phrases = estimands(plan)
    except SfumatoError:  # a number without bounds, which the quote refuses or buys
        return {}
    auto = plan.rows.unit.auto and plan.report.child.limits == (None, None)
    return {
        column.name: phrase.what if auto else str(phrase)
        for column, phrase in zip(plan.report.columns, phrases, strict=True)
        if phrase is not None
    }
