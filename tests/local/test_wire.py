"""Files of reports: read back as written, appended to, and refused when damaged in any byte."""

import json
import os
import struct
import zlib

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue, SfumatoError, SourceUnusable
from sfumato.local import wire
from sfumato.local.means import DuchiMean, HybridMean, PiecewiseMean
from sfumato.local.wire import (
    aggregate_from_json,
    aggregate_reports,
    aggregate_to_json,
    read_reports,
    write_reports,
)

MADE = PiecewiseMean(1, 0, 10)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "reports.sfl"


def reports(count=5, made=MADE):
    return made.encode(np.linspace(0, 10, count))


def test_reports_come_back_as_they_were(path):
    first, second = reports(1000), reports(3)
    assert write_reports(path, MADE, [first, second[:0], second]) == 1003
    found = read_reports(path)
    assert (found.randomizer, found.people, found.path) == (MADE, 1003, path)
    batches = list(found)
    assert [each.dtype for each in batches] == [np.dtype(np.uint16)] * 2
    assert np.array_equal(np.concatenate(batches), np.concatenate([first, second]))
    assert np.array_equal(np.concatenate(list(found)), np.concatenate([first, second]))  # as often as wanted
    assert found.aggregate().to_dict() == MADE.aggregate([first, second]).to_dict()
    assert not [each for each in path.parent.iterdir() if each != path]


def test_every_kind_of_report_travels(path):
    """Whatever this package registers: shapes, types and parameters come back."""
    from sfumato.local.examples import examples

    for number, example in enumerate(examples()):
        made, place = example.randomizer, path.with_suffix(f".{number}")
        sent = made.encode([example.left, example.right] * 20)
        write_reports(place, made, sent)
        found = read_reports(place, made)
        assert np.array_equal(np.concatenate(list(found)), sent), example.name
        total = found.aggregate()
        assert aggregate_from_json(aggregate_to_json(total)).to_dict() == total.to_dict(), example.name


def test_an_empty_file_of_reports_is_one(path):
    assert write_reports(path, MADE, reports(0)) == 0
    assert list(read_reports(path)) == []
    assert write_reports(path, MADE, reports(4), append=True) == 4
    assert read_reports(path).aggregate().count == 4


def test_appending_writes_over_nothing(path):
    write_reports(path, MADE, reports(10), append=True)  # makes it
    before = path.read_bytes()
    assert write_reports(path, MADE, reports(7), append=True) == 17
    assert path.read_bytes().startswith(before)
    found = read_reports(path)
    assert found.people == 17
    assert sum(map(len, found)) == 17


def test_a_file_is_not_written_over(path):
    write_reports(path, MADE, reports())
    before = path.read_bytes()
    with pytest.raises(InvalidParameter, match="exists"):
        write_reports(path, MADE, reports())
    for other in (PiecewiseMean(2, 0, 10), PiecewiseMean(1, 0, 11), HybridMean(1, 0, 10)):
        with pytest.raises(InvalidParameter, match="another epsilon, domain or kind"):
            write_reports(path, other, reports(made=other), append=True)
        with pytest.raises(InvalidParameter, match="another epsilon, domain or kind"):
            read_reports(path, other)
    assert path.read_bytes() == before


@pytest.mark.parametrize("exists", [False, True])
def test_a_failure_in_the_middle_leaves_everything_as_it_was(path, exists, monkeypatch):
    if exists:
        write_reports(path, MADE, reports())
    before = path.read_bytes() if exists else None

    def failing():
        yield reports(50_000)
        raise RuntimeError("the sender went away")

    def wrong():
        yield reports(50_000)
        yield np.array([1.5])

    monkeypatch.setattr(wire, "_WRITTEN", 1000)
    with pytest.raises(RuntimeError):
        write_reports(path, MADE, failing(), append=True)
    with pytest.raises(InvalidValue):
        write_reports(path, MADE, wrong(), append=True)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(SourceUnusable, match="could not be written"):
        write_reports(path, MADE, reports(50_000), append=True)
    assert (path.read_bytes() if exists else None) == before
    assert path.exists() == exists
    assert [each for each in path.parent.iterdir() if each != path] == []


