"""The command `sfumato` with its subcommands."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from sfumato.cli.commands import MARKUP, Late
from sfumato.cli.failures import tell
from sfumato.cli.output import emit_json, say
from sfumato.cli.process import is_ours

__all__ = ["app", "main"]


class _Root(Late):
    """The commands; with --json, wrong usage is told as JSON, too."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        as_json = standalone_mode and "--json" in given
        if _foreign_number(given):
            tell("That is not a number.", "Write numbers in the digits 0 to 9.", "usage", as_json=as_json)
            sys.exit(2)
        if given[:1] == ["explain"] and any(re.fullmatch(r"-\.?\d.*", word) for word in given[1:2]):
            # It would be taken for an option that there is not.
            tell("That is no epsilon.", "epsilon is above 0: sfumato explain 1", "usage", as_json=as_json)
            sys.exit(2)
        try:
            ended = super().main(
                args, prog_name, complete_var, standalone_mode and not as_json, windows_expand_args, **extra
            )
        except typer.TyperException as error:
            if not as_json:
                raise
            tell("", error.format_message(), "usage", as_json=True)
            sys.exit(error.exit_code)
        if as_json:
            sys.exit(ended if isinstance(ended, int) else 0)
        return ended


_TEXTS = ("--analyst", "--param", "--person", "--reason")  # options whose value may be any text


def _foreign_number(given: Sequence[str]) -> bool:
    """Whether an argument is a number in the digits of another script, which Python would read."""
    for before, argument in zip(("", *given), given, strict=False):
        name, sign, value = argument.partition("=")
        option, written = (name, value) if sign and name.startswith("--") else (before, argument)
        if option not in _TEXTS and not written.isascii():
            with suppress(ValueError):
                float(written)
                return True
    return False


app = typer.Typer(
    name="sfumato",
    cls=_Root,
    help="Ask a table that you may not see, and get numbers with honest error bars.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    is_ours()
    try:
        app(prog_name="sfumato")
    except KeyboardInterrupt:  # between two commands' own handling of it
        sys.exit(130)
