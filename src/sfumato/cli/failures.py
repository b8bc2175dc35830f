"""How a command ends: one readable block on standard error, and an exit code that programs can rely on.

| code | meaning |
| --- | --- |
| 0 | done |
| 1 | another failure |
| 2 | wrong usage, or a refused query |
| 3 | there is not enough budget |
| 4 | verification failed |
| 130 | interrupted |
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import typer

from sfumato import errors
from sfumato.cli.output import HARD, emit_json, paragraph, say, unbroken

__all__ = ["FAILURES", "in_shell", "reported", "tell"]

Command = TypeVar("Command", bound=Callable[..., Any])

# By the error's code: exit code and headline, unless the error has a `headline` of its own.
FAILURES: dict[str, tuple[int, str]] = {
    "invalid_parameter": (2, "That setting cannot be used."),
    "unknown_name": (2, "There is no such name."),
    "query_refused": (2, "The query was refused; nothing was spent."),
    "unsupported_loss": (2, "The budget's accountant cannot take this; nothing was spent."),
    "access_denied": (2, "Not allowed; nothing was spent."),
    "login_failed": (2, "Not logged in; nothing was spent."),
    "too_many_tries": (2, "Not logged in; nothing was spent."),
    "catalog_unusable": (2, "The catalog cannot be used."),
    "budget_exceeded": (3, "Not enough budget."),
    "ledger_tampered": (4, "The ledger does not verify."),
    "ledger_mismatch": (1, "The ledger has something else on record."),
    "ledger_unusable": (1, "The ledger cannot be used."),
    "source_unusable": (1, "The data source cannot be used."),
    "engine_failed": (1, "The read did not finish; its price stays paid."),
    "timed_out": (1, "The read took too long; its price stays paid."),
    "cancelled": (130, "Interrupted during the read; its price stays paid."),
    "server_unreachable": (1, "The server does not answer."),
    "missing_extra": (1, "Something is not installed."),
}


def reported(command: Command) -> Command:
    """The command, with every failure told in one block and turned into its exit code."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        as_json = bool(options.get("json_"))
        try:
            return command(*arguments, **options)
        except errors.SfumatoError as error:
            code, headline = FAILURES.get(error.code, (1, "That did not work."))
            tell(getattr(error, "headline", headline), error.shell or str(error), error.code, as_json=as_json)
            if not as_json:
                _how_quoted(error)
            _trace(error)
            raise typer.Exit(code) from None
        except KeyboardInterrupt:
            tell(
                "Interrupted.",
                "If a read had begun, its price stays paid: sfumato ledger show",
                "cancelled",
                as_json=as_json,
            )
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Whoever read the output went away; what Python would say about it helps nobody.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except Exception as error:
            # The text of an unknown error may quote data, so it is not shown.
            tell(
                "Something unexpected went wrong.",
                f"A {type(error).__name__} that nobody foresaw; its text is withheld, since it might hold "
                "data. SFUMATO_DEBUG=1 shows where it arose.",
                "error",
                as_json=as_json,
            )
            _trace(error)
            raise typer.Exit(1) from None

    return run  # type: ignore[return-value]


def tell(headline: str, text: str, code: str, *, as_json: bool) -> None:
    """One block on standard error, or one JSON document."""
    if as_json:
        emit_json({"error": {"code": code, "message": text.replace(HARD, " ")}}, stream=sys.stderr)
        return
    say(f"sfumato: {headline}", style="bad", stream=sys.stderr)
    paragraph(text, indent="  ", stream=sys.stderr)


def _how_quoted(error: errors.SfumatoError) -> None:
    """How a shell takes a name in double quotes, where that is what a refusal speaks of."""
    if not isinstance(error, errors.QueryRefused):
        return
    quoted: list[str] = re.findall(r'"(?:[^"]|"")*"', f"{error.reason} {error.fix}")
    names = [name for name in quoted if re.search(r"\W", name[1:-1])]
    table, found, _ = error.reason.partition(" has no declared column ")
    if names and found and "Columns: " not in error.fix:
        paragraph("In a shell put the whole question in single quotes:", indent="  ", stream=sys.stderr)
        say(f"  {in_shell(names[0], table)}", stream=sys.stderr)
    elif names and " needs bounds for " in error.reason:
        paragraph(
            "In a shell put the whole question in single quotes: " + unbroken("sfumato query 'SELECT …'"),
            indent="  ",
            stream=sys.stderr,
        )


def in_shell(name: str, table: str) -> str:
    """A command with a column whose name is written in double quotes: the question is in single ones."""
    question = f"SELECT COUNT({name}) AS n FROM {table}"
    return f"sfumato query {shlex.quote(question)} --epsilon 0.1"


def _trace(error: BaseException) -> None:
    """Where it arose: files, lines and functions, without source text, values or messages."""
    if os.environ.get("SFUMATO_DEBUG") != "1":
        return
    for frame in traceback.extract_tb(error.__traceback__, limit=-20):
        say(f"    {frame.filename}:{frame.lineno} in {frame.name}", stream=sys.stderr, style="dim")
