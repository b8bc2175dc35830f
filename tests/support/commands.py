"""Programs, quickly: the command line in this process, or children of a process that has loaded all once."""

from __future__ import annotations

import functools
import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

from typer import testing

import durations

__all__ = ["forked", "invoke"]

# Typer makes the parsers of all commands for each run anew, which takes longer than most commands.
testing._get_command = functools.cache(testing._get_command)
invoke = testing.CliRunner().invoke

_LOADED = ["commands", "duckdb", "pandas", "pyarrow.parquet", "pydantic"]  # pyarrow looks for pandas
_LOADED += [f"sfumato.{name}" for name in ("catalog", "cli", "engines.whole", "explain", "session")]
# What a first question loads besides.
_LOADED += [f"sfumato.plan.questions.bounding.{name}" for name in ("grouped", "prepared")]
_LOADED += ["sfumato.engines.duckdb", "sqlglot.dialects.duckdb", "typer._adapters"]
_LOADED += ["sfumato.cli.ask", "sfumato.cli.backups"]  # commands load when they run


def forked(
    *programs: list[str],
    folder: Path,
    script: Path | None = None,
    env: Mapping[str, str] | None = None,
    terminal: str | None = None,
) -> list[tuple[int, str]]:
    """The exit codes and standard outputs of programs that run at once, each in a process of its own.

    What an interpreter decides as it starts cannot be tested so. The output is a file, encoded as
    `PYTHONIOENCODING` says.

    Args:
        programs: The arguments of each.
        folder: Where they run and write.
        script: What to run; without it the command line.
        env: What else is in their environment.
        terminal: The name of one, in place of the file.
    """
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(_LOADED)
    outputs = [folder / f"output {number}" for number in range(len(programs))]
    environment = {**os.environ, **(env or {})}
    running = [
        server.Process(target=_run, args=(script, arguments, folder, environment, output, terminal))
        for arguments, output in zip(programs, outputs, strict=True)
    ]
    for each in running:
        each.start()
    for each in running:
        each.join(timeout=300)
    durations.count(sum(float(_seconds(output).read_text()) for output in outputs))
    texts = ["" if terminal else output.read_text("utf-8") for output in outputs]
    return [(each.exitcode, text) for each, text in zip(running, texts, strict=True)]


def _run(
    script: Path | None,
    arguments: list[str],
    folder: Path,
    environment: Mapping[str, str],
    output: Path,
    terminal: str | None,
) -> None:
    from sfumato.cli import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [str(script or "sfumato"), *arguments]
    try:
        encoding = environment.get("PYTHONIOENCODING", "utf-8")
        with open(terminal or output, "w", encoding=encoding) as sys.stdout:
            os.dup2(sys.stdout.fileno(), 1)  # where processes that are about to be killed write
            if terminal:
                sys.stderr = sys.stdout
                os.dup2(1, 2)
            if script is None:
                main()
            else:
                runpy.run_path(str(script), run_name="__main__")
    finally:
        _seconds(output).write_text(str(sum(os.times()[:4])))


def _seconds(output: Path) -> Path:
    """Where a program leaves what it took."""
    return output.with_suffix(".seconds")
