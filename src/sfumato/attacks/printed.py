"""The eight people of a printed introduction, and the two 4-anonymous tables that betray one of them.

The rows are Tables 1 and 2 of an introduction to differential privacy: state employees with zip code and age,
their credit scores, and the clients of a company that helps people to improve such scores. All are invented.

A trap for readers: Marcia lives in 19456, and the printed 4-anonymous table shows her in `30***`. Whoever
looks for her by her real zip code finds nobody; the text's attack knows her by her age.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SCORE_BANDS", "company_z", "table_1", "table_1_anonymized", "table_2"]

SCORE_BANDS = MappingProxyType(
    {
        "Poor": (300, 579),
        "Fair": (580, 669),
        "Good": (670, 739),
        "Very good": (740, 799),
        "Exceptional": (800, 850),
    }
)
"""The five bands in which credit scores are commonly told, both ends included."""


def table_1() -> pa.Table:
    """The original data (Table 1, left): columns `name`, `zip` and `age`."""
    import pyarrow as pa

    return pa.table(
        {
            "name": ["Rick", "Nathan", "Yani", "Xiao", "Luciana", "Anastasia", "Marcia", "Yuki"],
            "zip": ["19456", "30309", "19445", "30457", "19456", "30271", "19456", "19456"],
            "age": [67, 33, 64, 35, 67, 38, 31, 62],
        }
    )


def table_1_anonymized() -> pa.Table:
    """The 4-anonymous data as printed (Table 1, right): columns `id`, `zip` and `age`, as labels."""
    return table_2().drop_columns(["score"])


def table_2() -> pa.Table:
    """The state employees with their scores (Table 2, left): columns `id`, `zip`, `age` and `score`."""
    import pyarrow as pa

    return pa.table(
        {
            "id": [1, 2, 3, 4, 5, 6, 7, 8],
            "zip": ["19***", "30***", "19***", "30***", "19***", "30***", "30***", "19***"],
            "age": ["60-70", "30-40", "60-70", "30-40", "60-70", "30-40", "30-40", "60-70"],
            "score": [797, 650, 755, 590, 767, 597, 613, 775],
        }
    )


def company_z() -> pa.Table:
    """The clients of Company Z (Table 2, right): columns `id`, `zip`, `age` and `score`."""
    import pyarrow as pa

    return pa.table(
        {
            "id": ["A", "B", "C", "D"],
            "zip": ["30***"] * 4,
            "age": ["30-40"] * 4,
            "score": [815, 613, 376, 727],
        }
    )
