"""Attacks on answers about a table, as commands: on exact answers, and on private ones beside them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.attack_promise import Promise
from sfumato.cli.attacking import (
    STAGES,
    EpsilonOption,
    FileArgument,
    PlotOption,
    SeedOption,
    at_epsilon,
    binary_columns,
    columns_in,
    listed,
    names_in,
    picture,
    price,
    tell,
    two_valued,
)
from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import stages
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["averaging", "differencing", "reconstruction", "tracing"]

_TRIALS = 100  # of differencing
_SESSIONS, _ASKED = 10, 5  # a session has to be opened for each trial: fewer, and asked less often
_FRESH = 20  # trials of an average of fresh answers
_LEAK = 0.25  # of the trials of differencing: what a hundred of them can tell from noise
_EACH = 8  # people of either kind without whom a coin could be as good as the attack
_LARGEST = 10**290  # of a bound, so that its noise is a float
_DELTA = Fraction(1, 10**6)
_PRESENT = Fraction(1, 20)  # outsiders that may be taken for members


@reported
def differencing(
    file: FileArgument,
    column: Annotated[str, typer.Option("--column", "-c", metavar="NAME", help="A column of numbers.")],
    lower: Annotated[str, typer.Option("--lower", metavar="NUMBER", help="The least anybody can have.")],
    upper: Annotated[str, typer.Option("--upper", metavar="NUMBER", help="The most anybody can have.")],
    row: Annotated[
        int | None,
        typer.Option("--row", metavar="NUMBER", min=1, help="Whom to attack, from 1; else people at random."),
    ] = None,
    totals: Annotated[bool, typer.Option("--totals", help="Compare totals instead of averages.")] = False,
    tolerance: Annotated[
        str | None,
        typer.Option("--tolerance", metavar="NUMBER", help="How near is a hit; a hundredth of the bounds."),
    ] = None,
    epsilon: EpsilonOption = "1",
    seed: SeedOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> None:
    """Take one person out of an average or a total, and compare."""
    import numpy as np

    from sfumato import attacks
    from sfumato.mechanisms import Laplace
    from sfumato.numeric.exact import as_fraction

    cost, low, high = price(epsilon), as_fraction(lower, "lower"), as_fraction(upper, "upper")
    picture(plot)
    if low >= high:
        raise InvalidParameter("--lower must be below --upper: they bound what anybody can have.")
    if max(abs(low), abs(high)) > _LARGEST or (high - low) * _LARGEST < 1:
        raise InvalidParameter("--lower and --upper must lie within 1e290 of zero, and 1e-290 apart.")
    near = (high - low) / 100 if tolerance is None else as_fraction(tolerance, "tolerance")
    with stages(*STAGES, quiet=json_) as begin:
        values, chosen = _numbers(file, column, row, seed)
        count, truth = len(values), values[chosen]
        trials = math.ceil(_TRIALS / len(chosen))
        noise = Laplace(epsilon=cost / 2, sensitivity=_reach(low, high, count))
        held = np.clip(values, float(low), float(high))

        def outcome(numbers: NDArray[np.float64], told: Callable[[Any], Any], is_private: bool) -> Any:
            total = math.fsum(numbers)
            everyone, others = np.full(len(chosen), total), total - numbers[chosen]
            given: dict[str, Any] = {"truth": truth, "tolerance": near, "trials": trials, "leak": _LEAK}
            what = "totals" if totals else "averages"
            given["target"] = at_epsilon(what, cost) if is_private else f"exact {what}"
            if totals:
                without = (lambda: told(others)) if is_private else None
                return attacks.differencing_totals(
                    lambda: told(everyone), lambda: told(others), ask_without=without, **given
                )
            absent = (lambda: told(others) / count) if is_private else None
            return attacks.differencing(
                lambda: told(others) / (count - 1),
                lambda: told(everyone) / count,
                first_size=count - 1,
                second_size=count,
                ask_without=absent,
                **given,
            )

        begin()
        outcomes = [outcome(values, lambda exact: exact, False)]
        begin()
        outcomes.append(outcome(held, noise.release, True))
    whom = "the person of that row, asked about again and again" if row is not None else "people at random"
    note = (
        f"Each trial takes one person out ({whom}) and compares with and without. Both private answers "
        "together cost this epsilon, with values held within the bounds and the number of people public."
    )
    title = "Whose value two answers give away"
    tell(outcomes, note, title=title, plot=plot, json_=json_, promised=Promise(cost))


@reported
def averaging(
    file: FileArgument,
    times: Annotated[
        int, typer.Option("--times", metavar="NUMBER", min=2, help="How often the question is asked.")
    ] = 1000,
    tolerance: Annotated[
        str | None,
        typer.Option("--tolerance", metavar="NUMBER", help="How near is a hit; 1/5 over epsilon."),
    ] = None,
    epsilon: EpsilonOption = "0.1",
    seed: SeedOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> None:
    """Ask for the number of rows again and again, and average."""
    del seed  # nobody is chosen here; taken so that a script can give it to every attack
    import numpy as np
    import pyarrow as pa

    from sfumato import attacks
    from sfumato.mechanisms import Geometric
    from sfumato.numeric.exact import as_fraction

    cost = price(epsilon)
    picture(plot)
    if times > 10**6:
        raise InvalidParameter("--times must be at most 1,000,000; a thousand answers show it as well.")
    near = 1 / (5 * cost) if tolerance is None else as_fraction(tolerance, "tolerance")
    with stages(*STAGES, quiet=json_) as begin:
        rows = columns_in(file, names_in(file)[:1]).num_rows
        noise = Geometric(epsilon=cost, sensitivity=1)
        given: dict[str, Any] = {"truth": rows, "tolerance": near, "once": _once(cost, near)}
        ready: list[int] = []

        def fresh() -> int:
            if not ready:
                ready.extend(np.asarray(noise.release(np.full(times, rows))).tolist())
            return ready.pop()

        begin()
        outcomes = [attacks.averaging(fresh, times=times, trials=_FRESH, target="fresh noise", **given)]
        begin()
        asker = _Asker(pa.table({"present": np.ones(rows, dtype=bool)}), cost)
        try:
            outcomes.append(
                attacks.averaging(
                    asker.ask,
                    times=min(times, _ASKED),
                    trials=_SESSIONS,
                    renew=asker.renew,
                    target=at_epsilon("a session", cost),
                    **given,
                )
            )
        finally:
            asker.close()
    note = (
        f"Fresh noise at this epsilon costs it at every question, {times:,} times. A session gives the same "
        "released answer again, for the price of one, however often it is asked."
    )
    tell(outcomes, note, title="Whether asking again wears the noise off", plot=plot, json_=json_)


@reported
def reconstruction(
    file: FileArgument,
    column: Annotated[str, typer.Option("--column", "-c", metavar="NAME", help="A column of two values.")],
    people: Annotated[
        int, typer.Option("--people", metavar="NUMBER", min=2 * _EACH, help="How many people to attack.")
    ] = 256,
    epsilon: EpsilonOption = "1",
    seed: SeedOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> None:
    """Rebuild a column of two values from counts of sets of people."""
    import numpy as np

    from sfumato import attacks
    from sfumato.mechanisms import Geometric
    from sfumato.random import simulation

    cost = price(epsilon)
    picture(plot)
    with stages(*STAGES, quiet=json_) as begin:
        bits = two_valued(columns_in(file, [column]), column)
        if bits is None:
            raise InvalidParameter(f'Column "{column[:100]}" must have two values, and one in each row.')
        draw = simulation(seed)
        kinds = [np.flatnonzero(bits), np.flatnonzero(~bits)]
        half = min(len(kinds[0]), len(kinds[1]), people // 2)
        if half < _EACH:
            raise InvalidParameter(
                f'Too few rows have one of the values of "{column[:100]}": at least {_EACH} must have each.'
            )
        # Half of them have each value, so that a guess is a coin, however rare the value is.
        chosen = draw.permutation(np.concatenate([draw.permutation(kind)[:half] for kind in kinds]))
        secret = bits[chosen]
        exact = attacks.hadamard_answers(secret).astype(np.int64)
        single, shared = (Geometric(epsilon=some, sensitivity=1) for some in (cost, cost / len(exact)))
        targets = ["exact counts", at_epsilon("each count", cost), at_epsilon("all counts", cost)]
        outcomes = []
        for told, target in zip([exact, single.release(exact), shared.release(exact)], targets, strict=True):
            begin()
            outcomes.append(attacks.reconstruction(told, secret, method="fourier", target=target))
    note = (
        f"{len(exact):,} counts of sets of {len(secret):,} people, half of whom have each value. Where each "
        "count costs this epsilon, all together cost as many times as much: the price that protects is the "
        "total, the last line."
    )
    title = "Whose bit comes out of counts"
    tell(outcomes, note, title=title, plot=plot, json_=json_, promised=Promise(cost))


@reported
def tracing(
    file: FileArgument,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", metavar="COLUMNS", help="Columns of two values; all such unless given."),
    ] = None,
    people: Annotated[
        int | None,
        typer.Option("--people", metavar="NUMBER", min=1, help="How many are members; half of the rows."),
    ] = None,
    epsilon: EpsilonOption = "1",
    seed: SeedOption = None,
    plot: PlotOption = None,
    json_: JsonOption = False,
) -> None:
    """Tell who is in a table from its averages alone."""
    from sfumato import attacks
    from sfumato.mechanisms import Gaussian
    from sfumato.random import simulation

    cost = price(epsilon)
    picture(plot)
    with stages(*STAGES, quiet=json_) as begin:
        bits = binary_columns(file, listed(columns or []))
        rows, attributes = bits.shape
        count = rows // 2 if people is None else people
        order = simulation(seed).permutation(rows)
        members, rest = bits[order[:count]], bits[order[count:]]
        outside = len(rest) // 2
        least = 2 * math.ceil(1 / _PRESENT)
        if outside < least:
            raise InvalidParameter(
                f"Too few rows are left beside the members: at least {2 * least} others are needed, half of "
                "them to know the population by; give more rows, or a smaller --people."
            )
        reference, others = rest[outside:], rest[:outside]
        means = members.mean(axis=0)
        # One member exchanged moves each of the means by at most 1/count: √attributes/count together.
        reach = Fraction(math.isqrt(attributes * 10**12) + 1, 10**6 * count)
        noise = Gaussian(epsilon=cost, delta=_DELTA, sensitivity=reach)
        outcomes = []
        answers = (means, "exact averages"), (noise.release(means), at_epsilon("averages", cost))
        for told, target in answers:
            begin()
            outcomes.append(
                attacks.tracing(
                    told, reference, members, others, false_positives=_PRESENT, seed=seed, target=target
                )
            )
    columns_ = "one column" if attributes == 1 else f"{attributes:,} columns"
    note = (
        f"Averages of {columns_} over {count:,} members; {len(others):,} others, and "
        f"{len(reference):,} to know the population by. All private averages together cost this epsilon, and "
        "a delta of one in a million, with the number of members public. The more columns and the "
        "fewer members, the more is told."
    )
    title = "Who is recognised in averages"
    tell(outcomes, note, title=title, plot=plot, json_=json_, promised=Promise(cost, _DELTA))


def _numbers(
    file: str, column: str, row: int | None, seed: int | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The numbers of a column, without those rows that have none, and whom of them to attack."""
    import numpy as np
    import pyarrow as pa

    from sfumato.random import simulation

    held = columns_in(file, [column]).column(column)
    kind = held.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InvalidParameter(
            f'Column "{column[:100]}" does not hold numbers{_to_blame(held)}; mend it, or name one that does.'
        )
    every = np.asarray(held.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    is_there = np.isfinite(every)
    values = every[is_there]
    if len(values) < 3:
        raise InvalidParameter(f'Fewer than three rows have a number in "{column[:100]}"; give more.')
    with np.errstate(over="ignore"):
        is_sum = np.isfinite(np.abs(values).sum())
    if not is_sum:
        raise InvalidParameter(f'The numbers of "{column[:100]}" are too large to be added up.')
    if row is None:
        return values, simulation(seed).permutation(len(values))[:_TRIALS]
    if row > len(every):
        raise InvalidParameter("--row is beyond the last row; rows are counted from 1.")
    if not is_there[row - 1]:
        raise InvalidParameter(f'That row has no number in "{column[:100]}"; choose another.')
    return values, np.array([int(is_there[: row - 1].sum())])


def _to_blame(held: Any) -> str:
    """How many cells make a column text, where they are the fewer ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(held.type) or pa.types.is_large_string(held.type)):
        return ""
    is_number = pc.match_substring_regex(held, r"^\s*[-+]?[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?\s*$")
    filled = len(held) - held.null_count
    others = filled - int(pc.sum(is_number).as_py() or 0)
    if not 0 < others < filled / 2:
        return ""
    return f": {others:,} of its {filled:,} values {'is not a number' if others == 1 else 'are not numbers'}"


def _reach(low: Fraction, high: Fraction, people: int) -> Fraction:
    """By how much one person can move a total of that many people, each within these bounds.

    Whoever comes or leaves moves it by what they have, and whoever has another value by the distance of the
    bounds; the last term is more than the rounding of bounds and totals to floats on both sides.
    """
    most = max(abs(low), abs(high))
    return max(most, high - low) + people * most / 2**50


def _once(epsilon: Fraction, near: Fraction) -> float:
    """The probability that one count with two-sided geometric noise is this near."""
    if near < 0:
        return 0.0
    # 1 − 2α^(k + 1)/(1 + α) for k = ⌊near⌋ and α = e^−ε; a power may be too small for a float, and is 0 then.
    step, reach = (
        math.exp(-float(min(exponent, Fraction(700))))
        for exponent in (epsilon, epsilon * (math.floor(near) + 1))
    )
    return 1 - 2 * reach / (1 + step)


class _Asker:
    """Asks a session how many rows there are; a new session for each trial."""

    def __init__(self, table: Any, epsilon: Fraction) -> None:
        from sfumato.schema import Bool, PrivacyUnit, PrivateTable

        self._table = PrivateTable("people", source=table, unit=PrivacyUnit.row(), schema={"present": Bool()})
        self._epsilon = epsilon
        self._session: Any = None

    def renew(self) -> None:
        """Start again, with a budget for one answer."""
        from sfumato.ledger import Budget
        from sfumato.session import Session

        self.close()
        self._session = Session(self._table, budget=Budget(epsilon=self._epsilon))

    def ask(self) -> Any:
        """The answer."""
        question = self._session.sql("SELECT COUNT(*) AS n FROM people")
        return question.release(epsilon=self._epsilon).table["n"]

    def close(self) -> None:
        """Let the session go."""
        if self._session is not None:
            self._session.close()
