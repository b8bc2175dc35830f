"""The six published sparse-vector algorithms that Lyu, Su and Li compared; four break their promise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass

__all__ = ["VARIANTS", "Variant", "run"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One algorithm of Figure 1 of Lyu, Su, Li, "Understanding the sparse vector technique", VLDB 2017.

    All compare value + query noise with 0 + threshold noise, for values of sensitivity 1 and a claimed
    price of epsilon.

    Attributes:
        number: as in the paper.
        source: where it was published.
        share: the part of epsilon that the threshold noise is drawn with.
        threshold_count: whether the threshold noise, of scale 1/(share·epsilon), grows with the count.
        query: scale of the query noise, in units of 1/((1-share)·epsilon), before any factor of the count.
        query_count: whether the query noise grows with the count.
        refresh: whether the threshold noise is drawn again after each find.
        stops: whether it stops after `count` finds.
        tells: whether a find tells the very number that was compared, rather than only that it was found.
        times: the price it really has as a multiple of epsilon, for count c: (constant, per count); None:
            no finite one.
    """

    number: int
    source: str
    share: float
    threshold_count: bool
    query: float
    query_count: bool
    refresh: bool
    stops: bool
    tells: bool
    times: tuple[float, float] | None

    @property
    def honest(self) -> bool:
        """Whether it keeps its promise of epsilon."""
        return self.times == (1.0, 0.0)


VARIANTS = {
    variant.number: variant
    for variant in (
        Variant(1, "Lyu, Su, Li 2017", 0.5, False, 2.0, True, False, True, False, (1.0, 0.0)),
        Variant(2, "Dwork, Roth 2014", 0.5, True, 2.0, True, True, True, False, (1.0, 0.0)),
        Variant(3, "Roth 2011 (lecture notes)", 0.5, False, 1.0, True, False, True, True, None),
        Variant(4, "Lee, Clifton 2014", 0.25, False, 1.0, False, False, True, False, (0.25, 1.5)),
        Variant(5, "Stoddard, Chen, Machanavajjhala 2014", 0.5, False, 0.0, False, False, False, False, None),
        Variant(6, "Chen, Xiao, Zhang, Xu 2015", 0.5, False, 1.0, False, False, False, False, None),
    )
}


def run(
    variant: Variant,
    values: ArrayLike,
    *,
    epsilon: float,
    count: int,
    runs: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """`runs` independent outputs, one row each: 0 below, 1 (or the number told) above, -1 not reached."""
    answers = np.asarray(values, dtype=float)
    first, second = variant.share * epsilon, (1 - variant.share) * epsilon
    threshold_scale = (count if variant.threshold_count else 1) / first
    query_scale = variant.query * (count if variant.query_count else 1) / second
    threshold = generator.laplace(scale=threshold_scale, size=runs)
    finds = np.zeros(runs, dtype=int)
    output = np.full((runs, len(answers)), -1.0)
    for place, answer in enumerate(answers):
        noisy = answer + (generator.laplace(scale=query_scale, size=runs) if query_scale else np.zeros(runs))
        live = finds < count if variant.stops else np.ones(runs, dtype=bool)
        above = live & (noisy >= threshold)
        output[live, place] = 0.0
        output[above, place] = noisy[above] if variant.tells else 1.0
        finds += above
        if variant.refresh:
            threshold = np.where(above, generator.laplace(scale=threshold_scale, size=runs), threshold)
    return output
