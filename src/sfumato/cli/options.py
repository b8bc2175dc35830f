"""The options that several commands share, and sets of them that a command takes as one value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from sfumato._dataclasses import dataclass
from sfumato.cli.opening import open_ledger, read_catalog

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.ledger import Ledger

__all__ = [
    "AnalystOption",
    "AskerOptions",
    "ConfigOption",
    "JsonOption",
    "LedgerOption",
    "LedgerOptions",
    "ReasonOption",
    "UploadOption",
    "spread",
]

Command = TypeVar("Command", bound=Callable[..., Any])

UploadOption = Annotated[
    int,
    typer.Option(
        "--max-upload",
        metavar="MIB",
        min=0,
        max=1 << 20,
        help="The largest file a steward may send; 0: none.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write one JSON document instead of text.")]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="The sfumato.toml to use; else SFUMATO_CONFIG or the nearest."
    ),
]
LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger", metavar="PATH|URL", help="The ledger to use; else SFUMATO_LEDGER or the toml's."
    ),
]
AnalystOption = Annotated[
    str | None, typer.Option("--analyst", metavar="NAME", help="In whose name to ask; else SFUMATO_ANALYST.")
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, in a few words; kept in the receipt.")]


def spread(command: Command) -> Command:
    """The command with each set of options that it takes, a dataclass, as single options in its place.

    Typer reads the signature: there the fields of the dataclass stand, each with its own declaration and
    default, and what is given for them makes the value that the command is called with.
    """
    taken = inspect.signature(command, eval_str=True)
    sets: dict[str, type[Any]] = {
        name: each.annotation
        for name, each in taken.parameters.items()
        if isinstance(each.annotation, type) and is_dataclass(each.annotation)
    }
    single: list[inspect.Parameter] = []
    for name, each in taken.parameters.items():
        if name not in sets:
            single.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(sets[name], include_extras=True)
        single += [
            inspect.Parameter(
                option.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=types[option.name],
            )
            for option in fields(sets[name])
        ]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        for name, kind in sets.items():
            given[name] = kind(**{option.name: given.pop(option.name) for option in fields(kind)})
        return command(**given)

    run.__signature__ = taken.replace(parameters=single)  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class AskerOptions:
    """Whose question it is, and by which file and ledger it is answered."""

    config: ConfigOption = None
    ledger: LedgerOption = None
    analyst: AnalystOption = None

    def catalog(self) -> Catalog:
        """The catalog that these and the environment point at."""
        return read_catalog(self.config, self.ledger, self.analyst)


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """Which ledger is read or acted on, by which file, and how it is told."""

    config: ConfigOption = None
    ledger: LedgerOption = None
    json_: JsonOption = False

    def open(self) -> AbstractContextManager[Ledger]:
        """The ledger that these, the environment or the catalog name; it must exist."""
        return open_ledger(self.config, self.ledger)
