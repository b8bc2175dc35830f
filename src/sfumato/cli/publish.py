"""`sfumato publish`: the releases of a file for each window that is over, as files that anybody may have."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._dataclasses import dataclass
from sfumato.cli.ask import remainder
from sfumato.cli.failures import reported
from sfumato.cli.opening import open_session, read_catalog
from sfumato.cli.options import AskerOptions, JsonOption, spread
from sfumato.cli.output import emit_json, paragraph, say, spinner, table
from sfumato.cli.question import Question
from sfumato.errors import InvalidParameter
from sfumato.render import shown
from sfumato.schema.windows import Windows, hull_of

if TYPE_CHECKING:
    from sfumato.catalog import Catalog
    from sfumato.ledger import Balance
    from sfumato.publishing import Agenda, Entry, Outlook, Published
    from sfumato.session import Session

__all__ = ["publish"]


@reported
@spread
def publish(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file that lists what to publish: release.toml.")
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be published and paid: free.")
    ] = False,
    now: Annotated[
        str | None,
        typer.Option("--now", metavar="TIME", help="Take this for the time, as in 2026-03-01T00:00Z."),
    ] = None,
    asker: AskerOptions,
    json_: JsonOption = False,
) -> None:
    """Publish what a file lists for each window that is over, paid from the budget; a second run is free.

    Writes a CSV and a Parquet file for each release, a page and a manifest, the same each time. Everything
    that can be refused is refused before anything is paid.
    """
    from sfumato.publishing import Agenda, Folder, read

    listed = read(file)
    moment = _moment(now)
    folder = Folder.of(listed)
    catalog = read_catalog(asker.config or listed.catalog, asker.ledger, asker.analyst or listed.analyst)
    folder.refuse_sources([*catalog.tables, *catalog.public])
    with spinner("publishing", quiet=json_), ExitStack() as stack:
        sessions = _Sessions(catalog, stack)
        agenda = Agenda.of(listed, sessions.opened, moment, folder.published)
        outlook = agenda.outlook()
        published = None if dry_run else agenda.publish()
        told = _Told(agenda, outlook, sessions.left_in(agenda), published)
    files = [] if published is None else folder.write(listed.title, published)
    if json_:
        emit_json(told.document(files))
    else:
        told.say(folder.path, files)


def _moment(text: str | None) -> datetime.datetime:
    """The time that it is, or that it is to be taken for: never one that is still to come."""
    machine = datetime.datetime.now(datetime.UTC)
    if text is None:
        return machine
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InvalidParameter("--now is a time with its zone, such as 2026-03-01T00:00Z.") from None
    if moment.tzinfo is None:
        raise InvalidParameter("--now needs a time zone, such as 2026-03-01T00:00Z.")
    if moment > machine:
        raise InvalidParameter("--now is still to come: windows that are open then would be published.")
    return moment


class _Sessions:
    """The sessions that texts are asked in, one for each dataset."""

    def __init__(self, catalog: Catalog, stack: ExitStack) -> None:
        self._catalog, self._stack = catalog, stack
        self._open: dict[str, Session] = {}

    def opened(self, text: str, parameters: Mapping[str, Any] | None) -> Session:
        """The session of the tables that a text names."""
        priced = {"epsilon": 1, "error": None}
        named = Question(text, None if parameters is None else dict(parameters), priced)
        dataset = named.dataset(self._catalog)
        if dataset not in self._open:
            self._open[dataset] = self._stack.enter_context(open_session(self._catalog, dataset))
        return self._open[dataset]

    def left_in(self, agenda: Agenda) -> list[Balance]:
        """What is left of each budget: where it is for each window, in the fullest that was last paid in."""
        paid = dict[str, Windows | None]()
        for entry in agenda.entries:
            last = entry.paid_in(entry.over - 1) if entry.over else None
            paid[entry.dataset] = hull_of([paid.get(entry.dataset), last])
        return [session.balance(name, window=paid.get(name)) for name, session in self._open.items()]


@dataclass(frozen=True, slots=True)
class _Told:
    """What a run did, or would do.

    Attributes:
        agenda: What was due.
        outlook: By release, how long it can go on.
        balances: Of all budgets, after the run.
        published: What there is now; None: nothing was done.
    """

    agenda: Agenda
    outlook: Mapping[str, Outlook]
    balances: Sequence[Balance]
    published: Sequence[Published] | None

    def say(self, folder: Path, files: Sequence[Path]) -> None:
        """Tell it, in 80 columns."""
        entries = self.agenda.entries
        table(
            {
                "release": [entry.wanted.name for entry in entries],
                "published": [_windows(entry) for entry in entries],
                "new": [entry.over - entry.kept for entry in entries],
                "last": [_last(entry) for entry in entries],
                "epsilon": [float(entry.cost[0]) for entry in entries],
                "delta": [float(entry.cost[1]) for entry in entries],
                "enough for": [str(self.outlook[entry.wanted.name]) for entry in entries],
            },
            keys=("release",),
        )
        say()
        paragraph(self._sum())
        for balance in self.balances:
            paragraph(f"Left in the budget of {balance.dataset}: {remainder(balance)}.")
        for entry in entries:
            if entry.missed:
                paragraph(_ended(entry))
        if files:
            paragraph(f"{len(files)} files are in {folder}, with their digests in manifest.json.")

    def _sum(self) -> str:
        new = sum(entry.over - entry.kept for entry in self.agenda.entries)
        costs = self.agenda.cost.values()
        price = _price(*(sum(parts, Fraction(0)) for parts in zip(*costs, strict=True)))
        many = f"{new:,} window" + ("" if new == 1 else "s")
        if self.published is None:
            return f"A dry run: nothing was published or paid. {many} would be published for {price}."
        if not new:
            return "Nothing is new: all windows that are over were published before, and nothing was paid."
        return f"{many} published for {price}." if price != "0" else f"{many} published, paid before."

    def document(self, files: Sequence[Path]) -> dict[str, Any]:
        """All of it, for programs. The keys are a contract."""
        now = {} if self.published is None else {each.wanted.name: each for each in self.published}
        return {
            "dry_run": self.published is None,
            "releases": [
                {
                    "name": entry.wanted.name,
                    "kind": entry.wanted.kind,
                    "dataset": entry.dataset,
                    "windows": entry.over,
                    "new": entry.over - entry.kept,
                    "last": _last(entry) or None,
                    "epsilon": entry.cost[0],
                    "delta": entry.cost[1],
                    "receipts": list(now[entry.wanted.name].receipts) if now else None,
                    "missed": entry.missed,
                    "enough_for": _enough(self.outlook[entry.wanted.name]),
                }
                for entry in self.agenda.entries
            ],
            "left": [balance.left() for balance in self.balances],
            "files": [str(path) for path in files],
        }


def _windows(entry: Entry) -> str:
    of = f" of {entry.wanted.horizon:,}" if entry.wanted.kind == "series" else ""
    return f"{entry.over:,}{of} {entry.calendar.every}" + ("" if entry.over == 1 and not of else "s")


def _last(entry: Entry) -> str:
    return entry.calendar.spoken(entry.over - 1) if entry.over else ""


def _price(epsilon: Fraction, delta: Fraction) -> str:
    if not epsilon and not delta:
        return "0"
    return f"epsilon {shown(float(epsilon))}" + (f", delta {shown(float(delta))}" if delta else "")


def _enough(outlook: Outlook) -> dict[str, Any]:
    return {"windows": outlook.windows, "paid": outlook.paid, "more": outlook.more, "every": outlook.every}


def _ended(entry: Entry) -> str:
    many = f"{entry.missed:,} {entry.calendar.every}" + ("" if entry.missed == 1 else "s")
    start = entry.calendar.spoken(entry.wanted.horizon)
    return (
        f"{entry.wanted.name} has all points of its horizon, and {many} since are not published: begin "
        f"another series under another name, with start = {start}."
    )
