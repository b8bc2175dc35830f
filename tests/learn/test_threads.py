"""Several fits at once keep matrix products to one thread; after the last one they get theirs back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
from threadpoolctl import ThreadpoolController

from sfumato.learn import LinearRegression
from sfumato.learn._core import threads
from sfumato.learn._core.threads import one_thread
from sfumato.random import simulation


def numbers():
    """Of libraries that count for the whole process; by OpenMP, as in PyTorch, each thread has its own."""
    found = ThreadpoolController().select(user_api="blas").info()
    assert found
    return [library["num_threads"] for library in found if library.get("threading_layer") != "openmp"]


@pytest.fixture(autouse=True)
def several():
    """More threads than one, whatever the machine or the environment gives."""
    libraries = ThreadpoolController().select(user_api="blas")
    before = libraries.limit(limits=2)
    with libraries.limit(limits=None):
        assert set(numbers()) == {2}
    yield
    before.restore_original_limits()
    with libraries.limit(limits=None):
        pass


def test_the_first_in_is_not_the_first_out():
    inside, leave = Event(), Event()

    def first():
        with one_thread():
            inside.set()
            leave.wait(30)
        return numbers()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(first)
        inside.wait(30)
        with one_thread():
            leave.set()
            assert set(waiting.result()) == {1}
    assert set(numbers()) == {2}


def test_an_error_lifts_the_limit():
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert set(numbers()) == {2}


def test_many_fits_at_once_leave_the_threads_as_they_were():
    X = simulation(0).uniform(-1, 1, (300, 2))
    together = Barrier(4)

    def fit(_):
        together.wait(30)
        for _ in range(3):
            LinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-2, 2)).fit(X, X[:, 0])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fit, range(4)))
    assert set(numbers()) == {2}
    assert threads._inside.many == 0
