"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AnalystOption", "ConfigOption", "JsonOption", "LedgerOption", "ReasonOption"]

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
