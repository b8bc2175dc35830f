"""What was spent over time: the latest receipts as a step line, and how long a budget lasts at that pace."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import islice

from markupsafe import Markup

from sfumato._dataclasses import dataclass
from sfumato.ledger import Receipt
from sfumato.ledger.anchor import Mark
from sfumato.ledger.balance import Balance
from sfumato.ledger.names import alike
from sfumato.schema import Windows
from sfumato.server.access import Account, Act
from sfumato.server.house import House
from sfumato.server.page.drawing import Frame, figure

__all__ = ["Histories", "History", "Spending", "outlook"]

MOST = 5_000
"""Receipts that a chart looks back over."""
_KEPT, _POINTS = 64, 300
_PACE, _LEAST = timedelta(days=30), timedelta(days=7)
_FAR = timedelta(days=3_652)
_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Spending:
    """What was spent of one budget, in what its accountant adds up.

    Attributes:
        unit: What that is: epsilon, or rho.
        limit: What may be spent in all.
        steps: When something was paid, and what was spent in all from then on.
        before: What was spent before the first of them.
        whole: Whether these are all there are.
    """

    unit: str
    limit: Fraction
    steps: tuple[tuple[datetime, Fraction], ...]
    before: Fraction
    whole: bool

    def chart(self, now: datetime, title: str) -> Markup:
        """As a picture: a step line, with the budget as a guide."""
        first = self.steps[0][0] if self.steps else now - _HOUR
        begin = first - max((now - first) * 0.1, _MINUTE)
        last = self.steps[-1][1] if self.steps else self.before
        top = 1.12 * float(max(self.limit, last))
        across = (begin.timestamp(), now.timestamp())
        frame = Frame(title, across, (0.0, top), upwards=f"{self.unit} spent")
        frame.axes(across=[(time.timestamp(), _short(time, now - begin)) for time in _times(begin, now)])
        high = float(self.limit)
        frame.line([(across[0], high), (across[1], high)], kind="line guide")
        frame.text(frame.x.end - 4, frame.y(high) - 6, f"budget {figure(self.limit)}", anchor="end")
        places, spent = [(across[0], float(self.before))], float(self.before)
        for time, after in self._thinned():
            places += [(time.timestamp(), spent), (time.timestamp(), float(after))]
            spent = float(after)
        places.append((across[1], spent))
        frame.band([(x, 0.0) for x, _ in places], places)
        return frame.line(places).drawn()

    def _thinned(self) -> Sequence[tuple[datetime, Fraction]]:
        every = -(-len(self.steps) // _POINTS) or 1
        return self.steps[::-every][::-1]


class History:
    """The latest receipts that somebody may see.

    Args:
        receipts: In order.
        whole: Whether none came before.
    """

    def __init__(self, receipts: Sequence[Receipt], *, whole: bool) -> None:
        self._receipts, self._whole = receipts, whole

    def of(self, balance: Balance, window: Windows | None) -> Spending:
        """What was spent of a budget; `window`: where there is one for each, which."""
        unit, (spent, limit) = next(iter(balance.gate.items()))
        own = None if balance.analyst is None else alike(balance.analyst)
        steps = []
        for receipt in reversed(self._receipts):
            paid = receipt.price if receipt.kind == "debit" else receipt.counts
            mine = receipt.kind == "debit" if own is None else alike(receipt.analyst or "") == own
            if receipt.dataset == balance.dataset and mine and unit in paid and _in(receipt, window):
                steps.append((receipt.time, spent))
                spent = max(spent - paid[unit], Fraction(0))
        return Spending(unit, limit, tuple(reversed(steps)), spent, self._whole)


class Histories:
    """The latest receipts, kept for as long as the ledger ends where it did."""

    def __init__(self, house: House) -> None:
        self._house, self._lock = house, threading.Lock()
        self._known: OrderedDict[str | None, tuple[Mark, History]] = OrderedDict()

    def of(self, who: Account) -> History:
        """What somebody may see: an analyst their own, over their own counter."""
        name = None if who.may(Act.AUDIT) else who.name
        ledger = self._house.ledger if name is None else self._house.session(name).ledger
        end = ledger.end()
        with self._lock:
            known = self._known.get(name)
            if known is not None and known[0] == end:
                return known[1]
        latest = list(islice(self._house.record(name, before=end.number + 1, newest=True), MOST + 1))
        found = [receipt for receipt in reversed(latest[:MOST]) if receipt.kind in ("debit", "read")]
        made = History(found, whole=len(latest) <= MOST)
        with self._lock:
            self._known[name] = end, made
            self._known.move_to_end(name)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return made


def outlook(balance: Balance, spending: Spending, now: datetime) -> str:
    """How long a budget lasts at the pace of the last 30 days, where a pace can be told; else why not."""
    left = spending.limit - (spending.steps[-1][1] if spending.steps else spending.before)
    unbound = balance.analyst is not None and (not balance.limited or balance.shared)
    if not balance.open or left <= 0 or not spending.steps or unbound:
        return ""  # where others spend of the same rest, one analyst's pace tells nothing
    if balance.each:
        return f"A new budget begins with the next {balance.each}."
    first = spending.steps[0][0]
    if now - first < _LEAST:
        return "No forecast yet: it takes a week of receipts to tell a pace."
    begin = max(first, now - _PACE)
    before = [spending.before] + [spent for time, spent in spending.steps if time < begin]
    paid = spending.steps[-1][1] - before[-1]
    days = (now - begin) / timedelta(days=1)
    if paid <= 0:
        return "Nothing was spent in the last 30 days."
    lasts = timedelta(days=float(left / paid) * days) if left / paid * Fraction(days) < 10**6 else _FAR
    what = "budget" if balance.analyst is None else "limit"
    pace = f"At the pace of the last {round(days)} days, the {what} lasts"
    return f"{pace} for more than ten years." if lasts >= _FAR else f"{pace} until about {_day(now + lasts)}."


def _in(receipt: Receipt, window: Windows | None) -> bool:
    if window is None or receipt.windows is None:
        return True
    return receipt.windows.first <= window.first <= receipt.windows.last


def _times(begin: datetime, end: datetime) -> list[datetime]:
    span = end - begin
    return [begin + span * share for share in (0.08, 0.29, 0.5, 0.71, 0.92)]


def _short(time: datetime, span: timedelta) -> str:
    at = time.astimezone(UTC)
    write: Callable[[datetime], str] = _day if span > timedelta(days=300) else _month_day
    if span < timedelta(days=2):
        return f"{at:%H:%M:%S}" if span < timedelta(minutes=15) else f"{at:%H:%M}"
    return write(at)


def _day(time: datetime) -> str:
    return f"{time.day} {time:%B %Y}"


def _month_day(time: datetime) -> str:
    return f"{time.day} {time:%b}"
