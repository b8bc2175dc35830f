"""Where each person keeps the own data: devices send randomised reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from sfumato.advice.result import Advice, Option, best_of
from sfumato.advice.said import Said
from sfumato.advice.spelling import literal, price_of, rounded
from sfumato.local import (
    DuchiMean,
    HeavyHitters,
    HybridMean,
    LocalQuantiles,
    PiecewiseMean,
    Rappor,
    recommend,
)
from sfumato.mechanisms import Geometric

__all__ = ["again", "count", "mean", "median", "model", "most_common", "sum_", "values"]

_ANSWERS = "answers.txt: what each person would answer, one a line; in earnest, encode runs on the device"
_LENGTH = 6
_COMPARED = NormalDist().inv_cdf(0.975)  # `recommend` compares the widths of 95 % intervals
_REPORT = (
    "Epsilon is for one report. Who reports again pays again: keep the first report on the device and send "
    "that, or take sf.local.Rappor."
)


def count(said: Said) -> Advice:
    """How many people say yes."""
    return _frequencies(said, 2, ["no", "yes"], "how many people say yes")


def values(said: Said) -> Advice:
    """How many people have each value."""
    if not said.known:
        return _found(said)
    return _frequencies(said, said.groups, None, "how many people have one value")


def most_common(said: Said) -> Advice:
    """The value that most people have."""
    if not said.known:
        return _found(said)
    return _frequencies(said, said.groups, None, "", first=True)


def mean(said: Said) -> Advice:
    """The mean of people's numbers."""
    return _mean(said, 1, "")


def sum_(said: Said) -> Advice:
    """Their sum."""
    return _mean(said, said.people, " * len(answers)")


def median(said: Said) -> Advice:
    """The middle of people's numbers."""
    trees = {
        width: LocalQuantiles(said.epsilon, said.lower, said.upper, branching=width) for width in (2, 4, 32)
    }
    errors = {width: _width(said) * math.sqrt(tree.variance / said.people) for width, tree in trees.items()}
    options = best_of(
        [Option(f"a tree with {width} branches", error * said.people) for width, error in errors.items()]
    )
    width = min(errors, key=lambda one: errors[one])
    more = "" if width == 4 else f", branching={width}"
    low, high = literal(said.lower), literal(said.upper)
    return _advice(
        said,
        "sf.local.LocalQuantiles",
        [
            f"client = sf.local.LocalQuantiles({literal(said.epsilon)}, {low}, {high}{more})",
            *_read("float(text)"),
            "reports = client.encode(answers)",
            "answer = client.aggregate(reports).estimate().quantile(0.5)",
        ],
        options,
        why=(
            "Each person answers about one level of a tree over the range. "
            f"{_capital(options[0].name)} errs least."
        ),
        meaning="so many people lie between the answer and the true middle, at most",
        unit="ranks",
    )


def again(said: Said) -> Advice:
    """Values that are reported day after day."""
    once = recommend(said.epsilon, said.groups, said.people)
    memory = Rappor(said.epsilon, said.groups, one="0.75", zero="0.5")
    z = _width(said) * math.sqrt(said.people)
    options = best_of(
        [
            Option("sf.local.Rappor", z * math.sqrt(memory.variance)),
            Option(
                f"one report by {once.alternatives[0].name}, sent again every day",
                once.alternatives[0].error * _width(said) / _COMPARED,
                "but all days of a person can be linked",
            ),
        ]
    )
    return _advice(
        said,
        "sf.local.Rappor",
        [
            f'client = sf.local.Rappor({literal(said.epsilon)}, {said.groups}, one="0.75", zero="0.5")',
            *_read("int(text)"),
            "kept = client.permanent(answers)  # once, stored on the device",
            "reports = client.report(kept)  # every day",
            "answer = client.aggregate(reports).estimate()",
        ],
        options,
        why=(
            "Each device keeps one noisy copy of its value, and sends a noisier copy of that each day: all "
            "reports together tell no more than epsilon, as long as the value stays."
        ),
        meaning="how many people have one value, on one day",
        unit="people",
        reads=f"a number from 0 to {said.groups - 1:,}",
        price=", for all reports about one value",
        trap=(
            "The promise is for one value. Who has another one every day is protected each day anew, and "
            "loses epsilon each time."
        ),
    )


def model(said: Said) -> Advice:
    """A model that is learned where the data are."""
    lines = [
        "import numpy as np",
        "",
        'table = np.loadtxt("devices.csv", delimiter=",")',
        "client, X, y = table[:, 0], table[:, 1:-1], table[:, -1]",
        "answer = sf.learn.FederatedAveraging(",
        f"    epsilon={literal(said.epsilon)}, delta={literal(said.delta)}, bounds=(0, 1), classes=[0, 1]",
        ")",
        "answer.fit(X, y, units=client)",
        'print(answer.account()["central"])',
    ]
    return Advice(
        said=said,
        use="sf.learn.FederatedAveraging",
        code="\n".join(["import sfumato as sf", *lines]),
        reads=(
            f"devices.csv: the number of a client, {said.columns} columns, and what is predicted, 0 or 1; no "
            "heading"
        ),
        why=(
            "Each device takes a few steps on its own rows and sends the cut change of the model; the server "
            "adds noise to their average."
        ),
        price=f"{price_of(said.epsilon, said.delta, used=True)}, for all rounds together",
        error=None,
        meaning="only your data can tell",
        unit="",
        exact=False,
        options=(
            Option("sf.learn.FederatedAveraging", None),
            Option(
                "the same with local_epsilon, where the server is not trusted either, and far less exact",
                None,
            ),
        ),
        trap=(
            "This protects people from whoever sees the model, not from the server that adds up: that needs "
            "local_epsilon and local_delta, or secure aggregation beside it."
        ),
        docs="docs/learn.md",
    )