def test_every_cut_and_every_changed_byte_is_told(path, monkeypatch):
    """All of them: one readable error, no exception of another kind, and never another sum."""
    monkeypatch.setattr(wire, "_WRITTEN", 8)
    write_reports(path, MADE, reports(9))
    write_reports(path, MADE, reports(3), append=True)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        if length and _ends_with_a_seal(whole[:length]):
            assert length < len(whole)  # as it was before the second writing
            assert read_reports(path).aggregate().count == 9
            continue
        with pytest.raises(SfumatoError):
            read_reports(path).aggregate()
        with pytest.raises(SfumatoError):
            write_reports(path, MADE, reports(2), append=True)
        assert path.read_bytes() == whole[:length]
    for place in range(len(whole)):
        for flip in (1, 128):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
            with pytest.raises(SfumatoError):
                read_reports(path).aggregate()


def _ends_with_a_seal(data):
    return data[-20:-16] == b"SEAL" and zlib.crc32(data[-20:-4]) == struct.unpack("<I", data[-4:])[0]


def test_batches_in_another_order_or_twice_or_missing_are_told(path, monkeypatch):
    monkeypatch.setattr(wire, "_WRITTEN", 8)
    write_reports(path, MADE, reports(12))
    whole = path.read_bytes()
    begin = whole.index(b"BATC")
    size = whole.index(b"BATC", begin + 1) - begin
    batches = [whole[begin + i * size : begin + (i + 1) * size] for i in range(3)]
    head, seal = whole[:begin], whole[begin + 3 * size :]
    for order in ((1, 0, 2), (0, 0, 2), (0, 1), (0, 1, 2, 2), ()):
        path.write_bytes(head + b"".join(batches[i] for i in order) + seal)
        with pytest.raises(SourceUnusable, match="damaged"):
            read_reports(path).aggregate()


def test_a_seal_belongs_to_what_it_follows(path):
    """Batches of one file before the seal of another, each whole by itself, of the same number."""
    other = path.with_name("other.sfl")
    write_reports(path, MADE, np.array([1, 2, 3], np.uint16))
    write_reports(other, MADE, np.array([4, 5, 6], np.uint16))
    other.write_bytes(other.read_bytes()[:-20] + path.read_bytes()[-20:])
    with pytest.raises(SourceUnusable, match="damaged"):
        read_reports(other).aggregate()


def test_a_file_that_changes_after_it_was_opened_is_told(path):
    write_reports(path, MADE, reports(9))
    found, whole = read_reports(path), path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(SourceUnusable, match="cut off"):
        found.aggregate()
    path.unlink()
    write_reports(path, HybridMean(1, 0, 10), reports(made=HybridMean(1, 0, 10)))
    with pytest.raises(SourceUnusable, match="written again"):
        found.aggregate()


def test_a_damaged_file_changes_no_aggregate(path):
    write_reports(path, MADE, reports(10))
    other = path.with_name("other.sfl")
    write_reports(other, MADE, reports(10))
    assert aggregate_reports([path, other]).count == 20
    data = bytearray(other.read_bytes())
    data[-30] ^= 4
    other.write_bytes(bytes(data))
    with pytest.raises(SourceUnusable, match=r"other\.sfl is damaged"):
        aggregate_reports([path, other])
    with pytest.raises(InvalidParameter, match="at least one"):
        aggregate_reports([])
    write_reports(path.with_name("third.sfl"), DuchiMean(1, 0, 10), reports(made=DuchiMean(1, 0, 10)))
    with pytest.raises(InvalidParameter, match=r"third\.sfl has reports of another"):
        aggregate_reports([path, path.with_name("third.sfl")])


def test_other_versions_and_kinds_are_named(path):
    write_reports(path, MADE, reports())
    whole = path.read_bytes()
    path.write_bytes(whole[:8] + b"\x02\x00" + whole[10:])
    with pytest.raises(SourceUnusable, match="version 2"):
        read_reports(path)
    for data in ({"kind": "mean-piecewise.9", "epsilon": "1"}, {"kind": "mean-piecewise.1"}, 7, None):
        text = json.dumps({"randomizer": data}).encode()
        start = whole[:8] + struct.pack("<HI", 1, len(text)) + text
        path.write_bytes(start + struct.pack("<I", zlib.crc32(start)) + whole[-20:])
        with pytest.raises(InvalidParameter, match=r"reports\.sfl: "):
            read_reports(path)
    for text in (b"{", b"[]", b"{}", b"\xff", b"[" * 100_000):
        start = whole[:8] + struct.pack("<HI", 1, len(text)) + text
        path.write_bytes(start + struct.pack("<I", zlib.crc32(start)) + whole[-20:])
        with pytest.raises(SourceUnusable, match="damaged"):
            read_reports(path)


