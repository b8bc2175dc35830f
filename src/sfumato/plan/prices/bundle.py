"""How the price of a report is shared: by its main question, the extra ones and the selection of groups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.loss import NO_LOSS, PrivacyLoss, compose
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.tree import Column
from sfumato.plan.prices.extras import PricedExtra
from sfumato.plan.prices.price import Priced
from sfumato.plan.prices.recipe import Recipe
from sfumato.plan.prices.selecting import Selection, selection_of
from sfumato.plan.prices.split import Mechanics
from sfumato.plan.prices.touched import Touched
from sfumato.plan.questions.nodes import Measured
from sfumato.plan.questions.others import searched_of, shares_of
from sfumato.plan.questions.sensitivity import is_exchange

__all__ = ["NOTHING", "Bundle", "fingerprint_of", "loss_of"]

_SERIES = Fraction(1, 4)  # of a price goes into finding the groups of a series, each of them once
_DIAGNOSIS = Fraction(1, 20)  # of a price goes into the share of units that were touched

NOTHING = Priced("laplace", Fraction(0), Fraction(0), (), (), (), (), NO_LOSS)
"""The price of a main question that measures nothing."""


def fingerprint_of(questions: Sequence[Measured]) -> str:
    """A digest of questions that are asked together: that of the one question if there is only one."""
    if len(questions) == 1:
        return questions[0].fingerprint
    text = json.dumps([question.fingerprint for question in questions])
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Bundle:
    """The parts of one price: every aggregate has the same claim on it, and so has the selection of groups.

    A twentieth goes before that into the share of units that were clamped or cut, if it is asked for. Of the
    price of a series a quarter goes into the selection.

    Attributes:
        found: What is measured.
        main: The part of the main question.
        extras: That of each extra question.
        selection: That of the selection; 0 where groups are public.
        once: Whether groups must be found by what is read once.
        steps: Of a series, in how many steps one unit can be, at most; each finds groups of its own.
    """

    found: Recipe
    main: Fraction
    extras: tuple[Fraction, ...]
    selection: Fraction
    once: bool = False
    steps: int = 1

    @classmethod
    def of(cls, recipe: Recipe, *, once: bool = False, steps: int | None = None) -> Bundle:
        """Shares by the number of aggregates; `steps` is given for a series."""
        if steps is not None and recipe.measured.is_open and not recipe.extras:
            return cls(recipe, 1 - _SERIES, (), _SERIES, once, steps)
        main = len(dict.fromkeys(estimator for estimator in recipe.estimators if estimator.parts))
        claims = [extra.results for extra in recipe.extras]
        selection = int(recipe.measured.is_open)
        total = main + sum(claims) + selection
        diagnosed = any(isinstance(extra, Touched) for extra in recipe.extras)
        rest = 1 - _DIAGNOSIS if diagnosed else Fraction(1)
        return cls(
            recipe,
            Fraction(main, total) * rest,
            tuple(
                _DIAGNOSIS if isinstance(extra, Touched) else Fraction(claim, total) * rest
                for extra, claim in zip(recipe.extras, claims, strict=True)
            ),
            Fraction(selection, total) * rest,
            once,
        )

    @property
    def is_plain(self) -> bool:
        """Whether the main question is all there is."""
        return self.main == 1

    def refuse_target(self) -> None:
        """Refuse a wanted error where it cannot be known beforehand."""
        if not self.is_plain:
            raise QueryRefused(
                "How far off quantiles, distinct counts and groups that are not public will be depends on "
                "the data, so that a price for a wanted error cannot be named beforehand.",
                "Give an epsilon instead of an error.",
            )

    def main_delta(self, law: Mechanics, delta: Fraction) -> Fraction:
        """What of delta the main question may use: half where groups are selected as well."""
        return delta / 2 if self.selection and law == "gaussian" else delta

    def refuse_without_delta(self, delta: Fraction, *, named: bool) -> None:
        """Refuses to look for groups without a delta; `named` is whether the question itself says so.

        Raises:
            QueryRefused: if there is none.
        """
        if not self.selection or delta:
            return
        way = "leave delta out" if named else "have the steward open the budget with a delta, such as 1e-6"
        raise QueryRefused(
            "The values of this GROUP BY are not public, and finding them needs a delta above 0.",
            f"List the values in the query, WHERE {self._found_key()} IN ('a', 'b'), or {way}.",
        )

    def selected(self, law: Mechanics, epsilon: Fraction, delta: Fraction) -> tuple[Selection, ...]:
        """What selects the groups at this price, one mechanism for each rank of levels; none if public.

        Privacy:
            Claim: all of them together are (ε, δ)-DP, where ε and δ are the selection's part of the price.
            On each level a question of its own (`plan.questions.others.questions_of`) holds a unit to at most
            max_groups groups of that level, in each of which it counts 1. Those of the levels of one rank
            are one list, in which a unit counts in as many groups as on each of them together; at its share
            of ε and of δ that is what `selection_of` is told. The mechanisms of the ranks are fixed
            by the question and draw their noise independently, so that their prices add up (basic
            composition: Dwork, Roth 2014, Thm. 3.16), and the shares add up to 1. What is found on one level
            decides nothing on another. The groups of all steps of a series are one list of pairs (step,
            group), in which a unit counts in max_groups groups of each of `steps` steps
            (docs/proofs/continual.md, groups that come later).
        """
        if not self.selection:
            return ()
        unit = self.found.measured.unit
        ranks = searched_of(self.found.measured) or (((),),)
        risk = delta / 2 if self.main and law == "gaussian" else delta
        return tuple(
            selection_of(
                epsilon * self.selection * share,
                risk * share,
                groups=(1 if unit.column is None else unit.max_groups) * len(rank) * self.steps,
                exchange=is_exchange(unit),
                counted=self.found.counts_found,
                rounds=self._in_rounds,
            )
            for rank, share in zip(ranks, shares_of(ranks), strict=True)
        )

    @property
    def _in_rounds(self) -> bool:
        """Whether units' weights in their groups can be read again once some groups are found."""
        measured = self.found.measured
        few = measured.unit.column is not None and measured.bounding.few_groups
        return few and not measured.levels and not self.once

    def _found_key(self) -> str:
        """The first key whose values are not public, as a query writes it."""
        expressions = (key.expression for key in self.found.measured.keys if key.values is None)
        first = next(expressions, None)
        return in_sql(first.name) if isinstance(first, Column) else "x"

    def priced_extras(self, epsilon: Fraction, *, adds: bool = True) -> tuple[PricedExtra, ...]:
        """The extra questions with their prices, for a budget that adds up pure prices or not."""
        pairs = zip(self.found.extras, self.extras, strict=True)
        return tuple(extra.priced(epsilon * share, adds=adds) for extra, share in pairs)


def loss_of(main: Priced, extras: Sequence[PricedExtra], selections: Sequence[Selection]) -> PrivacyLoss:
    """What is debited for all of them.

    Privacy:
        All parts are about the same units, so their losses compose. The groups that were selected are public
        for whatever is asked of them afterwards (adaptive composition: Dwork, Roth 2014, Thm. 3.16 and B.1):
        for each fixed list of groups the main and the extra questions have their own guarantees, and a group
        that a neighbouring table does not have counts as empty there.
    """
    if not extras and not selections:
        return main.loss
    parts = [main.loss] if main.mechanisms else []
    parts += [extra.loss for extra in extras] + [selection.loss for selection in selections]
    return compose(parts)
