"""`FederatedAveraging`: clients train on their own rows, and a server averages what they changed."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.fits.meter import Meter, Total
from sfumato.learn._core.design import UNIT
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import RESIDUAL_BITS, clipped
from sfumato.learn._weights.curves import logistic
from sfumato.learn.base import Learned
from sfumato.learn.examples import Example, Given
from sfumato.learn.gradient import TwoClasses, units_in
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms import Gaussian
from sfumato.numeric.exact import Rational, as_integer, positive

if TYPE_CHECKING:
    from sfumato.learn._core.records import Records

__all__ = ["FederatedAveraging", "Guarantee"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_STEP = Fraction(1, 1 << 20)  # updates are whole multiples of this
_MOST_CLIENTS = 1 << 24


class Guarantee(NamedTuple):
    """What somebody can learn about one client.

    Attributes:
        seen: Who sees what.
        loss: Over all rounds; None: nothing is promised.
        epsilon: Of the loss at that delta; infinite where nothing is promised.
        delta: Likewise.
    """

    seen: str
    loss: PrivacyLoss | None
    epsilon: float
    delta: float


class FederatedAveraging(TwoClasses):
    """Logistic regression over many clients, each of whom keeps its rows.

    In each round every client takes a few steps of gradient descent on its own rows, from the weights of all,
    and cuts what it changed to a length. The server adds these updates up, as integers and with noise, and
    moves the weights by their average. All clients are simulated here, each by its own rows alone.

    Args:
        epsilon: What all rounds cost together, for whoever sees the models and not the updates.
        delta: Likewise.
        bounds: What is public about each column.
        classes: The two labels.
        rounds: How often weights go out and updates come back.
        local_steps: How many steps a client takes in a round.
        rate: The length of a client's step.
        clip: The L2 norm that an update is cut to.
        local_epsilon: If given, each client adds noise to its own update, in each round for this price, and
            the server sees no more than that.
        local_delta: Likewise.
        enrolled: How many clients there are, as a public number; needed where they add noise of their own:
            one without rows sends noise alone. If None, the number is bought as one more round.

    Attributes:
        classes_: The labels, sorted.
        coef_: Weights in the columns' own scale.
        intercept_: What is added.

    Privacy:
        Claim: centrally that of `PrivateEstimator`, a client being the unit: a round is a Gaussian
        measurement of the sum of updates that are functions of one client's rows and public weights, cut to
        `clip`; noise that clients add is independent of all rows, and as many clients add it whoever has
        rows, so that the claim holds for each value of it, and hence on average. Locally: each report of a
        client is a Gaussian mechanism on a vector that any other of its rows move by at most 2·clip, `rounds`
        of them in all (`account`). Conditions: clients follow the protocol; without noise of their own they
        trust the server, or a secure aggregation, which is outside the guarantee.
    """

    signed: ClassVar[bool] = True

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        bounds: Any = None,
        classes: Any = None,
        *,
        rounds: int = 20,
        local_steps: int = 5,
        rate: float = 2.0,
        clip: Rational = 1,
        local_epsilon: Rational | None = None,
        local_delta: Rational | None = None,
        enrolled: int | None = None,
    ) -> None:
        super().__init__(epsilon, delta, bounds, classes)
        self.rounds, self.local_steps, self.rate, self.clip = rounds, local_steps, rate, clip
        self.local_epsilon, self.local_delta, self.enrolled = local_epsilon, local_delta, enrolled

    def _rows(self, X: Any, y: Any, units: Any) -> Rows | Records:
        rows = super()._rows(X, y, units)
        if self.enrolled is not None and int(units_in(rows).values[0]) > self.enrolled:
            raise InvalidValue("There are more clients than are enrolled.")
        return rows

    def _check_session(self) -> None:
        # Whether a table has more clients than that is a fact about its rows, which no error may tell.
        if self.enrolled is not None:
            raise InvalidParameter("On a session the number of clients is private: leave enrolled out.")

    def account(self) -> dict[str, Guarantee]:
        """What is promised to a client over all rounds: `central`, by the models; `local`, by its reports."""
        self._check()
        central = self._price()
        delta = float(positive(self.delta or 0, "delta"))
        noise = self._local()
        seen = "whoever sees the models of all rounds; one client added or removed"
        promised = {"central": Guarantee(seen, central, central.epsilon(delta), delta)}
        if noise is None:
            seen = "the server, which sees each update, or a secure aggregation outside this guarantee"
            promised["local"] = Guarantee(seen, None, math.inf, 0.0)
        else:
            loss, small = noise.loss * int(self.rounds), float(positive(self.local_delta or 0, "local_delta"))
            seen = "the server, which sees each client's reports; any rows exchanged for any others"
            promised["local"] = Guarantee(seen, loss, loss.epsilon(small), small)
        return promised

    def _check(self) -> None:
        super()._check()
        as_integer(self.rounds, "rounds")
        as_integer(self.local_steps, "local_steps")
        if positive(self.clip, "clip") > 1000:
            raise InvalidParameter("clip must be at most 1000.")
        if not 0 < self.rate <= 1000:
            raise InvalidParameter("rate must be above 0 and at most 1000.")
        if self.enrolled is not None and as_integer(self.enrolled, "enrolled") > _MOST_CLIENTS:
            raise InvalidParameter("enrolled must be at most 2**24.")
        if (self.local_epsilon is None) != (self.local_delta is None):
            raise InvalidParameter("Give local_epsilon and local_delta, or neither.")
        if self.local_epsilon is not None and self.enrolled is None:
            raise InvalidParameter("Clients that add noise need enrolled=…, the public number of them.")
        self._local()

    def _local(self) -> Gaussian | None:
        """The noise that a client adds, in multiples of the grid."""
        if self.local_epsilon is None or self.local_delta is None:
            return None
        return Gaussian(
            self.local_epsilon, self.local_delta, sensitivity=2 * positive(self.clip, "clip") / _STEP
        )

    def _learn(self, rows: Rows, meter: Meter) -> Learned:
        bought = self.enrolled is None
        share = Fraction(1, self.rounds + bought)
        if self.enrolled is None:
            count = max(float(meter.noisy(units_in(rows), share)[0]), meter.sigma(1, share))
        else:
            count = float(self.enrolled)
        clients, weights = _Clients(rows), np.zeros(rows.design.width)
        for _ in range(self.rounds):
            changed = clients.trained(weights, int(self.local_steps), float(self.rate))
            total = _summed(changed, positive(self.clip, "clip"), self._local(), self.enrolled)
            weights = np.clip(weights + meter.noisy(total, share) / count, -1000, 1000)
        return {"weights": weights}


class _Clients:
    """All clients, each with its own rows: what one does follows from its rows and public weights alone.

    Sums over a client's rows are of integers; everything else is done one float at a time.
    """

    def __init__(self, rows: Rows) -> None:
        assert rows.target is not None
        whose = np.arange(len(rows)) if rows.units is None else rows.units
        self.starts = np.flatnonzero(np.r_[True, whose[1:] != whose[:-1]]) if len(rows) else np.zeros(0, int)
        self.sizes = np.diff(np.r_[self.starts, len(rows)])
        self.place = np.repeat(np.arange(len(self.starts)), self.sizes)
        self.integers = np.empty((len(rows), rows.design.width), np.int64)
        self.integers[:, : rows.integers.shape[1]] = rows.integers
        self.integers[:, rows.integers.shape[1] :] = UNIT
        self.labels = rows.target.astype(np.int64) << RESIDUAL_BITS

    def trained(self, weights: Floats, steps: int, rate: float) -> Floats:
        """What each client changes in these weights, a line a client."""
        own = np.tile(weights, (len(self.starts), 1))
        for _ in range(steps if len(self.starts) else 0):
            # Weights on a grid: a margin is a sum of integers below 2**63.
            grid = np.rint(np.clip(own, -1000, 1000) * 2.0**20).astype(np.int64)
            margins = np.einsum("ij,ij->i", self.integers, grid[self.place]) * 2.0**-34
            wrong = logistic(margins).astype(np.int64) - self.labels
            slopes = np.add.reduceat(self.integers * wrong[:, None], self.starts, axis=0)
            own = own - rate * 2.0**-34 * (slopes.astype(np.float64) / self.sizes[:, None])
        return own - weights


def _summed(changed: Floats, clip: Fraction, local: Gaussian | None, enrolled: int | None) -> Total:
    """The sum of all updates, each cut to a length, with the clients' own noise if they add any.

    Privacy:
        Claim: adding or removing a client's rows moves the sum by at most `clip`, in L2, for any value of the
        clients' noise. Proof: an update is rounded towards zero and cut (`clipped`); integers add up exactly;
        as many clients add noise, whoever of them has rows.
    """
    lines = clipped(np.trunc(changed / float(_STEP)).astype(np.int64), clip / _STEP)
    total = lines.sum(axis=0)
    if local is not None and enrolled is not None:
        # Drawn by itself: a report that is rounded whole could move by more than the update does.
        # As many as are enrolled, also in a table that has more: how many have rows is private.
        silent = np.zeros((enrolled, lines.shape[1]), np.int64)
        total = total + np.rint(local.release(silent)).astype(np.int64).sum(axis=0)
    return Total(total, clip / _STEP, _STEP)


def examples() -> tuple[Example, ...]:
    """Neighbours that come close to the claim."""
    few, labels = np.zeros((4, 2)), [0, 1, 0, 1]

    def make() -> FederatedAveraging:
        return FederatedAveraging(
            1, "1e-5", bounds=(-1, 1), classes=[0, 1], rounds=2, local_steps=8, clip="0.5", rate=4.0
        )

    return (
        Example(
            "federated averaging: a client of one row",
            make,
            Given(few, labels),
            Given(np.vstack([few, [[1.0, 1.0]]]), [*labels, 1]),
        ),
        Example(
            "federated averaging: a client of many rows",
            make,
            Given(few, labels, [0, 0, 1, 1]),
            Given(np.vstack([few, np.ones((6, 2))]), [*labels, *[1] * 6], [0, 0, 1, 1, *[2] * 6]),
        ),
    )
