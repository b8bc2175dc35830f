"""Windows that end at midnight of a zone: what is said, what is on record, and in how many steps they are."""

from __future__ import annotations

import datetime
import functools
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.catalog import Catalog
from sfumato.errors import InvalidParameter, LedgerMismatch
from sfumato.numeric import zones
from sfumato.numeric.moments import seconds_of
from sfumato.numeric.zones import Offsets, offsets_of
from sfumato.plan.expressions.tree import Column, call
from sfumato.plan.questions.sources import Scan
from sfumato.session import attaching
from sfumato.session.series.calendar import Calendar, meets
from sfumato.session.series.pricing import steps_of, touches_of

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns"]
FEW = ("Europe/Berlin", "Australia/Lord_Howe")  # an hour in summer, and half an hour
STRANGE = ["Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca", "Pacific/Kiritimati", "Africa/Monrovia"]
EPOCH = datetime.datetime(1970, 1, 1)


def local(moment, zone):
    """What the clocks of a zone show, by `zoneinfo`."""
    return moment.replace(tzinfo=datetime.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


@pytest.mark.parametrize("zone", [*ZONES, *STRANGE, "UTC"])
def test_offsets_are_those_of_zoneinfo(zone):
    offsets = offsets_of(zone)
    near = [change + more for change in offsets.changes for more in (-86_400, -1, 0, 1, 43_200)]
    evenly = range(0, seconds_of(datetime.datetime(2100, 1, 1)), 86_400 * 30 + 1234)
    for seconds in [*near, *evenly]:
        moment = EPOCH + timedelta(seconds=seconds)
        assert (local(moment, zone) - moment) == timedelta(seconds=offsets.at(seconds)), moment
    assert offsets.at(-(10**10)) == offsets.ahead[0]
    assert offsets.at(10**11) == offsets.ahead[-1]


def numbered(moments, length):
    """The windows or steps of moments, by NumPy's calendar: no two have the same number."""
    days = moments.astype("datetime64[D]")
    if isinstance(length, int):
        return days.astype(int) // length
    if length == "week":
        return (days - np.datetime64("1900-01-01")).astype(int) // 7  # a Monday
    if length == "quarter":
        return days.astype("datetime64[M]").astype(int) // 3
    kinds = {
        "hour": "datetime64[h]",
        "day": "datetime64[D]",
        "month": "datetime64[M]",
        "year": "datetime64[Y]",
    }
    return moments.astype(kinds[length]).astype(int)


@functools.cache
def quarters_of_hours(years):
    """All quarters of an hour of some years."""
    return np.arange(f"{years[0]}-01-01", f"{years[1]}-01-01", 900, dtype="datetime64[s]")


@functools.cache
def steps_of_moments(every, years):
    """The steps that these are in."""
    return numbered(quarters_of_hours(years), every)


@functools.lru_cache(maxsize=1)
def windows_of_moments(zone, length, years):
    """The windows that these are in."""
    moments, offsets = quarters_of_hours(years), offsets_of(zone)
    ahead = np.array(offsets.ahead)[np.searchsorted(offsets.changes, moments.astype(int), side="right")]
    return numbered(moments + ahead.astype("timedelta64[s]"), length)


def steps_of_windows(zone, length, every, years=(1995, 2025)):
    """How many steps one window has moments in, at most, by all quarters of an hour."""
    pairs = np.stack([windows_of_moments(zone, length, years), steps_of_moments(every, years)])
    changed = np.any(np.diff(pairs, prepend=-1) != 0, axis=0)  # a pair can come again where clocks go back
    pairs = np.unique(pairs[:, changed], axis=1)
    return np.unique(pairs[0], return_counts=True)[1].max()


@pytest.mark.parametrize(
    "zone",
    [
        *(pytest.param(zone, marks=() if zone in FEW else pytest.mark.stats) for zone in ZONES),
        "Pacific/Apia",
    ],
)
@pytest.mark.parametrize("length", ["day", "week", "month", "quarter", 10])
def test_no_window_meets_more_steps_than_are_paid_for(zone, length):
    """Thirty years against the bound; but for odd clocks, no fewer would do."""
    for every in ("hour", "day", "week", "month", "quarter"):
        most, bound = steps_of_windows(zone, length, every), meets(length, every, offsets_of(zone))
        assert most <= bound
        odd = zone == "Pacific/Apia" or (every == "hour" and zone not in ZONES[:3])
        assert most == bound or odd, every


def test_a_bound_for_utc_alone_is_seen_to_be_too_small():
    """Planted: the pricing of UTC for windows of Berlin."""
    assert steps_of_windows("Europe/Berlin", "day", "day", (2024, 2025)) > meets("day", "day")


def _touches(unit, time, every, horizon, kind=None):
    return touches_of(unit, steps_of(unit, Scan("visits"), time, every, horizon, kind), horizon)


def test_a_series_is_priced_for_the_steps_that_local_windows_meet():
    unit = sf.PrivacyUnit("user", window="day", time="at", zone="Europe/Berlin")
    day = call("timestamp_to_date", Column("at"))
    assert _touches(unit, day, "day", 365, "timestamp") == 2
    assert _touches(unit, day, "day", 365) == 2
    assert _touches(unit, Column("at"), "day", 365, "date") == 1
    assert _touches(unit, call("trunc_hour", Column("at")), "hour", 365, "timestamp") == 25
    utc = sf.PrivacyUnit("user", window="day", time="at")
    assert _touches(utc, day, "day", 365, "timestamp") == 1


def rows():
    first = datetime.datetime(2026, 3, 27, 12)
    moments = [first + timedelta(hours=hour) for hour in range(96)]
    return pa.table({"user": [1] * len(moments), "at": pa.array(moments, pa.timestamp("s"))})


def table_of(zone="Europe/Berlin", **wishes):
    unit = sf.PrivacyUnit("user", max_rows=1, **({"window": "day", "time": "at", "zone": zone} | wishes))
    schema = {"at": sf.Timestamp("2026-01-01", "2026-12-31")}
    return sf.PrivateTable("visits", source=rows(), unit=unit, schema=schema, dataset="people")


def session_of(*tables, **more):
    return sf.Session(*tables, budget=sf.Budget(epsilon=10**6, delta="0.001"), **more)


def test_windows_end_at_local_midnight():
    found = {}
    for zone in ("UTC", "Europe/Berlin", "Pacific/Kiritimati"):
        with session_of(table_of(zone)) as session:
            answer = session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=10**5)
            found[zone] = round(answer.table["n"][0].as_py())
    days = {zone: len({local(at.as_py(), zone).date() for at in rows()["at"]}) for zone in found}
    assert found == days
    assert len(set(days.values())) > 1 or days["UTC"] == 5


