"""A page typed again: what its Python blocks print and its commands say now, with noise that repeats itself.

Blocks of a page that has commands, or is about one mechanism, run in their order, in one folder, which has
the files of `examples/`:

- `python` is run. If a block `text` follows at once, it holds what was printed.
- `toml` is written to the file that its first line names: `# sfumato.toml`.
- `console` holds commands of Sfumato after `$ ` (longer ones go on after `> `), each with what it says then.

A line `…` in what is said stands for any number of lines. Times and the heads of ledgers are not compared,
and of long numbers the first 11 digits: the last ones depend on the processor.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

from commands import invoke
from sfumato.cli import app
from sfumato.testing import seeded

__all__ = ["TYPED", "typed_again"]

_FENCED = re.compile(r"^```(python|console|text|toml)\n(.*?)^```\n(?:\n(?=```text\n))?", flags=re.S | re.M)
_REST = "…\n"
_LONG = re.compile(r"\b\d+\.\d{6,}(?:e[+-]?\d+)?\b")
_EACH_TIME = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b|\b[0-9a-f]{16,}\b")  # times, heads of ledgers


def _is_typed(page: Path) -> bool:
    """Whether a page has commands, or is about one mechanism and shows what it prints."""
    text = page.read_text()
    return "\n```console\n" in text or (page.parent.name == "mechanisms" and "```\n\n```text\n" in text)


_ROOT = Path(__file__).parents[2]
TYPED = [page for page in (_ROOT / "README.md", *sorted(_ROOT.glob("docs/**/*.md"))) if _is_typed(page)]


def typed_again(page: Path) -> str:
    """The page as it would be if every block said what is said now.

    Args:
        page: What to type, in the folder where this process is.
    """
    names: dict[str, object] = {"__name__": page.stem}
    printed: list[str] = []  # what the block before this one printed, if it was Python

    def again(block: re.Match[str]) -> str:
        kind, body = block.groups()
        before = printed.pop() if printed else None
        if kind == "python":
            printed.append(_python(body, names, page))
        elif kind == "console":
            body = "".join(_command(typed, said) for typed, said in _commands(body))
        elif kind == "toml":
            Path(body.partition("\n")[0].removeprefix("# ")).write_text(body)
        elif before is not None:
            body = _kept(body, before)
        start, end = block.span(2)
        return block.group()[: start - block.start()] + body + block.group()[end - block.start() :]

    return _FENCED.sub(again, page.read_text())


def _python(body: str, names: dict[str, object], page: Path) -> str:
    said = io.StringIO()
    with seeded(body), contextlib.redirect_stdout(said):
        exec(compile(body, page.name, "exec"), names)
    return _clean(said.getvalue())


def _commands(body: str) -> list[tuple[str, str]]:
    """What is typed, and what is said then."""
    found: list[tuple[str, str]] = []
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line, ""))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (found[-1][0] + line, "")
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def _command(typed: str, said: str) -> str:
    words = shlex.split("".join(line[2:] for line in typed.splitlines(keepends=True)), comments=True)
    assert words[0] == "sfumato", f"only commands of Sfumato are typed again: {typed}"
    with seeded(typed):
        done = invoke(app, words[1:], env={"COLUMNS": "80"})
    return typed + _kept(said, _clean(done.output))


def _clean(text: str) -> str:
    """Lines without blanks at their ends, and no empty ones at the end."""
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""


def _kept(shown: str, said: str) -> str:
    """What a page shows, if that is what is said but for what it leaves out; otherwise what is said."""
    parts = [re.escape(_compared(part)) for part in re.split(f"^{_REST}", shown, flags=re.M)]
    is_same = re.fullmatch("(?:.*\n)*".join(parts), _compared(said))
    return shown if is_same else said


def _compared(text: str) -> str:
    """What of a text is the same each time and on each machine."""
    return _EACH_TIME.sub("#", _LONG.sub(lambda number: f"{float(number.group()):.11g}", text))
