"""`sfumato local`: reports that each person randomises alone, added up and estimated from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._files import write_whole
from sfumato.cli import estimates
from sfumato.cli.domain import FREQUENCIES, NUMBERS, NotEncoded, Values, column_of, texts_of
from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import HARD, emit_json, paragraph, say, spinner, table
from sfumato.errors import InvalidParameter, InvalidValue, SourceUnusable
from sfumato.render import key

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.local import Aggregate, Randomizer

__all__ = ["app"]

app = typer.Typer(help="People randomise their own values; a server estimates.", no_args_is_help=True)

_CHUNK = 1 << 20
_SUMS = b'{"format":"sfumato-local-aggregate.'

EpsilonOption = Annotated[
    str, typer.Option("--epsilon", metavar="NUMBER", help="What a report may cost the one who gives it.")
]


@app.command("encode")
@reported
def encode(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A table: CSV, Parquet, Arrow or DuckDB.")],
    column: Annotated[str, typer.Option("--column", "-c", metavar="NAME", help="Which column to report.")],
    epsilon: EpsilonOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write reports.")],
    domain: Annotated[
        list[str] | None,
        typer.Option(
            "--domain",
            metavar="A,B,C|@FILE",
            help="All values there can be: with commas, or lines of a file.",
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option("--size", min=2, max=2**32, metavar="NUMBER", help="The values are 0 … size - 1."),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            "--length", metavar="NUMBER", help="Texts of at most so many characters; frequent ones are found."
        ),
    ] = None,
    alphabet: Annotated[
        str | None,
        typer.Option("--alphabet", metavar="TEXT", help="Of such texts: the characters they consist of."),
    ] = None,
    lower: Annotated[
        str | None, typer.Option("--lower", metavar="NUMBER", help="Of numbers: the least there can be.")
    ] = None,
    upper: Annotated[
        str | None, typer.Option("--upper", metavar="NUMBER", help="Of numbers: the greatest there can be.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help=f"auto, {', '.join(FREQUENCIES)}; of numbers: {', '.join(NUMBERS)}.",
        ),
    ] = "auto",
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out rows without a value of this kind.")
    ] = False,
    append: Annotated[
        bool, typer.Option("--append", help="Write behind the reports of an existing file.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Randomise a column, each row by itself, into a file of reports."""
    from sfumato.local.wire import write_reports

    listed = None if domain is None else texts_of(domain)
    values_of = Values(listed, size, length, alphabet, lower, upper)
    with spinner("randomising", quiet=json_):
        values, missing = column_of(file, column, values_of.kind, skip_missing=skip_missing)
        randomizer = values_of.randomizer(method, epsilon, len(values))
        if append and method == "auto":
            randomizer = _as_before(output, randomizer)
        try:
            people = write_reports(output, randomizer, _reports(randomizer, values), append=append)
        except InvalidValue as error:
            raise NotEncoded(f"{error}{values_of.hint}") from None
    bytes_ = randomizer.report_dtype.itemsize * math.prod(randomizer.report_shape)
    if json_:
        emit_json(
            {
                "path": str(output),
                "reports": len(values),
                "people": people,
                "missing": missing,
                "bytes_per_report": bytes_,
                "randomizer": _brief(randomizer),
            }
        )
        return
    say(f"Wrote {len(values):,} reports to {output}.", style="good")
    say()
    total = f", {people:,} in all" if people != len(values) else ""
    paragraph(
        f"{type(randomizer).__name__}, {bytes_:,} byte{'s' * (bytes_ != 1)} a report{total}. Whoever reads "
        f"one learns at most epsilon {key(randomizer.epsilon)} about the value behind it. Each row counts as "
        "another person: who has several rows pays for each."
    )
    if missing:
        say()
        paragraph(
            f"{missing:,} row{'s' * (missing != 1)} without a value sent no report. Who sends none can be "
            "seen: where that must not tell, give everybody a value."
        )
    say()
    say(f"  sfumato local aggregate {output}")


