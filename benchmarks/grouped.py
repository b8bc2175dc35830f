"""Counts by group of skewed users: limits on the sum of a user's rows beside limits on their Euclidean norm.

A norm charges users whose rows are spread over many groups less. Qrlew clips in that norm; so does numpy
here, with the least Gaussian noise for the same guarantee, also at the norm that is best in hindsight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sfumato as sf
from benchmarks import limits
from benchmarks.harness import Report
from benchmarks.published import clipped_in_norm
from benchmarks.skewed import CEILING, DELTA, SHOPS, TOP, USERS, purchases

DECLARED = 5
"""The rows of a user that are declared."""
_OURS, _QUICK, _REMOTE = 12, 50, 3
_NORMS = (5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
_ASKED = "SELECT shop, COUNT(*) AS x FROM purchases GROUP BY shop"


def grouped(report: Report) -> None:
    """Total error of counts by shop, root mean square over shops, in rows."""
    rows = purchases()
    place = {shop: at for at, shop in enumerate(SHOPS)}
    shops = np.array([place[shop] for shop in rows["shop"].to_pylist()])
    by_shop = np.bincount(
        rows["user_id"].to_numpy() * len(SHOPS) + shops, minlength=USERS * len(SHOPS)
    ).reshape(USERS, len(SHOPS))
    truth, draw = by_shop.sum(axis=0), np.random.default_rng()
    report.heading(f"rows by {len(SHOPS)} shops, Zipf users", "total")

    def line(case: str, who: str, answers: list[NDArray[Any]]) -> float:
        error = math.sqrt(float(np.mean((np.array(answers) - truth) ** 2)))
        report.row(case, who, f"{error:,.0f}", total=error, releases=len(answers))
        return error

    fixed = line(f"{DECLARED} rows declared", "sfumato", [_ours(DECLARED) for _ in range(_OURS)])
    ours = line("limit by a profile", "sfumato", [_ours("auto") for _ in range(_OURS)])
    sigma = float(sf.mechanisms.Gaussian(epsilon=1, delta=DELTA, sensitivity=1).scale)
    norms = {
        norm: [clipped_in_norm(by_shop.astype(float), norm, sigma, draw) for _ in range(_QUICK)]
        for norm in _NORMS
    }
    same = line(f"norm of {DECLARED}", "Euclidean", norms[DECLARED])
    errors = {norm: float(np.mean((np.array(found) - truth) ** 2)) for norm, found in norms.items()}
    best = min(errors, key=lambda norm: errors[norm])
    hindsight = line(f"norm of {best:,}, best in hindsight", "Euclidean", norms[best])
    ask = {"who": "Qrlew", "query": "groups", "rows": DECLARED, "times": _REMOTE}
    (found,), _ = limits.ask(rows, [{**ask, "top": TOP, "epsilon": 1.0, "delta": float(DELTA)}])
    if found is None:
        report.missing(f"{DECLARED} rows declared", "Qrlew")
    else:
        line(f"{DECLARED} rows declared", "Qrlew", [np.array([one[shop] for shop in SHOPS]) for one in found])
    what = "rows by shop: a profile's limit over a norm"
    report.figure(f"{what} of the declared rows", ours / same, "<=", 1, unit=" ×")
    report.figure(f"{what}, best in hindsight", ours / hindsight, "<=", 1.25, unit=" ×")
    report.figure("rows by shop: declared rows over a norm of them", fixed / same, "<=", 1, unit=" ×")


def _ours(limit: Any) -> NDArray[Any]:
    declared = {"ceiling": CEILING} if limit == "auto" else {"max_groups": limit}
    table = sf.PrivateTable(
        "purchases",
        source=purchases(),
        unit=sf.PrivacyUnit("user_id", max_rows=limit, **declared),
        schema={"shop": sf.Enum(*SHOPS)},
    )
    with sf.Session(table, budget=sf.Budget(1, DELTA)) as one:
        found = one.sql(_ASKED).release(epsilon=1).table.to_pylist()
    counts = {row["shop"]: row["x"] for row in found}
    return np.array([counts[shop] for shop in SHOPS], dtype=float)
