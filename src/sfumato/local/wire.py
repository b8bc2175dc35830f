"""Files of reports, and aggregates as JSON: how they travel from clients to whoever adds them up.

A file of reports says by whom they were made, so that reports of another epsilon, domain or version are never
added up with others, and it notices whatever happens to it on the way. All numbers are little-endian.

```
8 bytes  89 53 46 4c 0d 0a 1a 0a     the mark; a transfer as text would destroy it
u16      1                           the version of this format
u32      length of the header
         the header, JSON: {"randomizer": {"kind": "kary.1", "epsilon": "1", …}}
u32      CRC-32 of all before
then, any number of times, a batch:
4 bytes  "BATC"
u64      how many reports
u32      how many bytes they take
         the reports, one after another
u32      CRC-32 of this batch, begun with that of what came before
and after every writing a seal:
4 bytes  "SEAL"
u64      how many reports the file has now
u32      the CRC-32 of what came before
u32      CRC-32 of this seal
```

To append is to write batches and another seal behind the last one; no byte is ever written over. A file that
does not end with a seal was cut off. A checksum tells damage, not malice: anyone can make up reports.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue, SourceUnusable
from sfumato.local.base import Aggregate, Randomizer, aggregate_from, randomizer_from
from sfumato.random import token

__all__ = [
    "Reports",
    "aggregate_from_json",
    "aggregate_reports",
    "aggregate_to_json",
    "distinct",
    "read_reports",
    "write_reports",
]

_MARK = b"\x89SFL\r\n\x1a\n"
_VERSION = 1
_OPENING, _BATCH, _SEAL, _CHECK = (struct.Struct(layout) for layout in ("<HI", "<4sQI", "<4sQI", "<I"))
_MOST = 1 << 26  # bytes of a header or a batch: what a reader must hold at once
_WRITTEN = 1 << 22  # bytes of a batch as we write it
_JSON = "sfumato-local-aggregate.1"


@dataclass(frozen=True, slots=True)
class Reports:
    """A file of reports; iterate over it for batches, as often as wanted.

    Attributes:
        path: Where it is.
        randomizer: What made the reports.
        people: How many there are.
    """

    path: Path
    randomizer: Randomizer[Any]
    people: int

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """The reports, batch by batch; each is checked before it is given.

        Raises:
            SourceUnusable: at the first batch that is damaged or cut off.
        """
        with _opened(self.path) as stream:
            randomizer, check = _header(stream, self.path)
            if randomizer.fingerprint != self.randomizer.fingerprint:
                raise SourceUnusable(f"{self.path} has been written again since it was opened.")
            yield from _batches(stream, self, check)

    def aggregate(self) -> Aggregate[Any]:
        """All of them added up: the whole file, or an error and nothing.

        Raises:
            SourceUnusable: if it is damaged or cut off, or something in it is not a report of its randomizer.
        """
        try:
            return self.randomizer.aggregate(self)
        except InvalidValue as error:
            raise SourceUnusable(f"{self.path} cannot be added up: {error}") from None

    def __str__(self) -> str:
        """How many there are, and of what."""
        return f"{self.people:,} reports of {self.randomizer!r} in {self.path}"


def read_reports(path: str | os.PathLike[str], randomizer: Randomizer[Any] | None = None) -> Reports:
    """A file of reports: its beginning and its end are checked now, each batch as it is read.

    Args:
        path: Where it is.
        randomizer: What the reports should have been made by; None: whatever the file says.

    Raises:
        SourceUnusable: for a file that cannot be opened, has no reports, or is damaged or cut off.
        InvalidParameter: for reports of a randomizer other than the one given, or one that is unknown here.
    """
    place = Path(path)
    with _opened(place) as stream:
        written, _ = _header(stream, place)
        people, _ = _last_seal(stream, place)
    if randomizer is not None and written.fingerprint != randomizer.fingerprint:
        raise _another(place)
    return Reports(place, written, people)


def aggregate_reports(
    paths: Iterable[str | os.PathLike[str]], randomizer: Randomizer[Any] | None = None
) -> Aggregate[Any]:
    """The reports of several files added up; all beginnings and ends are checked before the first is read.

    Raises:
        SourceUnusable: if a file is damaged, cut off or none of reports.
        InvalidParameter: if they were not all made by the same randomizer, one is named twice, or there are
            no files.
    """
    files: list[Reports] = []
    for path in distinct(paths):
        files.append(read_reports(path, randomizer if not files else files[0].randomizer))
    if not files:
        raise InvalidParameter("Name at least one file of reports.")
    total = files[0].aggregate()
    for file in files[1:]:
        total = total + file.aggregate()
    return total


def distinct(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The paths, of files that are all different: who is counted twice makes intervals say too much.

    Raises:
        InvalidParameter: if two of them lead to the same file.
    """
    places, seen = [Path(path) for path in paths], set()
    for place in places:
        real = os.path.realpath(place)
        if real in seen:
            raise InvalidParameter(f"{place} is named twice, and its reports would count twice.")
        seen.add(real)
    return places


