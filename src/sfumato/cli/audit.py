"""`sfumato audit`: every privacy claim of this package, held against samples."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.failures import reported
from sfumato.cli.opening import read_catalog, state_folder
from sfumato.cli.options import ConfigOption, JsonOption
from sfumato.cli.output import emit_json, paragraph, progress_bar, say, table
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.audit import Audit

__all__ = ["audit"]

_SAMPLES, _FEW = 200_000, 5_000
_PROCESSES = 2


@reported
def audit(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="What to audit: laplace, client, query, …; all if left out."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", metavar="NUMBER", help="How many outputs to draw a side; 200000 by default."
        ),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Few samples: some seconds, and only gross lies are caught.")
    ] = False,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence", metavar="NUMBER", help="How surely no honest claim at all is called broken."
        ),
    ] = 0.999,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the result beside the ledger's key; the server shows it.")
    ] = False,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Hold every privacy claim of this package against samples.

    The exit code is 4 where a claim is broken.
    """
    if fast and samples is not None:
        raise InvalidParameter(
            "--fast says how many samples to draw, and so does --samples; give one of them."
        )
    from sfumato import __version__
    from sfumato.audit import run
    from sfumato.audit.kept import FILE
    from sfumato.audit.kept import keep as keep_audit

    place = state_folder(read_catalog(config)) / FILE if keep else None
    count = (_FEW if fast else _SAMPLES) if samples is None else samples
    with progress_bar("auditing", quiet=json_) as progress:
        audited = run(
            names,
            samples=count,
            confidence=confidence,
            processes=_processes(),
            progress=lambda done, of, name: progress(done / of, f"audited {name}"),
        )
    if place is not None:
        keep_audit(place, audited, version=__version__)
    _tell(audited, json_=json_)


def _processes() -> int:
    return max(1, min(_PROCESSES, os.cpu_count() or 1))


def _tell(audited: Audit, *, json_: bool) -> None:
    if json_:
        emit_json(audited.to_dict())
    else:
        table(audited.columns())
        say()
        paragraph(audited.words, style="bad" if audited.broken else "good")
    if audited.broken:
        raise typer.Exit(4)
