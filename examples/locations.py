"""Locations: where phones are, on a public grid of a town, when one of them goes to a lonely place every day.

A promise for a *row* is no promise for a person with many rows: fifty visits to a lonely place stand out of
the noise that hides one. Under a promise for a *phone*, all of its visits together weigh as much as four.
Where nobody may see the visits at all, each phone tells one place by itself, and randomises it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sfumato as sf

SIDE = 8  # places across, and down
MOST = 4  # visits that all those of one phone may weigh
LONELY = (7, 0)  # far from the centre: one phone goes there, fifty times


def visits(phones: int = 3_000, seed: int = 6) -> pa.Table:
    """Made-up visits: three for each phone, most of them near the centre, and the fifty of phone 0."""
    draw = sf.random.simulation(seed)
    x, y = np.clip(np.rint(draw.normal([[3.0], [4.0]], 1.2, (2, 3 * phones))), 0, SIDE - 1).astype(int)
    lonely = (x == LONELY[0]) & (y == LONELY[1])
    x[lonely] = LONELY[0] - 1
    return pa.table(
        {
            "phone": np.concatenate([np.repeat(np.arange(phones), 3), np.zeros(50, int)]),
            "x": np.concatenate([x, np.full(50, LONELY[0])]),
            "y": np.concatenate([y, np.full(50, LONELY[1])]),
        }
    )


def counted(rows: pa.Table, unit: sf.PrivacyUnit, epsilon: str = "1") -> tuple[np.ndarray, float]:
    """Visits by place as a map, and how far off each of them may be."""
    place = sf.Int(0, SIDE - 1, nullable=False)
    table = sf.PrivateTable("visits", source=rows, unit=unit, schema={"x": place, "y": place})
    with sf.Session(table, budget=sf.Budget(epsilon), ledger=None) as session:
        answer = session.sql("SELECT y, x, COUNT(*) AS n FROM visits GROUP BY y, x").release(epsilon=epsilon)
    town = np.zeros((SIDE, SIDE))
    for cell in answer.table.to_pylist():
        town[cell["y"], cell["x"]] = cell["n"]
    return town, max(answer.error(0.95)["n"].to_pylist())


def told(rows: pa.Table, epsilon: str = "1") -> tuple[np.ndarray, float]:
    """Phones by place where each tells its last one by itself: no steward."""
    phone, x, y = (rows[name].to_numpy() for name in ("phone", "x", "y"))
    last = len(phone) - 1 - np.unique(phone[::-1], return_index=True)[1]
    client = sf.local.HadamardResponse(epsilon, domain=[*range(SIDE * SIDE)])
    shares = client.aggregate(client.encode((SIDE * y + x)[last])).estimate(confidence=0.95)
    return np.reshape(shares.counts, (SIDE, SIDE)), float(np.max(shares.high - shares.low) / 2)


def main(phones: int = 3_000) -> None:
    rows = visits(phones)
    ways = {
        "a row is protected": counted(rows, sf.PrivacyUnit.row()),
        "a phone is protected": counted(rows, sf.PrivacyUnit("phone", max_groups=MOST)),
        "each phone by itself": told(rows),
    }
    print(f"{phones:,} phones, epsilon 1. The town, where a phone is protected:\n")
    town = ways["a phone is protected"][0]
    for row in town:
        print("  ".join(f"{max(count, 0):5.0f}" for count in row))
    print(f"\n{'':<22} {'the centre':>14} {'the lonely place':>18}")
    for name, (town, error) in ways.items():
        centre, lonely = (f"{town[y, x]:,.0f} ± {error:,.0f}" for x, y in ((3, 4), LONELY))
        print(f"{name:<22} {centre:>14} {lonely:>18}")
    print("\nOnly one phone was ever in the lonely place: the first line shows it.")


if __name__ == "__main__":
    main()