@app.command("aggregate")
@reported
def aggregate(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Files of reports, or sums kept by --save.")
    ],
    confidence: Annotated[float, typer.Option("--confidence", help="That of the intervals.")] = 0.95,
    top: Annotated[
        int, typer.Option("--top", min=1, help="How many values to list, most frequent first.")
    ] = 20,
    delta: Annotated[
        str | None,
        typer.Option("--delta", metavar="NUMBER", help="Also tell the central epsilon of shuffled reports."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep the sums, to be merged elsewhere.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the estimates, as .png or .svg.")
    ] = None,
    label: Annotated[
        str, typer.Option("--label", metavar="TEXT", help="What the values are, for the picture: age.")
    ] = "",
    json_: JsonOption = False,
) -> None:
    """Add up reports and estimate what people have, with intervals."""
    from sfumato.local.wire import aggregate_to_json

    if save is not None and save.exists() and not _begins(save, _SUMS):
        raise InvalidParameter(f"{save} exists and is not a file of sums: --save would destroy it.")
    with spinner("adding up", quiet=json_):
        total = _sums(files)
        estimate = total.estimate(confidence)
        central = None if delta is None else _central(total, delta)
    # The picture first: a wrong ending is noticed before anything is written.
    if plot is not None:
        estimates.draw(estimate, plot, label=label)
    if save is not None:
        _keep(save, aggregate_to_json(total))
    if json_:
        document: dict[str, Any] = {"people": total.count, "confidence": confidence}
        document |= {"randomizer": _brief(total.randomizer), **estimates.plain(estimate)}
        emit_json(document | ({} if central is None else {"central": central}))
        return
    estimates.tell(total, estimate, top)
    if central is not None:
        say()
        paragraph(
            f"If a shuffler forgets who sent what, all reports together are ({central['epsilon']:.3g}, "
            f"{central['delta']:g})-DP towards whoever sees what it passes on."
        )
    for path in (target for target in (save, plot) if target is not None):
        say()
        say(f"Wrote {path}.", style="good")


@app.command("recommend")
@reported
def recommend(
    epsilon: EpsilonOption,
    size: Annotated[
        int, typer.Option("--size", min=2, max=2**32, metavar="NUMBER", help="How many values there are.")
    ],
    people: Annotated[int, typer.Option("--people", metavar="NUMBER", help="How many will report.")],
    json_: JsonOption = False,
) -> None:
    """Which randomizer counts best, and how well, before anybody reports."""
    from sfumato.local import recommend as compare
    from sfumato.local.recommend import percent
    from sfumato.mechanisms import Geometric

    comparison = compare(epsilon, size, people)
    trusted = Geometric(epsilon, 1).error(0.95)
    if json_:
        emit_json(
            {
                "randomizer": _brief(comparison.randomizer),
                "why": comparison.why,
                "alternatives": comparison.table.to_pylist(),
                "error_with_a_steward": trusted,
            }
        )
        return
    table(
        {
            "randomizer": [alternative.name for alternative in comparison.alternatives],
            "error": [f"± {_figure(alternative.error)}" for alternative in comparison.alternatives],
            "of all": [percent(alternative.error / people) for alternative in comparison.alternatives],
            "bytes": [alternative.bytes for alternative in comparison.alternatives],
            "server": [_seconds(alternative.seconds) for alternative in comparison.alternatives],
        }
    )
    say()
    paragraph(comparison.why.replace(" %", f"{HARD}%").replace("± ", f"±{HARD}"))
    say()
    paragraph(
        f"A steward who sees the values would count to ± {_figure(trusted)} at this epsilon: that is what it "
        "costs to trust nobody."
    )


