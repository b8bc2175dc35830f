"""What a refusal says to write is itself answered."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.mechanisms import _ranks
from sfumato.sql.read.parse import parse

KINDS = {
    "Patient ID": sf.Int(0, 10**9),
    "order": sf.Int(0, 9),
    'a"b': sf.Bool(),
    "City Name": sf.Text(),
    "fee": sf.Float(0, 9),
    "weight": sf.Float(),
    "number": sf.Int(),
    "day": sf.Date("2024-01-01", "2024-12-31"),
    "era": sf.Date("0001-01-01", "9999-12-31"),
    "kind": sf.Enum("a", "b"),
}
UNITS = {"by row": None, "by person": "who", "an odd name": "The Person"}
FORMS = (
    "SELECT {column} FROM t",
    "SELECT DISTINCT v.{column} AS k FROM t AS v WHERE v.{column} IS NOT NULL ORDER BY k LIMIT 3",
    "SELECT {column} + 1 FROM t",
    "SELECT {column} FROM t WHERE {column} = 'no'",
)


def _table(unit: str | None) -> sf.PrivateTable:
    owner = sf.PrivacyUnit.row() if unit is None else sf.PrivacyUnit(unit, max_groups=3)
    return sf.PrivateTable("t", source=None, unit=owner, schema=KINDS)


def _texts(unit: str | None) -> list[str]:
    names = ['"' + name.replace('"', '""') + '"' for name in (*KINDS, *([unit] if unit else []))]
    pairs = [f"SELECT {a}, {b} FROM t" for a, b in itertools.pairwise((*names, names[0]))]
    forms = FORMS if unit == "who" else FORMS[:1]
    return [form.format(column=name) for form in forms for name in names] + (pairs if unit == "who" else [])


@pytest.mark.parametrize("unit", UNITS)
def test_advice_is_answered(unit):
    tables = {"t": _table(UNITS[unit])}
    advised = 0
    for text in _texts(UNITS[unit]):
        with pytest.raises(QueryRefused) as refusal:
            parse(text, tables)
        wanted = re.fullmatch(r"Write (SELECT .*)\.", refusal.value.fix)
        if wanted is not None:
            parse(wanted[1], tables)
            advised += 1
    assert advised >= len(KINDS)


LEVELS = ("1e-12", "0.999999999999", "0.3333333333333333", "1 / 1073741825", "0.1234567890123456789")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "form", ["QUANTILE_CONT(fee, {0})", "PERCENTILE_DISC({0}) WITHIN GROUP (ORDER BY fee DESC)"]
)
def test_a_level_of_too_many_digits_is_refused_with_the_nearest(level, form):
    tables = {"t": _table("who")}
    with pytest.raises(QueryRefused, match="at most nine digits") as refusal:
        parse(f"SELECT {form.format(level)} FROM t", tables)
    nearest = refusal.value.fix.removeprefix("Write ").removesuffix(".")
    parse(f"SELECT {form.format(nearest)} FROM t", tables)
    exact = Fraction(*map(Fraction, level.split(" / ")))
    assert 0 < Fraction(nearest) < 1
    assert abs(Fraction(nearest) - exact) <= Fraction(1, 10**9)


def test_a_level_in_python_too():
    with pytest.raises(sf.errors.InvalidParameter, match=r"at most nine digits: write 0\.333333333\."):
        sf.quantile("fee", 1 / 3)
    assert sf.quantile("fee", Fraction(1, 3))
    assert sf.quantile("fee", Fraction(1, _ranks.FINEST))
    with pytest.raises(sf.errors.InvalidParameter):
        sf.quantile("fee", Fraction(1, _ranks.FINEST + 1))