def test_the_zone_is_said():
    with session_of(table_of()) as session:
        quote = " ".join(str(session.sql("SELECT COUNT(*) AS n FROM visits").quote(epsilon=1)).split())
    assert "Protects one user in one day of Europe/Berlin, not a lifetime" in quote
    assert (
        str(sf.PrivacyUnit("user", window=30, time="at", zone="Asia/Tokyo"))
        == "one user in 30 days of Asia/Tokyo"
    )
    unit = table_of().unit
    assert sf.PrivacyUnit.from_dict(unit.to_dict()) == unit
    assert unit.limited(1, 2).zone == unit.zone
    assert (
        sf.PrivacyUnit("user", window="day", zone="UTC").to_dict()
        == sf.PrivacyUnit("user", window="day").to_dict()
    )


NO_ZONES = ("Europe/Berlinn", "", 3, None, "../../etc/passwd", "localtime", "posixrules", "Factory")
NO_ZONES += ("posix/Europe/Berlin", "right/Europe/Berlin")  # the same places, and clocks with leap seconds


def test_what_is_no_zone_is_refused():
    for wrong in NO_ZONES:
        with pytest.raises(InvalidParameter, match="There is no time zone"):
            sf.PrivacyUnit("user", window="day", zone=wrong)
    with pytest.raises(InvalidParameter, match="zone says where windows end"):
        sf.PrivacyUnit("user", zone="Europe/Berlin")


