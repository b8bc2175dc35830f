"""The two fronts of a house, made for its accounts."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sfumato.errors import AccessDenied, LoginFailed
from sfumato.server.access import Account, Accounts, Act, Login, end_point
from sfumato.server.access.issuers import is_signed
from sfumato.server.crowds import TooFast
from sfumato.server.grounds import Grounds
from sfumato.server.house import House
from sfumato.server.http.app import make_app
from sfumato.server.http.asking import Threads
from sfumato.server.http.guard import App
from sfumato.server.page.app import make_page
from sfumato.server.page.common import Common
from sfumato.server.page.looks import Looks
from sfumato.server.ways import Ways
from sfumato.server.wire.front import Front
from sfumato.server.wire.sqlstates import WireError
from sfumato.session import Session

__all__ = ["http_front", "started", "wire_front"]

_SIGNED = "signed"  # what wrong tries with signed tokens are counted by; no id of a token has six letters
_WORKERS, _WORKERS_KEPT = 8, 32  # statements at once; those that are kept to a deadline mostly wait


def http_front(
    house: House, accounts: Accounts, ways: Ways | None = None, grounds: Grounds | None = None
) -> App:
    """The HTTP front: the API for programs, the page for people.

    Args:
        house: What is asked.
        accounts: Who may log in.
        ways: How it runs; None: in the usual ones.
        grounds: Where tables are declared, and stewards add one; None: they do not.
    """
    issuer = None if ways is None else ways.issuer

    def known(token: str, address: str) -> Account:
        if issuer is None or not is_signed(token):
            return accounts.check(token, address=address)
        try:  # nobody guesses a signature: one that holds is never kept out by others' wrong tries
            return accounts.named(issuer.name_of(token))
        except LoginFailed:
            accounts.tries.refuse(address, _SIGNED)
            raise

    def page(run: Threads, aside: Threads) -> App:
        return make_page(Common(house, accounts, run, aside, Looks(), ways or Ways(), grounds), known)

    return make_app(house, known, accounts=accounts, ways=ways, page=page)


def wire_front(
    house: House,
    accounts: Accounts,
    database: str,
    tls: tuple[ssl.SSLContext, Path] | None = None,
    ways: Ways | None = None,
) -> Front:
    """The front for PostgreSQL's clients.

    Args:
        house: What is asked.
        accounts: Who may log in.
        database: The name that clients connect to.
        tls: What speaks TLS, and the file of its certificate; None: for this machine alone.
        ways: How it runs; None: in the usual ones.
    """
    ways = ways or Ways()

    def session_of(login: Login, name: str) -> Session:
        if name != database:
            raise AccessDenied(f"There is no such database: connect to {database}.")
        assert login.account is not None
        login.account.needs(Act.SPEND)
        return house.session(login.account.name)

    def check(login: Login) -> None:
        account = accounts.current(login.token)
        try:
            ways.rates.admit(account.name)
        except TooFast as error:
            raise WireError("53400", str(error)) from None

    return Front(
        session_of,
        lambda user, address, binding: accounts.login(user, address=address, binding=binding),
        check=check,
        is_steward=lambda login: login.account is not None and login.account.may(Act.GOVERN),
        tls=None if tls is None else tls[0],
        binding=None if tls is None else end_point(ssl.PEM_cert_to_DER_cert(_first(tls[1]))),
        plain=tls is None,
        during=house.working,
        watch=ways.watch,
        deadlines=ways.deadlines,
        per_address=ways.per_address,
        workers=_WORKERS_KEPT if ways.deadlines else _WORKERS,
    )


def _first(certificate: Path) -> str:
    """The server's own certificate, where the file has those of its issuers, too."""
    end = "-----END CERTIFICATE-----"
    return certificate.read_text(encoding="ascii").partition(end)[0] + end


@asynccontextmanager
async def started(front: Front, host: str, port: int) -> AsyncIterator[None]:
    """A front that takes connections until the end; statements that have begun are ended first."""
    await front.start(host, port)
    try:
        yield
    finally:
        await front.stop()
