"""Equal numbers are one id, whatever type they have."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.numeric.private_ids import ids_of

ALIKE = [
    [
        0.5,
        np.float32(0.5),
        np.longdouble(0.5),
        Fraction(1, 2),
        Decimal("0.5"),
        Decimal("0.50"),
    ],
    [0, -0.0, Decimal("0E+500"), Decimal("-0E-999999"), Fraction(0), False],
    [1, 1.0, True, np.int8(1), Decimal("1.00"), Fraction(1)],
    [Decimal("1E+500"), Decimal("10E+499")],
    [Decimal("-2E-999999"), Decimal("-2.0E-999999")],
    [float("inf"), np.float32("inf"), Decimal("Infinity")],
    [float("-inf"), Decimal("-Infinity")],
    [0.1, Decimal.from_float(0.1), Fraction(0.1)],
    [Decimal("0.1"), Fraction(1, 10)],
    [Fraction(10**5000 + 1, 2)],
    ["0.5"],
    ["1/2"],
    [b"0.5"],
]


def test_equal_numbers_are_one_id_and_others_are_not():
    values = [value for group in ALIKE for value in group]
    wanted = [place for place, group in enumerate(ALIKE) for _ in group]
    codes = ids_of(values, rows=len(values), uneven="").codes.tolist()
    assert len(set(codes)) == len(ALIKE) == len(set(zip(codes, wanted, strict=True)))
    missing = [None, float("nan"), Decimal("NaN"), Decimal("sNaN"), [1]]
    assert set(ids_of(missing, rows=5, uneven="").codes.tolist()) == {-1}
