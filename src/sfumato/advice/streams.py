"""Numbers that are published day after day."""

from __future__ import annotations

import math
from statistics import NormalDist

from sfumato.advice.declared import Declared, days
from sfumato.advice.result import OUTSIDE, Advice, Option, best_of
from sfumato.advice.said import Said
from sfumato.advice.spelling import literal, price_of, rounded
from sfumato.mechanisms import Gaussian, Laplace, TreeCounter

__all__ = ["daily"]

_TEXT = "SELECT day, COUNT(*) AS n FROM data GROUP BY day"
_START = "2026-01-01"
_TREE = "a tree of Laplace noise, sf.TreeCounter"
_MATRIX = "noise that cancels over days (a matrix factorisation)"


def daily(said: Said) -> Advice:
    """A count of each day, and of all days so far."""
    sure, moved = said.confidence, said.rows
    z = NormalDist().inv_cdf((1 + float(sure)) / 2)
    tree = TreeCounter(horizon=said.steps, epsilon=said.epsilon, sensitivity=moved)
    each = Laplace(said.epsilon, moved)
    options = [
        # Sums of noise of many days are close to normal; of one day there is nothing to add up.
        Option(_TREE, z * math.sqrt(tree.variance), OUTSIDE),
        Option(
            "new noise each day, added up",
            each.error(sure) if said.steps == 1 else z * math.sqrt(said.steps * each.variance),
            OUTSIDE,
        ),
    ]
    return _course(said, options) if said.delta else _counter(said, options)


def _course(said: Said, others: list[Option]) -> Advice:
    """With a delta: a series on a session."""
    each = "one row a day, on 1 day" if said.rows == 1 else f"one row a day, on up to {said.rows:,} days"
    table = Declared(said, (days(),), max_rows=1, each=each)  # of a day; max_steps says of how many
    price = Gaussian(said.epsilon, said.delta, sensitivity=1)
    with table.session() as session:
        stream = session.stream(
            _TEXT,
            horizon=said.steps,
            start=_START,
            epsilon=said.epsilon,
            delta=said.delta,
            max_steps=min(said.rows, said.steps),
        )
        last = said.steps - 1
        total = stream.pricing.quoted(last, "running").noises[0].quantile(said.confidence)
        single = stream.pricing.quoted(last, "steps").noises[0].quantile(said.confidence)
    z = NormalDist().inv_cdf((1 + float(said.confidence)) / 2)
    tree = TreeCounter(horizon=said.steps, rho=price.rho, sensitivity=said.rows)
    options = best_of(
        [
            Option(_MATRIX, total),
            Option("a tree of Gaussian noise, sf.TreeCounter", z * math.sqrt(tree.variance), OUTSIDE),
            *others,
        ]
    )
    code = table.code(
        "answer = session.stream(",
        f'    "{_TEXT}",',
        f'    start="{_START}",  # your first day',
        f"    horizon={said.steps},",
        f"    epsilon={literal(said.epsilon)},",
        f"    delta={literal(said.delta)},",
        f"    max_steps={min(said.rows, said.steps)},",
        ")",
        "answer.advance()  # once a day: reads the days that are over",
        "print(answer)",
    )
    return Advice(
        said=said,
        use="session.stream",
        code=code,
        reads=table.reads,
        why=(
            f"One price for all {said.steps:,} days. The noise of a day takes back some of the noise of days "
            "before, so that totals stay far more exact than a sum of noisy days."
        ),
        price=f"{price_of(said.epsilon, said.delta, used=True)}, once for all days",
        error=total,
        meaning=f"of the total up to the last day; a single day is off by ± {rounded(single)}",
        unit="rows",
        exact=True,
        options=options,
        trap=(
            f"A person counts on {_days(said)} in all, the first ones, and on none after. If people come on "
            'more days, protect a week or a month of each: sf.PrivacyUnit("person", window="week", '
            'time="day").'
        ),
        docs="docs/growing.md",
    )


def _counter(said: Said, options: list[Option]) -> Advice:
    """Without one: a counter."""
    ranked = best_of(options)
    loss = literal(said.epsilon)
    if ranked[0].name == _TREE:
        use = "sf.TreeCounter"
        lines = [
            f"counter = sf.TreeCounter(horizon={said.steps}, epsilon={loss}, sensitivity={said.rows})",
            "for number in daily:",
            "    answer = counter.add(number)  # the total so far",
        ]
    else:
        use = "sf.Laplace for each day"
        lines = [
            f"noise = sf.Laplace(epsilon={loss}, sensitivity={said.rows})",
            "answer = sum(noise.release(float(number)) for number in daily)",
        ]
    read = 'daily = [int(text) for text in Path("daily.txt").read_text().split()]'
    lines = ["from pathlib import Path", "", "import sfumato as sf", "", read, *lines, "print(answer)"]
    return Advice(
        said=said,
        use=use,
        code="\n".join(lines),
        reads="daily.txt: the exact number of each day, one a line",
        why=(
            f"One price for all {said.steps:,} days, and a pure one. A series on a session, session.stream, "
            "needs a delta: with 1e-6 it has a ledger, and is more exact for many days."
        ),
        price=f"{price_of(said.epsilon, said.delta, used=False)}, once for all days",
        error=ranked[0].error,
        meaning="of the total up to the last day",
        unit="rows",
        exact=said.steps == 1,
        options=ranked,
        trap=(
            f"The sensitivity says that a person counts on {_days(said)} in all. Nothing checks that: leave "
            "the other days of a person out before you count."
        ),
        docs="docs/mechanisms.md",
    )


def _days(said: Said) -> str:
    return "1 day" if said.rows == 1 else f"{said.rows:,} days"
