"""Units in windows that end at local midnight, by `zoneinfo`, beside what an engine makes of them."""

from __future__ import annotations

import datetime
import random

import pyarrow as pa

from sfumato.engines.dialect import PORTABLE
from sfumato.numeric.zones import offsets_of
from sfumato.schema import Int, PrivacyUnit, PrivateTable, Timestamp
from sfumato.session.vault import Vault
from sfumato.sql.asking import ask
from windows_of_time import window

__all__ = ["ZONES", "check_zones"]

ZONES = ["Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"]
_EPOCH = datetime.datetime(1970, 1, 1)


def moments_of(zone):
    """Times around changes of clocks, ends of years and local midnights, before 1970 and in all years."""
    draw, offsets = random.Random(zone), offsets_of(zone)
    changes = draw.sample(offsets.changes, min(12, len(offsets.changes)))
    midnights = [
        -offset + 86_400 * day for offset in {*offsets.ahead} for day in (-3, 0, 19_000, 20_454, 50_000)
    ]
    whole = [
        each + more for each in (*changes, *midnights) for more in (-86_400, -3600, -1, 0, 1, 3599, 3600)
    ]
    years = [datetime.datetime(year, 12, 31, 23, 30) for year in (1, 1969, 1999, 2024, 2099, 2100, 9999)]
    ends = [datetime.datetime.min, datetime.datetime.max.replace(microsecond=0)]
    return [None, *ends, *years, *(_EPOCH + datetime.timedelta(seconds=seconds) for seconds in whole)]


def edges_of(zone):
    """Seconds at which a local day begins (1), and others at which none does (2): half of them in summer."""
    offsets, draw = offsets_of(zone), random.Random(f"edges {zone}")
    for _ in range(40):
        midnight = 86_400 * draw.randrange(-20_000, 60_000)
        for offset in {*offsets.ahead[-2:]}:
            edge = midnight - offset
            if offsets.at(edge - 1) == offsets.at(edge):
                yield (1 if offsets.at(edge) == offset else 2), edge


def local_day(moment, zone):
    """The day by local clocks; None for a moment without, and where it leaves the calendar."""
    if moment is None:
        return None
    ahead = offsets_of(zone).at((moment - _EPOCH) // datetime.timedelta(seconds=1))
    try:
        return (moment + datetime.timedelta(seconds=ahead)).date()
    except OverflowError:
        return None


def check_zones(engine, zone, lengths=("day", "week", "month", "year", 10)):
    """Units are pairs of an id and a local window, to the last row, on an engine."""
    schema, draw = {"at": Timestamp(), "g": Int(0, 2)}, random.Random(zone)
    moments = moments_of(zone)
    ids = [draw.choice(["a", "b", "7", "2024-01-01:7", None]) for _ in moments]
    groups = [0] * len(moments)
    for place, (group, edge) in enumerate(edges_of(zone)):
        ids += [f"edge {place}"] * 2
        moments += [_EPOCH + datetime.timedelta(seconds=edge + more) for more in (-1, 0)]
        groups += [group] * 2
    # Timestamps of nanoseconds or with a zone could not hold all years.
    rows = pa.table(
        {"who": ids, "at": pa.array(moments, pa.timestamp("us")), "g": pa.array(groups, pa.int64())}
    )
    name = "zoned"
    engine.attach(name, rows, {column: kind.kind for column, kind in schema.items()}, unit="who")
    for length in lengths:
        unit = PrivacyUnit("who", max_groups=2, max_rows=2, window=length, time="at", zone=zone)
        table = PrivateTable(name, source=None, unit=unit, schema=schema)
        question = ask(f"SELECT g, COUNT(DISTINCT who) AS n FROM {name} GROUP BY g", {name: table})
        (measured,) = question.plan.recipe.questions
        vault = Vault(engine, {name: table}, {name: 5}, {name: PORTABLE.name})
        (found,) = vault._fetch(measured)
        pairs = [
            (group, one, window(day, length))
            for one, day, group in zip(
                ids, (local_day(moment, zone) for moment in moments), groups, strict=True
            )
            if one is not None and day is not None
        ]
        true = [len({pair for pair in pairs if pair[0] == wanted}) for wanted in (0, 1, 2)]
        assert found == [n << 30 for n in true], (zone, length)
