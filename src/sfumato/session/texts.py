"""What texts mean over a session's tables, kept for when they are asked again: plans, no data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from threading import Lock
from typing import Any

from sfumato.plan.questions.nodes import Report
from sfumato.sql.asking import Asking, ask
from sfumato.sql.text.parameters import Values

__all__ = ["Texts"]

_MOST = 256  # texts
_GROUPS = 200_000  # groups of all their plans together; a plan of more is made each time


class Texts:
    """The plans of one session's last texts.

    A plan follows from the text and the declared tables, which do not change while a session is open: it
    holds no row, no price and nothing that was released. A refused text is read again.
    """

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables, self._lock = tables, Lock()
        self._kept: dict[str, tuple[Asking, int]] = {}
        self._groups = 0

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
                return known[0]
        found = ask(text, self._tables)
        groups = _groups(found.report)
        with self._lock:
            if groups <= _GROUPS and text not in self._kept:
                self._kept[text] = found, groups
                self._groups += groups
            while len(self._kept) > _MOST or self._groups > _GROUPS:
                first = next(iter(self._kept))
                self._groups -= self._kept.pop(first)[1]
        return found


def _groups(report: Report) -> int:
    """How many groups a plan has in its lists; 1 for one without any."""
    node = report.child
    if node.combinations is not None:
        return max(1, len(node.combinations))
    return math.prod(max(1, len(key.values or ())) for key in node.keys)
