"""What the commands of `sfumato attack` share: options, columns of files, private rows, how it is told."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.attack_promise import Promise
from sfumato.cli.commas import listed
from sfumato.cli.output import emit_json, paragraph, say
from sfumato.errors import InvalidParameter, SourceUnusable

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.attacks import Outcome

__all__ = [
    "STAGES",
    "STEWARD",
    "EpsilonOption",
    "FileArgument",
    "LeakOption",
    "PlotOption",
    "SeedOption",
    "at_epsilon",
    "binary_columns",
    "columns_in",
    "divided",
    "listed",
    "names_in",
    "part_and_whole",
    "picture",
    "price",
    "tell",
    "two_valued",
]

STAGES = "reading", "attacking what is released", "attacking private answers"
STEWARD = "Scored against the truth, paid for by nobody: for the steward, not for analysts."
_PICTURES = (".png", ".svg")

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="A file, folder, glob, or file.duckdb::table.")
]
EpsilonOption = Annotated[
    str, typer.Option("--epsilon", metavar="NUMBER", help="What the private side may cost, in all.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the outcomes, as .png or .svg.")
]
LeakOption = Annotated[
    float,
    typer.Option(
        "--leak", metavar="SHARE", help="Share of people in a leak that must be noticed for an all-clear."
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="NUMBER", min=0, help="For the same choice of people again; noise is always fresh."
    ),
]


# ── what was asked for


def price(epsilon: str) -> Fraction:
    """The epsilon of the private side.

    Raises:
        InvalidParameter: if it is not a number above 0.
    """
    from sfumato.numeric.exact import positive

    return positive(epsilon, "epsilon")


def at_epsilon(what: str, epsilon: Fraction) -> str:
    """What is attacked, with what it costs: `averages at epsilon 1`."""
    from sfumato.numeric.exact import show

    return f"{what} at epsilon {show(epsilon)}"


def picture(path: Path | None) -> None:
    """Refuse a path that no picture can be written to, before anything is read.

    Raises:
        InvalidParameter: if it has another ending, there is no such folder, or nothing can be written there.
    """
    if path is None:
        return
    if path.suffix.lower() not in _PICTURES:
        raise InvalidParameter("--plot draws a picture: give a file that ends in .png or .svg.")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise InvalidParameter(f"There is no folder for {path.name[:100]}; make it first.")
    if os.path.isdir(path):
        raise InvalidParameter(f"{path.name[:100]} is a folder; name a file for the picture.")
    # Only to write tells: rights, a full disk, a name that is too long. Gone again at once.
    with _writing(path), tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}.", suffix=".part"):
        pass


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say in one sentence that a picture cannot be written."""
    try:
        yield
    except OSError:
        raise InvalidParameter(
            f"{path.name[:100]} cannot be written there; check the folder, its rights and its room."
        ) from None


# ── columns of files


def columns_in(file: str, names: Sequence[str]) -> pa.Table:
    """These columns of a file under these names, all rows in their order.

    Raises:
        InvalidParameter: if there is no such file, no such column, or no row.
        SourceUnusable: if the file cannot be read.
    """
    from sfumato.attacks.matching import read

    _located(file)
    return read(file, names)


