"""A price at which the noise of so many groups cannot be drawn is refused by the quote, and costs nothing."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter

CITIES = [f"city {i}" for i in range(2000)]


@pytest.fixture(scope="module")
def session():
    rows = pa.table({"city": CITIES, "town": CITIES, "cost": [1.5] * len(CITIES)})
    schema = {"city": sf.Enum(*CITIES), "town": sf.Text(), "cost": sf.Float(0, 10)}
    table = sf.PrivateTable("visits", source=rows, unit=sf.PrivacyUnit.row(), schema=schema)
    with sf.Session(table, budget=sf.Budget(1, 1e-6)) as session:
        yield session


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("key", ["city", "town"])
@pytest.mark.parametrize("exponent", range(-13, -5))
def test_what_is_quoted_can_be_released(session, mechanism, key, exponent):
    query = session.sql(f"SELECT {key}, SUM(cost) AS s, COUNT(*) AS n FROM visits GROUP BY {key}")
    price = {"epsilon": f"1e{exponent}", "delta": "1e-9", "mechanism": mechanism}
    before, refused = session.balance().spent, ""
    try:
        query.quote(**price)
    except InvalidParameter as refusal:
        refused = str(refusal)
    if not refused:
        assert len(query.release(**price).table) == (2000 if key == "city" else 0)
        return
    assert "epsilon is too small" in refused
    with pytest.raises(InvalidParameter):
        query.release(**price)
    assert session.balance().spent == before
