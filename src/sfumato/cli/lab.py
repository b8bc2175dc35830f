"""`sfumato lab`: the story of privacy as short scenes in the terminal."""

from __future__ import annotations

import json
import os
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from sfumato._files import write_whole
from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import emit_json, paragraph, say
from sfumato.errors import InvalidParameter

__all__ = ["lab"]


@reported
def lab(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="SCENE", help="Which scenes; without one, a list of all.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="FOLDER", help="Where to put pictures and notebooks.")
    ] = None,
    code: Annotated[bool, typer.Option("--code", help="Show the Python of each scene, too.")] = False,
    notebook: Annotated[
        bool, typer.Option("--notebook", help="Write each scene as a notebook into --folder instead.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Why exact answers harm and what privacy costs, in scenes."""
    from sfumato.lab import play, scene, scenes

    if not names:
        if notebook or code or folder:
            raise InvalidParameter("Name the scenes; `sfumato lab` lists them.")
        _list(json_=json_)
        return
    chosen = scenes() if names == ["all"] else tuple(scene(name) for name in names)
    if notebook:
        _write(list(dict.fromkeys(page.name for page in chosen)), folder, json_=json_)
        return
    if folder is not None:
        _make(folder)
    told = []
    for place, page in enumerate(chosen):
        lines: list[str] = []
        if place and not json_:
            say()
        pictures = play(page.name, folder=folder, code=code, say=lines.append if json_ else say)
        told.append(
            {"name": page.name, "text": "\n".join(lines), "pictures": [str(path) for path in pictures]}
        )
    if json_:
        emit_json({"scenes": told})


def _list(*, json_: bool) -> None:
    from sfumato.lab import scenes

    if json_:
        emit_json({"scenes": [{"name": s.name, "title": s.title, "summary": s.summary} for s in scenes()]})
        return
    widest = max(len(scene.name) for scene in scenes())
    for scene in scenes():
        text = textwrap.wrap(scene.summary, 78 - widest)
        say(f"{scene.name:<{widest}}  {scene.title}", style="bold")
        for line in text:
            say(f"{'':<{widest}}  {line}")
    say()
    paragraph("Tell one: sfumato lab portrait --folder pictures. All of them: sfumato lab all.", style="dim")


def _make(folder: Path) -> None:
    """Make the folder where there is none, and refuse one that nothing can be put into, before any scene.

    Raises:
        InvalidParameter: if it cannot be made or written to.
    """
    if os.path.lexists(folder) and not folder.is_dir():
        raise InvalidParameter(f"{folder.name[:100]} is not a folder; give --folder another name.")
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidParameter(
            f"The folder {folder.name[:100]} cannot be written to; give --folder a place of your own."
        )


def _write(names: list[str], folder: Path | None, *, json_: bool) -> None:
    from sfumato.lab import notebook

    if folder is None:
        raise InvalidParameter("--notebook needs --folder, where to write.")
    paths = {name: folder / f"{name}.ipynb" for name in names}
    for path in paths.values():  # all of them before the first is written
        if os.path.lexists(path):
            raise InvalidParameter(f"{path.name} is there already; give a new folder.")
    _make(folder)
    written = []
    for name, path in paths.items():
        _save(path, json.dumps(notebook(name), indent=1, ensure_ascii=False) + "\n")
        written.append(str(path))
        if not json_:
            say(f"Wrote {path}.")
    if json_:
        emit_json({"written": written})


def _save(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        write_whole(path, text.encode())
    except OSError:
        raise InvalidParameter(f"{path.name} cannot be written there; give --folder another place.") from None
