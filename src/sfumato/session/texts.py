"""What texts mean over a session's tables, kept for when they are asked again: plans and quotes, no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from threading import Lock
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.quote import Quote
from sfumato.plan.questions.nodes import Report
from sfumato.sql.asking import Asking, ask
from sfumato.sql.text.parameters import Values

__all__ = ["Texts"]

_MOST = 256  # texts
_GROUPS = 200_000  # groups of all their plans together; a plan of more is made each time
_LETTERS = 2**20  # of all of them together: a plan has a node for every few


_QUOTES = 8  # of one text, on different terms


@dataclass(frozen=True, slots=True)
class _Text:
    """What one text means, how many groups its plan has, and quotes of it by their terms."""

    asking: Asking
    groups: int
    quotes: dict[Hashable, Quote] = field(default_factory=dict)


class Texts:
    """The plans of one session's last texts, and their quotes.

    A plan follows from the text and the declared tables, a quote from the plan, its terms and the budget as
    it was opened, none of which change while a session is open: they hold no row and nothing that was
    released. A refused text is read again.
    """

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables, self._lock = tables, Lock()
        self._kept: dict[str, _Text] = {}
        self._plans: dict[int, _Text] = {}  # by the identity of their plans, which are alive as they are kept
        self._groups = self._letters = 0

    def asked(self, text: str, parameters: Values = None) -> Asking:
        """What `ask` gives; for a text without parameters that was asked lately, the same object.

        Raises:
            QueryRefused: as `ask` does.
            InvalidParameter: as `ask` does.
        """
        if parameters is not None or not isinstance(text, str):
            return ask(text, self._tables, parameters)
        with self._lock:
            known = self._kept.pop(text, None)
            if known is not None:
                self._kept[text] = known  # now the last
                return known.asking
        found = ask(text, self._tables)
        groups = _groups(found.report)
        with self._lock:
            if groups <= _GROUPS and text not in self._kept:
                self._kept[text] = self._plans[id(found.plan)] = _Text(found, groups)
                self._groups += groups
                self._letters += len(text)
            while len(self._kept) > _MOST or self._groups > _GROUPS or self._letters > _LETTERS:
                first = next(iter(self._kept))
                oldest = self._kept.pop(first)
                del self._plans[id(oldest.asking.plan)]
                self._groups -= oldest.groups
                self._letters -= len(first)
        return found

    def quoted(self, plan: Plan, terms: Hashable, make: Callable[[], Quote]) -> Quote:
        """A quote of a plan; for that of a text that is kept here, on the same terms, the same object.

        Args:
            plan: What is asked.
            terms: All that the quote depends on besides the plan.
            make: Makes it.
        """
        with self._lock:
            known = self._plans.get(id(plan))
            quote = None if known is None else known.quotes.get(terms)
        if quote is None:
            quote = make()
            if known is not None:
                with self._lock:
                    if len(known.quotes) >= _QUOTES:
                        known.quotes.clear()
                    quote = known.quotes.setdefault(terms, quote)
        return quote


def _groups(report: Report) -> int:
    """How many groups a plan has in its lists; 1 for one without any."""
    node = report.child
    if node.combinations is not None:
        return max(1, len(node.combinations))
    return math.prod(max(1, len(key.values or ())) for key in node.keys)
