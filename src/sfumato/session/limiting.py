"""How many rows of a unit count in a question whose limit is left to a profile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from sfumato.ledger import Budget
from sfumato.numeric.exact import as_fraction
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.price import whole_price
from sfumato.plan.prices.terms import Terms
from sfumato.plan.questions.aggregates import statistic
from sfumato.plan.questions.aggregates.count import CountValues
from sfumato.plan.questions.aggregates.quantile import Quantile
from sfumato.plan.questions.cut import Cut
from sfumato.plan.questions.likely import Goal
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sensitivity import is_exchange
from sfumato.session.intervals import Known

__all__ = ["chosen_limit"]

_TYPICAL = 1 / 10  # of the way from the number in a range that is nearest to 0 to the one that is furthest
_APART = 1 / 100  # of an average's range: how far rows that are cut are taken to be from those that count
_APART_IN_RANK = 1 / 20  # the same for quantiles, of all rows
_MANY = 100  # groups, where it is not public how many there are
_ROWS_OF_A_VALUE = 100  # so many have each distinct value, which any one of them vouches for
_STEPS = 5  # a quantile's rank is found in several steps that share its price: so much noisier than a count


def chosen_limit(plan: Plan, terms: Terms, known: Known, budget: Budget) -> int | None:
    """The limit that suits all that is asked: each aggregate has its own best, and all weigh the same.

    Of a sum only the bounds are public: values are taken to be a tenth of the way from the bound nearer to 0
    to the other one. None: there is neither a price nor an error to choose for.
    """
    node = plan.report.child
    groups = max(1, math.prod(_MANY if key.values is None else len(key.values) for key in node.keys))
    if terms.error is not None:
        errors = terms.error.values() if isinstance(terms.error, Mapping) else (terms.error,)
        return known.limit_within(min(float(as_fraction(error, "error")) for error in errors), groups)
    if terms.epsilon is None:
        return None
    noise = _noise(plan, terms, terms.epsilon, budget)
    columns = plan.rows.where(node.predicate)
    calls = [call for call in dict.fromkeys(node.aggregates) if call not in plan.unbounded]
    goals = [_goal(call, statistic(call.function).cut(call, columns), noise) for call in calls]
    return known.best_limit([goal for goal in goals if goal is not None] or [Goal(noise, _APART)], groups)


def _noise(plan: Plan, terms: Terms, epsilon: Fraction, budget: Budget) -> float:
    """The standard deviation of a count's noise, about, for each row that a unit may count with."""
    node = plan.report.child
    claims = len(dict.fromkeys(node.aggregates)) + any(key.values is None for key in node.keys)
    moved = 2 if node.keys and is_exchange(plan.rows.unit) else 1
    # Not what is left for it: the limit, and so the question, must be the same when it is asked again.
    delta = budget.hundredth if terms.delta is None else terms.delta
    law = terms.mechanism or ("laplace" if budget.accountant == "basic" else "gaussian")
    if law == "gaussian" and delta:
        return math.sqrt(claims * moved / (2 * float(whole_price("gaussian", epsilon, delta))))
    return math.sqrt(2) * claims * moved / float(epsilon)


def _heaviness(cut: Cut) -> float:
    """The largest number that a row may have, which noise is for, over the one that it is taken to have."""
    ends = [abs(end) for end in cut.row]
    least, most = 0.0 if cut.row[0] <= 0 <= cut.row[1] else min(ends), max(ends)
    return most / (least + _TYPICAL * (most - least)) if most else 1.0


def _goal(call: AggregateCall, cut: Cut, noise: float) -> Goal | None:
    """What a limit is for; None: rows of a unit do not matter, since units are counted."""
    kind = statistic(call.function)
    if cut.by_groups:
        return None
    if isinstance(kind, CountValues):
        return Goal(noise * _ROWS_OF_A_VALUE, _APART)
    if isinstance(kind, Quantile):
        return Goal(noise * _STEPS, _APART_IN_RANK)
    if all(map(math.isfinite, cut.row)):
        return Goal(noise * _heaviness(cut))
    return Goal(noise, _APART)
