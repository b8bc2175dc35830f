"""A private table of people for tests of synthetic tables."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.random import simulation

COLUMNS = {
    "age": sf.Int(0, 99),
    "sex": sf.Enum("F", "M"),
    "income": sf.Float(0, 200_000),
    "joined": sf.Date("2020-01-01", "2024-12-31"),
    "member": sf.Bool(),
}


def people(many: int, seed: int = 0, *, units: int | None = None) -> pa.Table:
    """Rows of five kinds of columns, some of them missing; `who` says whose."""
    rng = simulation(seed)
    age = rng.integers(18, 90, many)
    sex = np.where(rng.random(many) < 0.4 + age / 300, "F", "M")
    income = np.clip(rng.lognormal(10, 0.5, many) * (1 + (sex == "M")), 0, 200_000)
    first = datetime.date(2020, 1, 1)
    joined = [first + datetime.timedelta(days=int(day)) for day in rng.integers(0, 1826, many)]
    missing = rng.random(many) < 0.1
    return pa.table(
        {
            "who": rng.integers(0, units, many) if units else np.arange(many),
            "age": age,
            "sex": sex,
            "income": pa.array(income, mask=missing),
            "joined": pa.array(joined, pa.date32()),
            "member": rng.random(many) < 0.3,
        }
    )


def session_of(rows: pa.Table, *, unit: Any = None, columns: Any = COLUMNS, **options: Any) -> sf.Session:
    """A session over them, with a large budget."""
    table = sf.PrivateTable(
        "people", source=rows, schema=dict(columns), unit=unit or sf.PrivacyUnit("who", max_rows=1)
    )
    budget = options.pop("budget", sf.Budget(epsilon=100, delta="0.001"))
    return sf.Session(table, budget=budget, **options)
