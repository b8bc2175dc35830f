"""Estimates from randomised reports as people, programs and pictures show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.output import paragraph, say, table
from sfumato.errors import InvalidParameter
from sfumato.render import key, shown

if TYPE_CHECKING:
    from sfumato.local import Aggregate, Distribution, Frequencies, Mean

__all__ = ["draw", "plain", "tell"]

_QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")


def plain(estimate: Frequencies | Mean | Distribution) -> dict[str, Any]:
    """Estimates in the types that JSON has."""
    from sfumato.local import Found, Frequencies, Mean

    if isinstance(estimate, Mean):
        return {"mean": {"value": estimate.value, "low": estimate.low, "high": estimate.high}}
    if isinstance(estimate, Frequencies):
        rows = zip(
            estimate.values,
            estimate.counts.tolist(),
            estimate.low.tolist(),
            estimate.high.tolist(),
            strict=True,
        )
        listed = [dict(zip(("value", "count", "low", "high"), row, strict=True)) for row in rows]
        return {"values": listed} | (
            {"resolution": estimate.resolution} if isinstance(estimate, Found) else {}
        )
    quantiles = [estimate.quantile(share) for share in _QUANTILES]
    rows = zip(
        estimate.edges.tolist(),
        estimate.shares.tolist(),
        estimate.low.tolist(),
        estimate.high.tolist(),
        strict=True,
    )
    return {
        "quantiles": [
            {"share": float(share), "value": quantile.value, "low": quantile.low, "high": quantile.high}
            for share, quantile in zip(_QUANTILES, quantiles, strict=True)
        ],
        "below": [dict(zip(("edge", "share", "low", "high"), row, strict=True)) for row in rows],
    }


def tell(total: Aggregate[Any], estimate: Frequencies | Mean | Distribution, top: int) -> None:
    """Write estimates as text: a table of counts or quantiles, or the mean in a line."""
    from sfumato.local import Frequencies, Mean

    randomizer = total.randomizer
    say(
        f"{total.count:,} reports of {type(randomizer).__name__}, epsilon {key(randomizer.epsilon)} each",
        style="bold",
    )
    say()
    percent = f"{100 * estimate.confidence:g} %"
    if isinstance(estimate, Mean):
        _tell_mean(estimate, percent)
        return
    if isinstance(estimate, Frequencies):
        _tell_counts(estimate, top, percent)
        return
    quantiles = [estimate.quantile(share) for share in _QUANTILES]
    step = float(estimate.edges[1] - estimate.edges[0])
    table(
        {
            "not above this": [f"{100 * float(share):g} %" for share in _QUANTILES],
            "number": [shown(quantile.value, step) for quantile in quantiles],
            "from": [shown(quantile.low, step) for quantile in quantiles],
            "to": [shown(quantile.high, step) for quantile in quantiles],
        }
    )
    say()
    paragraph(f"Each interval holds by itself with confidence {percent}, for those who reported.")


def _tell_mean(estimate: Mean, percent: str) -> None:
    """The mean and its interval, in two digits of the half-width; the ends are rounded outwards."""
    width = (estimate.high - estimate.low) / 2
    step = 10.0 ** min(math.floor(math.log10(width)) - 1, 0) if width > 0 else 0.0
    low, high = estimate.low, estimate.high
    if step:
        low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    table({"mean": [shown(estimate.value, width)], "from": [shown(low, width)], "to": [shown(high, width)]})
    say()
    outside = not estimate.low <= estimate.value <= estimate.high
    beyond = " The mean is unbiased, and so may come out beyond the bounds." if outside else ""
    paragraph(f"With confidence {percent}, for the mean of those who reported.{beyond}")


def _tell_counts(estimate: Frequencies, top: int, percent: str) -> None:
    import numpy as np

    from sfumato.local.heavy import Found

    order = np.argsort(-estimate.counts, kind="stable")[:top]
    table(
        {
            "value": [key(estimate.values[place]) for place in order],
            "people": [round(float(estimate.counts[place])) for place in order],
            "from": [math.floor(estimate.low[place]) for place in order],
            "to": [math.ceil(estimate.high[place]) for place in order],
            "share": [f"{100 * estimate.shares[place]:.1f} %" for place in order],
        }
    )
    say()
    rest = len(estimate.values) - len(order)
    more = f"{rest:,} more values are listed by --top or --json. " if rest > 0 else ""
    if isinstance(estimate, Found):
        paragraph(
            f"{more}All this holds together with confidence {percent}: the intervals, that each value listed "
            f"is somebody's, and that none is missing that {100 * estimate.resolution:.2g} % of the people "
            "have."
        )
        return
    paragraph(
        f"{more}Each interval holds by itself with confidence {percent}. Counts are unbiased: rare ones may "
        "come out negative."
    )


def draw(estimate: Frequencies | Mean | Distribution, path: Path, *, label: str = "") -> None:
    """Write estimates as a picture; `label` says what the values are.

    An unbiased estimate that no people can have, such as a negative count, is drawn at the end of its band.

    Raises:
        InvalidParameter: if the path does not end in .png or .svg, or nothing was found.
    """
    import numpy as np

    from sfumato.local import Frequencies, Mean
    from sfumato.plots import noise_bands

    if isinstance(estimate, Frequencies) and not estimate.values:
        raise InvalidParameter("No value was found that could be drawn.")
    keys: Sequence[object]
    if isinstance(estimate, Mean):
        keys, values, names = ["mean"], np.array([estimate.value]), ("", label or "number")
    elif isinstance(estimate, Frequencies):
        keys, values, names = estimate.values, estimate.counts, (label or "value", "people")
    else:
        keys, values, names = (
            estimate.edges.tolist(),
            estimate.shares,
            (label or "number", "share of people below"),
        )
    low, high = np.atleast_1d(estimate.low), np.atleast_1d(estimate.high)
    inside = np.clip(values, low, high)
    moved = (
        " An estimate beyond what can be is drawn at the end of its band." if np.any(inside != values) else ""
    )
    noise_bands(
        keys,
        inside,
        low,
        high,
        title=f"Estimated from {estimate.people:,} randomised report{'s' * (estimate.people != 1)}",
        xlabel=names[0],
        ylabel=names[1],
        note=f"The estimate within its band; each holds the truth with {100 * estimate.confidence:g} % "
        f"confidence.{moved}",
        path=path,
    )
