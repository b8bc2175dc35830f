"""Whether DuckDB's `hash` is still the function that earlier choices were made by.

Its documentation promises no more than that equal values have equal hashes. So what it gave for values of
each type is on record here: a version that gives anything else chooses by a digest that no version changes.
"""

from __future__ import annotations

import contextlib
from typing import Any

from sfumato.engines.dialect import DUCKDB

__all__ = ["KNOWN", "is_known"]

KNOWN: dict[str, int] = {
    "0::BIGINT": 0,
    "(-1)::BIGINT": 12295136561472696349,
    "9223372036854775807::BIGINT": 5581126099488724564,
    "1::INTEGER": 2072007709074090988,
    "1::UBIGINT": 2072007709074090988,
    "170141183460469231731687303715884105727::HUGEINT": 11960930887972561936,
    "''": 464867528816167657,
    "'a'": 2881484715680720021,
    "'twelve bytes'": 8953648700249027203,
    "'thirteen byte'": 9733258827072852312,
    "'Zürich, 北京 and more than any inlined text'": 13221008737003712548,
    "0.0::DOUBLE": 0,
    "1.5::DOUBLE": 17893111857382162126,
    "'nan'::DOUBLE": 12031356638522241318,
    "1.5::FLOAT": 5091651469257409184,
    "12.34::DECIMAL(9, 2)": 1742134247651002445,
    "true": 2072007709074090988,
    "DATE '2024-02-29'": 12070454089125285193,
    "TIMESTAMP '2024-02-29 12:34:56.789'": 13610011717535268248,
    "'00000000-0000-0000-0000-0000000000ff'::UUID": 741650554347328894,
    "'\\xAA\\x00'::BLOB": 5317181191310360377,
    "NULL::BIGINT": 13164791657030461990,
    "NULL::VARCHAR": 13164791657030461990,
    "5::BIGINT, 7::BIGINT": 17648932154870885282,
    "5::BIGINT, 7::BIGINT, 'FR'": 6305913429580889999,
    "5::BIGINT, 'ada', 'FR', DATE '2024-02-29'": 13665310251547560734,
    "5::BIGINT, 7::BIGINT, NULL::VARCHAR": 9678425217874238763,
    "5::BIGINT, 7::BIGINT, 1.5::DOUBLE, true, 'x'": 7634288557524437248,
}
"""Arguments, and the digest of these that choices were made by."""


def is_known(connection: Any) -> bool:
    """Whether all digests are as they are on record."""
    calls = [DUCKDB.digest.sql(1).format(arguments) for arguments in KNOWN]
    with contextlib.suppress(Exception):  # there may be no such function any more
        (values,) = connection.execute(f"SELECT {', '.join(calls)}").fetchall()
        return bool(values == tuple(KNOWN.values()))
    return False
