"""`sfumato serve`: the tables of a catalog behind a door that analysts with tokens may knock on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.failures import reported
from sfumato.cli.opening import acting, read_catalog, state_folder
from sfumato.cli.options import ConfigOption, JsonOption, UploadOption
from sfumato.cli.process import all_is_over
from sfumato.cli.serving import Made, check_extra, opened, say_begun
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.server.access import Accounts
    from sfumato.server.access.issuers import Issuer
    from sfumato.server.house import House
    from sfumato.server.ways import Ways

__all__ = ["serve"]

_LOCAL = "127.0.0.1"
_DATABASE, _DEMO = "sfumato", "demo"


@reported
def serve(
    *,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve generated data, with accounts and some history.")
    ] = False,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = _LOCAL,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port of HTTP.")] = 8430,
    pg_port: Annotated[
        int | None,
        typer.Option("--pg-port", min=0, max=65535, help="A port for PostgreSQL's clients; else none."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="For TLS: a certificate, PEM.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="For TLS: the certificate's key, PEM.")
    ] = None,
    self_signed: Annotated[
        bool,
        typer.Option("--self-signed", help="For TLS in trials: make a certificate, show its fingerprint."),
    ] = False,
    oidc_issuer: Annotated[
        str | None,
        typer.Option("--oidc-issuer", metavar="URL", help="Also take signed tokens of this provider."),
    ] = None,
    oidc_audience: Annotated[
        str | None,
        typer.Option("--oidc-audience", metavar="TEXT", help="This server, as its tokens call it."),
    ] = None,
    oidc_claim: Annotated[
        str,
        typer.Option("--oidc-claim", metavar="NAME", help="The claim that is the name of an account."),
    ] = "sub",
    deadline: Annotated[
        list[str] | None,
        typer.Option(
            "--deadline",
            metavar="SECONDS",
            help="How long every paid answer takes; or DATASET=SECONDS.",
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, help="How many requests an account may send a second.")
    ] = 500,
    per_address: Annotated[
        int,
        typer.Option("--per-address", min=1, help="How many connections to a port one address may have."),
    ] = 100,
    max_upload: UploadOption = 2048,
    log: Annotated[
        bool, typer.Option("--log", help="Write a line of JSON for each request to standard error.")
    ] = False,
    no_browser: Annotated[  # noqa: ARG001
        bool, typer.Option("--no-browser", help="Open nothing in a browser.")
    ] = False,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Serve the tables to analysts with tokens, over HTTP and to PostgreSQL's clients."""
    acting()
    check_extra()
    from sfumato.audit.kept import FILE as AUDIT_FILE
    from sfumato.server.certificates import fingerprint
    from sfumato.server.certificates import self_signed as make_certificate
    from sfumato.server.doors import http_front, started, wire_front
    from sfumato.server.grounds import Grounds
    from sfumato.server.running import bound, tls_context
    from sfumato.server.running import serve as run

    issuer = _issuer(oidc_issuer, oidc_audience, oidc_claim)
    files = _tls(host, certificate, key, self_signed=self_signed)
    if files is not None:
        tls_context(*files)  # refused before anything is opened
    with closing(bound(host, port)) as listening, _house_of(demo, config) as (house, accounts, made, catalog):
        if self_signed:
            files = make_certificate(state_folder(catalog), host)
        if issuer is not None:
            issuer.renew()  # so that the first who logs in need not wait for it
        tls = None if files is None else (tls_context(*files), files[0])
        ways = _ways(house, log, deadline or [], rate, per_address)
        state = state_folder(catalog)
        ways = replace(ways, issuer=issuer, shelf=state / "published", most_upload=max_upload << 20)
        ways = replace(ways, audits=state / AUDIT_FILE)
        name = _DEMO if demo else _DATABASE
        front = None if pg_port is None else wire_front(house, accounts, name, tls, ways)

        def ready() -> None:
            own = listening.getsockname()[1]
            where = {"http": f"{'http' if tls is None else 'https'}://{_written(host)}:{own}"}
            if front is not None:
                where["postgresql"] = f"postgresql://{_written(host)}:{front.port}/{name}"
            if self_signed and files is not None:
                where["certificate"] = fingerprint(files[0])
            say_begun(where, accounts, made, json_=json_)

        beside = None if front is None or pg_port is None else started(front, host, pg_port)
        run(
            http_front(house, accounts, ways, Grounds(house, catalog.path)),
            listening,
            tls=files,
            beside=beside,
            per_address=per_address,
            ready=ready,
        )
    all_is_over()


def _ways(house: House, log: bool, deadline: list[str], rate: float, per_address: int) -> Ways:
    import logging

    from sfumato.server.crowds import Rates
    from sfumato.server.deadlines import Deadlines
    from sfumato.server.log import Log
    from sfumato.server.ways import Ways

    deadlines = Deadlines.read(deadline, house.datasets)
    lines = Log() if log else None
    if lines is not None:
        logging.getLogger("sfumato.server").addHandler(lines)
    return Ways(log=lines, deadlines=deadlines, rates=Rates(rate), per_address=per_address)


def _issuer(address: str | None, audience: str | None, claim: str) -> Issuer | None:
    if (address is None) != (audience is None):
        raise InvalidParameter("Tokens of a provider need both --oidc-issuer and --oidc-audience.")
    if address is None or audience is None:
        return None
    from sfumato.server.access.issuers import Issuer

    return Issuer(address, audience, claim=claim)


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@contextmanager
def _house_of(demo: bool, config: Path | None) -> Iterator[tuple[House, Accounts, list[Made], Catalog]]:
    """What is served, who may log in, the tokens that were made for it, and where it is declared."""
    if not demo:
        catalog = _read(config)
        with opened(catalog) as (house, accounts):
            yield house, accounts, [], catalog
        return
    from sfumato.catalog import Catalog
    from sfumato.server.demonstration import accounts_made, catalog_made, history_made

    with tempfile.TemporaryDirectory(prefix="sfumato-demo-") as folder:
        catalog = Catalog.read(catalog_made(Path(folder)), environ={})
        with opened(catalog) as (house, accounts):
            history_made(house)
            yield house, accounts, list(accounts_made(accounts)), catalog


def _read(config: Path | None) -> Catalog:
    """The catalog; where there is none, both ways to make one are told."""
    from sfumato.catalog.keys import Missing

    try:
        return read_catalog(config)
    except Missing as error:
        raise Missing(f"{error}, or be led through it in a browser: sfumato start") from None


def _tls(
    host: str, certificate: Path | None, key: Path | None, *, self_signed: bool
) -> tuple[Path, Path] | None:
    if (certificate is None) != (key is None):
        raise InvalidParameter("TLS needs both --certificate and --key.")
    if self_signed and certificate is not None:
        raise InvalidParameter("Give --self-signed, or a certificate of your own.")
    if self_signed:
        return None  # made once there is a place for it
    if certificate is not None and key is not None:
        return certificate, key
    if not _is_local(host):
        raise InvalidParameter(
            f"At {host[:60]} tokens would travel in plain text: give --certificate and --key, --self-signed "
            f"for a trial, or serve at {_LOCAL} behind a proxy that speaks TLS."
        )
    return None


def _is_local(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
