"""Two linked tables: how close synthetic patients and visits are to those that they were learned from.

The tables are made here: 100,000 patients with 0 to 40 visits each, 10 on average. How many visits a patient
has and what they are like follows from the patient's columns. Beside the number of visits, all pairs of a
column of patients and one of visits are compared over the joined rows. Columns of numbers are cut into 16
bins with as many real rows each; all other columns are compared value by value.
"""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import Report

PATIENTS, MOST, MEAN = 100_000, 40, 10
DELTA, SEEDS, BINS = 1e-9, 3, 16
EPSILONS = (0.1, 1.0, 10.0)
GOAL = 0.05  # of the number of visits, and of each pair on average
REGIONS = ("north", "east", "south", "west", "centre", "islands")
KINDS = ("checkup", "acute", "follow-up", "lab", "surgery")
NUMBERS = ("age", "income", "cost", "day")


def clinic(patients: int = PATIENTS, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Patients, and their visits."""
    draw = np.random.default_rng(seed)
    age = np.clip(
        np.where(draw.random(patients) < 0.3, draw.normal(70, 10, patients), draw.uniform(0, 75, patients)),
        0,
        99,
    ).astype(int)
    sex = draw.integers(0, 2, patients)
    region = draw.choice(6, patients, p=[0.3, 0.25, 0.2, 0.12, 0.1, 0.03])
    working = 1 - np.abs(age - 48) / 60
    income = np.clip(draw.lognormal(9.6 + working + 0.15 * (region < 2), 0.5), 0, 200_000)
    chronic = draw.random(patients) < 0.05 + 0.005 * age
    rate = (3 + 0.1 * age + 7 * chronic + 1.5 * sex - income / 50_000) * draw.gamma(4, 0.25, patients)
    numbers = np.minimum(draw.poisson(np.maximum(rate * 1.06, 0.1)), MOST)
    whose = np.repeat(np.arange(patients), numbers)
    many = len(whose)
    old, ill, female = age[whose] / 99, chronic[whose], sex[whose] == 1
    logits = np.column_stack(
        [1 - old, 0.8 - 0.6 * ill, 0.3 + 1.2 * ill + 0.4 * old, 0.2 + old + 0.4 * female, -1.5 + 1.5 * old]
    )
    kind = np.argmax(logits + draw.gumbel(size=(many, 5)), axis=1)
    base = np.array([4.0, 4.8, 4.3, 3.6, 7.2])[kind]
    cost = np.clip(draw.lognormal(base + 0.4 * (income[whose] > 40_000) + 0.3 * old, 0.4), 0, 5_000)
    season = np.where(kind == 1, draw.normal(30, 50, many) % 365, draw.uniform(0, 365, many))
    urgent = draw.random(many) < np.array([0.02, 0.5, 0.1, 0.05, 0.3])[kind] * (0.6 + 0.6 * old)
    return (
        pa.table(
            {
                "patient": np.arange(patients),
                "age": age,
                "sex": np.array(["M", "F"])[sex],
                "region": np.array(REGIONS)[region],
                "income": income,
                "chronic": chronic,
            }
        ),
        pa.table(
            {
                "patient": whose,
                "kind": np.array(KINDS)[kind],
                "cost": cost,
                "day": season.astype(int) + 1,
                "urgent": urgent,
            }
        ),
    )


def opened(patients: pa.Table, visits: pa.Table) -> Any:
    """A session over them."""
    import sfumato as sf

    people = sf.PrivateTable(
        "patients",
        source=patients,
        unit=sf.PrivacyUnit("patient", max_rows=1),
        schema={
            "patient": sf.Int(),
            "age": sf.Int(0, 99, nullable=False),
            "sex": sf.Enum("M", "F", nullable=False),
            "region": sf.Enum(*REGIONS, nullable=False),
            "income": sf.Float(0, 200_000, nullable=False),
            "chronic": sf.Bool(nullable=False),
        },
    )
    seen = sf.PrivateTable(
        "visits",
        source=visits,
        unit=sf.PrivacyUnit.via("patients", on="patient", max_rows=MOST),
        schema={
            "patient": sf.Int(),
            "kind": sf.Enum(*KINDS, nullable=False),
            "cost": sf.Float(0, 5_000, nullable=False),
            "day": sf.Int(1, 365, nullable=False),
            "urgent": sf.Bool(nullable=False),
        },
    )
    return sf.Session(people, seen, budget=sf.Budget(epsilon=1000, delta="0.001"))


def compared(real: tuple[pa.Table, pa.Table], drawn: tuple[pa.Table, pa.Table]) -> dict[str, float]:
    """The total variation of the number of visits and of all pairs across the tables: mean and largest."""
    shares = [_numbers(*pair) for pair in (real, drawn)]
    joined = [visits.join(patients, "patient") for patients, visits in (real, drawn)]
    cells = {}
    for name in [*real[0].column_names[1:], *real[1].column_names[1:]]:
        ours, theirs = (table[name].to_numpy(zero_copy_only=False) for table in joined)
        if name in NUMBERS:
            edges = np.unique(np.quantile(ours, np.arange(1, BINS) / BINS))
            cells[name] = [np.searchsorted(edges, values, side="right") for values in (ours, theirs)]
        else:
            known = np.unique(ours)
            cells[name] = [np.searchsorted(known, values) for values in (ours, theirs)]
    pairs = {}
    for one, other in itertools.product(real[0].column_names[1:], real[1].column_names[1:]):
        size = int(cells[other][0].max()) + 1
        codes = [a * size + b for a, b in zip(cells[one], cells[other], strict=True)]
        counts = [np.bincount(code, minlength=max(map(np.max, codes)) + 1) for code in codes]
        pairs[one, other] = _variation(*counts)
    return {
        "numbers": _variation(*shares),
        "pairs": float(np.mean(list(pairs.values()))),
        "largest_pair": max(pairs.values()),
    }


def _numbers(patients: pa.Table, visits: pa.Table) -> Any:
    whose = visits["patient"].to_numpy()
    ids = patients["patient"].to_numpy()
    each = np.bincount(np.searchsorted(np.sort(ids), whose), minlength=len(ids))
    return np.bincount(each, minlength=MOST + 1)


def _variation(mine: Any, theirs: Any) -> float:
    return float(np.abs(mine / mine.sum() - theirs / theirs.sum()).sum() / 2)


def linked(report: Report) -> None:
    """Patients and visits at three prices."""
    report.heading("patients and visits", "CPU s", "MB", "number of visits", "pairs", "largest")
    for epsilon in EPSILONS:
        found = [_one(epsilon) for _ in range(SEEDS)]
        mean = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
        case = f"two tables, epsilon {epsilon:g}"
        report.row(
            case,
            "sfumato",
            f"{mean['cpu']:.1f}",
            f"{mean['megabytes']:.0f}",
            f"{mean['numbers']:.4f}",
            f"{mean['pairs']:.4f}",
            f"{mean['largest_pair']:.4f}",
            **mean,
        )
        if epsilon == 1:
            report.figure(f"{case}: number of visits", mean["numbers"], "<=", GOAL)
            report.figure(f"{case}: pairs", mean["pairs"], "<=", GOAL)


def _one(epsilon: float) -> dict[str, float]:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.synth_tables", str(epsilon)],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(run.stdout.splitlines()[-1]))


def main(epsilon: str) -> None:
    """One fit in a process of its own, so that its memory is its own."""
    import sfumato as sf

    real = clinic()
    with opened(*real) as session:
        start = time.process_time()
        made = sf.synth.tables(session, ["patients", "visits"], epsilon=float(epsilon), delta=DELTA)
        fitted = time.process_time() - start
        drawn = made.sample()
        taken = time.process_time() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    scored = compared(real, (drawn["patients"], drawn["visits"]))
    sizes = {"patients": drawn["patients"].num_rows, "visits": drawn["visits"].num_rows}
    print(json.dumps({"cpu": taken, "fit_cpu": fitted, "megabytes": most, **sizes, **scored}))


if __name__ == "__main__":
    main(*sys.argv[1:])
