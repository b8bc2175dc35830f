"""The conformance kit of accountants: never below the truth, in good order, refusing what has no rule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, NotCertified, UnsupportedLoss
from sfumato.loss import ApproximateLoss, GaussianLoss, PrivacyLoss, PureLoss
from sfumato.testing.truths import TRUTHS, Truth

__all__ = ["AccountantLike", "check_accountant", "faults"]

_DELTAS = (1e-9, 1e-6, 1e-3)
_EPSILONS = (0.05, 0.5, 1.0, 2.0)
_BELOW = 1e-10  # what the truths themselves may be off by, relative
_MONOTONE = 1e-6  # figures that carry a certified error of this size may cross by it


class AccountantLike(Protocol):
    """What an accountant has to offer."""

    @property
    def name(self) -> str:
        """Its name in reports."""
        ...

    @property
    def adaptive(self) -> bool:
        """Whether it is proven for losses chosen by earlier answers."""
        ...

    def epsilon(self, losses: Sequence[PrivacyLoss], delta: float) -> float:
        """The epsilon at a delta, rounded up."""
        ...

    def delta(self, losses: Sequence[PrivacyLoss], epsilon: float) -> float:
        """The delta at an epsilon, rounded up."""
        ...


@dataclass(frozen=True, slots=True)
class _Unknown(PrivacyLoss):
    """A loss about which nothing is known: no accountant may give it a price."""


def check_accountant(accountant: AccountantLike, *, tight: float | None = None, inverse: bool = True) -> None:
    """Assert what must hold of every accountant.

    * truth: neither epsilon nor delta is below the exact figure of compositions that have a closed form;
    * tight: where asked for, nor above it by more than that part;
    * order: epsilon falls as delta grows, grows as losses are added, and does not depend on their order;
    * inverse: delta at the epsilon of a delta is that delta at most;
    * nothing: no losses cost 0;
    * refusal: losses without a rule are refused by the name of one that does not fit, a loss about which
      nothing is known never gets a finite price, impossible deltas are errors;
    * label: `adaptive` says whether it is proven for adaptively chosen losses.

    Args:
        accountant: what to check.
        tight: how far above the truth it may be, relative, plus 1e-9; None: as far as it likes.
        inverse: whether its two figures are one curve read both ways, rather than two bounds.

    Raises:
        AssertionError: listing all that fails.
    """
    problems = faults(accountant, tight=tight, inverse=inverse)
    if problems:
        raise AssertionError(
            f"{accountant.name} accountant:\n" + "\n".join(f"  {fault}" for fault in problems)
        )


def faults(accountant: AccountantLike, *, tight: float | None = None, inverse: bool = True) -> list[str]:
    """What `check_accountant` finds, as a list of sentences that begin with the name of the check."""
    problems: list[str] = []
    priced = 0
    for truth in TRUTHS:
        try:
            problems += _against(accountant, truth, tight, inverse)
        except UnsupportedLoss as refusal:
            if not _names(refusal, _offenders(accountant, truth.losses)):
                problems.append(
                    f"refusal: {truth.name} is refused without naming what does not fit: {refusal}"
                )
        except NotCertified as refusal:
            problems.append(f"truth: {truth.name} has no certified figure: {refusal}")
        else:
            priced += 1
    if not priced:
        problems.append("truth: not one composition with a known curve is priced")
    return problems + _order(accountant) + _nothing(accountant) + _refusals(accountant)


def _against(accountant: AccountantLike, truth: Truth, tight: float | None, inverse: bool) -> list[str]:
    problems: list[str] = []
    for delta in _DELTAS:
        exact, told = truth.epsilon(delta), accountant.epsilon(truth.losses, delta)
        if not told >= exact * (1 - _BELOW) - 1e-12:
            problems.append(
                f"truth: epsilon of {truth.name} at delta {delta:g} is {told!r}, below the true {exact!r}"
            )
        if tight is not None and math.isfinite(exact) and told > exact * (1 + tight) + 1e-9:
            problems.append(f"tight: epsilon of {truth.name} at delta {delta:g} is {told!r}, truly {exact!r}")
        if inverse and math.isfinite(told):
            back = accountant.delta(truth.losses, told)
            if back > delta * (1 + 1e-4):
                problems.append(f"inverse: {truth.name} at delta {delta:g} comes back as {back:g}")
    for epsilon in _EPSILONS:
        exact, told = truth.delta(epsilon), accountant.delta(truth.losses, epsilon)
        if not told >= exact * (1 - 1e-9) - 1e-15:
            problems.append(
                f"truth: delta of {truth.name} at epsilon {epsilon:g} is {told!r}, below the true {exact!r}"
            )
    return problems


def _order(accountant: AccountantLike) -> list[str]:
    """Monotone in delta and in the losses, and blind to their order."""
    problems: list[str] = []
    gaussian, pure = GaussianLoss(Fraction(1, 50)), PureLoss(Fraction(1, 5))
    approximate = ApproximateLoss(Fraction(1, 10), Fraction(1, 10**7))
    for losses in (
        [pure] * 5,
        [pure, PureLoss(Fraction(1, 10))],
        [gaussian] * 5,
        [pure, gaussian, approximate],
    ):
        try:
            curve = [accountant.epsilon(losses, delta) for delta in (1e-8, 1e-6, 1e-5, 1e-3, 0.1)]
            fewer, turned = accountant.epsilon(losses[:-1], 1e-5), accountant.epsilon(losses[::-1], 1e-5)
        except UnsupportedLoss:
            continue
        names = " + ".join(type(loss).__name__ for loss in losses)
        if any(later > earlier * (1 + _MONOTONE) for earlier, later in itertools.pairwise(curve)):
            problems.append(f"order: epsilon of {names} grows with delta: {curve}")
        if fewer > curve[2] * (1 + _MONOTONE):
            problems.append(f"order: {names} costs less than without its last part")
        if not math.isclose(turned, curve[2], rel_tol=_MONOTONE):
            problems.append(f"order: {names} costs {curve[2]!r} forwards and {turned!r} backwards")
    return problems


def _nothing(accountant: AccountantLike) -> list[str]:
    problems: list[str] = []
    if not isinstance(accountant.adaptive, bool):
        problems.append("label: adaptive is not a truth value")
    if accountant.epsilon([], 1e-6) != 0 or accountant.delta([], 0.5) != 0:
        problems.append("nothing: no losses do not cost 0")
    return problems


def _offenders(accountant: AccountantLike, losses: Sequence[PrivacyLoss]) -> list[PrivacyLoss]:
    """The losses that are refused on their own; all of them where each alone has a price."""
    alone: list[PrivacyLoss] = []
    for loss in dict.fromkeys(losses):
        try:
            told = accountant.epsilon([loss], 0.25)
        except UnsupportedLoss:
            alone.append(loss)
        else:
            if told == math.inf:
                alone.append(loss)
    return alone or list(losses)


def _names(refusal: UnsupportedLoss, offenders: Sequence[PrivacyLoss]) -> bool:
    return any(type(loss).__name__ in str(refusal) for loss in offenders)


def _refusals(accountant: AccountantLike) -> list[str]:
    problems: list[str] = []
    losses = [PureLoss(Fraction(1, 2))] * 2
    priced: list[tuple[str, Callable[[Any], float]]] = [
        ("epsilon", lambda delta: accountant.epsilon([*losses, _Unknown()], delta)),
        ("delta", lambda epsilon: accountant.delta([*losses, _Unknown()], epsilon)),
    ]
    for what, price in priced:
        try:
            told = price(0.25)
        except UnsupportedLoss as refusal:
            if not _names(refusal, _offenders(accountant, [*losses, _Unknown()])):
                problems.append(f"refusal: an unknown loss is refused without its name: {refusal}")
        else:
            if told < (math.inf if what == "epsilon" else 1.0):
                problems.append(f"refusal: a loss about which nothing is known gets the {what} {told!r}")
    for wrong in (-0.1, 1.0, 1.5, math.nan):
        try:
            accountant.epsilon([GaussianLoss(Fraction(1, 2))], wrong)
        except (InvalidParameter, UnsupportedLoss):
            continue
        problems.append(f"refusal: a delta of {wrong} is accepted")
    return problems
