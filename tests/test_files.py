"""Files are written whole or not at all, with the rights that new files have, and nothing is left beside."""

import os
import stat

import pytest

from sfumato import _files
from sfumato._files import write_whole


def test_a_file_takes_the_place_of_another(tmp_path):
    path = tmp_path / "kept.txt"
    write_whole(path, b"one")
    write_whole(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_the_rights_are_those_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "kept.txt", b"one")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "kept.txt").stat().st_mode) == 0o640


def test_what_fails_on_the_way_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "kept.txt"
    write_whole(path, b"one")

    def full(*_):
        raise OSError("no room")

    monkeypatch.setattr(_files.Path, "replace", full)
    with pytest.raises(OSError, match="no room"):
        write_whole(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_or_a_missing_one_is_no_place(tmp_path):
    for place in (tmp_path, tmp_path / "none" / "kept.txt"):
        with pytest.raises((FileNotFoundError, IsADirectoryError, PermissionError)):
            write_whole(place, b"one")
    assert list(tmp_path.iterdir()) == []


def test_names_without_a_folder_are_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_whole("kept.txt", b"one")
    assert (tmp_path / "kept.txt").read_bytes() == b"one"
