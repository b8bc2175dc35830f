"""What lying is worth: the largest gain from a false report, alone or agreed, for any mechanism."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, NotCertified
from sfumato.games._deviations import (
    Indices,
    all_of,
    coalitions,
    how_many,
    profile_of,
    random_deviations,
    range_of,
    refuse_too_many,
    sizes,
    told,
    types_of,
)
from sfumato.loss import PrivacyLoss, PureLoss
from sfumato.numeric.exact import Rational, as_integer, float_up, positive, probability

__all__ = ["Gain", "gain", "promised_gain", "sampled_gain", "textbook_gain"]

T = TypeVar("T")

# A payoff is exact to about 1e-12 of the range of utilities; a gain is the difference of two.
_MARGIN = 2e-12
# What a payoff may lie outside its declared range by, as a share of it, before that is called a mistake.
_OUTSIDE = 1e-9


@dataclass(frozen=True, slots=True)
class Gain:
    """The most that anybody in a coalition gains by lying, over the deviations that were checked.

    Attributes:
        value: The largest gain of one member. Negative: every lie costs its tellers at least that much.
        low: A lower bound on it.
        high: An upper bound on it.
        confidence: With what probability both bounds hold; None where they are exact arithmetic, and then
            only as far from `value` as rounding may be (2e-12 of the range of utilities).
        together: The largest sum of the gains of a coalition.
        cost: The most that a lie costs the worst-off of its tellers: how much truth matters at all.
        profile: The true types of all players where the gain is largest.
        agents: Who lies there.
        lie: What those report.
        checked: How many deviations were compared.
        promise: What the privacy of the mechanism promises as a bound, if its loss was given.
    """

    value: float
    low: float
    high: float
    confidence: float | None
    together: float
    cost: float
    profile: tuple[Any, ...]
    agents: tuple[int, ...]
    lie: tuple[Any, ...]
    checked: int
    promise: float | None = None

    @property
    def broken(self) -> bool:
        """Whether a lie was found that gains more than promised."""
        return self.promise is not None and self.low > self.promise

    def __str__(self) -> str:
        if self.confidence is None and self.low <= 0 < self.value:
            first = "No lie gains more than rounding may"
        elif self.value > 0:
            first = f"Lying gains up to {self.value:.4g}"
        elif self.high <= 0 and self.value < 0:
            first = f"Every lie costs at least {-self.value:.4g}"
        elif self.confidence is not None:
            first = "No lie was seen to gain anything"
        else:
            first = "No lie gains anything"
        if self.confidence is not None:
            first += f" ({self.low:.4g} to {self.high:.4g} at {self.confidence:.4g} confidence)"
        first += f", in {self.checked:,} deviations."
        if self.promise is None:
            return first
        kept = "broken" if self.broken else "kept"
        return f"{first} The promise is at most {self.promise:.4g}: {kept}."


def promised_gain(loss: PrivacyLoss, *, coalition: int = 1) -> float:
    """The most that a private mechanism lets anybody gain when `coalition` players lie together, rounded up.

    For utilities of range 1; scale it by the range. It is the largest total variation distance between the
    outcomes of two inputs that differ in `coalition` reports: tanh(kε/2) for ε-DP alone, tanh(kε/4) for the
    exponential mechanism, whose loss has range ε.

    The same bound holds for what a lie *costs*: privacy makes any report nearly as good as the truth, not
    the truth better than the rest. To make lying cost something, mix (`TruthfulMixture`).

    Privacy:
        Claim: |E u(M(x)) − E u(M(x'))| ≤ TV(M(x), M(x')) = δ(0) for u in [0, 1]. Conditions: neighbours are
        exchanges of one report; a player's utility depends on the outcome that the loss speaks of and on
        their own type, not on a part of the outcome that is shown to them alone. Source: McSherry, Talwar
        2007, who bound it by e^ε − 1; total variation of an ε-indistinguishable pair is at most tanh(ε/2),
        and randomized response reaches it. Where the curve of a composition of tiny losses cannot be
        certified, the better of what its ε and its ρ imply: tanh(ε/2), √(ρ/2) (Pinsker).
    """
    if not isinstance(loss, PrivacyLoss):
        raise InvalidParameter("loss must be a privacy loss, such as mechanism.loss or PureLoss(epsilon).")
    together = loss.group(as_integer(coalition, "coalition"))
    try:
        return min(1.0, together.delta(0.0))
    except NotCertified:
        known = [1.0]
        if together.pure is not None:
            known.append(PureLoss(together.pure).delta(0.0))
        if together.rho is not None:
            known.append(math.nextafter(math.sqrt(float_up(together.rho / 2)), math.inf))
        return min(known)


def textbook_gain(epsilon: Rational, coalition: int = 1) -> float:
    """2kε, the textbook's bound on the gain of `coalition` = k liars under ε-DP, for kε ≤ 1.

    Source: Dwork, Roth 2014, Prop. 10.1 (e^x ≤ 1 + 2x up to x = 1), for groups by k-fold privacy.
    `promised_gain` is at most a quarter of it.

    Raises:
        InvalidParameter: if kε is above 1, where the inequality behind it fails.
    """
    total = positive(epsilon, "epsilon") * as_integer(coalition, "coalition")
    if total > 1:
        raise InvalidParameter(
            "The bound 2kε needs coalition × epsilon of at most 1; promised_gain has no such limit."
        )
    return float_up(2 * total)


def gain(
    payoff: Callable[[Sequence[T], int, T], float],
    *,
    types: Sequence[T],
    players: int,
    coalition: int = 1,
    utilities: tuple[float, float] = (0, 1),
    profiles: Sequence[Sequence[T]] | None = None,
    anonymous: bool = False,
    loss: PrivacyLoss | None = None,
    most: int = 2_000_000,
) -> Gain:
    """The largest gain from lying, exactly: every true profile, every coalition, every joint lie.

    A coalition of k players agrees on k reports, of which at least one is false; everybody else tells the
    truth. What is compared is each member's expected utility at their own true type.

    Args:
        payoff: The expected utility, exact to 1e-12, of `agent` with true type `truth` when the players
            report `reports`: payoff(reports, agent, truth).
        types: All types that a player may have or report; public.
        players: How many play.
        coalition: How many lie together.
        utilities: Between which numbers payoffs lie.
        profiles: The true profiles to check; all of them if None.
        anonymous: A promise that a payoff depends on the player's own report and type and on the
            *multiset* of the other reports. Then one profile represents all its permutations.
        loss: The mechanism's privacy loss; what it promises is put beside the gain.
        most: How many deviations to check at most.

    Raises:
        InvalidParameter: for an unusable type space, more deviations than `most`, or a payoff that is not a
            number between the declared utilities.
    """
    _function(payoff, "payoff(reports, agent, truth)")
    space, range_ = types_of(types), range_of(utilities)
    n, k = sizes(players, coalition)
    listed = None if profiles is None else [profile_of(rows, space, n) for rows in profiles]
    if listed is not None and not listed:
        raise InvalidParameter("profiles must list at least one true profile; leave it out to check all.")
    refuse_too_many(how_many(len(space), n, k, listed, anonymous), as_integer(most, "most"))
    evaluate = _Payoffs(payoff, space, range_, anonymous=anonymous, remember=anonymous or k > 1)
    kinds = range(len(space))
    every: Iterator[Indices] = (
        itertools.combinations_with_replacement(kinds, n) if anonymous else itertools.product(kinds, repeat=n)
    )
    worst = _Worst()
    for profile in every if listed is None else listed:
        honest: dict[int, float] = {}
        for agents in coalitions(profile, k, anonymous):
            own = tuple(profile[i] for i in agents)
            before = []
            for i in agents:
                if i not in honest:
                    honest[i] = evaluate(profile, i, profile[i])
                before.append(honest[i])
            for lie in itertools.product(kinds, repeat=k):
                if lie == own:
                    continue
                reports = told(profile, agents, lie)
                gains = [
                    evaluate(reports, i, profile[i]) - was for i, was in zip(agents, before, strict=True)
                ]
                worst.see(gains, profile, agents, lie)
    margin = _MARGIN * max(range_[1] - range_[0], abs(range_[0]), abs(range_[1]))
    return worst.found(space, margin, None, _promise(loss, k, range_))


def sampled_gain(
    play: Callable[[Sequence[T], int, T, int], ArrayLike],
    *,
    types: Sequence[T],
    players: int,
    samples: int,
    confidence: Rational,
    coalition: int = 1,
    utilities: tuple[float, float] = (0, 1),
    profiles: Sequence[Sequence[T]] | None = None,
    trials: int | None = None,
    loss: PrivacyLoss | None = None,
    seed: int | None = None,
    most: int = 200_000,
) -> Gain:
    """The largest gain from lying among the deviations tried, from samples, with bounds that hold together.

    It is a statement about the deviations that were tried: a lower bound on the worst there is. An honest
    "no lie gains" needs `gain`, or a proof.

    `low` and `high` are Hoeffding's, with a union over every member of every deviation: a difference of two
    means of s draws of range r is off by more than r·√(ln(2m/β)/s) with probability at most β/m, and there
    are m of them. Draws for different reports must be independent. `together` and `cost` are estimates.

    Args:
        play: `count` independent utilities of `agent`: play(reports, agent, truth, count).
        types: All types; public.
        players: How many play.
        samples: How many utilities are drawn for each player of each deviation, each way.
        confidence: With what probability the bounds hold.
        coalition: How many lie together.
        utilities: Between which numbers utilities lie.
        profiles: True profiles of which every deviation is tried; or
        trials: how many deviations (profile, coalition and lie) to draw at random.
        loss: The mechanism's privacy loss; what it promises is put beside the gain.
        seed: Of the random deviations, for a repeatable check.
        most: How many deviations to try at most.

    Raises:
        InvalidParameter: as `gain`, and if not exactly one of `profiles` and `trials` is given.
    """
    _function(play, "play(reports, agent, truth, count)")
    space, range_ = types_of(types), range_of(utilities)
    n, k = sizes(players, coalition)
    draws, beta = as_integer(samples, "samples"), 1 - probability(confidence, "confidence")
    if (profiles is None) == (trials is None):
        raise InvalidParameter(
            "Give either profiles, to try every lie there, or trials, to try lies at random."
        )
    if profiles is not None:
        listed = [profile_of(rows, space, n) for rows in profiles]
        if not listed:
            raise InvalidParameter("profiles must list at least one true profile.")
        refuse_too_many(how_many(len(space), n, k, listed, False), as_integer(most, "most"))
        tried = list(all_of(listed, len(space), k))
    else:
        number = as_integer(0 if trials is None else trials, "trials")
        refuse_too_many(number, as_integer(most, "most"))
        tried = random_deviations(len(space), n, k, number, seed)
    mean = _Means(play, space, range_, draws)
    worst = _Worst()
    for profile, agents, lie in tried:
        reports = told(profile, agents, lie)
        gains = [mean(reports, i, profile[i]) - mean(profile, i, profile[i]) for i in agents]
        worst.see(gains, profile, agents, lie)
    differences = 2 * len(tried) * k / float(beta)
    width = (range_[1] - range_[0]) * math.sqrt(math.log(differences) / draws) * (1 + 1e-9)
    return worst.found(space, width, float(confidence), _promise(loss, k, range_))


def _function(given: object, form: str) -> None:
    if not callable(given):
        raise InvalidParameter(f"What is checked is a function {form}, such as auction.payoff.")


class _Worst:
    """The largest gain seen so far, and where."""

    def __init__(self) -> None:
        self.value, self.together, self.cost, self.checked = -math.inf, -math.inf, -math.inf, 0
        self.where: tuple[Indices, Indices, Indices] = ((), (), ())

    def see(self, gains: list[float], profile: Indices, agents: Indices, lie: Indices) -> None:
        self.checked += 1
        largest = max(gains)
        if largest > self.value:
            self.value, self.where = largest, (profile, agents, lie)
        self.together = max(self.together, sum(gains))
        self.cost = max(self.cost, -min(gains))

    def found(self, space: list[Any], width: float, confidence: float | None, promise: float | None) -> Gain:
        profile, agents, lie = self.where
        return Gain(
            value=self.value,
            low=self.value - width,
            high=self.value + width,
            confidence=confidence,
            together=self.together,
            cost=self.cost,
            profile=tuple(space[i] for i in profile),
            agents=agents,
            lie=tuple(space[i] for i in lie),
            checked=self.checked,
            promise=promise,
        )


class _Payoffs:
    """Checked payoffs at indices of types; those that will be asked for again are remembered."""

    def __init__(
        self,
        payoff: Callable[[Sequence[Any], int, Any], float],
        space: list[Any],
        range_: tuple[float, float],
        *,
        anonymous: bool,
        remember: bool,
    ) -> None:
        self.payoff, self.space, self.range_ = payoff, space, range_
        self.anonymous = anonymous
        self.known: dict[tuple[Indices, int, int], float] | None = {} if remember else None

    def __call__(self, reports: Indices, agent: int, truth: int) -> float:
        if self.anonymous:
            reports, agent = (reports[agent], *sorted(reports[:agent] + reports[agent + 1 :])), 0
        if self.known is None:
            return self.asked(reports, agent, truth)
        key = (reports, agent, truth)
        if key not in self.known:
            self.known[key] = self.asked(reports, agent, truth)
        return self.known[key]

    def asked(self, reports: Indices, agent: int, truth: int) -> float:
        space = self.space
        given = self.payoff(tuple(space[i] for i in reports), agent, space[truth])
        try:
            value = float(given)
        except (TypeError, ValueError):
            raise InvalidParameter("payoff must give one number, the expected utility.") from None
        _check_range(value, value, self.range_)
        return value


class _Means:
    """Means of sampled utilities, drawn once for each question."""

    def __init__(
        self,
        play: Callable[[Sequence[Any], int, Any, int], ArrayLike],
        space: list[Any],
        range_: tuple[float, float],
        draws: int,
    ) -> None:
        self.play, self.space, self.range_, self.draws = play, space, range_, draws
        self.known: dict[tuple[Indices, int, int], float] = {}

    def __call__(self, reports: Indices, agent: int, truth: int) -> float:
        key, space = (reports, agent, truth), self.space
        if key not in self.known:
            drawn = self.play(tuple(space[i] for i in reports), agent, space[truth], self.draws)
            try:
                values = np.asarray(drawn, np.float64)
            except (TypeError, ValueError):
                values = np.zeros(0)
            if values.shape != (self.draws,):
                raise InvalidParameter(
                    "play must give a flat array with as many utilities as it is asked for."
                )
            _check_range(float(values.min()), float(values.max()), self.range_)
            self.known[key] = float(values.mean())
        return self.known[key]


def _check_range(least: float, greatest: float, range_: tuple[float, float]) -> None:
    slack = _OUTSIDE * (range_[1] - range_[0])
    if math.isnan(least) or math.isnan(greatest):
        raise InvalidParameter("A payoff is not a number (NaN): every report and type needs a utility.")
    if not (range_[0] - slack <= least and greatest <= range_[1] + slack):
        raise InvalidParameter(
            f"A payoff lies outside the declared utilities {range_[0]:g} to {range_[1]:g}: declare the range "
            "that payoffs have (utilities=), or rescale them."
        )


def _promise(loss: PrivacyLoss | None, coalition: int, range_: tuple[float, float]) -> float | None:
    if loss is None:
        return None
    bound, scale = promised_gain(loss, coalition=coalition), range_[1] - range_[0]
    return bound if scale == 1 else math.nextafter(bound * scale, math.inf)
