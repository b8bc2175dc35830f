"""What the commands write: rich tables in a terminal, plain text in a pipe, JSON where asked for."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from sfumato.render import encodable, plain_json, text_table

__all__ = [
    "HARD",
    "emit_json",
    "is_terminal",
    "note",
    "paragraph",
    "progress_bar",
    "say",
    "spelled",
    "spinner",
    "stages",
    "table",
    "unbroken",
    "width",
]

_WIDEST = 100
HARD = "\x1f"  # a space that does not break, until a paragraph is written
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES = "|/-\\"
_SOON, _AGAIN = 1.0, 0.1  # seconds, until something is shown, and until it is shown anew


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether the stream is a terminal that can do more than print lines."""
    target = sys.stdout if stream is None else stream
    try:
        return target.isatty() and os.environ.get("TERM", "") != "dumb"
    except ValueError:  # closed
        return False


def width() -> int:
    """How wide the output may be: the terminal's width, or 80 in a pipe."""
    return max(40, min(shutil.get_terminal_size((80, 24)).columns, _WIDEST))


def say(text: str = "", *, style: str | None = None, stream: TextIO | None = None) -> None:
    """Write a line as the stream's encoding can; in colour in a terminal, unless NO_COLOR is set."""
    target = sys.stdout if stream is None else stream
    line = encodable(text, getattr(target, "encoding", None))
    if style is not None and is_terminal(target) and not os.environ.get("NO_COLOR"):
        line = f"{_STYLES[style]}{line}\x1b[0m"
    target.write(line + "\n")
    target.flush()


_STYLES = {"bold": "\x1b[1m", "dim": "\x1b[2m", "good": "\x1b[32m", "bad": "\x1b[1;31m", "head": "\x1b[1;36m"}


def paragraph(text: str, *, indent: str = "", stream: TextIO | None = None, style: str | None = None) -> None:
    """Write text wrapped to the width, never wider than 80."""
    target = sys.stdout if stream is None else stream
    filled = textwrap.fill(
        encodable(text, getattr(target, "encoding", None)),
        min(width(), 80),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in filled.replace(HARD, " ").split("\n"):
        say(line, style=style, stream=stream)


def unbroken(text: str) -> str:
    """Text that a paragraph keeps on one line, such as a line to copy."""
    return text.replace(" ", HARD)


def note(text: str) -> None:
    """Write a remark to standard error, so that a pipe holds the answer alone."""
    paragraph(text, stream=sys.stderr, style="dim")


def table(
    columns: Mapping[str, Sequence[object]], *, title: str = "", keys: Collection[str] | None = None
) -> None:
    """Write a table as aligned text; what does not fit beside the rest follows below: no number is cut."""
    if title:
        say(title, style="bold")
    blocks = text_table(columns, width=width(), spell=spelled, keys=keys).split("\n\n")
    for place, block in enumerate(blocks):
        head, *lines = block.splitlines()
        if place:
            say()
        say(head, style="bold")
        say("\n".join(lines))


def spelled(text: str) -> str:
    """The text as standard output can write it."""
    return encodable(text, getattr(sys.stdout, "encoding", None))


def emit_json(value: Any, *, stream: TextIO | None = None) -> None:
    """Write one JSON document, in ASCII so that every pipe can carry it."""
    target = sys.stdout if stream is None else stream
    target.write(json.dumps(plain_json(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n")
    target.flush()


@contextmanager
def progress_bar(
    what: str, *, done: float | None = 0.0, quiet: bool = False
) -> Iterator[Callable[[float | None, str], None]]:
    """Show in a terminal how much of a long work is done, if it takes more than a second.

    Gives what is to be told how much it is, from 0 to 1, and what is being done. Where nobody knows how much
    it is, it is None: then there is no bar, and something turns.
    """
    state = _State(what, done)
    with _ticking(state.line, quiet=quiet):
        yield state.tell


@contextmanager
def stages(*names: str, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Show in a terminal which of several stages of a work is on; gives what begins the next one."""
    begun = 0
    with progress_bar(names[0], quiet=quiet) as tell:

        def begin() -> None:
            nonlocal begun
            begun = min(begun + 1, len(names) - 1)
            tell(begun / len(names), names[begun])

        yield begin


@contextmanager
def spinner(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Show in a terminal that work goes on, and for how long, if it takes more than a second."""
    with progress_bar(text, done=None, quiet=quiet):
        yield


class _State:
    """How much of a work is done."""

    def __init__(self, what: str, done: float | None) -> None:
        self._told = (done, what)

    def tell(self, done: float | None, what: str) -> None:
        """It is so much now."""
        self._told = (None if done is None else min(max(done, 0.0), 1.0), what)

    def line(self, elapsed: float, turn: int) -> str:
        """It as a bar, or as something that turns."""
        done, what = self._told
        if done is None:
            whole = encodable(_FRAMES, sys.stderr.encoding) == _FRAMES
            frames = _FRAMES if whole else _ASCII_FRAMES
            return f"{frames[turn % len(frames)]} {what}, {elapsed:.0f} s"
        filled = round(24 * done)
        return f"{'█' * filled}{'·' * (24 - filled)} {100 * done:3.0f} %  {what}, {elapsed:.0f} s"


@contextmanager
def _ticking(line: Callable[[float, int], str], *, quiet: bool) -> Iterator[None]:
    """Write a line over itself again and again while work goes on, from the first second on."""
    if quiet or not is_terminal(sys.stderr):
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_tick, args=(line, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _tick(line: Callable[[float, int], str], done: threading.Event) -> None:
    start, stream = time.monotonic(), sys.stderr
    if done.wait(_SOON):
        return
    turn = 0
    while not done.wait(_AGAIN):
        text = encodable(line(time.monotonic() - start, turn), stream.encoding)
        stream.write("\r\x1b[2K" + text[: width() - 1])
        stream.flush()
        turn += 1
    if turn:
        stream.write("\r\x1b[2K")
        stream.flush()
