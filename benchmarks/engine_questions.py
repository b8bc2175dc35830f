"""The question that engines are measured with: sum and mean by country, user units, beside the plain one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sfumato as sf
from benchmarks.visits import COUNTRIES, DELTA, forgetting
from sfumato.engines.prepare import prepare

__all__ = ["BY_USER", "OURS", "PLAIN", "asked", "declared", "prepared", "session"]

_BY_COUNTRY = "SELECT country, SUM({0}) AS s, AVG({0}) AS m FROM visits GROUP BY country"
_CLAMPED = "LEAST(GREATEST(amount, 0), 200)"
OURS, PLAIN = _BY_COUNTRY.format("amount"), _BY_COUNTRY.format(_CLAMPED)
BY_USER = (
    "SELECT country, SUM(s) AS s, SUM(s) / SUM(n) AS m FROM (SELECT user_id, country, "
    f"SUM({_CLAMPED}) AS s, COUNT(*) AS n FROM visits GROUP BY user_id, country) AS users GROUP BY country"
)
"""The same answer without privacy, which brings the rows of each user together first, as limits need it."""
_SPACES = itertools.count(1)


def declared(source: str | Path) -> sf.PrivateTable:
    """The visits in that source: of each user, in at most three countries."""
    return sf.PrivateTable(
        "visits",
        source=source,
        unit=sf.PrivacyUnit("user_id", max_groups=3),
        schema={"country": sf.Enum(*COUNTRIES), "amount": sf.Float(0, 200, nullable=False)},
    )


def session(source: str | Path, engine: Any) -> sf.Session:
    """A session with a budget that these measurements cannot use up, on a ledger in memory."""
    return sf.Session(declared(source), budget=sf.Budget(10**7, "0.5"), engine=engine)


def prepared(source: str | Path, target: str | Path, engine: Any = None) -> str | Path | None:
    """The target, where the visits are written as a prepared table; None if the engine has none.

    Args:
        source: The visits.
        target: Where to.
        engine: Spark, where it reads them.
    """
    try:
        prepare(declared(source), target, engine=engine)
    except sf.errors.SfumatoError:
        return None
    return target


def asked(one: sf.Session, text: str = OURS) -> Callable[[], object]:
    """A call that asks in a text that nobody has asked, of a new ledger, and gives the table."""
    renew = forgetting(one)

    def call() -> object:
        renew()
        release = one.sql(text + " " * next(_SPACES)).release(epsilon=1, delta=DELTA)
        assert not release.free
        return release.table

    return call
