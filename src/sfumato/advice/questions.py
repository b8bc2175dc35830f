"""Many questions of which nobody knows yet what they are."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

from sfumato.advice.declared import Declared
from sfumato.advice.result import Advice, Option, best_of
from sfumato.advice.said import Said
from sfumato.advice.spelling import literal, price_of
from sfumato.ledger import Budget
from sfumato.mechanisms import DiscreteGaussian, Gaussian, Geometric

__all__ = ["many"]

_BASIC, _GAUSSIAN, _ZCDP = (
    "basic accounting with Laplace noise",
    "Gaussian accounting with Gaussian noise",
    "zCDP accounting with Gaussian noise",
)


def many(said: Said) -> Advice:
    """So many counts, each asked when it comes to mind."""
    each = said.epsilon / said.questions
    alone = Declared(said)
    options = [Option(_BASIC, Geometric(each, said.rows).error(said.confidence) + 0.5)]
    shares = dict[str, Fraction]()
    if said.delta:
        for name, accountant in _ACCOUNTANTS.items():
            shares[name] = Budget(said.epsilon, said.delta, accountant).limits[0] / said.questions
            noise = DiscreteGaussian(rho=shares[name], sensitivity=said.rows)
            options.append(Option(name, noise.error(said.confidence)))
    ranked = best_of(options)
    best = ranked[0].name
    if best == _BASIC:
        price, error, table = f"epsilon={literal(_down(each))}", ranked[0].error, alone
        with alone.session() as session:
            quote = session.sql(_QUESTIONS[0]).quote(_down(each), delta=0, confidence=said.confidence)
            error = quote.columns[0].half_width
    else:
        table = Declared(said, accountant=_ACCOUNTANTS[best])
        spent, slack = _priced(shares[best], said), said.delta
        price = f'epsilon={literal(spent)}, delta={literal(slack)}, mechanism="gaussian"'
        with table.session() as session:
            quote = session.sql(_QUESTIONS[0]).quote(
                spent, delta=slack, mechanism="gaussian", confidence=said.confidence
            )
            error = quote.columns[0].half_width
    ranked = (Option(best, error), *ranked[1:])
    lines = [
        "for text in [",
        *(f'    "{text}",' for text in _QUESTIONS),
        "]:  # your own, one after the other",
        "    answer = session.sql(text).release(",
        f"        {price}",
        "    )",
        "    print(answer)",
    ]
    return Advice(
        said=said,
        use=f"SQL on a session whose budget has {best.split()[0]} accounting",
        code=table.code(*lines),
        reads=table.reads,
        why=(
            f"{said.questions:,} questions share one budget. {_capital(best)} errs least for each "
            "of them. The ledger refuses the question that would be too much before it reads a row, and an "
            "answer that was paid before is free."
        ),
        price=f"{price_of(said.epsilon, said.delta, used=best != _BASIC)}, for all questions together",
        error=error,
        meaning=f"noise of a count, for each of {said.questions:,} questions",
        unit="rows",
        exact=True,
        options=ranked,
        trap=(
            "How a budget adds up is fixed when it is opened. A Gaussian one pays for counts, sums and means "
            "with Gaussian noise only."
            if best == _GAUSSIAN
            else "Many people asking about each other's answers share this one budget: it is the data's, not "
            "theirs. If you only need to know which question is above a threshold, session.first_above costs "
            "the same for any number of them."
        ),
        docs="docs/ledger.md" if best != _BASIC else "docs/choices.md",
    )


_ACCOUNTANTS: dict[str, Literal["gaussian", "zcdp"]] = {_GAUSSIAN: "gaussian", _ZCDP: "zcdp"}
_QUESTIONS = (
    "SELECT COUNT(*) AS n FROM data",
    "SELECT COUNT(DISTINCT person) AS n FROM data",
)


def _priced(rho: Fraction, said: Said) -> Fraction:
    """The epsilon, at the delta that was said, of Gaussian noise with this rho; never more."""
    return _down(Fraction(Gaussian(rho=rho, sensitivity=1).loss.epsilon(said.delta)) * Fraction(9999, 10000))


def _down(epsilon: Fraction) -> Fraction:
    """A shorter number that is not above it, with four digits."""
    if epsilon.denominator <= 10**4 and 10**4 % epsilon.denominator == 0:
        return epsilon
    unit = Fraction(10) ** (math.floor(math.log10(epsilon)) - 3)
    return math.floor(epsilon / unit) * unit


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
