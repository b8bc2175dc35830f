"""Prepared folders of Parquet files: a note beside them lists all of them, so that half a folder is not one.

The note (`engines.prepared`) is written last, in a folder that has its name only once it is whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sfumato.engines._scratch import Scratch
from sfumato.engines.prepared import NOTE_FILE, Note, folder_note, note_of, unreadable
from sfumato.engines.sources import Files
from sfumato.errors import InvalidParameter, SourceUnusable

__all__ = ["check_free", "note_beside", "private_folder", "put", "size_of"]


def note_beside(files: Files) -> Note | None:
    """What a prepared folder says of itself, if all its files are there; None: it was not prepared.

    Raises:
        SourceUnusable: if it was prepared by another version, or files are missing, new or of another size.
    """
    folder = os.path.dirname(files.paths[0])
    text = folder_note(folder)
    if text is None:
        return None
    note = note_of(text)
    if note is None:
        raise unreadable(files.shown)
    if _listed(text) != {os.path.relpath(path, folder): _size(path) for path in files.paths}:
        raise SourceUnusable(
            f"{files.shown} does not have the files that were prepared; name the whole folder, or prepare "
            "the table again."
        )
    return note


def _listed(text: str) -> object:
    return json.loads(text).get("files")


def _size(path: str) -> int | None:
    with contextlib.suppress(OSError):
        return os.path.getsize(path)
    return None


def size_of(folder: Path) -> int:
    """How many bytes of data a folder has."""
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def check_free(target: Path, *, force: bool) -> None:
    """Refuse a name that is taken.

    Raises:
        InvalidParameter: if something is there; with `force` only what was not prepared.
    """
    if not os.path.lexists(target):
        return
    if folder_note(target) is None:
        raise InvalidParameter(
            f"{target.name[:100]} is there already, and was not prepared; name another one."
        )
    if not force:
        raise InvalidParameter(f"{target.name[:100]} is there already; --force (force=True) writes over it.")


@contextlib.contextmanager
def private_folder(target: Path) -> Iterator[Path]:
    """A folder beside the target that its owner alone may enter; gone afterwards with all that is in it."""
    folder: Scratch | None = None
    with contextlib.suppress(OSError):
        folder = Scratch(target.parent, prefix=".sfumato-")
    if folder is None:
        raise _unwritable(target)
    try:
        yield folder.path
    finally:
        folder.remove()


def put(draft: Path, target: Path, note: str, *, force: bool) -> None:
    """Give a whole folder its note and its name, on the disk before anybody can find it.

    Raises:
        InvalidParameter: if the name was taken meanwhile.
        SourceUnusable: if it cannot be written there.
    """
    check_free(target, force=force)
    is_put = False
    with contextlib.suppress(OSError):
        files = {path.name: path.stat().st_size for path in sorted(draft.glob("*.parquet"))}
        text = json.dumps({**json.loads(note), "files": files}, ensure_ascii=False)
        (draft / NOTE_FILE).write_text(text, "utf-8")
        os.chmod(draft, 0o700)
        for path in (*draft.iterdir(), draft):
            _sync(path)
        if target.exists():  # it goes first, and is never half of one and half of the other
            os.rename(target, draft.with_name("old"))
        os.rename(draft, target)
        is_put = True
        _sync(target.parent)
        shutil.rmtree(draft.with_name("old"), ignore_errors=True)
    if not is_put:
        raise _unwritable(target)


def _unwritable(target: Path) -> SourceUnusable:
    return SourceUnusable(f"{target.name[:100]} cannot be written there; check the folder's permissions.")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
