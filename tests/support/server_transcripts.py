"""The transcripts of docs/server.md, typed again before a real `sfumato serve --demo`: all but noisy figures.

A block that begins with `$ ` is for a shell, and what follows `demo=> ` in it for `psql`; one that begins
with `>>> ` is Python.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
from pathlib import Path

import wire

__all__ = ["Places", "blocks", "wrong_parts"]

PAGE = Path(__file__).parents[2] / "docs" / "server.md"
_MARK = "--- the next one ---"


class Places:
    """Where the server of the demonstration is, and the token that the transcripts are typed with."""

    def __init__(self, http: str, postgresql: str, token: str) -> None:
        self.http, self.token = http.rpartition(":")[2], token
        self.postgresql = re.sub(r".*:(\d+)/.*", r"\1", postgresql)

    def put_in(self, text: str) -> str:
        """A text with these in the place of those that the page has."""
        return text.replace("8431", self.http).replace("8432", self.postgresql).replace("$TOKEN", self.token)


def blocks(kind: str) -> list[str]:
    """The transcripts on the page whose first line begins so."""
    found = re.split(r"^```.*\n", PAGE.read_text(), flags=re.MULTILINE)[1::2]
    return [block for block in found if block.startswith(kind)]


def wrong_parts(block: str, places: Places) -> list[str]:
    """What is said otherwise than in a transcript, command by command."""
    prompt = ">>> " if block.startswith(">>> ") else "$ "
    names: dict[str, object] = {}
    wrong = []
    for typed, said in _examples(block, prompt):
        now = _python(places.put_in(typed), names) if prompt == ">>> " else _shell(typed, said, places)
        if _shape(now) != _shape(said):
            wrong.append(f"{typed}\nsays {_shape(now)}\nnot  {_shape(said)}")
    for value in names.values():
        if hasattr(value, "dispose"):
            value.dispose()  # the connections that an engine keeps
    return wrong


def _examples(block: str, prompt: str) -> list[tuple[str, str]]:
    """What is typed, and what is said then."""
    found: list[tuple[str, str]] = []
    more = "... " if prompt == ">>> " else "> "
    for line in block.splitlines(keepends=True):
        if line.startswith(prompt):
            found.append((line[len(prompt) :], ""))
        elif line.startswith(more) and not found[-1][1]:
            found[-1] = (found[-1][0] + line[len(more) :], "")
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def _python(text: str, names: dict[str, object]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(text, "<transcript>", "single"), names)
    return said.getvalue()


def _shell(typed: str, said: str, places: Places) -> str:
    path = wire.psql_path()
    folders = [str(Path(path).parent)] if path else []
    environment = {
        "PATH": os.pathsep.join([*folders, os.environ["PATH"]]),
        "TOKEN": places.token,
        "LC_ALL": "C.UTF-8",
        "PSQL_PAGER": "cat",
    }
    asked = [line.partition("=> ")[2] for line in said.splitlines() if line.startswith("demo=> ")]
    script = "".join(f"{command}\n\\echo '{_MARK}'\n" for command in asked)
    done = subprocess.run(
        ["bash", "-c", places.put_in(typed)],
        input=script,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )
    parts = done.stdout.split(f"{_MARK}\n")
    if not asked:
        return done.stdout
    return "".join(f"demo=> {command}\n{part}" for command, part in zip(asked, parts, strict=False))


def _shape(text: str) -> list[str]:
    """Lines without figures, and without the widths that follow from them; empty ones are left out."""
    plain = re.sub(r"[-+\d.,e]*\d", "#", text)
    lines = (" ".join(re.sub(r"[-─]{2,}", "--", line).split()) for line in plain.splitlines())
    return [line for line in lines if line]
