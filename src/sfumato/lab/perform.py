"""Running a scene: its code in one namespace, cell by cell, with what each cell printed and drew."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.lab.scene import Scene, scene

__all__ = ["Cell", "perform", "play"]

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of a scene that has been told or run.

    Attributes:
        kind: "prose" or "code".
        text: The words, or the code.
        printed: What the code wrote.
        figure: What it drew, a matplotlib figure, or None.
    """

    kind: str
    text: str
    printed: str = ""
    figure: Any = None


def perform(told: Scene | str) -> Iterator[Cell]:
    """The cells of a scene, run one after the other as they are asked for.

    A cell whose last line is an expression shows its value; a picture without matplotlib is told as a line.
    """
    chosen = scene(told) if isinstance(told, str) else told
    namespace: dict[str, Any] = {"__name__": f"sfumato.lab.scenes.{chosen.name}"}
    for place, part in enumerate(chosen.parts):
        if part.kind == "prose":
            yield Cell("prose", part.text)
        else:
            yield _run(part.text, f"scene {chosen.name}, part {place + 1}", namespace)


def play(
    name: str,
    *,
    folder: str | Path | None = None,
    code: bool = False,
    say: Callable[[str], None] = print,
) -> list[Path]:
    """Tell a scene in lines of at most 80 letters; gives the pictures it wrote.

    Args:
        name: which one; `scenes()` lists them.
        folder: where to put pictures; without one they are not drawn to disk, and only mentioned.
        code: whether to show the code, too.
        say: takes the lines.

    Raises:
        InvalidParameter: if there is no such scene or no such folder, or a picture cannot be written there.
    """
    chosen = scene(name)
    place = None if folder is None else Path(folder)
    if place is not None and not place.is_dir():
        raise InvalidParameter("The folder for the pictures does not exist; make it first.")
    written: list[Path] = []
    say(chosen.title)
    say("=" * len(chosen.title))
    for cell in perform(chosen):
        if cell.kind == "code" and not (code or cell.printed or cell.figure):
            continue
        say("")
        if cell.kind == "prose":
            _prose(cell.text, say)
            continue
        if code:
            for line in cell.text.splitlines():
                say(f"    {line}".rstrip())
            say("")
        for line in cell.printed.rstrip("\n").splitlines():
            say(line.rstrip())
        if cell.figure is not None:
            if place is None:
                say("(A picture is drawn here; give a folder to keep it.)")
            else:
                path = place / f"{chosen.name}-{len(written) + 1}.png"
                _save(cell.figure, path)
                written.append(path)
                say(f"Picture: {path}")
    return written


def _save(figure: Any, path: Path) -> None:
    try:
        figure.savefig(path)
    except OSError:
        raise InvalidParameter(
            f"The picture {path.name} cannot be written there; give another folder, or none."
        ) from None


def _prose(text: str, say: Callable[[str], None]) -> None:
    """Paragraphs and lists, wrapped; what is laid out by hand (four blanks) as it is."""
    for index, block in enumerate(re.split(r"\n\s*\n", text)):
        if index:
            say("")
        lines = block.splitlines()
        if all(line.startswith("    ") for line in lines):
            for line in lines:
                say(line)
            continue
        items = re.split(r"\n(?=- )", block)
        for item in items:
            hang = "  " if item.startswith("- ") else ""
            plain = re.sub(r"(?<![\w*])[*](\S[^*]*)[*]", r"\1", " ".join(item.split()).replace("`", ""))
            for line in textwrap.wrap(plain, _WIDTH, subsequent_indent=hang, break_on_hyphens=False):
                say(line)


def _run(code: str, name: str, namespace: dict[str, Any]) -> Cell:
    body = ast.parse(code, name)
    last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(body, name, "exec"), namespace)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    except MissingExtra as error:
        return Cell("code", code, f"{printed.getvalue()}(No picture here. {error})")
    if value is not None and not hasattr(value, "savefig"):
        printed.write(f"{value}\n")
    return Cell("code", code, printed.getvalue(), value if hasattr(value, "savefig") else None)