def write_reports(
    path: str | os.PathLike[str],
    randomizer: Randomizer[Any],
    reports: NDArray[Any] | Iterable[NDArray[Any]],
    *,
    append: bool = False,
) -> int:
    """Write reports to a new file, or append them to an existing one; on any failure nothing has changed.

    Args:
        path: Where to; it must not exist, unless `append` is given.
        randomizer: What made the reports.
        reports: One array, or batches as they come: no more than one is held at a time.
        append: Whether a file that exists gets these reports, too; it is made if it does not exist.

    Returns:
        How many reports the file has now.

    Raises:
        InvalidParameter: if the file exists, or has reports of another randomizer.
        InvalidValue: for reports of another type, shape or range.
        SourceUnusable: if it cannot be written, or ends in the middle of something.
    """
    place = Path(path)
    if "\0" in str(place):
        raise SourceUnusable("No file can have this name.")
    batches = [reports] if isinstance(reports, np.ndarray) else reports
    if place.exists():
        if not append:
            raise InvalidParameter(f"{place} exists; name another file, or append to it.")
        return _append(place, randomizer, batches)
    draft = place.absolute().parent / f".sfumato-{token()}"
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError:
        raise SourceUnusable(
            f"{place} cannot be written: no such folder, or no right to write there."
        ) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            people = _write(stream, randomizer, batches, 0, _write_header(stream, randomizer))
        _publish(draft, place)
    except OSError:
        raise SourceUnusable(f"{place} could not be written.") from None
    finally:
        draft.unlink(missing_ok=True)
    return people


def aggregate_to_json(aggregate: Aggregate[Any]) -> str:
    """An aggregate as one JSON document, to be merged elsewhere."""
    return json.dumps({"format": _JSON, **aggregate.to_dict()}, separators=(",", ":"))


