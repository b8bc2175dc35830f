"""`sfumato check` and `sfumato card`: the deployment checklist with evidence, and the release dossier."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.failures import reported
from sfumato.cli.opening import dataset_named, ledger_if_begun, read_catalog
from sfumato.cli.options import LedgerOptions, spread
from sfumato.cli.output import emit_json, say, spelled, spinner
from sfumato.errors import InvalidParameter, SfumatoError

if TYPE_CHECKING:
    from sfumato.dossier import Facts, Step

__all__ = ["card", "check"]

DatasetArgument = Annotated[
    str | None, typer.Argument(metavar="DATASET", help="Which dataset; else the only one.")
]
_FORMS = ("label", "yaml", "methods")
_SAMPLES = 5_000  # gross mistakes only; `sfumato audit` draws forty times as many
_STYLES = {"done": "good", "open": "bad", "by hand": "dim", "not yet": "dim"}


@reported
@spread
def check(
    dataset: DatasetArgument = None,
    audit: Annotated[
        bool, typer.Option("--audit", help="Audit every claim of this package, too: half a minute.")
    ] = False,
    *,
    place: LedgerOptions,
) -> None:
    """Walk the twelve steps of a deployment, with evidence.

    The exit code is 4 where a step shows a gap or has to wait for the first query.
    """
    from sfumato.dossier import check as walk

    with spinner("looking", quiet=place.json_), _facts(dataset, place, early=True) as facts:
        steps = walk(facts, audited=_audited if audit else None)
    if place.json_:
        emit_json({"dataset": facts.dataset, "steps": [_plain(step) for step in steps]})
    else:
        for step in steps:
            _tell(step)
        say()
        _sum_up(steps)
    if any(step.verdict in ("open", "not yet") for step in steps):
        raise typer.Exit(4)


@reported
@spread
def card(
    dataset: DatasetArgument = None,
    form: Annotated[
        str, typer.Option("--form", metavar="label|yaml|methods", help="Which part of the dossier to write.")
    ] = "label",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a new file.")
    ] = None,
    *,
    place: LedgerOptions,
) -> None:
    """Write the release dossier: label, registry entry, methods."""
    if form not in _FORMS:
        raise InvalidParameter(f"--form is one of {', '.join(_FORMS)}.")
    if output is not None and os.path.lexists(output):
        raise InvalidParameter(f"{output.name[:100]} is there already; give a new name.")
    from sfumato.dossier import card as make_card

    with spinner("reading the ledger", quiet=place.json_), _facts(dataset, place) as facts:
        dossier = make_card(facts)
        text = {
            "label": lambda: str(dossier),
            "yaml": lambda: dossier.yaml,
            "methods": lambda: dossier.methods,
        }
        shown = text[form]().rstrip("\n")
    if output is not None:
        try:
            with output.open("x", encoding="utf-8") as file:
                file.write(shown + "\n")
        except OSError:
            raise InvalidParameter(f"{output.name[:100]} cannot be written there.") from None
        say(f"Wrote {output}.") if not place.json_ else emit_json({"written": str(output)})
    elif place.json_:
        emit_json(dossier.to_dict() | {"label": str(dossier), "methods": dossier.methods})
    else:
        say(spelled(shown))


@contextmanager
def _facts(dataset: str | None, place: LedgerOptions, *, early: bool = False) -> Iterator[Facts]:
    """What is on record, with quotes of what was asked; nothing is spent, and no private file is opened.

    With `early`, what is declared will do where the first query has not been asked yet.
    """
    from sfumato.dossier import facts, foreseen
    from sfumato.dossier.unopened import Unopened
    from sfumato.ledger import Ledger
    from sfumato.session import Session

    catalog = read_catalog(place.config, place.ledger)
    name = dataset_named(dataset, list(catalog.budgets))
    book = ledger_if_begun(catalog.ledger, catalog.state) if early else None
    if early and book is None:
        yield foreseen(catalog, name)
        return
    with book or Ledger.open(catalog.ledger, state=catalog.state, create=False) as book:
        if early and name not in {entry.name for entry in book.datasets()}:
            yield foreseen(catalog, name, ledger=book)
            return
        engine = catalog.engine.open(table.source for table in catalog.members(name))

        def session() -> Session | None:
            try:
                return Session(
                    *catalog.members(name),
                    *catalog.public,
                    budget=catalog.budgets[name],
                    ledger=book,
                    engine=Unopened(engine, public=[table.name for table in catalog.public]),
                )
            except SfumatoError:
                return None  # another budget is on record, or a public file is gone: no quotes, then

        try:
            yield facts(catalog, book, name, session=session)
        finally:
            engine.close()


def _audited() -> tuple[int, list[str]]:
    from sfumato.audit import run

    audited = run(samples=_SAMPLES)
    return len(audited), [finding.name for finding in audited.broken]


def _sum_up(steps: Sequence[Step]) -> None:
    gaps, waiting = (sum(step.verdict == verdict for step in steps) for verdict in ("open", "not yet"))
    if gaps:
        say(f"{gaps} of 12 steps {'shows' if gaps == 1 else 'show'} a gap.", style="bad")
    else:
        say("No step shows a gap.", style="good")
    if waiting:
        say(f"{waiting} of 12 steps wait for the first query.", style="dim")


def _tell(step: Step) -> None:
    say(spelled(f"{step.number:>2}  {step.name:<38} {step.verdict}"), style=_STYLES[step.verdict])
    for text in (step.evidence, step.fix and f"→ {step.fix}"):
        for line in textwrap.wrap(text, 76):
            say(spelled(f"    {line}"))


def _plain(step: Step) -> dict[str, object]:
    return {
        "number": step.number,
        "name": step.name,
        "verdict": step.verdict,
        "evidence": step.evidence,
        "fix": step.fix,
    }
