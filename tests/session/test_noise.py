"""What a session releases follows the very law that its price is claimed for: no less noise, and no more."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.accounting import gaussian_sigma
from sfumato.session import answering
from sfumato.testing import assert_continuous, assert_discrete, seeded

GROUPS = 20_000
EPSILON = 0.5
DELTA = "1e-8"
COUNT = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
SUM = "SELECT k, SUM(x) AS s FROM t GROUP BY k"


def released(unit, text, mechanism, seed):
    """As many independent draws as there are groups: a table without rows releases its noise."""
    table = sf.PrivateTable(
        "t",
        source=pa.table(
            {"u": pa.array([], pa.int64()), "k": pa.array([], pa.int64()), "x": pa.array([], pa.float64())}
        ),
        unit=unit,
        schema={"k": sf.Int(0, GROUPS - 1), "x": sf.Float(-10, 30, nullable=False)},
    )
    with sf.Session(table, budget=sf.Budget(1, "1e-6")) as session, seeded(seed):
        query = session.sql(text)
        release = query.release(epsilon=EPSILON, delta=DELTA, mechanism=mechanism)
        assert not release.free
        (noisy,) = release._answer.noisy
    return noisy


def two_sided_geometric(scale):
    q = np.exp(-1 / scale)
    return lambda k: (1 - q) / (1 + q) * q ** np.abs(k)


USERS = sf.PrivacyUnit("u", max_groups=3)
CASES = {
    "rows, count, Laplace": (sf.PrivacyUnit.row(), COUNT, "laplace", 1),
    "rows, sum, Laplace": (sf.PrivacyUnit.row(), SUM, "laplace", 30),
    "users, count, Laplace": (USERS, COUNT, "laplace", 3),
    "users, sum, Laplace": (USERS, SUM, "laplace", 90),
    "rows, count, Gaussian": (sf.PrivacyUnit.row(), COUNT, "gaussian", 1),
    "users, sum, Gaussian": (USERS, SUM, "gaussian", 90),
}


def check(name):
    unit, text, mechanism, sensitivity = CASES[name]
    noisy = released(unit, text, mechanism, name)
    if name == "rows, count, Laplace":
        assert_discrete(noisy, two_sided_geometric(sensitivity / EPSILON))
    elif mechanism == "laplace":
        assert_continuous(noisy, stats.laplace(scale=sensitivity / EPSILON).cdf)
    else:
        sigma = float(gaussian_sigma(sf.numeric.exact.as_fraction(EPSILON, "epsilon"), DELTA, sensitivity))
        assert_continuous(noisy, stats.norm(scale=sigma).cdf)


@pytest.mark.parametrize("name", CASES)
def test_a_release_carries_the_noise_that_its_price_claims(name):
    check(name)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("share", [pytest.param(0.5, marks=pytest.mark.stats), 0.9, 1.1])
def test_any_other_amount_of_noise_is_noticed(name, share, monkeypatch):
    honest = answering.privatise

    def planted(exact, quote):
        noisy = honest(exact, quote)
        return tuple(
            np.rint(each * share).astype(each.dtype) if each.dtype.kind == "i" else each * share
            for each in noisy
        )

    monkeypatch.setattr(answering, "privatise", planted)
    with pytest.raises(AssertionError, match="claimed"):
        check(name)
