"""A small census: age × sex counts of tracts, counties and regions, whole and consistent, for one price.

All tables of all levels are measured with Gaussian noise for one purchase. What follows uses nothing but the
noisy numbers, so it costs nothing: counts are estimated from all levels together, moved onto non-negative
numbers and rounded so that every sum still holds. The counts then become rows, one for each person.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

import sfumato as sf

REGIONS = {"north": 40_000, "east": 9_000, "south": 2_500, "west": 60}
COUNTIES, TRACTS, DECADES = 3, 8, 10

PLACES = pa.table(
    {
        "region": [region for region in REGIONS for _ in range(COUNTIES * TRACTS)],
        "county": [f"{region} {county}" for region in REGIONS for county in "abc" for _ in range(TRACTS)],
        "tract": [f"{region} {county}{n}" for region in REGIONS for county in "abc" for n in range(TRACTS)],
    }
)


def people(seed: int = 7) -> pa.Table:
    """Made-up rows: one region is large and one nearly empty, and the young are many."""
    draw = sf.random.simulation(seed)
    tracts = COUNTIES * TRACTS
    counts = np.concatenate(
        [draw.multinomial(size, draw.dirichlet(np.ones(tracts))) for size in REGIONS.values()]
    )
    ages = np.minimum(draw.exponential(35, counts.sum()), 10 * DECADES - 1).astype(np.int64)
    return pa.table(
        {
            "tract": np.repeat(PLACES["tract"].to_numpy(), counts),
            "age": ages,
            "sex": np.array(["F", "M"])[draw.integers(0, 2, len(ages))],
        }
    )


def census(rows: pa.Table, epsilon: str = "1") -> sf.synth.LevelCounts:
    """The release: what a region has in all is public here, and kept exactly."""
    table = sf.PrivateTable(
        "people",
        source=rows,
        unit=sf.PrivacyUnit.row(),
        schema={"tract": sf.Text(), "age": sf.Int(0, 10 * DECADES - 1), "sex": sf.Enum("F", "M")},
    )
    with sf.Session(table, budget=sf.Budget(epsilon, "1e-9", "gaussian")) as session:
        asked = {
            "geography": ["region", "county", "tract"],
            "places": PLACES,
            "by": [(sf.col("age") // 10).alias("decade"), "sex"],
            "invariants": {"region": REGIONS},
            "epsilon": epsilon,
            "delta": "1e-9",
        }
        print(sf.synth.quote_levels(session, "people", **asked), end="\n\n")
        return sf.synth.levels(session, "people", **asked)


def main() -> None:
    rows = people()
    release = census(rows)
    print(release, end="\n\n")
    for row in release.table("region", by=["sex"]).to_pylist():
        interval = f"{row['lower']:>9,.1f} to {row['upper']:,.1f}"
        print(f"{row['region']:<6} {row['sex']} {row['count']:>7,}   {interval}")
    made = release.microdata()
    print(f"\n{made.num_rows:,} rows, such as {made.slice(made.num_rows // 2, 1).to_pylist()[0]}")
    print(f"On average a tract is off by {off(rows, made, 'tract'):.1f} people", end=", ")
    print(f"and a sex in all by {off(rows, made, 'sex'):.1f}.")


def off(rows: pa.Table, made: pa.Table, column: str) -> float:
    """By how many people the counts of a column's values differ, on average."""
    true, found = (Counter(table[column].to_pylist()) for table in (rows, made))
    return float(np.mean([abs(found[value] - count) for value, count in true.items()]))


if __name__ == "__main__":
    main()
