"""`sfumato ledger backup` and `restore`: copies that cannot refill a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.allot import app
from sfumato.cli.failures import reported
from sfumato.cli.opening import acting, ledger_place
from sfumato.cli.options import LedgerOptions, spread
from sfumato.cli.output import emit_json, paragraph, spinner

__all__ = ["app"]

_ACCOUNTS = ".accounts"  # what the accounts of a server are called, beside the ledger


@app.command("backup")
@reported
@spread
def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write it; new or empty.")],
    *,
    place: LedgerOptions,
) -> None:
    """Copy the ledger and the server's accounts, also while they are in use."""
    acting()
    from sfumato.ledger.backup import back_up

    where, state = ledger_place(place.config, place.ledger)
    accounts = Path(f"{where}{_ACCOUNTS}").absolute()
    others = [accounts] if "://" not in where and accounts.exists() else []
    with spinner("copying", quiet=place.json_):
        made = back_up(where, folder, state=state, others=others)
    if place.json_:
        emit_json({"folder": str(folder), "receipts": made.number, "time": made.time, "files": made.files})
        return
    paragraph(
        f"{folder} has the ledger up to receipt {made.number:,}{', and the accounts' if others else ''}. Key "
        "and anchor are not in it: keep the key in a safe place of its own, and make no copy of the anchor."
    )


@app.command("restore")
@reported
@spread
def restore(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What backup wrote.")],
    *,
    place: LedgerOptions,
) -> None:
    """Put a copy in the ledger's place, if its anchor shows that nothing was spent since."""
    acting()
    from sfumato.ledger.backup import restore as put_in_place

    where, state = ledger_place(place.config, place.ledger)
    with spinner("checking the copy", quiet=place.json_):
        done = put_in_place(folder, where, state=state)
        accounts = _accounts(folder, where)
    if place.json_:
        emit_json(
            {
                "receipts": done.number,
                "anchored": done.anchored,
                "accounts": accounts,
                "aside": [str(path) for path in done.aside],
            }
        )
        return
    paragraph(f"The ledger is restored, up to receipt {done.number:,}.")
    if done.aside:
        paragraph(f"What was in its place is {done.aside[0]}.")
    if not done.anchored:
        paragraph(
            "Its anchor is gone, so that nobody can tell whether something was spent since: it opens only "
            "once you adopt it, sfumato ledger adopt --reason …, and what was spent since is then given back."
        )
    if accounts:
        paragraph("The accounts are back without their tokens: issue new ones, sfumato account token NAME.")


def _accounts(folder: Path, where: str) -> bool:
    """Puts the accounts back where there are none; whether it did."""
    from sfumato.server.access.copies import put_back

    path = Path(f"{where}{_ACCOUNTS}").absolute()
    copies = [copy for copy in folder.iterdir() if copy.name.endswith(_ACCOUNTS)]
    return bool(copies) and put_back(copies[0], path)
