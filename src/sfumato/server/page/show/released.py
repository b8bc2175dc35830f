"""A release as one HTML file that needs nothing else, and the shelf of those that anybody may see."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sfumato._files import write_whole
from sfumato.errors import InvalidParameter
from sfumato.ledger.budget import amount
from sfumato.server.page.looks import Looks
from sfumato.session import Release

__all__ = ["Shelf", "standalone", "told"]

CONFIDENCE = "0.95"
_NAME, _TITLE = re.compile(r"([1-9][0-9]{0,18})\.html"), re.compile(r"<title>([^<]*)</title>")
_MOST, _BEGINNING = 1_000, 4_096


def told(release: Release, most: int | None = None) -> dict[str, Any]:
    """What a page of a release says: answers with intervals, whose privacy, price, method in words.

    Args:
        release: The answer.
        most: How many rows are shown; None: all of them.
    """
    shown, quote, receipt = release.shown(CONFIDENCE, most=most), release.quote, release.receipt
    price = f"epsilon {amount(quote.epsilon)}" + (f", delta {amount(quote.delta)}" if quote.delta else "")
    return {
        "number": receipt.number,
        "dataset": receipt.dataset,
        "day": f"{receipt.time:%Y-%m-%d}",
        "question": receipt.purpose.words,
        "price": price,
        "protects": str(quote.measured.unit),
        "mechanism": receipt.purpose.mechanism,
        "tables": shown.tables,
        "rows": release.table.num_rows,
        "keys": shown.keys,
        "definitions": shown.definitions,
        "holds": release.nothing or f"{shown.holds}.",
        "bounds": list(release.bounds),
        "state": release.state,
    }


def standalone(looks: Looks, release: Release, *, title: str = "") -> str:
    """The page as one file."""
    facts = told(release)
    heading = title or f"A private release about {facts['dataset']}"
    return looks.text("released.html", **facts, heading=heading, style=Markup(_style()))


@cache
def _style() -> str:
    return (files("sfumato.server.page") / "static" / "released.css").read_text(encoding="utf-8")


def _hash() -> str:
    return base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()


class Shelf:
    """A folder of published releases, one file each: what is in it, anybody may see.

    Args:
        folder: Made with the first one.
    """

    policy = (
        f"default-src 'none'; style-src 'sha256-{_hash()}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    """What browsers may load for one: its own style, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, number: int, text: str) -> None:
        """Publishes a release; the same again changes nothing.

        Raises:
            InvalidParameter: if it is published in other words, or the folder cannot be written to.
        """
        before = self.get(number)
        if before == text:
            return
        if before is not None:
            raise InvalidParameter("It is published already: withdraw it first, then publish it anew.")
        try:
            self._folder.mkdir(mode=0o755, exist_ok=True)
            write_whole(self._path(number), text.encode())
        except OSError:
            raise InvalidParameter("The folder of published releases cannot be written to.") from None

    def take(self, number: int) -> None:
        """Withdraws one, if it is there."""
        self._path(number).unlink(missing_ok=True)

    def has(self, number: int) -> bool:
        """Whether one is published."""
        return self._path(number).is_file()

    def get(self, number: int) -> str | None:
        """The page of one; None if it is not published."""
        try:
            return self._path(number).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def titles(self) -> dict[int, str]:
        """The titles of those that are published, by number, newest first."""
        if not self._folder.is_dir():
            return {}
        numbers = sorted(
            int(found[1]) for path in self._folder.iterdir() if (found := _NAME.fullmatch(path.name))
        )
        return {number: self._title(number) for number in numbers[::-1][:_MOST]}

    def _title(self, number: int) -> str:
        try:
            with self._path(number).open(encoding="utf-8") as file:
                found = _TITLE.search(file.read(_BEGINNING))
        except FileNotFoundError:
            return ""
        return "" if found is None else html.unescape(found[1])

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.html"
