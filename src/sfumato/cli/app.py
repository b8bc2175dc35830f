"""The command `sfumato` with its subcommands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sfumato.cli import ask, ledger, story, tables, words
from sfumato.cli.output import emit_json, is_terminal, say

__all__ = ["app", "main"]

app = typer.Typer(
    name="sfumato",
    help="Ask a table that you may not see, and get numbers with honest error bars.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if is_terminal() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(story.demo)
app.command("init")(tables.init)
app.command("schema")(tables.schema)
app.command("quote")(ask.quote)
app.command("query")(ask.query)
app.command("explain")(words.explain)
app.add_typer(ledger.app, name="ledger")


def _version(asked: bool) -> None:
    if not asked:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("sfumato")
    except PackageNotFoundError:
        number = "unknown"
    if "--json" in sys.argv:
        emit_json({"version": number})
    else:
        say(f"sfumato {number}")
    raise typer.Exit


@app.callback()
def _common(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Ask a table that you may not see, and get numbers with honest error bars."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # What our own text does not spell out (a help page, a public label) must not end in a crash.
            reconfigure(errors="replace")
    app(prog_name="sfumato")
