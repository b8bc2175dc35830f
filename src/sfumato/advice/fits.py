"""What is fitted: a model, a synthetic table."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

from sfumato.advice.declared import Column, Declared, numbers
from sfumato.advice.measured import (
    CLASSES,
    NUMBERS,
    PEOPLE,
    PLAIN,
    PLAIN_NUMBER,
    PRICES,
    VARIATION,
    comparable,
    measured,
)
from sfumato.advice.result import Advice, Option, best_of
from sfumato.advice.said import Said
from sfumato.advice.spelling import literal, price_of
from sfumato.fits.meter import Meter, price
from sfumato.schema import Enum, Float, Int
from sfumato.synth.methods import adaptive, mst

__all__ = ["model", "synthetic"]

_KEPT = Fraction(
    92, 100
)  # of the price, for counts of columns; the rest is for sizes of units and fine cells
_FEW = 300  # columns times this many people are too few for a model


def model(said: Said) -> Advice:
    """A model of one column by the others: of a class, or of a number where its range was said."""
    return _number_model(said) if said.lower is not None else _class_model(said)


def _class_model(said: Said) -> Advice:
    place = comparable(said.epsilon, said.people)
    options = best_of(measured(CLASSES, place))
    wrong = options[0].error or 0.0
    return _model(
        said,
        Column("y", "sf.Int(0, 1)", Int(0, 1), "what is predicted: 0 or 1"),
        options,
        declared=", classes=[0, 1]",
        why=(
            f"It was wrong less often than the others {_there(place)}. If you need coefficients, take "
            "LogisticRegression."
        ),
        meaning=(
            f"only your data can tell: {_percent(wrong)} of predictions were wrong {_there(place)}, and "
            f"{_percent(PLAIN)} without privacy"
        ),
    )


def _number_model(said: Said) -> Advice:
    code = f"sf.Float({literal(said.lower)}, {literal(said.upper)})"
    place = comparable(said.epsilon, said.people)
    return _model(
        said,
        Column("y", code, Float(said.lower, said.upper), "what is predicted: a number"),
        (Option("LinearRegression", None), Option("GradientBoostingRegressor, for curves and pairs", None)),
        why="It has coefficients with intervals, and the noise is counted in them.",
        meaning=(
            f"only your data can tell: R² was {NUMBERS[place]:.3f} {_there(place)}, and {PLAIN_NUMBER:.3f} "
            "without privacy"
        ),
    )


def _model(
    said: Said, target: Column, options: tuple[Option, ...], *, why: str, meaning: str, declared: str = ""
) -> Advice:
    columns = (*numbers(said.columns, "sf.Float(0, 1)", Float(0, 1), "a number"), target)
    table, name = Declared(said, columns), options[0].name
    few = said.people * float(said.epsilon) < _FEW * said.columns
    trap = (
        "Each further fit costs again. To try several models, pay once with sf.learn.RandomSearch. Declare "
        "bounds that are known without the data."
    )
    if few:
        trap = (
            f"{said.people:,} people are few for {said.columns} columns at this price: expect little more "
            "than the most common answer. Use fewer columns."
        )
    return Advice(
        said=said,
        use=f"sf.learn.{name}",
        code=table.code(
            f"answer = sf.learn.{name}(",
            f"    epsilon={literal(said.epsilon)}, delta={literal(said.delta)}{declared}",
            ")",
            'answer.fit(session, session.table("data"), target="y")',
            "print(answer)",
        ),
        reads=table.reads,
        why=why,
        price=f"{price_of(said.epsilon, said.delta, used=True)}, for the whole fit",
        error=None,
        meaning=meaning,
        unit="",
        exact=False,
        options=options,
        trap=trap,
        docs="docs/learn.md",
    )


def synthetic(said: Said) -> Advice:
    """A table of the same shape that anyone may have."""
    values = Enum(*(f"v{place}" for place in range(1, said.groups + 1)))
    told = f"one of {said.groups:,} known values"
    columns = tuple(numbers(said.columns, "sf.Enum(*values)", values, told))
    listed = f'values = [f"v{{j}}" for j in range(1, {said.groups + 1})]  # your own list'
    table = Declared(said, columns, shared=listed)
    place = comparable(said.epsilon, said.people)
    options = best_of(measured(VARIATION, place))
    method = options[0].name
    share = (mst if method == "mst" else adaptive).single_share(said.columns) * _KEPT
    if said.columns == 1:
        share = _KEPT
    sigma = Meter.alone(price(said.epsilon, said.delta)).sigma(said.rows, share)
    error = NormalDist().inv_cdf((1 + float(said.confidence)) / 2) * sigma
    named = "" if method == "adaptive" else f', method="{method}"'
    return Advice(
        said=said,
        use="sf.synth.fit",
        code=table.code(
            "answer = sf.synth.fit(",
            f'    session, "data", epsilon={literal(said.epsilon)}, delta={literal(said.delta)}{named}',
            ")",
            "print(answer.sample(1000))",
        ),
        reads=table.reads,
        why=(
            f'One fit, and then as many rows as you like for nothing. Pairs of columns by method="{method}" '
            f"were off by {_percent(options[0].error or 0.0)} (total variation) {_there(place)}, the least "
            "of all."
        ),
        price=f"{price_of(said.epsilon, said.delta, used=True)}, for the whole fit",
        error=error,
        meaning="how many rows have one value of one column, in the model",
        unit="rows",
        exact=False,
        options=tuple(replace(option, name=f'method="{option.name}"') for option in options),
        trap=(
            "A synthetic table keeps what was measured: single columns and some pairs. Name what matters to "
            "you in workload=, and do not learn from it what three columns do together."
        ),
        docs="docs/synth.md",
    )


def _there(place: int) -> str:
    return f"on Adult at epsilon {PRICES[place]:g} ({PEOPLE:,} people, the case most like yours)"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
