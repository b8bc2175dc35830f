"""A file that a steward sends: written to disk as it arrives, whole or not at all, under a name of ours."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from sfumato.errors import InvalidParameter
from sfumato.server.grounds import SUFFIXES, suffix_of

__all__ = ["FILE", "TooLarge", "kept"]

FILE = "file"
"""The field of the form."""
_AROUND = 1 << 16  # bytes of a request beside the file
_BLOCK = 1 << 20
_DIGITS = 15
_IDLE = 60.0  # seconds in which something must arrive
_LINE = 8_192
_STEM = 60
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_BROKEN = "The file did not arrive whole: send it again."


class TooLarge(InvalidParameter):
    """A file has more bytes than are taken."""


async def kept(request: Request, folder: Path, most: int) -> Path:
    """Writes the file of a form into a folder; gives where it is.

    Nothing but the letters and digits of its name is taken from the client; nobody else may read it.

    Args:
        request: A form as `multipart/form-data`.
        folder: Where to.
        most: How many bytes it may have.

    Raises:
        TooLarge: if it has more; nothing is kept.
        InvalidParameter: if there is none, or it did not arrive whole; nothing is kept.
        ClientDisconnect: if the client went away; nothing is kept.
    """
    boundary = _boundary(request, most)
    handle, temporary = tempfile.mkstemp(prefix=".upload-", dir=folder)  # for its owner alone
    try:
        with os.fdopen(handle, "wb") as stream:
            part = _Part(boundary, stream, most)
            await _streamed(request, part, most)
            stream.flush()
            os.fsync(stream.fileno())
        return _named(folder, temporary, part.stem, part.suffix)
    except OSError:
        raise InvalidParameter(
            "The file could not be written into the catalog's folder: is the disk full?"
        ) from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _boundary(request: Request, most: int) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise InvalidParameter("Choose a file first.")
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or len(length) > _DIGITS or int(length) > most + _AROUND:
        raise too_large(most)
    return boundary


def too_large(most: int) -> TooLarge:
    """That a file is not taken."""
    if not most:
        return TooLarge("This server takes no files: put it into the catalog's folder, and name it there.")
    size = f"{most / 2**30:.3g} GiB" if most >= 2**30 else f"{most / 2**20:.3g} MiB"
    return TooLarge(
        f"The file is larger than the {size} that are taken: put it into the catalog's folder, and name it."
    )


async def _streamed(request: Request, part: _Part, most: int) -> None:
    """Takes all that comes, in blocks, each written in a thread."""
    block, size, parts = bytearray(), 0, request.stream().__aiter__()
    while True:
        try:
            async with asyncio.timeout(_IDLE):
                chunk = await anext(parts)
        except StopAsyncIteration:
            break
        except TimeoutError:
            raise InvalidParameter(_BROKEN) from None
        size += len(chunk)
        if size > most + _AROUND:
            raise too_large(most)
        block += chunk
        if len(block) >= _BLOCK:
            await asyncio.to_thread(part.take, bytes(block))
            block.clear()
    await asyncio.to_thread(part.take, bytes(block))
    part.check()


class _Part:
    """The one file of a form, on its way to a stream."""

    def __init__(self, boundary: bytes, stream: Any, most: int) -> None:
        self.stem, self.suffix = "", ""
        self._stream, self._most, self._size = stream, most, 0
        self._field, self._value, self._headers = b"", b"", dict[bytes, bytes]()
        self._writing, self._ended = False, False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_field": self._on_field,
                    "on_header_value": self._on_value,
                    "on_header_end": self._on_header,
                    "on_headers_finished": self._on_headers,
                    "on_part_data": self._on_data,
                    "on_end": self._on_end,
                },
            )
        except MultipartParseError:
            raise InvalidParameter(_BROKEN) from None

    def take(self, block: bytes) -> None:
        """Some of the form."""
        try:
            if block and not self._ended:
                self._parser.write(block)
        except MultipartParseError:
            raise InvalidParameter(_BROKEN) from None

    def check(self) -> None:
        """Refuses a form that was not there whole, or had no file."""
        if not self._ended:
            raise InvalidParameter(_BROKEN)
        if not self.suffix:
            raise InvalidParameter("Choose a file first.")
        if not self._size:
            raise InvalidParameter("The file is empty.")

    def _begin(self) -> None:
        self._headers, self._writing = {}, False

    def _on_field(self, data: bytes, start: int, end: int) -> None:
        self._field = _longer(self._field, data[start:end])

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value = _longer(self._value, data[start:end])

    def _on_header(self) -> None:
        self._headers[self._field.lower()] = self._value
        self._field = self._value = b""

    def _on_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"filename", b"").decode("utf-8", "replace")
        if options.get(b"name") != FILE.encode() or not name:
            return
        if self.suffix:
            raise InvalidParameter("Send one file at a time.")
        last = re.split(r"[/\\]", name)[-1]
        suffix = suffix_of(last)
        if suffix is None:
            raise InvalidParameter(f"A table is a file whose name ends in {', '.join(SUFFIXES)}.")
        self.stem, self.suffix = _clean(last[: -len(suffix)]), suffix
        self._writing = True

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if not self._writing:
            return
        self._size += end - start
        if self._size > self._most:
            raise too_large(self._most)
        self._stream.write(data[start:end])

    def _on_end(self) -> None:
        self._ended = True


def _longer(text: bytes, more: bytes) -> bytes:
    if len(text) + len(more) > _LINE:
        raise InvalidParameter(_BROKEN)
    return text + more


def _clean(stem: str) -> str:
    return _UNSAFE.sub("_", stem)[:_STEM].strip("_-") or "data"


def _named(folder: Path, temporary: str, stem: str, suffix: str) -> Path:
    """Gives a file its name, or the next one that is free."""
    number = 1
    while True:
        place = folder / f"{stem}{'' if number == 1 else f'_{number}'}{suffix}"
        try:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # it is ours from here on
        except FileExistsError:
            number += 1
            continue
        os.replace(temporary, place)
        return place