def _frequencies(
    said: Said, size: int, listed: Sequence[str] | None, meaning: str, *, first: bool = False
) -> Advice:
    compared = recommend(said.epsilon, size, said.people)
    # To name the most common one, all counts must hold at once, and the two that are compared are both off.
    times = (2 * _width(said, size) if first else _width(said)) / _COMPARED
    # Those that cannot be used are left out, and the order is the comparison's: near ties go by other costs.
    options = tuple(
        Option(alternative.name, times * alternative.error)
        for alternative in compared.alternatives
        if alternative.obstacle is None
    )
    client = compared.randomizer
    domain = f"{list(listed)}".replace("'", '"') if listed is not None else str(size)
    chosen = type(client).__name__
    name = compared.alternatives[0].name
    return _advice(
        said,
        f"sf.local.{chosen}",
        [
            f"client = sf.local.{chosen}({literal(said.epsilon)}, {domain})",
            *_read("text" if listed is not None else "int(text)"),
            "reports = client.encode(answers)",
            *_estimated(first=first),
        ],
        options,
        why=(
            f"Nobody has to be trusted: each report is randomised before it is sent. {_capital(name)} errs "
            f"least for {size:,} values, or hardly more with shorter reports."
        ),
        meaning="the value that is named is at most so far behind the most common one" if first else meaning,
        unit="people",
        reads="yes or no" if listed is not None else f"a number from 0 to {size - 1:,}",
    )


def _found(said: Said) -> Advice:
    """Values that cannot be listed: words."""
    client = HeavyHitters(said.epsilon, length=_LENGTH)
    error = _width(said) * math.sqrt(said.people * client.variance)
    listed = recommend(said.epsilon, said.groups, said.people).alternatives[0]
    known = listed.error * _width(said) / _COMPARED
    return _advice(
        said,
        "sf.local.HeavyHitters",
        [
            f"client = sf.local.HeavyHitters({literal(said.epsilon)}, length={_LENGTH})",
            *_read("text"),
            "reports = client.encode(answers)",
            "answer = client.aggregate(reports).estimate()",
        ],
        (
            Option("sf.local.HeavyHitters", error),
            Option(f"counting a list of {said.groups:,} values", known, "if there can be such a list"),
        ),
        why="The values cannot be listed, so that frequent ones are put together letter by letter.",
        meaning="how many people have a value that is found; rarer ones are not found at all",
        unit="people",
        reads=f"a word of at most {_LENGTH} small letters, digits, points, hyphens or blanks",
        trap=f"{_REPORT} Finding words takes many people: list the values if you can.",
    )


def _mean(said: Said, times: int, factor: str) -> Advice:
    ways = {
        way.__name__: way(said.epsilon, said.lower, said.upper)
        for way in (HybridMean, PiecewiseMean, DuchiMean)
    }
    z = _width(said) / math.sqrt(said.people) * times
    options = best_of([Option(f"sf.local.{name}", z * math.sqrt(way.variance)) for name, way in ways.items()])
    low, high = literal(said.lower), literal(said.upper)
    return _advice(
        said,
        options[0].name,
        [
            f"client = {options[0].name}({literal(said.epsilon)}, {low}, {high})",
            *_read("float(text)"),
            "reports = client.encode(answers)",
            f"answer = client.aggregate(reports).estimate().value{factor}",
        ],
        options,
        why=(
            "Nobody has to be trusted: each number is randomised before it is sent. "
            f"{options[0].name} errs least."
        ),
        meaning="for the numbers for which it is worst"
        + (", and as many people as you said" if factor else ""),
        unit="",
        reads=f"a number within {low} and {high}",
    )


def _advice(
    said: Said,
    use: str,
    lines: Sequence[str],
    options: tuple[Option, ...],
    *,
    why: str,
    meaning: str,
    unit: str,
    reads: str = "",
    price: str = ", for each report",
    trap: str = _REPORT,
) -> Advice:
    central = ""
    if unit == "people":
        trusted = rounded(Geometric(said.epsilon, 1).error(said.confidence))
        central = f"; somebody who may see the answers would count to ± {trusted}"
    return Advice(
        said=said,
        use=use,
        code="\n".join(["from pathlib import Path", "", "import sfumato as sf", "", *lines, "print(answer)"]),
        reads=f"{_ANSWERS}{f' ({reads})' if reads else ''}",
        why=why,
        price=f"{price_of(said.epsilon, said.delta, used=False)}{price}",
        error=options[0].error,
        meaning=f"{meaning}{central}",
        unit=unit,
        exact=False,
        options=options,
        trap=trap,
        docs="docs/local.md",
    )


def _read(parsed: str) -> list[str]:
    return [f'answers = [{parsed} for text in Path("answers.txt").read_text().split()]']


def _estimated(*, first: bool) -> list[str]:
    if not first:
        return ["answer = client.aggregate(reports).estimate()"]
    return [
        "estimate = client.aggregate(reports).estimate()",
        "answer = estimate.values[estimate.counts.argmax()]",
    ]


def _width(said: Said, size: int = 1) -> float:
    """Half of an interval, in standard deviations: sums of reports are close to normal.

    Args:
        said: What was said.
        size: How many of them must hold at once.
    """
    return -NormalDist().inv_cdf((1 - float(said.confidence)) / 2 / size)


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
