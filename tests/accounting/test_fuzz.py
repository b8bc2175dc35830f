"""Every public function of accounting and loss, on values of every kind: an answer or an error of ours."""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import accounting, loss
from sfumato import random as source
from sfumato.errors import SfumatoError
from sfumato.numeric import exact

NASTY: tuple[Any, ...] = (
    *(0, 1, 2, 3, -1, 10**12, 10**30, True, 0.0, -0.0, 0.1, 0.5, 1.0, 5e-324, 1e-300, 1e-12, 1e300, 700.5),
    *(math.inf, -math.inf, math.nan, "1/3", "0.25", "1e-400", "1e400", "1e9999", "x", "", "1/0", "-1/2"),
    *(Fraction(1, 3), Fraction(10**400), Fraction(1, 10**400), Fraction(-1), Decimal("0.1"), Decimal("nan")),
    *(
        Decimal("1e-999"),
        np.int64(1),
        np.int64(2**62),
        np.int8(-1),
        np.uint64(3),
        np.float32(0.1),
        np.float64(2),
    ),
    *(
        np.float16("inf"),
        np.float64("nan"),
        np.bool_(True),
        np.array(1.0),
        np.array([1, 2]),
        None,
        b"1",
        [],
        (),
    ),
    *(loss.LaplaceLoss(1), loss.GaussianLoss("0.01"), [loss.PureLoss("0.1")] * 3, "poisson", "exchange"),
)

KINDS = {
    name: kind
    for name, kind in vars(loss).items()
    if name in loss.__all__
    and callable(kind)
    and kind is not loss.PrivacyLoss
    and not hasattr(kind, "__args__")
}
RULES = {name: getattr(accounting, name) for name in accounting.__all__}
CALLS: dict[str, Callable[..., Any]] = {
    **{name: kind for name, kind in KINDS.items() if name not in ("Adjacency", "Scheme")},
    **{name: rule for name, rule in RULES.items() if inspect.isfunction(rule) and name != "calibrate"},
    **{
        name: getattr(accounting, name)
        for name in ("BasicFilter", "ConcentratedFilter", "GaussianFilter", "Tally")
    },
    **{
        f"exact.{name}": getattr(exact, name)
        for name in ("as_fraction", "positive", "probability", "delta_of")
    },
    "add_discrete_laplace": source.add_discrete_laplace,
    "add_discrete_gaussian": source.add_discrete_gaussian,
}
METHODS = ("delta", "epsilon", "rdp", "group", "sampled", "__mul__", "__add__")
MADE = (
    loss.LaplaceLoss(1),
    loss.DiscreteGaussianLoss(4),
    loss.GaussianLoss("0.1") * 2,
    loss.ApproximateLoss(1, "1e-6"),
    loss.ConcentratedLoss("0.1"),
    loss.RenyiLoss([2, 3], ["0.1", "0.2"]),
)


def failure(call: Callable[..., Any], *values: Any) -> str | None:
    """What a call raised, if that is not an error of ours."""
    try:
        call(*values)
    except SfumatoError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def width(call: Callable[..., Any]) -> int:
    """How many arguments to give."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:
        return 2
    return sum(one.kind is not one.KEYWORD_ONLY for one in parameters)


def searched(rounds: int, calls: dict[str, Callable[..., Any]], seed: int = 5) -> dict[str, str]:
    """What went wrong, by the call."""
    pick = random.Random(seed)
    found: dict[str, str] = {}
    for name, call in calls.items():
        most = width(call)
        for _ in range(rounds):
            values = [pick.choice(NASTY) for _ in range(pick.randint(min(1, most), most))]
            problem = failure(call, *values)
            # Too few arguments is Python's own refusal.
            if problem is not None and "required positional" not in problem:
                found[f"{name}{tuple(values)!r}"[:200]] = problem
    return found


def test_public_functions_raise_only_errors_of_our_own() -> None:
    assert searched(25, CALLS) == {}


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_losses_raise_only_errors_of_our_own(method: str) -> None:
    found = {}
    for one in MADE:
        for value in NASTY:
            problem = failure(getattr(one, method), value)
            if problem is not None:
                found[f"{one!r}.{method}({value!r})"[:200]] = problem
    assert found == {}


def test_the_search_would_see_a_raw_error() -> None:
    def planted(value: Any) -> float:
        return 1 / int(value) if isinstance(value, np.integer) else 0.0

    def divided(value: Any) -> Any:
        return 1 / value if isinstance(value, int) else value

    assert searched(40, {"divided": divided, "planted": lambda value: planted(value).hex().missing}) != {}


def test_noise_is_added_to_numbers_of_any_type() -> None:
    assert isinstance(source.add_discrete_laplace(np.int64(2**62), 3), int)
    assert isinstance(source.add_discrete_gaussian(np.int64(5), np.float64(3)), int)
