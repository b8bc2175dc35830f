"""Tables that several tests ask about."""

import numpy as np
import pyarrow as pa

import sfumato as sf

SCHEMA = {
    "country": sf.Enum("FR", "DE", "IT"),
    "sex": sf.Enum("F", "M"),
    "age": sf.Int(0, 110),
    "amount": sf.Float(0, 200),
    "city": sf.Text(),
    "day": sf.Date("2024-01-01", "2024-12-31"),
    "new": sf.Bool(),
}


def rows(count: int = 2_000, users: int = 500, seed: int = 5) -> pa.Table:
    generator = np.random.default_rng(seed)
    days = np.datetime64("2024-01-01") + generator.integers(0, 366, count).astype("timedelta64[D]")
    return pa.table(
        {
            "user_id": generator.integers(0, users, count),
            "country": generator.choice(["FR", "DE", "IT", "XX"], count, p=[0.5, 0.3, 0.15, 0.05]),
            "sex": generator.choice(["F", "M"], count),
            "age": generator.integers(0, 100, count),
            "amount": generator.gamma(2.0, 30.0, count),
            "city": generator.choice(["Lyon", "Nice", "Brest"], count),
            "day": pa.array(days.astype("datetime64[D]")),
            "new": generator.random(count) < 0.2,
        }
    )


def make(source, unit=None, name="visits", **more) -> sf.PrivateTable:
    unit = unit if unit is not None else sf.PrivacyUnit("user_id", max_groups=3)
    return sf.PrivateTable(name, source=source, unit=unit, schema=SCHEMA, **more)
