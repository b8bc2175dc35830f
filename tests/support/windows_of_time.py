"""Units in windows of time, by Python, beside what an engine makes of them."""

from __future__ import annotations

import datetime
import math
import random

import pyarrow as pa

from same_questions import IDS
from sfumato.engines.dialect import PORTABLE
from sfumato.errors import QueryRefused, SourceUnusable
from sfumato.schema import Date, Int, PrivacyUnit, PrivateTable, Timestamp, Windows
from sfumato.session.vault import Vault
from sfumato.sql.asking import ask

__all__ = ["WINDOWS", "check_far", "check_held", "check_windows"]

WINDOWS = ["day", "week", "month", "quarter", "year", 1, 30, 365]
_FIRST = datetime.date(1970, 1, 1)


def window(day, length):
    """The window of a day, by Python."""
    if isinstance(length, int):
        return (day - _FIRST).days // length
    starts = {
        "day": day,
        "week": day - datetime.timedelta(days=day.weekday()),
        "month": day.replace(day=1),
        "quarter": day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1),
        "year": day.replace(day=1, month=1),
    }
    return starts[length]


def world(kind, seed):
    """Rows with ids of a type, some of nobody and some without a time, around the ends of windows."""
    draw = random.Random(f"{kind} {seed}")
    native, make = IDS[kind]
    ids = [None if draw.random() < 0.1 else make(draw.randrange(12)) for _ in range(300)]
    ends = [datetime.date(1969, 12, 31), datetime.date(2023, 12, 31), datetime.date(2024, 2, 29)]
    days = [
        None
        if draw.random() < 0.1
        else draw.choice(ends) + datetime.timedelta(days=draw.choice([-31, -7, -1, 0, 0, 1, 2, 30, 91, 366]))
        for _ in ids
    ]
    moments = [
        None
        if day is None
        else datetime.datetime.combine(day, draw.choice([datetime.time(), datetime.time(23, 59, 59)]))
        for day in days
    ]
    rows = pa.table(
        {
            "who": pa.array(ids, native),
            "day": pa.array(days, pa.date32()),
            "at": pa.array(moments, pa.timestamp("us")),
            "g": pa.array([draw.randrange(2) for _ in ids], pa.int64()),
        }
    )
    return rows, ids, days


def is_id(one):
    """Whether a row with it is somebody's."""
    return one is not None and not (isinstance(one, float) and math.isnan(one))


def check_windows(engine, kind, lengths):
    """Units are pairs of an id and a window, on an engine, for ids of a type that it takes."""
    schema = {"day": Date(), "at": Timestamp(), "g": Int(0, 1)}
    if engine.dialect.name == "datafusion":  # the example reads no timestamps
        del schema["at"]
    rows, ids, days = world(kind, 0)
    name = f"t_{kind.replace(' ', '_')}"
    try:
        engine.attach(name, rows, {column: c.kind for column, c in schema.items()}, unit="who")
    except SourceUnusable as refused:
        if "cannot be the ids of units" not in str(refused):
            raise
        return
    for length in lengths:
        for time in [each for each in ("day", "at") if each in schema]:
            unit = PrivacyUnit("who", max_groups=2, max_rows=2, window=length, time=time)
            table = PrivateTable(name, source=None, unit=unit, schema=schema)
            question = ask(f"SELECT g, COUNT(DISTINCT who) AS n FROM {name} GROUP BY g", {name: table})
            (measured,) = question.plan.recipe.questions
            vault = Vault(engine, {name: table}, {name: 5}, {name: PORTABLE.name})
            try:
                vault.check([measured])
            except QueryRefused:
                if engine.dialect.name != "datafusion":
                    raise
                continue
            (found,) = vault._fetch(measured)
            true = [
                len(
                    {
                        (one, window(day, length))
                        for one, day, group in zip(ids, days, rows.column("g").to_pylist(), strict=True)
                        if is_id(one) and day is not None and group == wanted
                    }
                )
                for wanted in (0, 1)
            ]
            assert found == [n << 30 for n in true], (length, time)


def check_held(engine, lengths):
    """Where windows were paid for, rows of these alone are read: by dates and by timestamps."""
    schema = {"day": Date(), "at": Timestamp(), "g": Int(0, 1)}
    if engine.dialect.name == "datafusion":  # the example reads no timestamps
        del schema["at"]
    rows, ids, days = world("text", 0)
    engine.attach("held", rows, {column: c.kind for column, c in schema.items()}, unit="who")
    for length in lengths:
        for time in [each for each in ("day", "at") if each in schema]:
            unit = PrivacyUnit("who", max_groups=2, max_rows=400, window=length, time=time)
            tables = {"held": PrivateTable("held", source=None, unit=unit, schema=schema)}
            (measured,) = ask("SELECT COUNT(*) AS n FROM held", tables).plan.recipe.questions
            vault = Vault(engine, tables, {"held": 5}, {"held": PORTABLE.name})
            for begin, end in (
                ("1969-12-31", "1969-12-31"),
                ("1969-12-31", "2023-12-31"),
                ("2024-02-29",) * 2,
            ):
                windows = Windows.of_days(
                    length, datetime.date.fromisoformat(begin), datetime.date.fromisoformat(end)
                )
                try:
                    vault.check([measured], windows=windows)
                except QueryRefused:
                    if engine.dialect.name != "datafusion":
                        raise
                    continue
                (found,) = vault._read(measured, 0, windows=windows).columns[0].tolist()
                first, last = windows.days()
                inside = [one for one, day in zip(ids, days, strict=True) if day and first <= day <= last]
                true = sum(map(is_id, inside))
                assert 0 < true < sum(map(is_id, ids))
                assert (true << 30) - 400 * true <= found <= true << 30, (length, time, windows)


def check_far(engine, lengths):
    """Days beyond the years 1 to 9999 are in no window, however long windows are."""
    far = [2_932_897, 10_000_000, -719_163, -800_000]  # 10000-01-01, 29349, 0000-12-31, before Christ
    days = pa.array([*range(20_500, 20_507), *far], pa.int32()).cast(pa.date32())
    rows = pa.table({"who": [f"p{place}" for place in range(len(days))], "day": days})
    engine.attach("far", rows, {"day": "date"}, unit="who")
    for length in lengths:
        unit = PrivacyUnit("who", max_rows=1, window=length, time="day")
        tables = {"far": PrivateTable("far", source=None, unit=unit, schema={"day": Date()})}
        (measured,) = ask("SELECT COUNT(*) AS n FROM far", tables).plan.recipe.questions
        vault = Vault(engine, tables, {"far": 5}, {"far": PORTABLE.name})
        try:
            vault.check([measured])
        except QueryRefused:
            if engine.dialect.name != "datafusion":
                raise
            continue
        (found,) = vault._fetch(measured)
        assert found == [7 << 30], length
