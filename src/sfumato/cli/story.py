"""`sfumato demo`: the whole story in a minute, in a temporary folder."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.failures import reported
from sfumato.cli.options import JsonOption
from sfumato.cli.output import emit_json, is_terminal, say
from sfumato.errors import InvalidParameter

__all__ = ["demo"]

_BREATH = 0.7  # seconds between the parts, for a reader


@reported
def demo(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="FOLDER", help="Where to put data, ledger and picture; else a new one."
        ),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """The whole story in a minute, on generated data."""
    from sfumato.demo import tell

    if folder is None:
        place = Path(tempfile.mkdtemp(prefix="sfumato-demo-"))
    else:
        place = folder
        place.mkdir(parents=True, exist_ok=True)
        if any(place.iterdir()):
            raise InvalidParameter(f"{place} is not empty; give a new folder.")
    spoken: list[str] = []
    paced = is_terminal() and not json_
    picture = tell(
        place,
        spoken.append if json_ else say,
        heading=spoken.append if json_ else lambda text: say(text, style="head"),
        pause=(lambda: time.sleep(_BREATH)) if paced else (lambda: None),
    )
    if json_:
        emit_json(
            {
                "folder": str(place),
                "picture": None if picture is None else str(picture),
                "text": "\n".join(spoken),
            }
        )
