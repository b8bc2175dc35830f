"""What all tests share: hypothesis is derandomised, so a run is a function of the code alone."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "sfumato", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("sfumato")
