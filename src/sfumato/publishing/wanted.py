"""What a release file lists, as it was written: unknown keys are refused, and nothing is guessed."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.catalog.keys import nearest
from sfumato.catalog.toml_text import NotToml, parsed, text_of_file
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.numeric.exact import as_integer, delta_of, positive
from sfumato.session.series.calendar import EVERY

__all__ = ["KEYS", "FileUnusable", "Kind", "ReleaseFile", "Wanted", "about", "read"]

Kind: TypeAlias = Literal["series", "question"]

KEYS: dict[str, dict[str, str]] = {
    "": {
        "catalog": "the sfumato.toml to use; by default the one beside this file",
        "folder": "where the files go, relative to this one",
        "analyst": "in whose name to ask, if anyone's",
        "title": "what the page is called",
        "series": "questions that are paid for once, for all of their steps",
        "question": "questions that are asked about each window, and paid for each time",
    },
    "series": {
        "name": "of its files",
        "sql": "a SELECT that is grouped by one date, and by public keys",
        "start": "the date of the first step",
        "horizon": "how many steps there are at most",
        "epsilon": "the price of all steps together",
        "delta": "its other half",
        "of": '"running" (the default), "window" or "steps": what its numbers are',
        "window": 'for "window": over how many steps they go',
        "zone": 'the time zone in which a step ends ("UTC")',
        "max_steps": "in how many steps a unit counts: the first in which it has rows; in all unless given",
    },
    "question": {
        "name": "of its files",
        "sql": "a SELECT with $window, or with $from and $to",
        "every": "how long a window is: " + ", ".join(EVERY),
        "start": "where the first window begins",
        "epsilon": "the price of each window",
        "delta": "its other half; 0 unless given",
        "zone": 'the time zone in which a window ends ("UTC")',
    },
}
_OPTIONAL = ("of", "window", "zone", "max_steps")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_OF = ("running", "window", "steps")


class FileUnusable(InvalidParameter):
    """A release file is missing, unreadable, or says something that cannot be."""

    headline = "The release file cannot be used; nothing was spent."


@dataclass(frozen=True, slots=True)
class Wanted:
    """One release of a file.

    Attributes:
        kind: "series" or "question".
        name: Of its files.
        sql: What is asked.
        start: Where its first step or window begins.
        epsilon: The price: of a series in all, of a question for each window.
        delta: Its other half.
        zone: The time zone in which a step ends.
        every: How long the windows of a question are.
        horizon: How many steps a series has at most.
        of: What the numbers of a series are.
        window: Over how many steps they go.
        max_steps: In how many steps of a series a unit counts; None: in all of them.
    """

    kind: Kind
    name: str
    sql: str
    start: str
    epsilon: Fraction
    delta: Fraction
    zone: str = "UTC"
    every: str = ""
    horizon: int = 0
    of: str = "running"
    window: int | None = None
    max_steps: int | None = None

    @property
    def where(self) -> str:
        """How messages call it."""
        return f"{self.kind} {self.name}"

    def to_dict(self) -> dict[str, Any]:
        """All that decides what is bought: a release that is published keeps to it."""
        terms: dict[str, Any] = {
            "kind": self.kind,
            "sql": " ".join(self.sql.split()),
            "start": self.start,
            "zone": self.zone,
            "epsilon": _exact(self.epsilon),
            "delta": _exact(self.delta),
        }
        if self.kind == "question":
            return terms | {"every": self.every}
        terms |= {"horizon": self.horizon, "of": self.of, "window": self.window}
        return terms if self.max_steps is None else terms | {"max_steps": self.max_steps}


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """What a file lists.

    Attributes:
        path: The file.
        catalog: The steward's file that it names, or the one beside it; None: neither is there.
        folder: Where its files go.
        analyst: In whose name to ask, if anyone's.
        title: What the page is called.
        wanted: Its releases, in order.
    """

    path: Path
    catalog: Path | None
    folder: Path
    analyst: str | None
    title: str
    wanted: tuple[Wanted, ...]


@contextmanager
def about(where: str) -> Iterator[None]:
    """Say of a refusal what in the file it is about."""
    try:
        yield
    except FileUnusable:
        raise
    except QueryRefused as error:
        raise QueryRefused(f"{where}: {error.reason}", error.fix) from None
    except InvalidParameter as error:
        raise FileUnusable(f"{where}: {error.shell or error}") from None


def read(path: Path) -> ReleaseFile:
    """The releases that a file lists.

    Raises:
        FileUnusable: if it is missing or unreadable, lacks a key or has one that is not known.
    """
    data = _load(path)
    _check_keys("", data, path.name)
    folder = path.parent
    wanted = [*_listed(data, "series"), *_listed(data, "question")]
    if not wanted:
        raise FileUnusable(f"{path.name} lists nothing to publish: add a [[series]] or a [[question]].")
    names = [each.name.lower() for each in wanted]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FileUnusable(f"Two releases are called {twice}, and would write the same files: rename one.")
    if "folder" not in data:
        raise FileUnusable(f'{path.name} lacks folder, where its files go: folder = "public".')
    beside = folder / "sfumato.toml"
    catalog = beside if beside.is_file() else None
    return ReleaseFile(
        path=path,
        catalog=folder / _text(data, "catalog", path.name) if "catalog" in data else catalog,
        folder=folder / _text(data, "folder", path.name),
        analyst=_text(data, "analyst", path.name) if "analyst" in data else None,
        title=_text(data, "title", path.name) if "title" in data else "Private figures",
        wanted=tuple(wanted),
    )


def _exact(value: Fraction) -> str:
    short = f"{float(value):.15g}"
    return short if Fraction(short) == value else str(value)


def _load(path: Path) -> dict[str, Any]:
    try:
        return parsed(text_of_file(path))
    except FileNotFoundError:
        raise FileUnusable(f"There is no {path}: sfumato publish takes a file that lists releases.") from None
    except OSError:
        raise FileUnusable(f"{path} cannot be read.") from None
    except NotToml as error:
        raise FileUnusable(f"{path.name} {error}.") from None


def _check_keys(kind: str, data: Mapping[str, Any], where: str) -> None:
    for key in data:
        if key not in KEYS[kind]:
            raise FileUnusable(f"{where}: there is no setting {key[:40]!r}.{nearest(key, KEYS[kind])}")


def _listed(data: Mapping[str, Any], kind: Kind) -> list[Wanted]:
    entries = data.get(kind, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise FileUnusable(f"{kind} is a list: write [[{kind}]] above each of them.")
    return [_wanted(kind, entry, place) for place, entry in enumerate(entries, start=1)]


def _wanted(kind: Kind, entry: Mapping[str, Any], place: int) -> Wanted:
    name = entry.get("name")
    where = f"{kind} {name[:40]}" if isinstance(name, str) and name else f"{kind} number {place}"
    _check_keys(kind, entry, where)
    free = (*_OPTIONAL, "delta") if kind == "question" else _OPTIONAL
    missing = [key for key in KEYS[kind] if key not in entry and key not in free]
    if missing:
        raise FileUnusable(f"{where} lacks {missing[0]}: {KEYS[kind][missing[0]]}.")
    if _NAME.fullmatch(_text(entry, "name", where)) is None:
        raise FileUnusable(f"{where}: a name of files has letters of English, digits, - and _, at most 64.")
    if kind == "series" and (entry.get("of") == "window") != ("window" in entry):
        raise FileUnusable(f'{where}: of = "window" goes with the number of steps: window = 7.')
    with about(where):
        return Wanted(
            kind=kind,
            name=entry["name"],
            sql=_text(entry, "sql", where),
            start=_start(entry["start"], where),
            epsilon=positive(_number(entry, "epsilon", where), "epsilon"),
            delta=delta_of(_number(entry, "delta", where) if "delta" in entry else 0),
            zone=_text(entry, "zone", where) if "zone" in entry else "UTC",
            every=_one_of(entry["every"], "every", EVERY, where) if kind == "question" else "",
            horizon=as_integer(entry["horizon"], "horizon") if kind == "series" else 0,
            of=_one_of(entry.get("of", "running"), "of", _OF, where),
            window=as_integer(entry["window"], "window") if "window" in entry else None,
            max_steps=as_integer(entry["max_steps"], "max_steps") if "max_steps" in entry else None,
        )


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value.strip():
        raise FileUnusable(f"{where}: {key} must be text.")
    return value


def _number(entry: Mapping[str, Any], key: str, where: str) -> Any:
    value = entry[key]
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise FileUnusable(f"{where}: {key} must be a number.")
    return value


def _start(value: object, where: str) -> str:
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if not isinstance(value, str):
        raise FileUnusable(f"{where}: start must be a date, such as start = 2026-01-01.")
    return value


def _one_of(value: object, key: str, known: tuple[str, ...], where: str) -> str:
    if value not in known:
        listed = ", ".join(known[:-1])
        raise FileUnusable(f"{where}: {key} must be {listed} or {known[-1]}.")
    return str(value)
