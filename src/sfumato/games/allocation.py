"""One budget, several teams: who gets how much epsilon, so that asking for more than needed is useless."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.ledger.chain import text
from sfumato.numeric.exact import Rational, nonnegative, positive, show

__all__ = ["Allocation", "AllocationRule", "Request", "Rule", "allocate"]

Rule: TypeAlias = Literal["max_min", "weights", "auction"]
Need: TypeAlias = Rational | tuple[Rational, Rational]
"""What a team wants: an epsilon, or in an auction what each unit is worth to it, and an epsilon."""

_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True, init=False)
class Request:
    """What a team asks for.

    Attributes:
        team: Its name, as the ledger knows the analyst.
        epsilon: The most that is of use to it.
        weight: How much it counts under the rule "weights"; set by the steward, not by the team.
        value: What each unit of epsilon is worth to it, in credits, under the rule "auction".
    """

    team: str
    epsilon: Fraction
    weight: Fraction
    value: Fraction

    def __init__(
        self, team: str, epsilon: Rational, *, weight: Rational = 1, value: Rational | None = None
    ) -> None:
        """Take the numbers exactly.

        Raises:
            InvalidParameter: for an invalid name, or numbers that are not positive.
        """
        for name, given in {
            "team": text(team, "team"),
            "epsilon": positive(epsilon, "epsilon"),
            "weight": positive(weight, "weight"),
            "value": _ZERO if value is None else nonnegative(value, "value"),
        }.items():
            object.__setattr__(self, name, given)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Who gets how much.

    Attributes:
        rule: By which rule.
        total: What there was to give.
        shares: By team, exact. Together at most `total`.
        payments: By team, the credits that the auction takes; 0 under the other rules.
    """

    rule: Rule
    total: Fraction
    shares: Mapping[str, Fraction]
    payments: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def left(self) -> Fraction:
        """What nobody asked for."""
        return self.total - sum(self.shares.values(), _ZERO)

    def to_dict(self) -> dict[str, object]:
        """The allocation as plain values; exact numbers as text."""
        return {
            "rule": self.rule,
            "total": str(self.total),
            "left": str(self.left),
            "shares": {team: str(share) for team, share in self.shares.items()},
            "payments": {team: str(paid) for team, paid in self.payments.items()},
        }

    def __str__(self) -> str:
        """Who gets how much, in one sentence."""
        given = ", ".join(
            f"{team} {show(share)}" + (f" for {show(paid)}" if (paid := self.payments.get(team)) else "")
            for team, share in self.shares.items()
        )
        return f"Of {show(self.total)}, by {self.rule}: {given}; {show(self.left)} is left."


def allocate(requests: Sequence[Request], total: Rational, *, rule: Rule = "max_min") -> Allocation:
    """Divide an epsilon among teams.

    - "max_min": nobody gets more than they asked for, and what is short is short for all alike: the smallest
      share is as large as it can be, then the next (the uniform rule of Sprumont 1991).
    - "weights": the same with shares in proportion to weights that the steward has set.
    - "auction": to those to whom it is worth most, and each pays what its share would have been worth to
      the others (Vickrey, Clarke, Groves), in credits of the house.

    Under each of them no team gains by asking for an amount other than it needs, or for what it is not worth
    to it: under the first two because a share grows with the request only until the request is met, and
    then not at all; in the auction because a team's own words never enter what it pays for what it gets.
    To divide *in proportion to the requests* has neither property: whoever asks for more gets more. The first
    two hold for coalitions, too; bidders in an auction can collude.

    Args:
        requests: One for each team.
        total: What there is to give.
        rule: How.

    Raises:
        InvalidParameter: without requests, for a team that asks twice, an unknown rule, an auction without
            values, or values or weights that the rule does not take.
    """
    there, asked = positive(total, "total"), list(requests)
    if not asked or not all(isinstance(request, Request) for request in asked):
        raise InvalidParameter("Requests must be a list of at least one Request(team, epsilon).")
    names = [request.team for request in asked]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidParameter(f"{twice[:60]} asks twice: give one Request for each team.")
    if rule not in _RULES:
        raise InvalidParameter(f"rule must be one of {', '.join(_RULES)}, not {str(rule)[:40]!r}.")
    if rule == "auction" and not any(request.value for request in asked):
        raise InvalidParameter("An auction needs to know what a unit of epsilon is worth: give value=….")
    if rule != "auction" and any(request.value for request in asked):
        raise InvalidParameter(f"The rule {rule!r} takes no values: leave them out, or hold an auction.")
    if rule != "weights" and any(request.weight != 1 for request in asked):
        raise InvalidParameter(
            f"The rule {rule!r} takes no weights: leave them out, or use the rule 'weights'."
        )
    return _RULES[rule](asked, there)


