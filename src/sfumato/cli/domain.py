"""What `sfumato local encode` reads: the values there can be, as its options say it, and the column."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.cli.commas import listed
from sfumato.errors import InvalidParameter, InvalidValue, SourceUnusable
from sfumato.render import without_password

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.local import Randomizer
    from sfumato.schema import Kind

__all__ = ["FREQUENCIES", "NUMBERS", "NotEncoded", "Values", "column_of", "texts_of"]

FREQUENCIES = {
    "binary": "BinaryResponse",
    "kary": "KaryResponse",
    "unary": "UnaryEncoding",
    "subset": "SubsetSelection",
    "hashing": "LocalHashing",
    "hadamard": "HadamardResponse",
    "sketch": "CountMeanSketch",
    "rappor": "Rappor",
}
NUMBERS = {
    "duchi": "DuchiMean",
    "piecewise": "PiecewiseMean",
    "hybrid": "HybridMean",
    "quantiles": "LocalQuantiles",
}
_A_KIND = {"float": "a number", "integer": "a whole number", "text": "text"}


class NotEncoded(InvalidValue):
    """A value that cannot be randomised; no file was written."""

    headline = "A value cannot be used; nothing was written."


@dataclass(frozen=True, slots=True)
class Values:
    """What values there can be, as the options say it.

    Raises:
        InvalidParameter: unless it is said in one way.
    """

    domain: tuple[str, ...] | None
    size: int | None
    length: int | None
    alphabet: str | None
    lower: str | None
    upper: str | None

    def __post_init__(self) -> None:
        if (self.lower is None) != (self.upper is None):
            raise InvalidParameter("Numbers need both --lower and --upper.")
        ways = (self.domain, self.size, self.length, self.lower)
        if sum(way is not None for way in ways) != 1:
            raise InvalidParameter(
                "Say what values there can be, in one way: --domain A,B,C for texts, --size for 0 … size-1, "
                "--length for texts that nobody can list, or --lower and --upper for numbers. They must not "
                "be read off the data."
            )
        if self.alphabet is not None and self.length is None:
            raise InvalidParameter("--alphabet is for texts that nobody can list; give their --length, too.")

    @property
    def kind(self) -> Kind:
        """That of the column."""
        return "float" if self.lower is not None else "integer" if self.size is not None else "text"

    @property
    def hint(self) -> str:
        """What an option could do about a value that is not one of them; begins with a space, or is empty."""
        return " Other characters are allowed by --alphabet." if self.length is not None else ""

    def randomizer(self, method: str, epsilon: str, people: int) -> Randomizer[Any]:
        """The one that was named, or the best one."""
        from sfumato import local

        known = NUMBERS if self.lower is not None else ("heavy",) if self.length else FREQUENCIES
        if method not in ("auto", *known):
            raise InvalidParameter(f"--method is one of auto, {', '.join(known)} for such values.")
        randomizer: Randomizer[Any]
        if self.lower is not None:
            randomizer = getattr(local, NUMBERS["hybrid" if method == "auto" else method])(
                epsilon, self.lower, self.upper
            )
        elif self.length is not None:
            randomizer = local.HeavyHitters(epsilon, length=self.length, alphabet=self.alphabet)
        else:
            values = self.size if self.size is not None else list(self.domain or ())
            if method == "auto":
                randomizer = local.recommend(epsilon, values, max(people, 1)).randomizer
            else:
                randomizer = getattr(local, FREQUENCIES[method])(epsilon, values)
        return randomizer


def texts_of(given: Sequence[str]) -> tuple[str, ...]:
    """The values that `--domain` lists, each time it is given: with commas, or `@` and a file of lines.

    Raises:
        InvalidParameter: for a file that cannot be read, or a value that is listed twice.
    """
    values = [value for text in given for value in (_lines(text[1:]) if text[:1] == "@" else listed([text]))]
    if len(set(values)) < len(values):
        raise InvalidParameter("--domain lists a value more than once; list each of them once.")
    return tuple(values)


def _lines(path: str) -> list[str]:
    """The lines of a file as they are, without those that have nothing but blanks."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except (OSError, ValueError):
        raise InvalidParameter(
            f"--domain @FILE needs a text file in UTF-8 with a value in each line; {path[:100]} is not one."
        ) from None
    return [line for raw in text.split("\n") if (line := raw.removesuffix("\r")).strip()]


def column_of(file: str, column: str, kind: Kind, *, skip_missing: bool) -> tuple[pa.ChunkedArray, int]:
    """The values of a column, each in the one form of its kind, and how many rows had none.

    Raises:
        InvalidParameter: for a column that is not there.
        NotEncoded: for rows without a value, unless they are to be left out.
        SourceUnusable: if the table cannot be read, or nobody is in it.
    """
    from sqlglot import exp

    from sfumato.anonymity.tables import columns_of
    from sfumato.engines import engine as open_engine
    from sfumato.engines.base import engine_of

    shown = f'The source "{without_password(file)[:200]}"'
    with closing(open_engine(engine_of([file]))) as engine:
        names = list(engine.schema(file))
        (place,) = columns_of(names, [column], shown)
        engine.attach("people", file, {names[place]: kind})
        people = exp.Table(this=exp.to_identifier("people", quoted=True))
        wanted = exp.select(exp.column(names[place], quoted=True)).from_(people)
        values = engine.fetch(wanted).column(0)
    missing = values.null_count
    if missing and not skip_missing:
        raise NotEncoded(
            f"{column} has rows without a value, or with one that is not {_A_KIND[kind]}: --skip-missing "
            "leaves them out."
        )
    if len(values) == missing:
        nobody = f"no row of {shown} has a value in {column}" if missing else f"{shown} has no rows"
        raise SourceUnusable(f"There is nobody to report: {nobody}.")
    return values.drop_null(), missing