def test_zones_are_on_record_and_stay(tmp_path, monkeypatch):
    path = tmp_path / "l"
    with session_of(table_of(), ledger=path) as session:
        session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
        spent = session.balance().spent
    for other in ("UTC", "Europe/Paris"):
        with pytest.raises(LedgerMismatch, match="another privacy unit"):
            session_of(table_of(other), ledger=path)
    berlin = offsets_of("Europe/Berlin")
    moved = Offsets(berlin.changes[:-1], berlin.ahead[:-1])
    with monkeypatch.context() as patch:
        patch.setattr(attaching, "offsets_of", lambda _: moved)
        with pytest.raises(LedgerMismatch, match="Europe/Berlin has other offsets on this machine"):
            session_of(table_of(), ledger=path)
    with session_of(table_of(), ledger=path) as session:
        assert session.balance().spent == spent
        assert session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1).receipt.number


def test_tables_of_one_dataset_have_one_zone():
    other = sf.PrivateTable(
        "stays",
        source=rows(),
        unit=sf.PrivacyUnit("user", window="day", time="at"),
        schema={"at": sf.Timestamp()},
        dataset="people",
    )
    with pytest.raises(InvalidParameter, match="same unit"):
        session_of(table_of(), other)


def test_a_catalog_names_zones(tmp_path):
    (tmp_path / "visits.csv").write_text("user,at\n1,2026-01-01 00:00:00\n")
    (tmp_path / "sfumato.toml").write_text(
        '[datasets.visits]\nepsilon = 1\n[tables.visits]\nsource = "visits.csv"\nunit = "user"\n'
        'window = "month"\ntime = "at"\nzone = "Europe/Berlin"\n[tables.visits.columns]\nat = "timestamp"\n'
    )
    (table,) = Catalog.read(tmp_path / "sfumato.toml").tables
    assert table.unit.zone == "Europe/Berlin"


def test_other_offsets_have_another_digest():
    digests = {offsets_of(zone).digest for zone in (*ZONES, *STRANGE)}
    assert len(digests) == len(ZONES) + len(STRANGE)
    assert zones.offsets_of("UTC") == Offsets((), (0,))


OF_MOMENTS = [
    "SELECT DATE_TRUNC('hour', at) AS h, COUNT(*) AS n FROM visits GROUP BY DATE_TRUNC('hour', at)",
    "SELECT CAST(at AS DATE) AS d, COUNT(*) AS n FROM visits GROUP BY CAST(at AS DATE)",
    "SELECT DATE_TRUNC('month', at) AS m, COUNT(*) AS n FROM visits GROUP BY DATE_TRUNC('month', at)",
    "SELECT d, COUNT(*) AS n FROM (SELECT CAST(at AS DATE) AS d FROM visits) AS x GROUP BY d",
    "SELECT d, COUNT(*) AS n FROM (SELECT user, CAST(at AS DATE) AS d, COUNT(*) AS k FROM visits "
    "GROUP BY user, CAST(at AS DATE)) AS x GROUP BY d",
]


@pytest.mark.parametrize("text", OF_MOMENTS)
def test_steps_of_timestamps_end_in_utc_and_nowhere_else(text):
    """East of it they would be published while rows still come, which would be lost for good."""
    asked = {"start": "2026-01-01", "horizon": 12, "epsilon": 1, "delta": "1e-6"}
    table = table_of(window=None, time=None, zone="UTC")
    with session_of(table) as session:
        for zone in ("Asia/Tokyo", "America/New_York"):
            with pytest.raises(InvalidParameter, match="at is a timestamp, and timestamps are in UTC"):
                session.stream(text, **asked, zone=zone)
        assert session.balance().spent == 0
        session.stream(text, **asked)


def test_clocks_at_the_end_of_all_calendars_are_refused_in_a_sentence():
    calendar = Calendar(date(2026, 1, 1), "day", "Pacific/Kiritimati")
    late = datetime.datetime(9999, 12, 31, 23, tzinfo=datetime.UTC)
    for now in (late, datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(timedelta(hours=20)))):
        with pytest.raises(InvalidParameter, match="beyond the years 1 to 9999"):
            calendar.closed(now)
    assert Calendar(date(2026, 1, 1), "day").closed(late) == (late.date() - date(2026, 1, 1)).days
