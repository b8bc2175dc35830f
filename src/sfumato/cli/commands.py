"""Which commands there are, and where: each is loaded when it runs, so that a list of them costs nothing."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from sfumato.cli.output import is_terminal
from sfumato.cli.parsing import lighten

__all__ = ["COMMANDS", "MARKUP", "Late"]

MARKUP: Literal["rich"] | None = "rich" if is_terminal() else None

COMMANDS = {
    "demo": ("story", "The whole story in a minute, on generated data."),
    "init": ("tables", "Write a commented sfumato.toml for your files, from names and types alone."),
    "start": ("start", "Be led in a browser from a CSV or Parquet file to a first private answer."),
    "schema": ("tables", "Which tables may be asked: columns, bounds, unit, budget."),
    "validate": ("validate", "Steward only: do the declarations fit the data? What would limits cut?"),
    "prepare": ("prepare", "Write a table once, ranked within units, for quick reads."),
    "state": ("state", "Name what a table that grows holds by now."),
    "quote": ("ask", "What an answer would cost; free, no row is read."),
    "query": ("ask", "The private answer with error bars, paid from the budget."),
    "rehearse": (
        "rehearse",
        "A question tried on made-up rows in the shape of the tables: none is read, nothing is spent.",
    ),
    "histogram": ("counts", "How many rows are in each bin of a number, with error bars."),
    "crosstab": ("counts", "How many rows have each pair of values of two columns, with error bars."),
    "profile": (
        "profile",
        "How many rows units have, with noise; bought once, and free for all questions afterwards.",
    ),
    "learn": (
        "learn",
        "Fit a private model on a table, paid once from the budget; print it, or write it to a file.",
    ),
    "synth": (
        "synth",
        "Write a synthetic table that anyone may have, paid once from the budget.",
    ),
    "publish": (
        "publish",
        "Publish what a file lists for each window that is over, paid from the budget; a second run is free.",
    ),
    "serve": (
        "serve",
        "Serve the tables to analysts with tokens, over HTTP and to PostgreSQL's clients.",
    ),
    "advise": ("advise", "Which mechanism you need: what to run, its price, its error, the next best."),
    "explain": ("words", "What an epsilon means: what an attacker could learn."),
    "functions": ("listing", "Which SQL functions a question may use."),
    "anonymity": ("anonymity", "Measure how anonymous a table is, or make it so."),
    "lab": ("lab", "Why exact answers harm and what privacy costs, in scenes."),
    "audit": ("audit", "Hold every privacy claim of this package against samples."),
    "check": ("dossier", "Walk the twelve steps of a deployment, with evidence."),
    "card": ("dossier", "Write the release dossier: label, registry entry, methods."),
    "local": ("local", "People randomise their own values; a server estimates."),
    "attack": ("attack", "Attack your own tables and answers; for the steward."),
    "account": ("account", "Who may log in to the server, and with which tokens."),
    "ledger": ("backups", "Who spent what, whether it holds, and the steward's acts."),
}
"""For each command the module with a function of its name, or the `app` of a group; and its line in the list.

`tests/cli/test_documented.py` holds the lines against the first ones of the commands' own descriptions.
"""


class _Line(TyperCommand):
    """A command that is not loaded: what a list shows of it."""


class Late(TyperGroup):
    """A group that lists `COMMANDS`, and loads one of them when it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, line) in COMMANDS.items():
            self.add_command(_Line(name, short_help=line))
        lighten(self)

    def loaded(self, name: str) -> Any:
        """The command itself, with its options or its own commands."""
        if not isinstance(self.commands[name], _Line):
            return self.commands[name]
        try:
            module = import_module(f"sfumato.cli.{COMMANDS[name][0]}")
        except KeyboardInterrupt:  # nothing was begun, and a traceback helps nobody
            raise SystemExit(130) from None
        shelf = typer.Typer(add_completion=False, rich_markup_mode=MARKUP)
        shelf.callback()(lambda: None)
        group = getattr(module, "app", None)
        if group is None:
            shelf.command(name)(getattr(module, name))
        else:
            shelf.add_typer(group, name=name)
        for info in (group or shelf).registered_commands:
            # Said so, a line that does not fit beside the name goes on below; otherwise it is cut.
            info.short_help = (getattr(info.callback, "__doc__", None) or "").partition("\n")[0]
        built: Any = typer.main.get_command(shelf)
        self.commands[name] = command = built.commands[name]
        lighten(command)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the arguments name, and those that are left for it."""
        name, command, left = super().resolve_command(ctx, args)
        return name, command if name is None else self.loaded(name), left
