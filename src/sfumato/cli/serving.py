"""What `sfumato serve` and `sfumato start` share: a house with its accounts, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from sfumato.cli.account import say_ended
from sfumato.cli.opening import open_all
from sfumato.cli.output import emit_json, paragraph, say
from sfumato.errors import MissingExtra

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.server.access import Accounts, Role
    from sfumato.server.house import House

__all__ = ["Made", "check_extra", "opened", "say_begun"]

Made: TypeAlias = "tuple[str, Role, str]"
"""A name, a role, and a token that was made for them."""


@contextmanager
def opened(catalog: Catalog) -> Iterator[tuple[House, Accounts]]:
    """The house of a catalog and its accounts; what has begun ends before they are closed."""
    from sfumato.server.access import Accounts
    from sfumato.server.house import House

    with open_all(catalog) as session:
        accounts = Accounts.open(catalog.ledger, state=catalog.state)
        house = House(session, catalog=catalog)
        try:
            say_ended(accounts.hold(house.ledger))
            yield house, accounts
        finally:
            house.wait()
            accounts.close()


def say_begun(where: dict[str, str], accounts: Accounts, made: list[Made], *, json_: bool) -> None:
    """Tells where it listens, and which tokens were made."""
    if json_:
        shown = where.pop("certificate", None)
        tokens = [dict(zip(("name", "role", "token"), each, strict=True)) for each in made]
        emit_json({"serving": where, "tokens": tokens} | ({} if shown is None else {"certificate": shown}))
        return
    for name, role, token in made:
        say(f"token {name} {role.value} {token}")
    if (shown := where.pop("certificate", None)) is not None:
        say(f"certificate SHA-256 {shown}")
    for address in reversed(where.values()):
        say(f"serving {address}")
    if not accounts.list():
        paragraph("There are no accounts yet: sfumato account add NAME, then sfumato account token NAME.")


def check_extra() -> None:
    """Refuses to go on without what the server is made of.

    Raises:
        MissingExtra: if it is not installed.
    """
    from importlib.util import find_spec

    missing = [
        name for name in ("fastapi", "uvicorn", "jinja2", "python_multipart") if find_spec(name) is None
    ]
    if missing:
        raise MissingExtra("The server is not installed: pip install 'sfumato[server]'.")
