"""A scene as a notebook, with what its cells printed and drew."""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Iterator
from typing import Any

from sfumato.lab.perform import Cell, perform
from sfumato.lab.scene import Scene, scene

__all__ = ["notebook"]

_READING = """\
A scene of `sfumato lab`, with what its cells printed and drew. To run it again:
`pip install 'sfumato[plots,learn]'`. The data is made up, and the noise is new each time: your numbers will
differ from these, and show the same."""


def notebook(told: Scene | str, *, run: bool = True) -> dict[str, Any]:
    """The scene in the notebook format (nbformat 4.5), ready for `json.dump`.

    A viewer that runs nothing shows all of it: outputs are kept, pictures as PNG with their title as text.

    Args:
        told: the scene, or its name.
        run: whether to run the cells and keep what they printed and drew.
    """
    chosen = scene(told) if isinstance(told, str) else told
    cells = perform(chosen) if run else (Cell(part.kind, part.text) for part in chosen.parts)
    opening = _cell("title", "markdown", f"# {chosen.title}\n\n{chosen.summary}\n\n{_READING}")
    turns = itertools.count(1) if run else itertools.repeat(None)
    return {
        "cells": [opening, *(_written(place, cell, turns) for place, cell in enumerate(cells, 1))],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _written(place: int, cell: Cell, turns: Iterator[int | None]) -> dict[str, Any]:
    if cell.kind == "prose":
        return _cell(f"part-{place}", "markdown", cell.text)
    outputs: list[dict[str, Any]] = []
    if cell.printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(cell.printed)})
    if cell.figure is not None:
        outputs.append(_picture(cell.figure))
    entry = _cell(f"part-{place}", "code", cell.text)
    return {**entry, "execution_count": next(turns), "outputs": outputs}


def _picture(figure: Any) -> dict[str, Any]:
    """A figure as an output: PNG, with its title for those who do not see it."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=96)
    shown = f"Picture: {' '.join(figure.get_suptitle().split())}"
    data = {"image/png": base64.b64encode(drawn.getvalue()).decode("ascii"), "text/plain": [shown]}
    return {"output_type": "display_data", "data": data, "metadata": {"image/png": {"alt": shown}}}


def _cell(name: str, kind: str, text: str) -> dict[str, Any]:
    return {"cell_type": kind, "id": name, "metadata": {}, "source": _lines(text)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
