"""`sfumato ledger backup` and `restore`: copies that cannot refill a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato._dataclasses import dataclass
from sfumato.cli.allot import app
from sfumato.cli.failures import reported
from sfumato.cli.opening import acting, ledger_place
from sfumato.cli.options import LedgerOptions, spread
from sfumato.cli.output import emit_json, paragraph, spinner
from sfumato.errors import LedgerUnusable

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
    from sfumato.ledger.backup import Restored, read
    from sfumato.ledger.backup import restore as put_in_place

    where, state = ledger_place(place.config, place.ledger)
    with spinner("checking the copy", quiet=place.json_):
        held = _receipts_if_held(where, state) if _lost_accounts(folder, where) else None
        if held is None:
            done = put_in_place(folder, where, state=state)
        else:  # the ledger is as it should be, and the accounts alone are lost
            read(folder)
            done = Restored(held, anchored=True, aside=())
        accounts = _accounts(folder, where, state, anchored=done.anchored)
    if place.json_:
        emit_json(
            {
                "receipts": done.number,
                "anchored": done.anchored,
                "accounts": accounts.back,
                "left_out": list(accounts.left_out),
                "aside": [str(path) for path in done.aside],
            }
        )
        return
    if held is None:
        paragraph(f"The ledger is restored, up to receipt {done.number:,}.")
    if done.aside:
        paragraph(f"What was in its place is {done.aside[0]}.")
    if not done.anchored:
        paragraph(
            "Its anchor is gone, so that nobody can tell whether something was spent since: it opens only "
            "once you adopt it, sfumato ledger adopt --reason …, and what was spent since is then given back."
        )
    _say_accounts(accounts)


@dataclass(frozen=True, slots=True)
class _Accounts:
    """Whether accounts were put back, and who of the copy was not, in words."""

    back: bool
    left_out: tuple[str, ...]


def _lost_accounts(folder: Path, where: str) -> Path | None:
    """The copy of the accounts, if there are none in their place."""
    if "://" in where or not folder.is_dir() or Path(f"{where}{_ACCOUNTS}").absolute().exists():
        return None
    return next((copy for copy in folder.iterdir() if copy.name.endswith(_ACCOUNTS)), None)


def _receipts_if_held(where: str, state: Path | None) -> int | None:
    """The last receipt of the ledger in place, if it is there and holds."""
    from sfumato.ledger import Ledger

    try:
        with Ledger.open(where, state=state, create=False) as ledger:
            return ledger.number
    except LedgerUnusable:
        return None


def _accounts(folder: Path, where: str, state: Path | None, *, anchored: bool) -> _Accounts:
    """Puts the accounts back where there are none, as far as the ledger can tell that they hold."""
    from sfumato.ledger import Ledger
    from sfumato.server.access.copies import listed, put_back
    from sfumato.server.access.record import Record

    copy = _lost_accounts(folder, where)
    if copy is None:
        return _Accounts(back=False, left_out=())
    if not anchored:
        return _Accounts(
            back=False, left_out=tuple(f"{account.name} ({account.role.value})" for account in listed(copy))
        )
    with Ledger.open(where, state=state, create=False) as ledger:
        gone = put_back(copy, Path(f"{where}{_ACCOUNTS}").absolute(), Record.of(ledger))
    return _Accounts(back=True, left_out=gone)


def _say_accounts(accounts: _Accounts) -> None:
    names = ", ".join(accounts.left_out)
    if accounts.back:
        paragraph("The accounts are back without their tokens: issue new ones, sfumato account token NAME.")
        if names:
            paragraph(f"Left out, since they were removed or given another role after the copy: {names}.")
    elif names:
        paragraph(
            "The accounts are not put back, since nobody can tell either who was removed since. Once the "
            "ledger is adopted, add whoever may log in, sfumato account add NAME --role ROLE. There were: "
            f"{names}."
        )
