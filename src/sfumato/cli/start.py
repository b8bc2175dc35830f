"""`sfumato start`: from a file to a first private answer in a browser, on this machine alone."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.account import say_ended
from sfumato.cli.failures import reported
from sfumato.cli.opening import acting
from sfumato.cli.options import JsonOption, UploadOption
from sfumato.cli.output import paragraph
from sfumato.cli.process import all_is_loaded, all_is_over
from sfumato.cli.serving import Made, check_extra, opened, say_begun
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.ledger import Ledger
    from sfumato.server.access import Accounts
    from sfumato.server.house import House

__all__ = ["start"]

_LOCAL, _NAME = "127.0.0.1", "steward"
_DAYS = 1
_LEDGER, _FILE = "sfumato.ledger", "sfumato.toml"
_TIMEOUT = 300  # seconds, as a new sfumato.toml says


@reported
def start(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where sfumato.toml is, or will be; or a file in it.")
    ] = Path(),
    *,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port of HTTP.")] = 8430,
    max_upload: UploadOption = 2048,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open nothing in a browser.")] = False,
    json_: JsonOption = False,
) -> None:
    """Be led in a browser from a CSV or Parquet file to a first private answer."""
    acting()
    check_extra()
    from sfumato.server.doors import http_front
    from sfumato.server.grounds import Grounds
    from sfumato.server.running import bound
    from sfumato.server.running import serve as run
    from sfumato.server.ways import Ways

    folder, file = _given(folder)
    with (
        closing(bound(_LOCAL, port)) as listening,
        _house(folder) as (house, accounts),
        _steward(accounts, house.ledger) as made,
    ):
        address = f"http://{_LOCAL}:{listening.getsockname()[1]}"

        def ready() -> None:
            say_begun({"http": address}, accounts, [made], json_=json_)
            if file and not json_:
                paragraph(_where_it_is(file))
            if not no_browser:
                threading.Thread(target=webbrowser.open, args=(f"{address}/start",), daemon=True).start()

        ways = Ways(most_upload=max_upload << 20, shelf=folder.absolute() / "published")
        front = http_front(house, accounts, ways, Grounds(house, folder / _FILE))
        run(front, listening, ready=ready)
    all_is_over()


def _given(place: Path) -> tuple[Path, str]:
    """The folder, and the name of the data file in it that was given; empty where none was.

    Raises:
        InvalidParameter: if there is no such folder.
        SourceUnusable: if the file is a spreadsheet, or empty.
    """
    from sfumato.catalog.unreadable import refuse

    if not place.is_file():
        if not place.is_dir():
            raise InvalidParameter(f"There is no folder {str(place)[:200]}: make it first, or name another.")
        return place, ""
    if place.name == _FILE:
        return place.parent, ""
    refuse(str(place))
    return place.parent, place.name


def _where_it_is(file: str) -> str:
    """How to choose a file that lies in the folder: sent from the browser, it would be there twice."""
    return (
        f'{file} is in the folder already: on the first page open "It is on this machine already", and take '
        "it there. Sending it would make a second copy."
    )


@contextmanager
def _house(folder: Path) -> Iterator[tuple[House, Accounts]]:
    """The house of a folder: what its sfumato.toml declares, or one with nothing to ask yet."""
    from sfumato.catalog import Catalog, EngineLimits
    from sfumato.ledger import Ledger
    from sfumato.server.access import Accounts
    from sfumato.server.house import House

    if (folder / _FILE).exists():
        with opened(Catalog.read(folder / _FILE, environ={})) as found:
            yield found
        return
    all_is_loaded()
    with ExitStack() as closing_all:
        engine = EngineLimits(timeout=_TIMEOUT).open()
        closing_all.callback(engine.close)
        place = str(folder.absolute() / _LEDGER)
        ledger = closing_all.enter_context(Ledger.open(place))
        accounts = Accounts.open(place)
        closing_all.callback(accounts.close)
        house = House.empty(ledger, engine)
        closing_all.callback(house.wait)
        say_ended(accounts.hold(ledger))
        yield house, accounts


@contextmanager
def _steward(accounts: Accounts, ledger: Ledger) -> Iterator[Made]:
    """A steward's account with a token for this run, which ends with it; all of it is on record."""
    from sfumato.ledger import Steward
    from sfumato.server.access import Role, Witness
    from sfumato.server.access.record import AT_THE_MACHINE, REVOKED, added, issued, tell

    steward = Steward(ledger, by=AT_THE_MACHINE)

    def witness(act: str) -> Witness:
        return lambda account, token: tell(steward, act, account, token)

    known = {each.account.name: each.account.role for each in accounts.list()}
    if _NAME not in known:
        accounts.add(_NAME, Role.STEWARD, witness=witness(added(Role.STEWARD)))
    elif known[_NAME] is not Role.STEWARD:
        raise InvalidParameter(
            f"The account {_NAME} has another role here; remove it first: sfumato account remove {_NAME}"
        )
    token, info = accounts.issue(_NAME, timedelta(days=_DAYS), witness=witness(issued(_DAYS)))
    try:
        yield _NAME, Role.STEWARD, token
    finally:
        accounts.revoke(info.id, witness=witness(REVOKED))
