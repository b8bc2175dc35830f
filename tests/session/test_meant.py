"""Answers that once misled: now an interval holds the truth over all rows, or a head says what is meant."""

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.testing import seeded

PATIENTS = 2_000


@pytest.fixture(scope="module")
def visits():
    """Visits of patients of whom a few come very often; the sex is written in two ways."""
    draw = np.random.default_rng(7)
    many = np.minimum(draw.zipf(1.6, PATIENTS), 400)
    ids = np.repeat(np.arange(PATIENTS), many)
    return pa.table(
        {
            "patient": ids,
            "sex": draw.choice(["f", "F", "m"], len(ids)),
            "city": draw.choice(["Lyon", "Nice", "Lille"], len(ids)),
            "cost": draw.uniform(0, 2000, len(ids)),
            "note": [f"{number}" for number in draw.integers(0, 9, len(ids))],
        }
    )


def asked(visits, text, *, epsilon=1, unit=None, schema=None, **more):
    table = sf.PrivateTable(
        "visits",
        source=visits,
        unit=unit or sf.PrivacyUnit("patient", max_groups=1),
        schema=schema
        or {
            "sex": sf.Text(),
            "city": sf.Enum("Lyon", "Nice", "Lille"),
            "cost": sf.Float(0, 2000, nullable=False),
        },
    )
    with sf.Session(table, budget=sf.Budget(10, "1e-4")) as session, seeded(text):
        return session.sql(text).release(epsilon=epsilon, **more)


def covers(release, name, truth):
    """Whether each row's interval holds the truth, which is by the first column or one number."""
    ends = release.interval(0.99).to_pylist()
    known = [truth[next(iter(row.values()))] if isinstance(truth, dict) else truth for row in ends]
    return all(
        row[f"{name}_low"] <= value <= row[f"{name}_high"] for row, value in zip(ends, known, strict=True)
    )


def by(visits, column, upper=False):
    values = [value.upper() if upper else value for value in visits[column].to_pylist()]
    return {value: values.count(value) for value in set(values)}


LIMITS = {
    "one": sf.PrivacyUnit("patient", max_groups=1),
    "six": sf.PrivacyUnit("patient", max_groups=6),
    "auto": sf.PrivacyUnit("patient", max_rows="auto"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_rows_that_are_cut_are_never_silently_missing(visits, limit):
    release = asked(visits, "SELECT COUNT(*) AS n FROM visits", unit=LIMITS[limit])
    assert covers(release, "n", visits.num_rows)
    told = " ".join(str(release).split())
    assert "rows, at most" in told
    assert "n, all rows" in told


def test_cities_do_not_add_up_to_fewer_visits_without_a_word(visits):
    text = "SELECT city, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY city"
    release = asked(visits, text, unit=LIMITS["six"], profile=True, epsilon=2)
    assert covers(release, "n", by(visits, "city"))
    table = {"city": visits["city"].to_pylist(), "cost": visits["cost"].to_pylist()}
    pairs = list(zip(table["city"], table["cost"], strict=True))
    means = {city: np.mean([cost for own, cost in pairs if own == city]) for city in by(visits, "city")}
    assert covers(release, "m", means)
    assert np.isfinite(release.interval(0.95)["n_high"].to_numpy()).all()


def test_people_are_not_called_rows(visits):
    release = asked(visits, "SELECT UPPER(sex) AS sex, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=2)
    assert "distinct patient, not rows" in str(release)
    truth = by(visits, "sex", upper=True)
    assert release.table.num_rows
    assert covers(release, "n", truth)


def test_text_declared_a_number_is_refused_before_it_is_paid(visits):
    with pytest.raises(SfumatoError, match="note"):
        asked(visits, "SELECT AVG(note) AS m FROM visits", schema={"note": sf.Float(0, 9)})


def test_a_quantile_reads_as_near_as_it_is(visits):
    release = asked(visits, "SELECT MEDIAN(cost) AS m FROM visits", unit=LIMITS["six"], epsilon=2)
    (low, high) = (release.interval(0.95, "noise")[f"m_{end}"][0].as_py() for end in ("low", "high"))
    assert high - low < 200