def part_and_whole(file: str, names: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """These columns of a file under these names, and all of its columns; all rows in their order.

    Raises:
        InvalidParameter: if there is no such file, no such column, or no row.
        SourceUnusable: if the file cannot be read.
    """
    from sfumato.attacks.matching import selected

    _located(file)
    return selected(file, names)


def names_in(file: str) -> list[str]:
    """The names of a file's columns.

    Raises:
        InvalidParameter: if there is no such file, or it is not a table.
        SourceUnusable: if the file cannot be read.
    """
    from sfumato.anonymity.tables import names_of

    _located(file)
    return names_of(file)


def _located(file: str) -> None:
    from sfumato.engines.sources import locate

    try:
        locate(file)
    except SourceUnusable as error:
        # Nothing was read yet: what is wrong is how the command was called.
        raise InvalidParameter(str(error)) from None


def two_valued(table: pa.Table, name: str) -> NDArray[np.bool_] | None:
    """Which rows have the greater of a column's two values; None if it has gaps, or more values than two."""
    from sfumato.anonymity.codes import encode

    coded = encode(table, name)
    if len(coded.values) > 2 or coded.proper < len(coded.values):
        return None
    is_greater: NDArray[np.bool_] = coded.codes == 1
    return is_greater


def binary_columns(file: str, names: list[str]) -> NDArray[np.float64]:
    """Columns of two values as zeros and ones; those that are such, if none is named.

    Raises:
        InvalidParameter: if one that is named has other values or gaps, or none has two.
    """
    import numpy as np

    wanted = names or names_in(file)
    table = columns_in(file, wanted)
    columns = []
    for name in wanted:
        bits = None
        with suppress(InvalidParameter):  # of lists, which have no order
            bits = two_valued(table, name)
        if bits is None and names:
            raise InvalidParameter(f'Column "{name[:100]}" must have two values, and one in each row.')
        if bits is not None:
            columns.append(bits)
    if not columns:
        raise InvalidParameter("No column has two values, and one in each row; tracing is about such.")
    return np.stack(columns, axis=1).astype(np.float64)


def divided(table: pa.Table, seed: int | None, *, most: int | None = None) -> tuple[pa.Table, pa.Table]:
    """A random half of the rows, or `most` of them if that is less, and the others.

    Raises:
        InvalidParameter: if there are too few rows.
    """
    from sfumato.random import simulation

    if table.num_rows < 2:
        raise InvalidParameter("There is one row; half of the rows serve as control, so give at least two.")
    order = simulation(seed).permutation(table.num_rows)
    half = table.num_rows // 2 if most is None else min(most, table.num_rows // 2)
    return table.take(order[:half]), table.take(order[half:])


# ── what came out


def tell(
    outcomes: Sequence[Outcome],
    *notes: str,
    title: str = "",
    plot: Path | None,
    json_: bool,
    words: Sequence[str] | None = None,
    more: Mapping[str, object] | None = None,
    promised: Promise | None = None,
) -> None:
    """Write the outcomes one after the other, what is to be said of them, and for whom they are.

    Args:
        outcomes: What the attacks reached: of the plain side first.
        notes: Paragraphs to follow.
        title: Of the picture.
        plot: Where to draw them.
        json_: Whether to write them as one document instead.
        words: What to say in place of the outcomes, where a rate would mislead.
        more: Further entries of the document.
        promised: What the last outcome's release promises, where its guess is one that this bounds.
    """
    from sfumato.attacks import compare

    if plot is not None:
        with _writing(plot):
            compare(outcomes, title=title, path=plot)
    if json_:
        told = [outcome.to_dict() for outcome in outcomes]
        if promised is not None:
            told[-1] |= promised.to_dict(outcomes[-1])
        document = {"outcomes": told, "note": " ".join(filter(None, notes)), "steward_only": True}
        drawn = {} if plot is None else {"plot": str(plot)}
        emit_json(document | dict(more or {}) | drawn)
        return
    if words is not None:
        for text in words:
            paragraph(text)
            say()
    else:
        for outcome in outcomes:
            reached, guess, verdict = outcome.words
            paragraph(reached)
            paragraph(guess)
            style: str | None = "bad" if outcome.works else "dim" if outcome.undecided else "good"
            if promised is not None and outcome is outcomes[-1]:
                verdict, style = promised.verdict(outcome, verdict, style)
            paragraph(verdict, style=style)
            say()
    for note in filter(None, notes):
        paragraph(note)
        say()
    if plot is not None:
        say(f"Wrote {plot}.", style="good")
        say()
    paragraph(STEWARD, style="dim")
