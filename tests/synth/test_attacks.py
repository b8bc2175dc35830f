"""Who is behind a table shows in a copy of it, and in a synthetic one no more than its price allows."""

from __future__ import annotations

import pytest

import sfumato as sf
from sfumato.fits.meter import price
from sfumato.testing.stream import seeded
from synthetic import people, session_of

ROWS = people(360, seed=5).select(["who", "age", "sex", "income", "member"])
INSIDE, OUTSIDE = ROWS.slice(0, 120), ROWS.slice(120)
COLUMNS = {
    "age": sf.Int(0, 99),
    "sex": sf.Enum("F", "M"),
    "income": sf.Float(0, 200_000),
    "member": sf.Bool(),
}


def synthetic_rows():
    with session_of(INSIDE, columns=COLUMNS) as session, seeded("membership"):
        made = sf.synth.fit(session, epsilon=1, delta="1e-6", method="mst")
        return made.sample(120, seed=0).drop_columns(["who"])


@pytest.mark.parametrize("copied", [True, False])
def test_membership_shows_in_a_copy_and_within_the_price_in_a_synthetic_table(copied):
    rows = INSIDE.drop_columns(["who"]) if copied else synthetic_rows()
    outcome = sf.attacks.nearness(
        INSIDE.drop_columns(["who"]), rows, OUTSIDE.drop_columns(["who"]), attacks=100, seed=1
    )
    exchanged = price(1, "1e-6").group(2).epsilon(1e-6)  # one row for another
    assert outcome.works is copied
    assert (outcome.detail["epsilon at least"] > exchanged) is copied
