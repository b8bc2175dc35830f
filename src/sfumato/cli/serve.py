"""`sfumato serve`: the tables of a catalog behind a door that analysts with tokens may knock on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sfumato.cli.failures import reported
from sfumato.cli.opening import acting, open_all, read_catalog
from sfumato.cli.options import ConfigOption, JsonOption
from sfumato.cli.output import emit_json, paragraph, say
from sfumato.errors import InvalidParameter, MissingExtra

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.server.access import Accounts, Role
    from sfumato.server.house import House

    Made: TypeAlias = tuple[str, Role, str]

__all__ = ["serve"]

_LOCAL = "127.0.0.1"


@reported
def serve(
    *,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve generated data, with accounts and some history.")
    ] = False,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = _LOCAL,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port of HTTP.")] = 8430,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="For TLS: a certificate, PEM.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="For TLS: the certificate's key, PEM.")
    ] = None,
    no_browser: Annotated[  # noqa: ARG001
        bool, typer.Option("--no-browser", help="Open nothing in a browser.")
    ] = False,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Serve the tables to analysts with tokens, over HTTP."""
    acting()
    _check_extra()
    from sfumato.server.running import bound, tls_context

    tls = _tls(host, certificate, key)
    if tls is not None:
        tls_context(*tls)
    listening = bound(host, port)
    try:
        with _house_of(demo, config) as (house, accounts, made):
            address = listening.getsockname()
            where = f"{'http' if tls is None else 'https'}://{address[0]}:{address[1]}"
            _run(house, accounts, listening, tls, lambda: _say_begun(where, accounts, made, json_=json_))
    finally:
        listening.close()


def _run(house: House, accounts: Accounts, listening: object, tls: object, ready: Callable[[], None]) -> None:
    from sfumato.server.http.app import make_app
    from sfumato.server.running import serve as run

    app = make_app(house, lambda token, address: accounts.check(token, address=address))
    run(app, listening, tls=tls, ready=ready)  # type: ignore[arg-type]


@contextmanager
def _house_of(demo: bool, config: Path | None) -> Iterator[tuple[House, Accounts, list[Made]]]:
    """What is served, who may log in, and the tokens that were made for it."""
    if not demo:
        with _opened(read_catalog(config)) as (house, accounts):
            yield house, accounts, []
        return
    from sfumato.catalog import Catalog
    from sfumato.server.demonstration import accounts_made, catalog_made, history_made

    with tempfile.TemporaryDirectory(prefix="sfumato-demo-") as folder:
        catalog = Catalog.read(catalog_made(Path(folder)), environ={})
        with _opened(catalog) as (house, accounts):
            history_made(house)
            yield house, accounts, list(accounts_made(accounts))


@contextmanager
def _opened(catalog: Catalog) -> Iterator[tuple[House, Accounts]]:
    from sfumato.server.access import Accounts
    from sfumato.server.house import House

    with open_all(catalog) as session:
        accounts = Accounts.open(catalog.ledger, state=catalog.state)
        try:
            yield House(session), accounts
        finally:
            accounts.close()


def _say_begun(where: str, accounts: Accounts, made: list[Made], *, json_: bool) -> None:
    if json_:
        tokens = [dict(zip(("name", "role", "token"), each, strict=True)) for each in made]
        emit_json({"serving": where, "tokens": tokens})
        return
    for name, role, token in made:
        say(f"token {name} {role.value} {token}")
    say(f"serving {where}")
    if not accounts.list():
        paragraph("There are no accounts yet: sfumato account add NAME, then sfumato account token NAME.")


def _tls(host: str, certificate: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    if (certificate is None) != (key is None):
        raise InvalidParameter("TLS needs both --certificate and --key.")
    if certificate is not None and key is not None:
        return certificate, key
    if not _is_local(host):
        raise InvalidParameter(
            f"At {host[:60]} tokens would travel in plain text: give --certificate and --key, or serve at "
            f"{_LOCAL} behind a proxy that speaks TLS."
        )
    return None


def _is_local(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _check_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise MissingExtra("The server is not installed: pip install 'sfumato[server]'.")
