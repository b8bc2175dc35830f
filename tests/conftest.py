"""What all tests share: hypothesis is derandomised, so a run is a function of the code alone."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# Where products of 16-bit floats mix records, they are refused (`learn.torch.products`); here they do not.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

settings.register_profile(
    "sfumato", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("sfumato")
# Hypothesis also tries the constants of all modules that are loaded: other tests would decide on examples.
providers._get_local_constants = lambda: providers.Constants()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays to the end: to look for garbage in it would take a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure():
    """Let go of it: DuckDB tells of what is still there when the interpreter ends."""
    gc.unfreeze()
