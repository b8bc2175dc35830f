"""Keys that are fractions: zeros of both signs are one group, and so are all NaN, on every engine.

Rows are drawn with the fractions that an engine could take for two: -0.0 and 0.0, NaN of both signs and with
payloads, infinities, the least numbers of either sign; as doubles, in single precision, and as text.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from random_queries import Asked
from same_questions import Compared, same_integers
from sfumato.engines import DuckDB, Engine
from sfumato.engines.dialect import PORTABLE
from sfumato.session.vault import Vault

__all__ = ["KEYS", "compare_keys"]

_NAN = 0x7FF8000000000000
_BITS = (_NAN, _NAN | 1 << 63, _NAN | 77, 0xFFF0000000000001)
_ODD = (-0.0, 0.0, -0.0, 0.0, -0.5, 0.5, math.inf, -math.inf, 1e-310, -1e-310, 1.5, -1.5, 2.0**60)
_TEXTS = ("-0", "0", "-0.0", "0.0", "nan", "-nan", "NaN", "1.5", "inf", "-inf", "", "none", None)
KEYS = (
    "x", "y", "-x", "x * -1", "x * y", "x + y", "x - y", "ABS(x)", "ROUND(x)", "FLOOR(x)", "CEIL(x)",
    "FLOOR(x / 2) * 2", "COALESCE(x, 0)", "LEAST(x, y)", "CASE WHEN v > 1 THEN x ELSE -x END",
    "CAST(s AS DOUBLE)", "GREATEST(x, -x)", "x / 3",
)  # fmt: skip
"""What is grouped by."""
_OF_A_UNIT = "(SELECT who, {key} AS k, CAST(COUNT(*) AS INTEGER) AS c FROM t GROUP BY who, {key}) AS u"
_NUMBERED = (
    "(SELECT ROW_NUMBER() OVER (PARTITION BY who, k ORDER BY v) AS r "
    "FROM (SELECT who, v, {key} AS k FROM t) AS q) AS u"
)
_ASKED = (
    "SELECT {key} AS k, COUNT(*) AS n FROM t WHERE {key} IN (0, 1.5, -1.5, -1) GROUP BY {key}",
    "SELECT {key} AS k, v, SUM(v) AS s FROM t WHERE {key} IN (0, 1.5, -1.5, -1) GROUP BY {key}, v",
    "SELECT FLOOR({key}) AS k, COUNT(DISTINCT who) AS n FROM t WHERE {key} BETWEEN -2 AND 2 "
    "GROUP BY FLOOR({key})",
    "SELECT v, COUNT(DISTINCT {key}) AS n FROM t GROUP BY v",
    f"SELECT c, COUNT(*) AS n FROM {_OF_A_UNIT} WHERE c IN (1, 2, 3, 4) GROUP BY c",
    f"SELECT r, COUNT(*) AS n FROM {_NUMBERED} WHERE r IN (1, 2, 3, 4) GROUP BY r",
    f"SELECT COUNT(DISTINCT k) AS n FROM {_OF_A_UNIT}",
)


def rows_of(draw: random.Random, size: int = 300) -> pa.Table:
    """Rows of a few people with such fractions, in no order."""

    def fraction(native: Any) -> np.ndarray[Any, Any]:
        made = np.array([draw.choice(_ODD) for _ in range(size)])
        for place in range(size):
            if draw.random() < 0.3:
                made[place] = np.array([draw.choice(_BITS)], np.uint64).view(np.float64)[0]
        with np.errstate(all="ignore"):
            return made.astype(native)

    missing = np.array([draw.random() < 0.1 for _ in range(size)])
    return pa.table(
        {
            "who": pa.array([draw.randrange(40) for _ in range(size)], pa.int64()),
            "x": pa.array(fraction(np.float64), mask=missing),
            "y": pa.array(fraction(np.float32)),
            "s": pa.array([draw.choice(_TEXTS) for _ in range(size)], pa.string()),
            "v": pa.array([draw.randrange(3) for _ in range(size)], pa.int64()),
        }
    )


def compare_keys(other: Engine, seed: str, count: int, *, chosen: bool = True) -> Compared:
    """Ask so many random questions by such keys of DuckDB and of another engine.

    Args:
        other: The other engine.
        seed: The same seed asks the same.
        count: How many questions.
        chosen: Whether some units have more than may count, and the digest of a fraction chooses.
    """
    draw, total = random.Random(f"keys {seed}"), Compared()
    schema = {"x": sf.Float(-9, 9), "y": sf.Float(-9, 9), "s": sf.Text(), "v": sf.Int(0, 2)}
    limits = {"max_groups": 2, "max_rows": 4} if chosen else {"max_groups": 90, "max_rows": 90}
    unit = sf.PrivacyUnit("who", **limits)
    table, rows = sf.PrivateTable("t", source=None, unit=unit, schema=schema), rows_of(draw)
    with DuckDB(threads=2) as first:
        for engine in (first, other):
            engine.attach("t", rows, {name: kind.kind for name, kind in schema.items()}, unit="who")
        salt = draw.getrandbits(62)
        vaults = [Vault(engine, {"t": table}, {"t": salt}, {"t": PORTABLE.name}) for engine in (first, other)]
        every = [(text, key) for text in _ASKED for key in KEYS]
        for text, key in draw.sample(every, min(count, len(every))):
            total.asked += 1
            total.different += same_integers(vaults, Asked(text.format(key=key)), draw, total)
    return total
