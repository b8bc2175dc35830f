"""`sfumato account`: who may log in to the server, and with which tokens."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato._dataclasses import dataclass
from sfumato.cli.failures import reported
from sfumato.cli.opening import acting, ledger_of_accounts, ledger_place
from sfumato.cli.options import LedgerOptions, spread
from sfumato.cli.output import emit_json, note, paragraph, say, table, unbroken

if TYPE_CHECKING:
    from sfumato.ledger import Steward
    from sfumato.server.access import Accounts, TokenInfo, Witness
    from sfumato.server.access.record import Ended

__all__ = ["app", "say_ended"]

app = typer.Typer(help="Who may log in to the server, and with which tokens.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Whose account; in any spelling.")]


class _Role(StrEnum):
    analyst = "analyst"
    steward = "steward"
    auditor = "auditor"


@app.command("add")
@reported
@spread
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As the ledger has the analyst.")],
    role: Annotated[_Role, typer.Option("--role", help="What they may do.")] = _Role.analyst,
    *,
    place: LedgerOptions,
) -> None:
    """Add an account: an analyst asks, an auditor reads the ledger, a steward does all."""
    with _acting_on(place, create=True) as act:
        from sfumato.server.access.record import added

        account = act.accounts.add(name, role.value, witness=act.witness(added(role.value)))
    if place.json_:
        emit_json({"name": account.name, "role": account.role.value})
        return
    paragraph(
        f"{account.name} is added as {account.role.value}. They log in with a token: "
        + unbroken(f"sfumato account token {shlex.quote(account.name)}")
    )


@app.command("token")
@reported
@spread
def token(
    name: NameArgument,
    days: Annotated[int, typer.Option("--days", min=1, max=3660, help="How long it is valid.")] = 90,
    *,
    place: LedgerOptions,
) -> None:
    """Issue a token and print it, this once: it is kept nowhere."""
    with _acting_on(place) as act:
        from sfumato.server.access.record import issued

        text, info = act.accounts.issue(name, timedelta(days=days), witness=act.witness(issued(days)))
    if place.json_:
        emit_json({"token": text, **_facts(info)})
        return
    say(text)
    note(
        f"It is {info.name}'s, valid until {info.expires:%Y-%m-%d}, and is not shown again. It is the bearer "
        "token over HTTP, and the password for PostgreSQL clients. To end it: "
        + unbroken(f"sfumato account revoke {info.id}")
    )


@app.command("list")
@reported
@spread
def list_accounts(*, place: LedgerOptions) -> None:
    """List the accounts and what may be known of their tokens."""
    with _opened(place) as accounts:
        listed = accounts.list()
    if place.json_:
        emit_json(
            [
                {
                    "name": entry.account.name,
                    "role": entry.account.role.value,
                    "created": entry.created,
                    "tokens": [_facts(info) for info in entry.tokens],
                }
                for entry in listed
            ]
        )
        return
    if not listed:
        say("There are no accounts.")
        return
    rows = [
        (entry.account.name, entry.account.role.value, *((info.id, _told(info)) if info else ("none", "")))
        for entry in listed
        for info in entry.tokens or (None,)
    ]
    table(dict(zip(("name", "role", "token", "which is"), zip(*rows, strict=True), strict=True)))


@app.command("revoke")
@reported
@spread
def revoke(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as list shows it.")],
    *,
    place: LedgerOptions,
) -> None:
    """End a token for good; every server process refuses it within seconds."""
    with _acting_on(place) as act:
        from sfumato.server.access.record import REVOKED

        info = act.accounts.revoke(id_, witness=act.witness(REVOKED))
    if place.json_:
        emit_json(_facts(info))
        return
    paragraph(f"The token {info.id} of {info.name} is revoked.")


@app.command("remove")
@reported
@spread
def remove(name: NameArgument, *, place: LedgerOptions) -> None:
    """Remove an account and its tokens; what it spent stays on record."""
    with _acting_on(place) as act:
        from sfumato.server.access.record import REMOVED

        removed = act.accounts.remove(name, witness=act.witness(REMOVED))
    if place.json_:
        emit_json({"removed": removed})
        return
    paragraph(f"The account {removed} and its tokens are removed; what it spent stays on record.")


@contextmanager
def _opened(place: LedgerOptions, *, create: bool = False) -> Iterator[Accounts]:
    """The accounts beside the ledger, for a steward."""
    acting()
    from sfumato.server.access import Accounts

    where, state = ledger_place(place.config, place.ledger)
    with Accounts.open(where, state=state, create=create) as accounts:
        yield accounts


def say_ended(ended: Ended) -> None:
    """Say what was taken away because the ledger had it end."""
    if ended.accounts or ended.tokens:
        those = ", ".join([*ended.accounts, *(f"token {token}" for token in ended.tokens)])
        note(
            "The accounts are older than the ledger, by which these were removed, changed or revoked since: "
            f"{those}. They are taken away again."
        )


@dataclass(frozen=True, slots=True)
class _Act:
    """Acts on accounts, on record where a ledger was begun."""

    accounts: Accounts
    steward: Steward | None

    def witness(self, act: str) -> Witness | None:
        """What puts an act on record before it is done for good; None where there is no ledger yet."""
        from sfumato.server.access.record import tell

        steward = self.steward
        return None if steward is None else lambda account, token: tell(steward, act, account, token)


@contextmanager
def _acting_on(place: LedgerOptions, *, create: bool = False) -> Iterator[_Act]:
    """The accounts, held against the ledger, and who puts acts on them on record there."""
    from sfumato.ledger import Steward
    from sfumato.server.access.record import AT_THE_MACHINE

    with _opened(place, create=create) as accounts, ExitStack() as closing:
        ledger = ledger_of_accounts(*ledger_place(place.config, place.ledger))
        if ledger is None:
            yield _Act(accounts, None)
            return
        closing.enter_context(ledger)
        say_ended(accounts.hold(ledger))
        yield _Act(accounts, Steward(ledger, by=AT_THE_MACHINE))


def _facts(info: TokenInfo) -> dict[str, object]:
    return {
        "id": info.id,
        "name": info.name,
        "created": info.created,
        "expires": info.expires,
        "revoked": info.revoked,
        "status": info.status(datetime.now(UTC)),
    }


def _told(info: TokenInfo) -> str:
    status = info.status(datetime.now(UTC))
    ended = info.revoked if info.revoked is not None else info.expires
    words = {"valid": "valid until", "expired": "expired on", "revoked": "revoked on"}
    return f"{words[status]} {ended:%Y-%m-%d}"
