"""`Balance`: what is spent and what is left, by the budget's own accountant."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Mapping
from dataclasses import field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.accounting import Tally
from sfumato.errors import InvalidParameter, NotCertified, UnsupportedLoss
from sfumato.ledger.account import Account
from sfumato.ledger.budget import Accountant, Budget, Totals, amount
from sfumato.ledger.chain import Row
from sfumato.ledger.gates import sums_in, windows_in
from sfumato.ledger.spans import Spans
from sfumato.loss import PrivacyLoss, compose
from sfumato.numeric.exact import float_down, float_up
from sfumato.numeric.zones import UTC, zone_of
from sfumato.schema import Windows
from sfumato.schema.windows import span_of

__all__ = ["Balance", "balance_of", "may_ask"]

_FOUR = Context(prec=4, rounding=ROUND_CEILING)
_FEW = 200  # different losses that are composed at once, and debits whose hindsight is printed unasked


@dataclass(frozen=True, slots=True, repr=False)
class Balance:
    """What is spent of a budget and what is left of it.

    Attributes:
        dataset: its name.
        analyst: whose share is shown; None: everybody's.
        accountant: the gate.
        epsilon: the budget (of the analyst, where there is a limit).
        delta: the budget.
        spent: ε spent, at the budget's δ: exact under basic, otherwise rounded up.
        remaining: what can still be spent: the budget's ε less what is spent, rounded down; for an analyst
            never more than the dataset itself has left; 0 where nothing more can be asked.
        spent_delta: δ spent. Under accountants other than basic, what losses have set aside.
        remaining_delta: the same of δ.
        next_delta: what of it the next question takes where it names none (see `spared`). It shrinks with
            what is left, so that any number of questions can follow; 0: there is pure noise alone.
        entries: how many debits.
        reads: how many answers of others count toward the analyst's limit, too.
        open: whether more can be asked at all (not closed, not revoked).
        closed: whether the dataset's budget is closed.
        limited: whether the analyst has a limit of their own on record.
        shared: whether the dataset's rest is what bounds the analyst's.
        gate: what the accountant adds up, exact: unit → (spent, limit).
        window: where the budget is for each window of time, the one that these figures are of, by its name;
            every other one has a budget of its own. Empty where it is for all time.
        each: How long such a window is, in words: `month`; empty where the budget is for all time.
    """

    dataset: str
    analyst: str | None
    accountant: Accountant
    epsilon: Fraction
    delta: Fraction
    spent: Fraction | float
    remaining: Fraction | float
    spent_delta: Fraction
    remaining_delta: Fraction
    entries: int
    open: bool
    closed: bool
    limited: bool
    shared: bool
    gate: Mapping[str, tuple[Fraction, Fraction]]
    _losses: Callable[[], list[tuple[PrivacyLoss, int]]] = field(repr=False, compare=False)
    reads: int = 0
    next_delta: Fraction = Fraction(0)
    window: str = ""
    each: str = ""
    _found: list[float] = field(default_factory=list, repr=False, compare=False)

    @property
    def retrospective(self) -> float:
        """The ε at the budget's δ had all of this been planned before the first answer. It never gates.

        Computed when first asked for, from the losses themselves, whose receipts are checked; never above
        `spent`.

        Raises:
            LedgerTampered: if one of these receipts is missing or not what was written.

        Privacy:
            Claim: the composition of the losses admitted so far is (retrospective, δ)-DP for a plan that was
            fixed in advance; for one that reacted to answers only `spent` is proven. Source: the numerical
            accountant, rounded up; see `Tally`.
        """
        if not self._found:
            self._found.append(self._hindsight())
        return self._found[0]

    def _hindsight(self) -> float:
        gate = float_up(self.spent) if isinstance(self.spent, Fraction) else self.spent
        losses = self._losses()
        if not losses:
            return 0.0
        with contextlib.suppress(UnsupportedLoss, NotCertified):
            return min(gate, _composed(losses, self.delta))
        return gate

    def left(self) -> dict[str, Any]:
        """What is left, for programs."""
        return {
            "dataset": self.dataset,
            "analyst": self.analyst,
            "epsilon": self.remaining,
            "delta": self.remaining_delta,
            **({"window": self.window} if self.window else {}),
        }

    def to_dict(self) -> dict[str, Any]:
        """What is spent and left, for programs."""
        return {
            "dataset": self.dataset,
            "analyst": self.analyst,
            "accountant": str(self.accountant),
            "budget": {"epsilon": self.epsilon, "delta": self.delta},
            "spent": {"epsilon": self.spent, "delta": self.spent_delta},
            "left": {"epsilon": self.remaining, "delta": self.remaining_delta},
            "debits": self.entries,
            "reads": self.reads,
            "open": self.open,
            "limited": self.limited,
            **({"window": self.window} if self.window else {}),
        }

    def __repr__(self) -> str:
        """A sentence, such as `visits: epsilon 0.5 of 2 spent in 1 debit, 1.5 left; delta 0 of 0 spent`."""
        whose = self.dataset if self.analyst is None else f"{self.analyst} on {self.dataset}"
        left = f"{amount(self.remaining)} left"
        if not self.open:
            left = "nothing left, since " + ("the budget is closed" if self.closed else "they are revoked")
        spent = f"epsilon {amount(self.spent)} of {amount(self.epsilon)} spent in {self._times}"
        whose += f" in {self.window}" if self.window else ""
        return f"{whose}: {spent}, {left}; delta {amount(self.spent_delta)} of {amount(self.delta)} spent"

    @property
    def _times(self) -> str:
        debits = f"{self.entries} debit{'' if self.entries == 1 else 's'}"
        others = f"{self.reads} answer{'' if self.reads == 1 else 's'} of others"
        return f"{debits} and {others}" if self.reads else debits

    @property
    def _takes_delta(self) -> bool:
        """Whether questions use delta up: all of it, or what is aside."""
        return "delta" in self.gate and self.gate["delta"][1] > 0

    @property
    def questions(self) -> str:
        """How many more questions delta is enough for, where none of them names one, in a phrase."""
        if not self._takes_delta:
            return "is not used up by questions"
        if not self.next_delta:
            return "is used up: questions over listed groups still have Laplace noise"
        return f"is enough for any number of questions; the next takes at most {amount(self.next_delta)}"

    def __str__(self) -> str:
        """A few lines of at most 80 columns."""
        whose = f"{self.analyst[:24]} on " if self.analyst else ""
        state = "" if self.open else ", closed" if self.closed else ", revoked"
        left = f"epsilon {amount(self.remaining)}, delta {amount(self.remaining_delta)}"
        if not self.open:
            left = f"nothing: {'the budget is closed' if self.closed else 'revoked'}"
        elif self.shared:
            left += f": all that {self.dataset[:32]} has left"
        when, each = (f" in {self.window}", f" for each {self.each}") if self.window else ("", "")
        lines = [
            f"{whose}{self.dataset[:32]}{when} ({self.accountant}{state})",
            f"  budget  epsilon {amount(self.epsilon)}, delta {amount(self.delta)}{each}",
            f"  spent   epsilon {amount(self.spent)}, delta {amount(self.spent_delta)} in {self._times}",
            f"  left    {left}",
        ]
        if self.open and self._takes_delta:
            lines.append(f"  delta   {self.questions}")
        if (self.entries or self.reads) and (self._found or self.entries + self.reads <= _FEW):
            hindsight = _up(self.retrospective)
            if hindsight < float(self.spent):
                lines += [
                    "  (the same questions, fixed before the first was asked, would count as",
                    f"   epsilon {amount(hindsight)} in all)",
                ]
        return "\n".join(lines)


def _up(value: float) -> float:
    """The same to four digits, rounded up."""
    return float(_FOUR.create_decimal(Decimal(value)))


def _composed(losses: list[tuple[PrivacyLoss, int]], delta: Fraction) -> float:
    repeated = [loss * count for loss, count in losses]
    if delta == 0 or len(repeated) <= _FEW:
        return compose(repeated).epsilon(delta)
    tally = Tally(delta)
    for loss in repeated:
        tally.add(loss)
    return tally.epsilon()


def may_ask(account: Account, analyst: str | None) -> bool:
    """Whether the budget of an account is open, and the analyst not revoked."""
    return not (account.closed or account.seat(analyst).revoked)


def window_shown(
    account: Account, analyst: str | None, window: Windows | str | datetime.date | None
) -> Windows | None:
    """The one window whose balance is shown, where the budget is for each; None where it is for all time.

    Raises:
        InvalidParameter: for what is no window, or a window of a budget for all time.
    """
    each = account.cap.each
    if each is None:
        if window is not None and not isinstance(window, Windows):
            raise InvalidParameter(f"The budget of {account.name!r} is for all time: leave window out.")
        return None
    if window is None:
        unit = account.declaration.get("unit")
        zone = unit.get("zone", UTC) if isinstance(unit, dict) else UTC
        today = datetime.datetime.now(zone_of(zone)).date()
        return Windows.of_days(each, today, today)
    if not isinstance(window, Windows):
        return Windows.named(each, window)
    if window.each != each:
        raise InvalidParameter(f"The budget of {account.name!r} is for {account.cap.span}.")
    both = Spans.together([account.spans, account.seat(analyst).spans])
    fullest = both.fullest(window)[0].first
    first = window.first if fullest is None else fullest
    return Windows(each, first, first)


def counts_in(debit: Row, window: Windows) -> bool:
    """Whether a debit is charged in one window."""
    windows = windows_in(debit.facts, window.each)
    return windows is None or windows.first <= window.first <= windows.last


def balance_of(
    account: Account,
    analyst: str | None,
    losses: Callable[[], list[tuple[PrivacyLoss, int]]],
    window: Windows | None = None,
) -> Balance:
    """The balance of an account, or of one analyst there; where the budget is for each window, in one."""
    seat, cap = account.seat(analyst), account.cap
    (all_,), (theirs,) = account.spent(window), seat.spent(cap, window)
    everybody = _figures(cap, sums_in(all_, cap))
    budget = seat.limit or cap
    shown = all_ if analyst is None else theirs
    spent = sums_in(shown, cap)
    own = _figures(budget, spent)
    able = may_ask(account, analyst)
    zero = Fraction(0)
    return Balance(
        dataset=account.name,
        analyst=analyst,
        accountant=budget.accountant,
        epsilon=budget.epsilon,
        delta=budget.delta,
        spent=own[0],
        remaining=min(own[1], everybody[1]) if able else zero,
        spent_delta=own[2],
        remaining_delta=min(own[3], everybody[3]) if able else zero,
        entries=shown.debits,
        open=able,
        closed=account.closed,
        limited=seat.limit is not None,
        shared=analyst is not None and (everybody[1] < own[1] or everybody[3] < own[3]),
        gate=dict(zip(budget.units, zip(spent, budget.limits, strict=True), strict=True)),
        reads=theirs.reads,
        next_delta=account.spare(analyst, finds=True, windows=window).delta if able else zero,
        window="" if window is None else str(window),
        each="" if window is None else span_of(window.each),
        _losses=losses,
    )


def _figures(budget: Budget, totals: Totals) -> tuple[Fraction | float, Fraction | float, Fraction, Fraction]:
    """ε spent, ε left, δ spent, δ left."""
    spent = budget.spent_epsilon(totals)
    aside = totals[1] if len(totals) > 1 else Fraction(0)
    left: Fraction | float = max(budget.epsilon - Fraction(min(spent, budget.epsilon)), Fraction(0))
    if budget.accountant != "basic":
        left = float_down(Fraction(left))
    return spent, left, aside, max(budget.delta - aside, Fraction(0))
