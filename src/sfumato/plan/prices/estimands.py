"""What each column of a report estimates, in one phrase that is made from the plan alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sfumato.plan.expressions.tree import Column, Expression, columns_of
from sfumato.plan.expressions.written import Phrase, written
from sfumato.plan.prices.plan import Plan
from sfumato.plan.prices.words import spoken
from sfumato.plan.questions.aggregates import Estimator, statistic
from sfumato.plan.questions.bounding import Scope
from sfumato.plan.questions.bounding.base import several
from sfumato.plan.questions.cut import Cut
from sfumato.plan.questions.estimand import Estimand
from sfumato.plan.questions.relations import substituted
from sfumato.plan.questions.slots import Slot
from sfumato.plan.questions.sources import is_joined_below

__all__ = ["aggregate_estimands", "cuts", "estimands"]

_LONGEST = 72


def estimands(plan: Plan) -> tuple[Estimand | None, ...]:
    """What each column of the report estimates; None for keys and other columns without an aggregate."""
    parts = {f"a{place}": estimand for place, estimand in enumerate(aggregate_estimands(plan))}
    names: dict[str, Expression] = {name: Phrase(estimand.what) for name, estimand in parts.items()}
    names |= {f"k{place}": key.expression for place, key in enumerate(plan.report.child.keys)}
    for place, window in enumerate(plan.report.windows):
        of = [parts[name] for one in window.expressions for name in columns_of(one) if name in parts]
        word = "total" if window.function == "sum" else window.function.replace("_", " ")
        over = f"{word} of {written(substituted(window.value, names), _LONGEST)}"
        names[f"w{place}"] = Phrase(over)
        if of:
            parts[f"w{place}"] = Estimand(
                over, "; ".join(dict.fromkeys(one.limit for one in of if one.limit))
            )
    phrases: list[Estimand | None] = []
    for column in plan.report.columns:
        used = [parts[name] for name in dict.fromkeys(columns_of(column.expression)) if name in parts]
        if not used:
            phrases.append(None)
        elif isinstance(column.expression, Column):
            phrases.append(used[0])
        else:
            limits = dict.fromkeys(part.limit for part in used if part.limit)
            what = written(substituted(column.expression, names), _LONGEST)
            phrases.append(Estimand(what, "; ".join(limits)))
    return tuple(phrases)


def cuts(plan: Plan, more: Collection[str] = ()) -> tuple[Cut, ...]:
    """How far each aggregate of the report may be from its value over all rows.

    Args:
        plan: What is asked.
        more: Aggregates (`a0`, …) that something else than limits left rows out of.
    """
    node, known = plan.report.child, []
    if is_joined_below(plan.rows.source):
        # What a join leaves out there is added up or compared before anything is counted.
        return (Cut(),) * len(node.aggregates)
    columns = plan.rows.where(node.predicate)
    phrases = aggregate_estimands(plan)
    parts = zip(node.aggregates, plan.recipe.aggregates, phrases, strict=True)
    for place, (call, aggregate, phrase) in enumerate(parts):
        cut = statistic(call.function).cut(call, columns)
        if isinstance(aggregate, Estimator) and aggregate.lower is not None:
            least, most = aggregate.limits
            cut = replace(cut, least=max(cut.least, least), most=min(cut.most, most))
        known.append(cut if phrase.cut or cut.inside or f"a{place}" in more else cut.uncut)
    return tuple(known)


def aggregate_estimands(plan: Plan) -> tuple[Estimand, ...]:
    """What each aggregate of the report estimates, as it is measured."""
    recipe, node, phrases = plan.recipe, plan.report.child, list[Estimand]()
    for call, aggregate in zip(node.aggregates, recipe.aggregates, strict=True):
        measured = recipe.measured
        if isinstance(aggregate, Slot) and aggregate.extra >= 0:
            measured = recipe.extras[aggregate.extra].measured
        scope = Scope(spoken(measured.unit, plan.rows), bool(measured.keys), measured.groups)
        phrase = statistic(call.function).estimand(call, scope, measured.bounding)
        if node.counted and phrase.limit:  # a step of a series
            phrase = replace(phrase, limit=f"{phrase.limit} in each step")
        phrases.append(phrase if node.steps is None else _in_few(phrase, node.steps, scope.whose))
    return tuple(phrases)


def _in_few(phrase: Estimand, steps: int, whose: str) -> Estimand:
    """What is estimated where a unit counts in few steps of a series."""
    first = f"first {several(steps, 'step')}"
    limit = f"{phrase.limit}, in their {first}" if phrase.limit else f"in the {first} of each {whose}"
    return replace(phrase, limit=limit)