def aggregate_from_json(text: str | bytes) -> Aggregate[Any]:
    """The aggregate that `aggregate_to_json` wrote down.

    Raises:
        InvalidValue: for anything else.
        InvalidParameter: for a randomizer that is not known here.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidValue("This is not an aggregate of reports: it is not JSON.") from None
    if not isinstance(data, dict) or data.pop("format", None) != _JSON:
        raise InvalidValue("This is not an aggregate of reports, or one of another version.")
    return aggregate_from(data)


@contextmanager
def _opened(place: Path, mode: str = "rb") -> Iterator[BinaryIO]:
    try:
        stream: Any = open(place, mode)  # noqa: SIM115
    except (OSError, ValueError):  # the latter for a name that no file can have
        raise SourceUnusable(f"{place} cannot be opened: no such file, or no right to it.") from None
    with stream:
        yield stream


def _header(stream: BinaryIO, place: Path) -> tuple[Randomizer[Any], int]:
    """The randomizer, and the checksum up to here; the stream is left where the first batch begins."""
    start = stream.read(len(_MARK) + _OPENING.size)
    if start[: len(_MARK)] != _MARK:
        raise SourceUnusable(f"{place} is not a file of reports.")
    if len(start) < len(_MARK) + _OPENING.size:
        raise _cut(place)
    version, length = _OPENING.unpack(start[len(_MARK) :])
    if version != _VERSION:
        raise SourceUnusable(f"{place} is of version {version}; this version of Sfumato reads {_VERSION}.")
    if length > _MOST:
        raise _damaged(place)
    text = stream.read(length)
    check = zlib.crc32(text, zlib.crc32(start))
    if _number(stream, place) != check:
        raise _damaged(place)
    try:
        data = json.loads(text)["randomizer"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(place) from None
    try:
        return randomizer_from(data), check
    except InvalidParameter as error:
        raise InvalidParameter(f"{place}: {error}") from None


def _batches(stream: BinaryIO, file: Reports, check: int) -> Iterator[NDArray[Any]]:
    """What follows on the header, up to the end, which is right behind a seal."""
    place, randomizer = file.path, file.randomizer
    one = randomizer.report_dtype.itemsize * int(np.prod(randomizer.report_shape, dtype=np.int64))
    people, sealed = 0, False
    while start := stream.read(_BATCH.size):
        if len(start) < _BATCH.size:
            raise _cut(place)
        tag, count, size = _BATCH.unpack(start)
        if tag == b"SEAL":
            if (count, size) != (people, check):
                raise _damaged(place)
            check, sealed = zlib.crc32(start), True
            if _number(stream, place) != check:
                raise _damaged(place)
            continue
        if tag != b"BATC" or size > _MOST or size != count * one:
            raise _damaged(place)
        payload = stream.read(size)
        if len(payload) < size:
            raise _cut(place)
        check, sealed = zlib.crc32(payload, zlib.crc32(start, check)), False
        if _number(stream, place) != check:
            raise _damaged(place)
        people += count
        stored = np.frombuffer(payload, randomizer.report_dtype.newbyteorder("<"))
        yield stored.astype(randomizer.report_dtype).reshape(count, *randomizer.report_shape)
    if not sealed:
        raise _cut(place)


def _last_seal(stream: BinaryIO, place: Path) -> tuple[int, int]:
    """How many reports a file says it has, and the checksum that what is appended begins with."""
    begins, size = stream.tell(), _SEAL.size + _CHECK.size
    if stream.seek(0, os.SEEK_END) - begins < size:
        raise _cut(place)
    stream.seek(-size, os.SEEK_END)
    start = stream.read(_SEAL.size)
    tag, people, _ = _SEAL.unpack(start)
    check = zlib.crc32(start)
    if tag != b"SEAL" or _number(stream, place) != check:
        raise _cut(place)
    return people, check


def _number(stream: BinaryIO, place: Path) -> int:
    check = stream.read(_CHECK.size)
    if len(check) < _CHECK.size:
        raise _cut(place)
    return int(_CHECK.unpack(check)[0])


def _write_header(stream: BinaryIO, randomizer: Randomizer[Any]) -> int:
    text = json.dumps({"randomizer": randomizer.to_dict()}, separators=(",", ":")).encode()
    if len(text) > _MOST:
        raise InvalidParameter("The domain's list of values is too long for a file: number them.")
    start = _MARK + _OPENING.pack(_VERSION, len(text)) + text
    check = zlib.crc32(start)
    stream.write(start + _CHECK.pack(check))
    return check


def _write(
    stream: BinaryIO, randomizer: Randomizer[Any], batches: Iterable[NDArray[Any]], people: int, check: int
) -> int:
    """Write batches and a seal, down to the disk; gives the number of reports."""
    for given in batches:
        batch = randomizer._checked(given)
        one = max(1, batch.dtype.itemsize * int(np.prod(batch.shape[1:], dtype=np.int64)))
        for start in range(0, len(batch), max(1, _WRITTEN // one)):
            part = batch[start : start + max(1, _WRITTEN // one)]
            payload = np.ascontiguousarray(part, part.dtype.newbyteorder("<")).tobytes()
            head = _BATCH.pack(b"BATC", len(part), len(payload))
            check = zlib.crc32(payload, zlib.crc32(head, check))
            stream.write(head + payload + _CHECK.pack(check))
            people += len(part)
    head = _SEAL.pack(b"SEAL", people, check)
    stream.write(head + _CHECK.pack(zlib.crc32(head)))
    stream.flush()
    os.fsync(stream.fileno())
    return people


def _append(place: Path, randomizer: Randomizer[Any], batches: Iterable[NDArray[Any]]) -> int:
    with _opened(place, "r+b") as stream, _alone(stream, place):
        if _header(stream, place)[0].fingerprint != randomizer.fingerprint:
            raise _another(place)
        people, check = _last_seal(stream, place)
        end = stream.seek(0, os.SEEK_END)
        try:
            return _write(stream, randomizer, batches, people, check)
        except BaseException as error:
            with suppress(OSError):
                stream.seek(end)  # what is still buffered is written first, and cut off with the rest
            os.ftruncate(stream.fileno(), end)
            if isinstance(error, OSError):
                raise SourceUnusable(f"{place} could not be written.") from None
            raise


@contextmanager
def _alone(stream: BinaryIO, place: Path) -> Iterator[None]:
    """No other writer at the same time, where the system has locks; they end with the stream."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SourceUnusable(f"{place} is being written to by somebody else; try again later.") from None
    yield


def _publish(draft: Path, place: Path) -> None:
    """Give the finished file its name, unless another has taken it meanwhile."""
    try:
        os.link(draft, place)
    except FileExistsError:
        raise InvalidParameter(f"{place} exists; name another file, or append to it.") from None
    except OSError:  # a file system without links
        os.replace(draft, place)


def _cut(place: Path) -> SourceUnusable:
    return SourceUnusable(f"{place} was cut off: it does not end where a writer ended; fetch it again.")


def _damaged(place: Path) -> SourceUnusable:
    return SourceUnusable(f"{place} is damaged: a checksum does not fit; fetch it again.")


def _another(place: Path) -> InvalidParameter:
    return InvalidParameter(
        f"{place} has reports of another epsilon, domain or kind, which cannot be added to these."
    )
