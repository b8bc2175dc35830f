"""Units in windows of time on every engine: two people, and two windows of one, are never taken for one."""

from __future__ import annotations

import pytest

from same_questions import IDS
from sfumato.errors import InvalidParameter
from sfumato.numeric.zones import Offsets, offsets_of
from sfumato.plan.questions import windowing
from sfumato.schema import Date, Int, PrivacyUnit, PrivateTable, Timestamp
from windows_of_time import WINDOWS, check_far, check_held, check_windows
from zones_of_time import ZONES, check_zones


@pytest.mark.parametrize("kind", sorted(IDS))
def test_units_are_pairs_of_an_id_and_a_window(make_shared, kind):
    check_windows(make_shared(), kind, WINDOWS if kind == "text" else ["week", "month", 30])


def test_rows_of_windows_that_were_paid_for_are_read_and_no_others(make_shared):
    check_held(make_shared(), ["day", "week", "month", "quarter", "year", 30])


def test_days_beyond_the_calendar_are_in_no_window(make_shared):
    check_far(make_shared(), WINDOWS)


@pytest.mark.parametrize("zone", ZONES)
def test_windows_end_at_local_midnight(make_shared, zone):
    engine = make_shared()
    if engine.dialect.name == "datafusion":
        pytest.skip("the example reads no timestamps")
    check_zones(engine, zone)


def test_a_change_of_clocks_that_is_missed_is_seen(make_shared, monkeypatch):
    engine = make_shared()
    if engine.dialect.name != "duckdb":
        pytest.skip("once is enough: the expression is the same")
    monkeypatch.setattr(windowing, "offsets_of", lambda zone: Offsets((), offsets_of(zone).ahead[-1:]))
    with pytest.raises(AssertionError):
        check_zones(engine, "Europe/Berlin")


def test_what_decides_windows_is_declared():
    columns = {"day": Date(), "at": Timestamp(), "g": Int(0, 1)}
    with pytest.raises(InvalidParameter, match="day, at"):
        PrivateTable("t", source=None, unit=PrivacyUnit("who", window="month"), schema=columns)
    with pytest.raises(InvalidParameter, match="none is declared"):
        PrivateTable("t", source=None, unit=PrivacyUnit("who", window="month"), schema={"g": Int(0, 1)})
    found = PrivateTable(
        "t", source=None, unit=PrivacyUnit("who", window="month"), schema={"day": Date(), "g": Int(0, 1)}
    )
    assert found.unit.time == "day"
    for wrong in ("fortnight", 0, -1, True, 10**6, 1.5):
        with pytest.raises(InvalidParameter, match="window is one of"):
            PrivacyUnit("who", window=wrong)
    with pytest.raises(InvalidParameter, match="time names the column"):
        PrivacyUnit("who", time="day")
    for unit in (PrivacyUnit("who", window=length, time="day", max_rows=3) for length in WINDOWS):
        assert PrivacyUnit.from_dict(unit.to_dict()) == unit
        assert unit.limited(1, 2).window == unit.window
