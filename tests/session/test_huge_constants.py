"""Constants beyond floats in a column: infinite answers, and never an error that is not one of ours."""

import contextlib
import math
import warnings

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from tables import make

NUMBERS = (
    "COUNT(*)",
    "SUM(age)",
    "AVG(age)",
    "CAST(COUNT(*) AS DOUBLE)",
    "COUNT(*) + SUM(age)",
    "MEDIAN(age)",
)
SCALED = ("{} * 1e308", "{} * 1e300 * 1e300", "{} / 1e-320", "{} / 1e-300 / 1e-300", "-({}) * 1e308 + 1e308")


@pytest.fixture(scope="module")
def session(data):
    with sf.Session(make(data), budget=sf.Budget(1000, "1e-3")) as opened:
        yield opened


@pytest.mark.parametrize("scaled", SCALED)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_constant_beyond_floats_makes_no_other_error(session, number, scaled):
    query = session.sql(f"SELECT {scaled.format(number)} AS n FROM visits")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for mechanism in ("laplace", "gaussian"):
            assert query.quote(epsilon=1, mechanism=mechanism).epsilon == 1
            for error in ("1e-20", 10, "1e300"):
                with contextlib.suppress(SfumatoError):
                    query.quote(error={"n": error}, mechanism=mechanism)
        release = query.release(epsilon=1)
        ends = {kind: release.interval(0.9, kind) for kind in ("noise", "covering")}
        assert str(release)
    (value,) = release.table["n"].to_pylist()
    for both in ends.values():
        (low,), (high,) = (column.to_pylist() for column in both.columns)
        assert math.isnan(value) or low <= value <= high
