"""Sessions that the tests of the data path share."""

import pytest

import sfumato as sf
from tables import make, rows


@pytest.fixture(scope="session")
def data():
    return rows()


@pytest.fixture
def visits(data):
    return make(data)


@pytest.fixture
def session(visits):
    with sf.Session(visits, budget=sf.Budget(epsilon=10, delta=1e-6)) as opened:
        yield opened


@pytest.fixture
def by_row(data):
    table = make(data, unit=sf.PrivacyUnit.row())
    with sf.Session(table, budget=sf.Budget(epsilon=1000, delta=1e-6)) as opened:
        yield opened
