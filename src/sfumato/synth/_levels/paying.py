"""A release on levels as one purchase, and the quote of it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.fits.kept import Kept, plain
from sfumato.fits.meter import Meter
from sfumato.fits.paying import Released, gaussian_purchase, note_of
from sfumato.ledger import Memo
from sfumato.numeric.exact import show
from sfumato.purchase import Purchase
from sfumato.synth._levels.asking import Asked
from sfumato.synth._levels.measuring import Design

if TYPE_CHECKING:
    from sfumato.ledger import Right
    from sfumato.ledger.spare import Spare
    from sfumato.loss import GaussianLoss

__all__ = ["LevelsQuote", "purchase", "quoted"]

_WIDTH = 80
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, repr=False)
class LevelsQuote:
    """What counts on levels will cost and how far off they will be; making it is free and reads nothing.

    Attributes:
        table: Whose rows are counted.
        epsilon: The price.
        delta: Its other half.
        loss: What the ledger is charged.
        errors: By level and attributes, the half-width at 95 % of the estimate of one count before it is made
            whole and non-negative: the widest of the level's places.
        given: What is declared public, so that the guarantee is conditional on it; empty: nothing.
        note: What the ledger says: that it is on record, or more than what is left; else empty.
        delta_told: Where delta comes from, if nobody named it.
    """

    table: str
    epsilon: Fraction
    delta: Fraction
    loss: GaussianLoss
    errors: Mapping[str, Mapping[tuple[str, ...], float]]
    given: str = ""
    note: str = ""
    delta_told: str = ""

    def __str__(self) -> str:
        """Price, condition and what the ledger says, and the error of totals and cells on each level."""
        told = f" ({self.delta_told})" if self.delta_told else ""
        said = [
            f"Counts of {self.table} on {len(self.errors)} levels: epsilon {show(self.epsilon)}, "
            f"delta {float(self.delta):.4g}{told} for all of them.",
            conditional(self.given),
            self.note,
        ]
        lines = [textwrap.fill(" ".join(filter(None, said)), _WIDTH)]
        widest = max(map(len, self.errors))
        for level, errors in self.errors.items():
            cells = f", a cell ± {max(errors.items(), key=lambda item: len(item[0]))[1]:.3g}"
            total = f"a total ± {errors[()]:.3g}" if errors[()] else "totals are public"
            lines.append(f"  {level:<{widest}}  {total}{cells if len(errors) > 1 else ''}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def conditional(given: str) -> str:
    """The sentence that goes with public totals; empty where there are none."""
    return f"The guarantee is conditional on {given}, declared public and kept exactly." if given else ""


def purchase(asked: Asked, design: Design, paid: GaussianLoss, spare: Spare | None) -> Purchase[Kept]:
    """The one purchase that all counts on all levels are.

    Privacy:
        Claim: what is recorded carries `paid`. The debit is for the loss of a Gaussian filter, and each draw
        of noise is counted by it first (`Right.steps`); the counts are read once, for this debit. Whatever
        fails after the debit stays paid, and its refusal says nothing of the rows. Public totals are declared
        and part of the fingerprint; none of them is read. What is on record serves if it cost no less.
    """
    question, tree = asked.question, design.tree
    given = design.public.words(tree)
    facts = {
        "levels": list(tree.names),
        "places": [[plain(value, "places") for value in path] for path in tree.paths[-1]],
        "attributes": [list(asked.grid.names), [plain(list(values), "by") for values in asked.values]],
        "public": [sorted(places.items()) for places in design.public.declared],
        "shares": [[level, list(part), str(share)] for (level, part), share in design.shares.items()],
    }

    def learn(right: Right, meter: Meter) -> Released:
        return design.measured(asked.places(right), meter), {}

    counted = " × ".join(asked.grid.names) or "rows"
    words = f"{counted} by {', '.join(tree.names[1:])} of {question.table}"
    return gaussian_purchase(
        asked.session,
        paid,
        memo=Memo("levels", f"{words}, given {given}" if given else words, table=question.table, given=given),
        facts=facts,
        reads=(asked.fingerprint,),
        check=asked.check,
        learn=learn,
        # A unit's sensitivity has both units where they are exchanged, so that the meter need not double it.
        exchange=False,
        spare=spare,
    )


def quoted(
    asked: Asked, design: Design, wanted: Purchase[Kept], paid: GaussianLoss, spare: Spare | None
) -> LevelsQuote:
    """The quote of a purchase.

    Raises:
        QueryRefused: if the counts cannot be read so.
    """
    assert paid.point is not None
    wide = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    names = asked.grid.names
    errors = {
        level: {
            tuple(names[at] for at in part): math.nextafter(sigma * wide, math.inf) if sigma else 0.0
            for part, sigma in sigmas.items()
        }
        for level, sigmas in zip(
            design.tree.names, design.widest(design.sigmas(paid.rho, asked.sensitivity)), strict=True
        )
    }
    return LevelsQuote(
        table=asked.question.table,
        epsilon=paid.point[0],
        delta=paid.point[1],
        loss=paid,
        errors=errors,
        given=wanted.memo.given,
        note=note_of(asked.session, wanted, again="release"),
        delta_told="" if spare is None else spare.told,
    )
