"""What each function of the textbook costs, before it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.book.clipping import bound_finder
from sfumato.book.mechanisms import renyi_rho
from sfumato.book.survey import chances, unary_price
from sfumato.errors import InvalidParameter
from sfumato.local.response import BinaryResponse
from sfumato.loss import PrivacyLoss, PureLoss, compose
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.noisy_max import NoisyMax
from sfumato.mechanisms.propose_test_release import ProposeTestRelease
from sfumato.mechanisms.sample_and_aggregate import SampleAndAggregate
from sfumato.mechanisms.sparse_vector import NumericSparseVector, SparseVector
from sfumato.numeric.exact import Rational, positive

__all__ = ["PRICED", "price"]


@dataclass(frozen=True, slots=True)
class _Price:
    """The parameters that a price depends on, and the loss that they make."""

    needs: tuple[str, ...]
    loss: Callable[..., PrivacyLoss]


def _laplace(epsilon: Rational) -> PrivacyLoss:
    return Laplace(epsilon, 1).loss


def _gaussian(epsilon: Rational, delta: Rational) -> PrivacyLoss:
    return Gaussian(epsilon, delta, sensitivity=1).loss


def _renyi(alpha: Rational, epsilon_bar: Rational) -> PrivacyLoss:
    return _concentrated(renyi_rho(alpha, epsilon_bar))


def _concentrated(rho: Rational) -> PrivacyLoss:
    return Gaussian(rho=rho, sensitivity=1).loss


def _halves(epsilon: Rational) -> PrivacyLoss:
    return compose([_laplace(positive(epsilon, "epsilon") / 2)] * 2)


def _thirds(epsilon: Rational) -> PrivacyLoss:
    share = positive(epsilon, "epsilon") / 3
    return compose([bound_finder(share).loss, _laplace(share), _laplace(share)])


def _threshold(epsilon: Rational) -> PrivacyLoss:
    return AboveThreshold(epsilon, 0, sensitivity=1).loss


def _coins() -> PrivacyLoss:
    return BinaryResponse.coins().loss


def _unary(p: Rational = "3/4", q: Rational = "1/4") -> PrivacyLoss:
    return PureLoss(unary_price(*chances(p, q)))


PRICED: Mapping[str, _Price] = {
    "above_threshold": _Price(("epsilon",), _threshold),
    "above_threshold_fail_signal": _Price(("epsilon",), _threshold),
    "auto_avg": _Price(("epsilon",), _thirds),
    "avg_attack": _Price(("epsilon",), _laplace),
    "exponential": _Price(("epsilon",), lambda epsilon: Exponential(epsilon, 1).loss),
    "gaussian_mech": _Price(("epsilon", "delta"), _gaussian),
    "gaussian_mech_RDP_vec": _Price(("alpha", "epsilon_bar"), _renyi),
    "gaussian_mech_vec": _Price(("epsilon", "delta"), _gaussian),
    "gaussian_mech_zCDP_vec": _Price(("rho",), _concentrated),
    "gs_avg": _Price(("epsilon",), _halves),
    "laplace_mech": _Price(("epsilon",), _laplace),
    "laplace_mech_vec": _Price(("epsilon",), _laplace),
    "naive_above_threshold": _Price(("epsilon",), _laplace),
    "naive_select_b": _Price(("epsilon",), lambda epsilon: PureLoss(positive(epsilon, "epsilon"))),
    "perturb": _Price((), _unary),
    "ptr_avg": _Price(
        ("epsilon", "delta"), lambda epsilon, delta: ProposeTestRelease(epsilon, delta, bound=1).loss
    ),
    "rand_resp_sales": _Price((), _coins),
    "range_query_svt": _Price(
        ("epsilon",), lambda epsilon: NumericSparseVector(epsilon, 0, count=1, sensitivity=1).loss
    ),
    "report_noisy_max": _Price(("epsilon",), lambda epsilon: NoisyMax(epsilon, 1).loss),
    "saa_avg_age": _Price(
        ("epsilon",), lambda epsilon: SampleAndAggregate(epsilon, 0, upper=1, chunks=1).loss
    ),
    "sparse": _Price(("epsilon",), lambda epsilon: SparseVector(epsilon, 0, count=1, sensitivity=1).loss),
}
"""Every function that spends, but for those of chapter 12, whose price `descent_noise` tells."""


def price(
    function: str | Callable[..., Any],
    *,
    epsilon: Rational | None = None,
    delta: Rational | None = None,
    alpha: Rational | None = None,
    epsilon_bar: Rational | None = None,
    rho: Rational | None = None,
    p: Rational | None = None,
    q: Rational | None = None,
) -> PrivacyLoss:
    """The loss of one call of a function of the textbook, from the parameters that decide it.

    ```python
    loss = book.price("auto_avg", epsilon=1)
    loss.epsilon(delta=0)
    ```

    Args:
        function: Its name, or the function itself.
        epsilon: As the function takes it, and so are the others.
        delta: As above.
        alpha: As above.
        epsilon_bar: As above.
        rho: As above.
        p: As above; 3/4 unless given.
        q: As above; 1/4 unless given.

    Privacy:
        A figure, not a release: the composed losses of the mechanisms that one call draws from. It does not
        depend on the data, nor on sensitivities, thresholds and bounds.

    Raises:
        InvalidParameter: for a function that spends nothing, or parameters that it does not take.
    """
    name = function if isinstance(function, str) else getattr(function, "__name__", "this")
    known = PRICED.get(name)
    if known is None:
        raise InvalidParameter(
            f"{name[:60]} has no price here: it is not one of {', '.join(sorted(PRICED))}."
        )
    given = {"epsilon": epsilon, "delta": delta, "alpha": alpha, "epsilon_bar": epsilon_bar, "rho": rho}
    told = {key: value for key, value in given.items() if value is not None}
    odds = {key: value for key, value in {"p": p, "q": q}.items() if value is not None}
    if set(told) != set(known.needs) or (odds and name != "perturb"):
        needs = " and ".join(known.needs) or ("p and q, or nothing" if name == "perturb" else "nothing")
        raise InvalidParameter(f"The price of {name} follows from {needs}.")
    return known.loss(**told, **odds)