def _filled(
    requests: Sequence[Request], total: Fraction, weight: Callable[[Request], Fraction]
) -> dict[str, Fraction]:
    """Water-filling: min(request, weight · level), with the level at which all is given."""
    shares: dict[str, Fraction] = {}
    left, heavy = total, sum((weight(request) for request in requests), _ZERO)
    # Whose request is met at the lowest level comes first; once one is not met, none after it is.
    for request in sorted(requests, key=lambda request: (request.epsilon / weight(request), request.team)):
        shares[request.team] = min(request.epsilon, left * weight(request) / heavy)
        left -= shares[request.team]
        heavy -= weight(request)
    return {request.team: shares[request.team] for request in requests}


def _max_min(requests: Sequence[Request], total: Fraction) -> Allocation:
    return Allocation("max_min", total, _filled(requests, total, lambda _: Fraction(1)), _free(requests))


def _weights(requests: Sequence[Request], total: Fraction) -> Allocation:
    return Allocation(
        "weights", total, _filled(requests, total, lambda request: request.weight), _free(requests)
    )


def _free(requests: Sequence[Request]) -> dict[str, Fraction]:
    return {request.team: _ZERO for request in requests}


def _auction(requests: Sequence[Request], total: Fraction) -> Allocation:
    shares = _best(requests, total)
    # Without a team its share goes, from the highest value down, to what the others asked for in vain.
    vain = [
        request for request in _ranked(requests) if request.value and shares[request.team] < request.epsilon
    ]
    amounts, worths = [_ZERO], [_ZERO]
    for request in vain:
        amounts.append(amounts[-1] + request.epsilon - shares[request.team])
        worths.append(worths[-1] + request.value * (request.epsilon - shares[request.team]))

    def worth(amount: Fraction) -> Fraction:
        """What so much is worth to those who asked in vain."""
        at = bisect_right(amounts, amount) - 1
        return worths[at] + (vain[at].value * (amount - amounts[at]) if at < len(vain) else _ZERO)

    payments = {}
    for request in requests:
        # Only the first of them may have a share, and what it asked for in vain itself does not count.
        own = amounts[1] if vain and request.team == vain[0].team else _ZERO
        payments[request.team] = worth(own + shares[request.team]) - worth(own)
    return Allocation("auction", total, shares, payments)


def _ranked(requests: Sequence[Request]) -> list[Request]:
    """The highest values first."""
    return sorted(requests, key=lambda request: (-request.value, request.team))


def _best(requests: Sequence[Request], total: Fraction) -> dict[str, Fraction]:
    """The most valuable division: the highest values first, as much as each asks for."""
    shares, left = {request.team: _ZERO for request in requests}, total
    for request in _ranked(requests):
        if request.value:
            shares[request.team] = min(request.epsilon, left)
            left -= shares[request.team]
    return shares


_RULES: dict[Rule, Callable[[Sequence[Request], Fraction], Allocation]] = {
    "max_min": _max_min,
    "weights": _weights,
    "auction": _auction,
}


@dataclass(frozen=True, slots=True)
class AllocationRule:
    """A rule as a game: what a team gains by asking for something other than what it needs.

    A type is the epsilon that a team needs; in an auction a pair, what each unit is worth and the epsilon.
    What a team gets beyond its needs is worth nothing to it.

    Attributes:
        total: What there is to give.
        rule: How.
        weights: Of the teams in their order, for the rule "weights".
        top: The highest value of a unit, for the rule "auction".
    """

    total: Rational
    rule: Rule = "max_min"
    weights: tuple[Rational, ...] = ()
    top: Rational = 1

    def payoff(self, reports: Sequence[Need], agent: int, truth: Need) -> float:
        """What the share is worth to a team with this truth, over all that there could be to gain.

        From 0 to 1; in an auction from −1, as one who overstates may pay more than the share is worth.

        Raises:
            InvalidParameter: if there is no such team, or not one weight for each, or a need is not a number.
        """
        requests, whose = [self._request(at, report) for at, report in enumerate(reports)], str(agent)
        if self.weights and len(self.weights) != len(requests):
            raise InvalidParameter("There must be one weight for each team, in their order.")
        if whose not in {request.team for request in requests}:
            raise InvalidParameter("agent must be the place of one of the reports, counted from 0.")
        there, true = positive(self.total, "total"), self._request(agent, truth)
        if self.rule == "auction" and not any(request.value for request in requests):
            return 0.0  # nobody wants it, nobody gets it
        allocation = allocate(requests, there, rule=self.rule)
        useful = min(allocation.shares[whose], true.epsilon)
        if self.rule != "auction":
            return float(useful / there)
        gained = true.value * useful - allocation.payments[whose]
        return float(gained / (positive(self.top, "top") * there))

    def _request(self, at: int, need: Need) -> Request:
        if isinstance(need, tuple):
            return Request(str(at), need[1], value=need[0])
        weight = self.weights[at] if at < len(self.weights) else 1
        return Request(str(at), need, weight=weight)
