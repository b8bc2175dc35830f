"""`PrivacyLoss`: what a release costs, as an inert value that knows its own curve."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

from sfumato.errors import InvalidParameter, NotCertified, UnsupportedLoss
from sfumato.loss import renyi
from sfumato.numeric import compose
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.exact import (
    Rational,
    as_fraction,
    as_integer,
    decimal_up,
    delta_of,
    float_down,
    float_up,
    nonnegative,
    probability,
)
from sfumato.numeric.laws import Term

if TYPE_CHECKING:
    from sfumato.loss.law import LossLaw

__all__ = ["Adjacency", "PrivacyLoss", "Scheme", "counted", "proven_point", "register"]

Adjacency: TypeAlias = Literal["add-remove", "exchange"]
Scheme: TypeAlias = Literal["poisson", "fixed"]

_WIRES: dict[str, type[PrivacyLoss]] = {}
_L = TypeVar("_L", bound="type[PrivacyLoss]")
_ZERO = Fraction(0)
# What the numerics count up to, and how many mappings and lists a stored loss may open inside each other.
# Both are far beyond any real use, and keep hostile data from costing more than its length.
_MOST = 10**12
_LONGEST = 14_000  # bits: what Python turns into decimal digits without complaint
_DEEPEST = 150
_LARGEST = 1e100  # an ε beyond which nothing is told apart


def register(cls: _L) -> _L:
    """Make a loss class readable from its wire name and its former one (class decorator, outermost)."""
    for name in filter(None, (cls.wire or cls.__name__, cls._former)):
        if not cls.wire or name in _WIRES:
            raise InvalidParameter(f"{cls.__name__} needs a wire name of its own: names are never reused.")
        _WIRES[name] = cls
    return cls


def counted(value: int, name: str, *, least: int = 1) -> int:
    """A number of releases or units: whole, and of a size that the numerics can count."""
    number = as_integer(value, name, least=least)
    if number > _MOST:
        raise InvalidParameter(f"{name} must be at most 1e12; give the number of releases or units meant.")
    return number


class PrivacyLoss(ABC):  # noqa: B024  (every method has a sound default; a subclass states what it knows)
    """The privacy loss of one release: a frozen value, free of data, budgets and accountants.

    A subclass states what is known about its mechanism: a dominating pair in each direction (`directions`), a
    pure bound (`pure`), a concentrated one (`rho`), a Rényi curve (`rdp`), one exact point (`approximate`).
    Everything else follows from these by proven conversions, always rounded up.

    Privacy:
        Claim: a mechanism that carries this loss is (ε, delta(ε))-differentially private for every ε ≥ 0,
        between any two neighbouring inputs *in both orders* (the curve is the supremum over the directions),
        where neighbours are those of `adjacency`, or those that its sensitivity was stated for. Source: a
        pair (P, Q) dominates a mechanism if its hockey-stick curve is nowhere below (Zhu, Dong, Wang 2022,
        Def. 7); pairs compose (their Thm. 10).
    """

    __slots__ = ()
    wire: ClassVar[str] = ""
    # Whether the pair is only an envelope of several, so that a composition's Rényi curve may be tighter.
    _envelope: ClassVar[bool] = False
    # The wire name from before there was a `point`, under which losses without one are still written.
    _former: ClassVar[str] = ""
    # Whether the Rényi curve is that of the pair itself, so that many can be summed at once.
    _plain_pair: ClassVar[bool] = False

    # ── what is known
    # ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def pure(self) -> Fraction | None:
        """An ε such that the loss is ε-DP with δ = 0, exact; None if there is none."""
        return None

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """(ρ, δ) such that the loss is δ-approximately ρ-zCDP (Bun, Steinke 2016, Def. 8.1), exact."""
        pure = self.pure
        # Bun, Steinke 2016, Prop. 3.3: the divergence of order α is at most min(ε²α/2, ε), and α > 1.
        return None if pure is None else (min(pure * pure / 2, pure), _ZERO)

    @property
    def rho(self) -> Fraction | None:
        """A ρ such that the loss is ρ-zCDP (with no δ aside), exact; None if there is none."""
        known = self.concentrated
        return None if known is None or known[1] else known[0]

    @property
    def mu(self) -> float | None:
        """A μ such that N(μ, 1) against N(0, 1) dominates, rounded up; None if unknown."""
        return None

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """The exact point (ε, δ) that basic composition adds up; None if none is singled out."""
        pure = self.pure
        return None if pure is None else (pure, _ZERO)

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbours it holds for; None: those that the sensitivity was stated for."""
        return None

    @property
    def failure(self) -> Fraction:
        """The probability δ set aside before `renyi` holds (approximate zCDP); 0 for most losses."""
        if type(self).concentrated is PrivacyLoss.concentrated:
            return _ZERO  # the rule for pure losses, whose figures need not be worked out
        known = self.concentrated
        return _ZERO if known is None else known[1]

    def directions(self) -> tuple[tuple[Term, ...], ...] | None:
        """The dominating pair as terms to compose: (either,) when it is symmetric, else (remove, add).

        The two of an asymmetric loss are one pair and its swap. None: only a Rényi bound is known.
        """
        return None

    def renyi(self, alpha: float) -> float:
        """The Rényi divergence of order `alpha` outside an event of probability `failure`, rounded up."""
        known = self.concentrated
        bound = math.inf if known is None else renyi.product_up(alpha, known[0])
        pure = self.pure
        if pure is not None:
            bound = min(bound, float_up(pure))
        directions = self.directions()
        if directions is None or self.failure or not 1 < alpha < math.inf:
            return bound
        return min(bound, compose.rdp(directions, alpha))

    # ── the curve
    # ────────────────────────────────────────────────────────────────────────────────────────────────

    def rdp(self, alpha: Rational) -> float:
        """The Rényi divergence of order `alpha` ≥ 1, rounded up; infinity if none is known.

        Order 1 is the Kullback–Leibler divergence and order infinity the max-divergence, the pure ε.
        """
        order = alpha if isinstance(alpha, float) else float_up(as_fraction(alpha, "alpha"))
        if not order >= 1:
            raise InvalidParameter("alpha must be at least 1; order 1 is the Kullback–Leibler divergence.")
        if self.failure:
            return math.inf
        if order == math.inf:
            return math.inf if self.pure is None else float_up(self.pure)
        return self._kullback_leibler() if order == 1 else self.renyi(order)

    def curve(self) -> Callable[[float], float]:
        """`renyi` as a function of the order that is cheap to call often."""
        return self.renyi

    def _kullback_leibler(self) -> float:
        # Orders are monotone: one just above 1 bounds order 1.
        return self.renyi(renyi.LEAST_ORDER)

    def delta(self, epsilon: Rational) -> float:
        """The least δ known for this ε, rounded up: the larger of the two directions."""
        exact = as_fraction(epsilon, "epsilon")
        pure, point = self.pure, self.approximate
        if pure is not None and exact >= pure:
            return 0.0
        delta = self._delta(min(float_down(exact), _LARGEST))  # a profile only falls beyond
        if point is not None and exact >= point[0]:
            delta = min(delta, decimal_up(point[1]))
        return min(delta, 1.0)

    def epsilon(self, delta: Rational) -> float:
        """The least ε known for this δ, rounded up; infinity if there is none."""
        exact = delta_of(delta)
        pure, point = self.pure, self.approximate
        bound = math.inf if pure is None else decimal_up(pure)
        if point is not None and exact >= point[1]:
            bound = min(bound, decimal_up(point[0]))
        if exact == 0 or bound == 0:
            return bound
        return max(0.0, min(bound, self._epsilon(exact)))

    def bracket(self, *, epsilon: Rational | None = None, delta: Rational | None = None) -> Bracket:
        """The two ends that were proven for δ at an ε, or for ε at a δ; the upper one is the answer.

        The lower end is that of the pair that is composed, or of one that lies below where that is only a
        bound (random allocation); it is 0 where no pair is known.
        """
        if (epsilon is None) == (delta is None):
            raise InvalidParameter("Give either epsilon or delta to read a bracket at.")
        directions = self.directions()
        if epsilon is not None:
            upper = self.delta(epsilon)
            if upper == 0 or directions is None:
                return Bracket(0.0, upper)
            at = min(float_up(as_fraction(epsilon, "epsilon")), _LARGEST)
            bracket = compose.bracket_of_delta(self._beneath() or directions, at, swapped=True)
        else:
            assert delta is not None
            upper = self.epsilon(delta)
            if upper == 0 or directions is None:
                return Bracket(0.0, upper)
            most = min(float_up(delta_of(delta)), 1 - 2.0**-53)
            bracket = compose.bracket_of_epsilon(self._beneath() or directions, most)
        return Bracket(min(bracket.lower, upper), upper)

    def _beneath(self) -> tuple[tuple[Term, ...], ...] | None:
        """A pair that is nowhere above the mechanism's own, for the lower end of a bracket."""
        return self.directions()

    @property
    def _paired(self) -> bool:
        """Whether `directions` is known, without building it: a class that may not know says so itself."""
        return type(self).directions is not PrivacyLoss.directions

    def _delta(self, epsilon: float) -> float:
        directions = self.directions()
        if directions is None:
            return renyi.delta(self.curve(), epsilon, self.failure)
        if epsilon < 0:
            return max(_profile(directions, way, epsilon) for way in range(len(directions)))
        return compose.delta(directions, epsilon, swapped=True).upper

    def _epsilon(self, delta: Fraction) -> float:
        directions = self.directions()
        if directions is None:
            return renyi.epsilon(self.curve(), delta - self.failure) if delta > self.failure else math.inf
        return compose.epsilon(directions, float_down(delta)).upper

    def profile(self, way: int, epsilon: float) -> float:
        """δ at any real ε in one direction: 0 is remove, 1 is add; the same for a symmetric loss. Rounded up.

        Raises:
            UnsupportedLoss: if no dominating pair is known.
        """
        directions = self.directions()
        if directions is None:
            raise UnsupportedLoss(
                f"{type(self).__name__} knows only a Rényi bound, not a pair: this has no proven rule."
            )
        return _profile(directions, way % len(directions), epsilon)

    # ── the algebra
    # ──────────────────────────────────────────────────────────────────────────────────────────────

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        """Both releases about the same data."""
        if not isinstance(other, PrivacyLoss):
            raise _no_sum(other)
        from sfumato.loss.composed import compose as together

        return together((self, other))

    def __radd__(self, other: int) -> PrivacyLoss:
        """The loss itself from 0 on, so that `sum(losses)` works."""
        if type(other) is not int or other != 0:
            raise _no_sum(other)
        return self

    def __mul__(self, count: int) -> PrivacyLoss:
        """`count` independent releases of the same loss."""
        from sfumato.loss.composed import repeat

        return repeat(self, counted(count, "count", least=0))

    __rmul__ = __mul__

    def sampled(
        self, rate: Rational, scheme: Scheme = "poisson", *, adjacency: Adjacency | None = None
    ) -> PrivacyLoss:
        """The loss when the mechanism runs on a secret random sample of the data; see `SampledLoss`.

        A Poisson sample is for add/remove and one of fixed size for exchange, unless `adjacency` says
        otherwise: `sampled(rate, adjacency="exchange")` is a Poisson sample under exchange
        (`ExchangedSampleLoss`), of a loss that was stated for add/remove.
        """
        from sfumato.loss.sampled import sampled

        return sampled(self, rate, scheme, adjacency)

    def allocated(self, bins: int) -> PrivacyLoss:
        """The loss of a round of `bins` releases, each unit in one of them by chance; see `AllocatedLoss`."""
        from sfumato.loss.allocated import allocated

        return allocated(self, bins)

    def law(self) -> LossLaw:
        """The law of the privacy loss itself, where it is known in a simple form; see `LossLaw`."""
        from sfumato.loss.law import law

        return law(self)

    def under(self, adjacency: Adjacency) -> PrivacyLoss:
        """The same loss, stated for one kind of neighbours, so that it cannot be mixed with others."""
        from sfumato.loss.adjacent import under

        return under(self, adjacency)

    def group(self, size: int) -> PrivacyLoss:
        """The loss between inputs that differ in `size` units; see `GroupLoss`."""
        from sfumato.loss.group import group

        return group(self, counted(size, "size"))

    def parallel(self, *others: PrivacyLoss, adjacency: Adjacency = "add-remove") -> PrivacyLoss:
        """The loss of releases about disjoint parts of the data; see `ParallelLoss`."""
        from sfumato.loss.parallel import parallel

        return parallel((self, *others), adjacency)

    def _size(self) -> Fraction | None:
        """In a family with one parameter: that parameter, in which the curve increases."""
        return None

    def _group(self, size: int) -> PrivacyLoss | None:
        """The tight group loss where the family is closed under it; None: use the general rule."""
        del size
        return None

    # ── the wire
    # ─────────────────────────────────────────────────────────────────────────────────────────────────

    def to_dict(self) -> dict[str, Any]:
        """Plain data (text, whole numbers, lists) that `from_dict` reads back to an equal loss."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass
        written = {field.name: _encode(getattr(self, field.name)) for field in fields}
        if self._former and written["point"] is None:
            del written["point"]
            return {"loss": self._former} | written
        return {"loss": self.wire} | written

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> PrivacyLoss:
        """The loss that `to_dict` wrote.

        Raises:
            UnsupportedLoss: for a wire name that this version does not know; the message names it.
            InvalidParameter: for fields that do not fit that name.
        """
        return _read(data, 0)

    @classmethod
    def _build(cls, fields: dict[str, Any]) -> PrivacyLoss:
        make: Callable[..., PrivacyLoss] = cls
        return make(**fields)


def _profile(directions: tuple[tuple[Term, ...], ...], way: int, epsilon: float) -> float:
    """δ at any real ε in one direction, rounded up.

    For ε < 0 the swapped pair of a composition is read: H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P), an identity.
    """
    terms = directions[way]
    if epsilon >= 0 or (len(terms) == 1 and terms[0].count == 1):
        return compose.delta((terms,), epsilon).upper
    swapped = compose.delta((directions[len(directions) - 1 - way],), -epsilon).upper
    # Two library calls and three operations, on a sum of positive numbers.
    return min(1.0, (-math.expm1(epsilon) + math.exp(epsilon) * swapped) * (1 + 2**-44))


def proven_point(
    point: tuple[Rational, Rational], curve: Callable[[float], float]
) -> tuple[Fraction, Fraction]:
    """The exact (ε, δ) that a loss singles out, once its own curve has shown that it holds.

    Args:
        point: what is claimed.
        curve: δ at an ε, rounded up.

    Raises:
        InvalidParameter: if the curve does not show it.
    """
    try:
        epsilon, delta = point
    except (TypeError, ValueError):
        raise InvalidParameter("point must be a pair (epsilon, delta).") from None
    exact = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
    try:
        holds = Fraction(curve(float_down(exact[0]))) <= exact[1]
    except NotCertified:
        holds = False
    if not holds:
        raise InvalidParameter(
            "This loss does not meet the point it claims: leave the point out, or calibrate the noise to it."
        )
    return exact


def _no_sum(other: object) -> InvalidParameter:
    return InvalidParameter(f"A loss adds up with losses, not {type(other).__name__}; pass mechanism.loss.")


def _read(data: Any, depth: int) -> PrivacyLoss:
    if not isinstance(data, Mapping) or not isinstance(data.get("loss"), str):
        raise InvalidParameter(
            "A stored loss must be a mapping with a text under 'loss' that names its kind."
        )
    name = data["loss"]
    if name not in _WIRES:
        raise UnsupportedLoss(
            f"Unknown loss {name[:60]!r}: another version of Sfumato wrote it; upgrade to read it."
        )
    kind = _WIRES[name]
    fields = {key: _decode(value, depth + 1) for key, value in data.items() if key != "loss"}
    try:
        if kind._former and (fields.get("point") is None) != (name == kind._former):
            raise ValueError("a point belongs to the newer name, and only there")
        return kind._build(fields)
    except InvalidParameter:
        raise
    except (TypeError, LookupError, AttributeError, ValueError, ArithmeticError) as wrong:
        raise InvalidParameter(f"The stored fields do not fit a loss of kind {name!r}.") from wrong


def _encode(value: Any) -> Any:
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _LONGEST:
            raise InvalidParameter("A number of this loss is too long to be written down: round it up first.")
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, PrivacyLoss):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    return value


def _decode(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise InvalidParameter("A stored loss is nested too deeply to be one that this package wrote.")
    if isinstance(value, str):
        if "/" in value:
            return as_fraction(value, "a stored number")
        if any(letter.isdigit() for letter in value):
            raise InvalidParameter("A stored number must be text like '1/2', a numerator and a denominator.")
        return value
    if isinstance(value, Mapping):
        return _read(value, depth)
    if isinstance(value, list | tuple):
        return tuple(_decode(item, depth + 1) for item in value)
    return value
