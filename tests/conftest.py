"""What all tests share: hypothesis is derandomised, so a run is a function of the code alone."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "sfumato", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("sfumato")

THOROUGH = (
    "accounting/test_reference.py",
    "cli/test_failures.py",
    "cli/test_process.py",
    "cli/test_steward.py",
    "engines/test_csv.py",
    "engines/test_doors.py",
    "engines/test_limits.py",
    "engines/test_rowwise.py",
    "engines/test_sources.py",
    "engines/test_types.py",
    "explain/test_deployments.py",
    "explain/test_words.py",
    "ledger/test_crash.py",
    "ledger/test_places.py",
    "ledger/test_tampering.py",
    "numeric/test_grid.py",
    "plan/test_estimate.py",
    "plan/test_functions.py",
    "plan/test_intervals.py",
    "plan/test_size.py",
    "session/test_closed_doors.py",
    "session/test_race.py",
    "sql/test_lower.py",
    "sql/test_meaning.py",
    "testing/test_statistics.py",
)
"""Suites that start processes, servers or many engines, or draw many samples: not for the inner loop."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What is thorough counts as slow, which `make quick` leaves out; so does all that needs PostgreSQL."""
    for item in items:
        if item.path.as_posix().endswith(THOROUGH) or "[postgres" in item.name:
            item.add_marker(pytest.mark.slow)