def test_what_is_no_file_of_reports(path):
    for data in (b"", b"hello", b"PAR1" * 10, b"\x89PNG\r\n\x1a\n" * 4):
        path.write_bytes(data)
        with pytest.raises(SourceUnusable, match="not a file of reports"):
            read_reports(path)
    with pytest.raises(SourceUnusable, match="cannot be opened"):
        read_reports(path.parent / "none.sfl")
    with pytest.raises(SourceUnusable, match="cannot be opened"):
        read_reports(path.parent)
    with pytest.raises(SourceUnusable, match="cannot be written"):
        write_reports(path.parent / "none" / "r.sfl", MADE, reports())


def test_a_length_that_was_made_up_is_not_believed(path):
    """A header or batch that claims to be huge is refused before memory is asked for."""
    write_reports(path, MADE, reports())
    whole = path.read_bytes()
    path.write_bytes(whole[:10] + struct.pack("<I", 2**32 - 1) + whole[14:])
    with pytest.raises(SourceUnusable):
        read_reports(path)
    begin = whole.index(b"BATC")
    path.write_bytes(
        whole[:begin] + struct.pack("<4sQI", b"BATC", 2**31 - 1, 2**32 - 2) + whole[begin + 16 :]
    )
    with pytest.raises(SourceUnusable):
        read_reports(path).aggregate()


def test_two_writers_at_once_do_not_mix(path):
    write_reports(path, MADE, reports())

    def meanwhile():
        yield reports(2)
        with pytest.raises(SourceUnusable, match="somebody else"):
            write_reports(path, MADE, reports(2), append=True)

    assert write_reports(path, MADE, meanwhile(), append=True) == 7
    assert read_reports(path).aggregate().count == 7


def test_aggregates_travel_as_json_and_others_are_refused():
    total = MADE.aggregate(reports(100))
    text = aggregate_to_json(total)
    assert aggregate_from_json(text).to_dict() == total.to_dict()
    assert (aggregate_from_json(text) + total).count == 200
    data = json.loads(text)
    for wrong in (
        "",
        "[]",
        "nonsense",
        "[" * 100_000,
        json.dumps({**data, "format": "sfumato-local-aggregate.2"}),
        json.dumps({**data, "count": -1}),
        json.dumps({**data, "count": "1"}),
        json.dumps({**data, "randomizer": None}),
        json.dumps({**data, "randomizer": {**data["randomizer"], "epsilon": "-1"}}),
        json.dumps({**data, "more": 1}),
    ):
        with pytest.raises((InvalidValue, InvalidParameter)):
            aggregate_from_json(wrong)


def test_what_is_no_report_never_gets_into_a_file(path):
    """One such report would make the whole file useless, long after its sender has gone."""
    write_reports(path, MADE, reports(5))
    before = path.read_bytes()
    wrong = np.array([2**16 - 1], np.uint16)
    with pytest.raises(InvalidValue):
        write_reports(path, MADE, [reports(2), wrong], append=True)
    assert path.read_bytes() == before
    with pytest.raises(InvalidValue):
        write_reports(path.with_name("other.sfl"), MADE, wrong)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_holds_something_else_is_named(path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(PiecewiseMean, "_refuse_others", lambda *_: None)
        write_reports(path, MADE, np.array([2**16 - 1], np.uint16))
    with pytest.raises(SourceUnusable, match=r"reports\.sfl cannot be added up: A report is not one"):
        aggregate_reports([path])


def test_a_file_is_not_counted_twice(path, tmp_path):
    write_reports(path, MADE, reports(5))
    link = tmp_path / "link.sfl"
    link.symlink_to(path)
    for twice in ([path, path], [path, str(path)], [path, link], [path, tmp_path / "x" / ".." / path.name]):
        with pytest.raises(InvalidParameter, match="twice"):
            aggregate_reports(twice)
    assert aggregate_reports([link]).count == 5


def test_a_name_that_no_file_can_have_is_told(tmp_path):
    for use in (read_reports, lambda place: write_reports(place, MADE, reports(1))):
        with pytest.raises(SourceUnusable):
            use(tmp_path / "a\0b")