@app.command("design")
@reported
def design(
    error: Annotated[
        str,
        typer.Option(
            "--error", metavar="NUMBER", help="The half-width wanted: a share of the people, or of a mean."
        ),
    ],
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", metavar="NUMBER", help="The price; tells how many people.")
    ] = None,
    people: Annotated[
        int | None, typer.Option("--people", metavar="NUMBER", help="How many report; tells the price.")
    ] = None,
    size: Annotated[
        int | None,
        typer.Option("--size", min=2, max=2**32, metavar="NUMBER", help="How many values there are."),
    ] = None,
    lower: Annotated[
        str | None, typer.Option("--lower", metavar="NUMBER", help="Of numbers: the least there can be.")
    ] = None,
    upper: Annotated[
        str | None, typer.Option("--upper", metavar="NUMBER", help="Of numbers: the greatest there can be.")
    ] = None,
    confidence: Annotated[
        str, typer.Option("--confidence", metavar="NUMBER", help="How often it is that close.")
    ] = "0.95",
    json_: JsonOption = False,
) -> None:
    """How many people a wanted accuracy takes, or what price."""
    from sfumato.local import design as designed

    if (epsilon is None) == (people is None):
        raise InvalidParameter(
            "Give --epsilon to find how many people it takes, or --people to find the price; not both."
        )
    if (size is None) == (lower is None) or (lower is None) != (upper is None):
        raise InvalidParameter("Give --size, how many values there are, or --lower and --upper of numbers.")
    plan = designed(
        error, epsilon=epsilon, people=people, domain=size, lower=lower, upper=upper, confidence=confidence
    )
    if json_:
        emit_json(
            {
                "epsilon": float(plan.epsilon),
                "people": plan.people,
                "error": plan.error,
                "confidence": plan.confidence,
                "randomizer": _brief(plan.randomizer),
                "error_with_a_steward": plan.steward,
            }
        )
        return
    paragraph(str(plan).replace(" %", f"{HARD}%").replace("± ", f"±{HARD}"))


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _seconds(value: float) -> str:
    if value < 1:
        return "< 1 s"
    return f"{value:,.0f} s" if value < 100 else f"{value / 60:,.0f} min"


def _as_before(output: Path, randomizer: Randomizer[Any]) -> Randomizer[Any]:
    """The randomizer of an existing file, if it has the same epsilon and domain.

    Which one is the best depends on how many report: more people on another day must not split a file in two.
    """
    from sfumato.local.wire import read_reports

    if not output.exists():
        return randomizer
    kept = read_reports(output).randomizer
    same = (
        getattr(kept, "domain", None) == getattr(randomizer, "domain", randomizer)
        and kept.epsilon == randomizer.epsilon
    )
    return kept if same else randomizer


def _reports(randomizer: Randomizer[Any], values: pa.ChunkedArray) -> Iterator[NDArray[Any]]:
    for start in range(0, len(values), _CHUNK):
        yield randomizer.encode(values.slice(start, _CHUNK).to_numpy())


def _sums(files: Sequence[Path]) -> Aggregate[Any]:
    """All files added up, be they reports or sums."""
    from sfumato.local.wire import aggregate_from_json, aggregate_reports, distinct

    total: Aggregate[Any] | None = None
    paths = distinct(files)
    reports = [source for source in paths if not _is_json(source)]
    if reports:
        total = aggregate_reports(reports)
    for path in (source for source in paths if _is_json(source)):
        try:
            sums = aggregate_from_json(path.read_bytes())
        except (InvalidValue, InvalidParameter) as error:
            raise SourceUnusable(f"{path}: {error}") from None
        total = sums if total is None else total + sums
    if total is None:
        raise InvalidParameter("Name at least one file of reports.")
    if not total.count:
        raise SourceUnusable("There are no reports in these files.")
    return total


def _is_json(path: Path) -> bool:
    return _begins(path, b"{")


def _begins(path: Path, with_: bytes) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(with_)) == with_
    except OSError:
        return False  # told when it is opened as a file of reports


def _central(total: Aggregate[Any], delta: str) -> dict[str, float]:
    from sfumato.local.shuffle import shuffled
    from sfumato.numeric.exact import probability

    small = probability(delta, "delta")
    return {"epsilon": shuffled(total.randomizer, total.count, small), "delta": float(small)}


def _keep(path: Path, text: str) -> None:
    try:
        write_whole(path, f"{text}\n".encode())
    except OSError:
        raise SourceUnusable(f"{path} could not be written.") from None


def _brief(randomizer: Randomizer[Any]) -> dict[str, Any]:
    """What made the reports, but for a long list of values."""
    data = randomizer.to_dict()
    return {name: data[name] for name in ("kind", "epsilon")} | {"name": type(randomizer).__name__}
