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


def plain(found: Frequencies | Mean | Distribution) -> dict[str, Any]:
    """Estimates in the types that JSON has."""
    from sfumato.local import Found, Frequencies, Mean

    if isinstance(found, Mean):
        return {"mean": {"value": found.value, "low": found.low, "high": found.high}}
    if isinstance(found, Frequencies):
        rows = zip(found.values, found.counts.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
        listed = [dict(zip(("value", "count", "low", "high"), row, strict=True)) for row in rows]
        return {"values": listed} | ({"resolution": found.resolution} if isinstance(found, Found) else {})
    quantiles = [found.quantile(each) for each in _QUANTILES]
    rows = zip(
        found.edges.tolist(), found.shares.tolist(), found.low.tolist(), found.high.tolist(), strict=True
    )
    return {
        "quantiles": [
            {"share": float(share), "value": each.value, "low": each.low, "high": each.high}
            for share, each in zip(_QUANTILES, quantiles, strict=True)
        ],
        "below": [dict(zip(("edge", "share", "low", "high"), row, strict=True)) for row in rows],
    }


def tell(total: Aggregate[Any], found: Frequencies | Mean | Distribution, top: int) -> None:
    """Write estimates as text: a table of counts or quantiles, or the mean in a line."""
    from sfumato.local import Frequencies, Mean

    made = total.randomizer
    say(f"{total.count:,} reports of {type(made).__name__}, epsilon {key(made.epsilon)} each", style="bold")
    say()
    percent = f"{100 * found.confidence:g} %"
    if isinstance(found, Mean):
        _tell_mean(found, percent)
        return
    if isinstance(found, Frequencies):
        _tell_counts(found, top, percent)
        return
    quantiles = [found.quantile(each) for each in _QUANTILES]
    step = float(found.edges[1] - found.edges[0])
    table(
        {
            "not above this": [f"{100 * float(each):g} %" for each in _QUANTILES],
            "number": [shown(each.value, step) for each in quantiles],
            "from": [shown(each.low, step) for each in quantiles],
            "to": [shown(each.high, step) for each in quantiles],
        }
    )
    say()
    paragraph(f"Each interval holds by itself with confidence {percent}, for those who reported.")


def _tell_mean(found: Mean, percent: str) -> None:
    """The mean and its interval, in two digits of the half-width; the ends are rounded outwards."""
    width = (found.high - found.low) / 2
    step = 10.0 ** min(math.floor(math.log10(width)) - 1, 0) if width > 0 else 0.0
    low, high = found.low, found.high
    if step:
        low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    table({"mean": [shown(found.value, width)], "from": [shown(low, width)], "to": [shown(high, width)]})
    say()
    outside = not found.low <= found.value <= found.high
    beyond = " The mean is unbiased, and so may come out beyond the bounds." if outside else ""
    paragraph(f"With confidence {percent}, for the mean of those who reported.{beyond}")


def _tell_counts(found: Frequencies, top: int, percent: str) -> None:
    import numpy as np

    from sfumato.local.heavy import Found

    order = np.argsort(-found.counts, kind="stable")[:top]
    table(
        {
            "value": [key(found.values[place]) for place in order],
            "people": [round(float(found.counts[place])) for place in order],
            "from": [math.floor(found.low[place]) for place in order],
            "to": [math.ceil(found.high[place]) for place in order],
            "share": [f"{100 * found.shares[place]:.1f} %" for place in order],
        }
    )
    say()
    rest = len(found.values) - len(order)
    more = f"{rest:,} more values are listed by --top or --json. " if rest > 0 else ""
    if isinstance(found, Found):
        paragraph(
            f"{more}All this holds together with confidence {percent}: the intervals, that each value listed "
            f"is somebody's, and that none is missing that {100 * found.resolution:.2g} % of the people have."
        )
        return
    paragraph(
        f"{more}Each interval holds by itself with confidence {percent}. Counts are unbiased: rare ones may "
        "come out negative."
    )


def draw(found: Frequencies | Mean | Distribution, path: Path, *, label: str = "") -> None:
    """Write estimates as a picture; `label` says what the values are.

    An unbiased estimate that no people can have, such as a negative count, is drawn at the end of its band.

    Raises:
        InvalidParameter: if the path does not end in .png or .svg, or nothing was found.
    """
    import numpy as np

    from sfumato.local import Frequencies, Mean
    from sfumato.plots import noise_bands

    if isinstance(found, Frequencies) and not found.values:
        raise InvalidParameter("No value was found that could be drawn.")
    keys: Sequence[object]
    if isinstance(found, Mean):
        keys, values, names = ["mean"], np.array([found.value]), ("", label or "number")
    elif isinstance(found, Frequencies):
        keys, values, names = found.values, found.counts, (label or "value", "people")
    else:
        keys, values, names = found.edges.tolist(), found.shares, (label or "number", "share of people below")
    low, high = np.atleast_1d(found.low), np.atleast_1d(found.high)
    inside = np.clip(values, low, high)
    moved = (
        " An estimate beyond what can be is drawn at the end of its band." if np.any(inside != values) else ""
    )
    noise_bands(
        keys,
        inside,
        low,
        high,
        title=f"Estimated from {found.people:,} randomised report{'s' * (found.people != 1)}",
        xlabel=names[0],
        ylabel=names[1],
        note=f"The estimate within its band; each holds the truth with {100 * found.confidence:g} % "
        f"confidence.{moved}",
        path=path,
    )
