"""The whole story in a minute, on a hospital that does not exist: `sfumato demo`.

The data is generated from a seed, so nothing is bundled and every machine makes the same rows.
"""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato._dataclasses import dataclass
from sfumato.catalog import Catalog
from sfumato.errors import BudgetExceeded, MissingExtra
from sfumato.random import simulation
from sfumato.render import shown, text_table
from sfumato.schema import ColumnType, PrivateTable
from sfumato.session import Release, Session

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SQL", "generate", "prepare", "tell"]

VISITS, PATIENTS = 20_000, 5_000
PRICE, WANTED = "0.8", 60
_WIDTH = 80
CITIES = {"Bordeaux": 0.13, "Lille": 0.16, "Lyon": 0.27, "Nantes": 0.12, "Nice": 0.12, "Toulouse": 0.20}
WARDS = {
    # share, mean age, spread of age, typical cost in euro, spread of its logarithm
    "cardiology": (0.17, 66, 12, 420, 0.6),
    "emergency": (0.30, 41, 22, 240, 0.7),
    "maternity": (0.12, 31, 5, 560, 0.4),
    "oncology": (0.09, 62, 13, 900, 0.5),
    "paediatrics": (0.13, 8, 4, 190, 0.5),
    "surgery": (0.19, 50, 18, 480, 0.6),
}
FIRST_DAY = datetime.date(2024, 1, 1)

CATALOG = """\
# What may be asked of the made-up hospital of `sfumato demo`.

[ledger]
path = "demo.ledger"

[datasets.visits]
epsilon = 2                  # what all answers together may reveal about a patient
delta = 1e-6

[tables.visits]
source = "visits.parquet"
unit = "patient_id"          # whose privacy is protected: all visits of one patient
max_groups = 6               # so many visits of a patient count in full
version = "1"
size = 5000                  # about how many patients: public here

[tables.visits.columns]
city = { type = "enum", values = [CITIES], role = "quasi-identifier" }
age = { type = "int", lower = 0, upper = 105, role = "quasi-identifier" }
day = { type = "date", start = 2024-01-01, end = 2024-12-31, role = "quasi-identifier" }
cost = { type = "float", lower = 0, upper = 2000, nullable = false, role = "sensitive" }
ward = { type = "enum", values = [WARDS], role = "sensitive" }
"""

SQL = """\
SELECT city, COUNT(*) AS visits, AVG(cost) AS mean_cost
FROM visits GROUP BY city"""
_SQL_AGAIN = """\
SELECT city, AVG(cost) AS euro FROM visits
GROUP BY city ORDER BY COUNT(*) DESC LIMIT 3"""
SQL_WARDS = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward"
SQL_TOO_MUCH = """\
SELECT city, ward, SUM(cost) AS euro
FROM visits GROUP BY city, ward"""


def generate(seed: int = 2024) -> pa.Table:
    """The visits: 20,000 rows of 5,000 patients, the same for the same seed."""
    import numpy as np
    import pyarrow as pa

    rng = simulation(seed)
    # Everybody comes at least once; some come often.
    often = rng.gamma(1.6, size=PATIENTS)
    patient = np.concatenate(
        [np.arange(PATIENTS), rng.choice(PATIENTS, VISITS - PATIENTS, p=often / often.sum())]
    )
    home = rng.choice(len(CITIES), PATIENTS, p=list(CITIES.values()))
    share, age, age_spread, cost, cost_spread = (
        np.array(figures) for figures in zip(*WARDS.values(), strict=True)
    )
    usual = rng.choice(len(WARDS), PATIENTS, p=share / share.sum())
    years = np.clip(np.rint(rng.normal(age[usual], age_spread[usual])), 0, 105).astype(np.int64)
    away = rng.random(VISITS) < 0.04
    elsewhere = rng.random(VISITS) < 0.15
    ward = np.where(elsewhere, list(WARDS).index("emergency"), usual[patient])
    city = np.where(away, rng.integers(len(CITIES), size=VISITS), home[patient])
    euro = np.round(cost[ward] * np.exp(rng.normal(0, cost_spread[ward])), 2)
    order = rng.permutation(VISITS)
    columns = {
        "patient_id": patient + 100_000,
        "city": np.array(list(CITIES))[city],
        "ward": np.array(list(WARDS))[ward],
        "age": years[patient],
        "cost": euro,
    }
    table = {name: pa.array(values[order]) for name, values in columns.items()}
    winter = 1 + 0.25 * np.cos(2 * np.pi * np.arange(366) / 366)  # more visits in the cold
    days = np.datetime64(FIRST_DAY, "D") + rng.choice(366, VISITS, p=winter / winter.sum())
    return pa.table({**table, "day": pa.array(days.astype("datetime64[D]"))})


def prepare(folder: Path, *, epsilon: int = 2, analysts: Mapping[str, int] | None = None) -> Path:
    """Write the data and its catalog into a folder; gives the catalog's path.

    Args:
        folder: Where.
        epsilon: What all answers together may cost.
        analysts: Who has a limit of their own, and which.
    """
    import pyarrow.parquet as pq

    pq.write_table(generate(), folder / "visits.parquet")
    text = CATALOG.replace("epsilon = 2 ", f"epsilon = {epsilon} ")
    if analysts:
        limits = [f"{name} = {{ epsilon = {limit}, delta = 1e-7 }}" for name, limit in analysts.items()]
        text += "\n".join(["", "[datasets.visits.analysts]", *limits, ""])
    for word, values in (("CITIES", list(CITIES)), ("WARDS", list(WARDS))):
        text = text.replace(f"[{word}]", "[" + ", ".join(f'"{value}"' for value in values) + "]")
    path = folder / "sfumato.toml"
    path.write_text(text, encoding="utf-8")
    return path


def tell(
    folder: Path,
    say: Callable[[str], None],
    *,
    heading: Callable[[str], None] | None = None,
    pause: Callable[[], None] = lambda: None,
) -> Path | None:
    """Tell the story in that folder; gives the path of the picture, None without matplotlib."""
    stage = _Stage(say, heading or say, pause)
    stage.part("Sfumato in a minute")
    stage.words(
        "A hospital has a table of visits. You may ask it, and you may not see it. Every answer carries "
        "noise, so that no patient can be made out, and every answer is paid for."
    )
    catalog = Catalog.read(prepare(folder), environ={})
    (table,) = catalog.tables
    with Session(table, budget=catalog.budgets["visits"], ledger=catalog.ledger) as session:
        _meet(stage, table)
        _quote(stage, session)
        release = _answer(stage, session)
        _again(stage, session)
        _accuracy(stage, session)
        _too_much(stage, session)
        _verify(stage, session)
    return _picture(stage, release, folder)


@dataclass(frozen=True, slots=True)
class _Stage:
    """How the story is told: an empty line before everything, words wrapped, figures as they are."""

    say: Callable[[str], None]
    heading: Callable[[str], None]
    pause: Callable[[], None]

    def part(self, title: str) -> None:
        self.pause()
        self.say("")
        self.heading(title)
        self.heading("─" * len(title))

    def words(self, text: str) -> None:
        self.say("")
        self.say(textwrap.fill(text, _WIDTH, break_on_hyphens=False))

    def figure(self, text: object, indent: str = "  ") -> None:
        self.say("")
        self.say(textwrap.indent(str(text), indent))

    def question(self, sql: str) -> None:
        self.figure(sql, "    ")


def _meet(stage: _Stage, table: PrivateTable) -> None:
    stage.part("1  What is promised")
    stage.words(
        f"{VISITS:,} visits of {PATIENTS:,} patients, made up for this tour. What stays hidden is a patient, "
        f"with all visits together; they count as at most {table.unit.max_rows}."
    )
    stage.figure(
        text_table(
            {
                "column": list(table.schema),
                "what the data steward declared": [_declared(kind) for kind in table.schema.values()],
            },
            width=_WIDTH - 2,
        )
    )
    stage.words("These are the steward's words, in sfumato.toml. None was read off the data.")


def _declared(kind: ColumnType) -> str:
    data = kind.to_dict()
    if "values" in data:
        return ", ".join(map(str, data["values"]))
    low, high = (data[end] for end in (("start", "end") if "start" in data else ("lower", "upper")))
    return f"{low} to {high}" if isinstance(low, str) else f"{shown(low)} to {shown(high)}"


def _quote(stage: _Stage, session: Session) -> None:
    stage.part("2  What would it cost?")
    stage.words("A quote is free: it is worked out from the promises, and no row is read.")
    stage.question(SQL)
    stage.figure(session.sql(SQL).quote(epsilon=PRICE), "")


def _answer(stage: _Stage, session: Session) -> Release:
    stage.part("3  The answer")
    release = session.sql(SQL).release(epsilon=PRICE)
    stage.words(
        f"The price, epsilon {PRICE}, was written to the ledger before the first row was read. Only then "
        "came the noise and the answer."
    )
    stage.figure(release, "")
    most = release.quote.measured.unit.max_rows
    stage.words(
        f"A patient with more than {most} visits counts for {most}, and the bar says nothing of that: it is "
        "for the noise. What holds for all visits, whatever was cut, stands beside it."
    )
    stage.figure(session.balance())
    return release


def _again(stage: _Stage, session: Session) -> None:
    stage.part("4  The same again is free")
    stage.words("Asked once more in other words: the top three, under other names.")
    stage.question(_SQL_AGAIN)
    before = session.balance().spent
    release = session.sql(_SQL_AGAIN).release(epsilon=PRICE)
    stage.figure(release, "")
    cost = "nothing" if session.balance().spent == before else "something"
    stage.words(f"The same noisy numbers from the ledger, for {cost}. Asking again averages nothing out.")


def _accuracy(stage: _Stage, session: Session) -> None:
    stage.part("5  Or name the error bar and let the price follow")
    stage.question(SQL_WARDS)
    release = session.sql(SQL_WARDS).release(error={"visits": WANTED})
    stage.words(f"Wanted: noise of at most {WANTED} in every count, 95 times in 100.")
    stage.figure(release, "")


def _too_much(stage: _Stage, session: Session) -> None:
    stage.part("6  When the budget ends")
    balance = session.balance()
    stage.words(
        f"Of epsilon {shown(balance.epsilon)}, {shown(balance.remaining)} is left. Somebody asks for 1:"
    )
    stage.question(SQL_TOO_MUCH)
    try:
        session.sql(SQL_TOO_MUCH).release(epsilon=1)
    except BudgetExceeded as refusal:
        stage.words(f"Refused. {refusal}")
    unchanged = session.balance().remaining == balance.remaining
    stage.words(
        f"A refusal {'costs nothing' if unchanged else 'changed the balance'}. What was answered before "
        "stays free, and smaller questions still fit."
    )


def _verify(stage: _Stage, session: Session) -> None:
    stage.part("7  Proof")
    verification = session.ledger.verify()
    verdict = (
        "nothing was altered, removed or restored" if verification.ok else "; ".join(verification.problems)
    )
    stage.words(f"The ledger is a chain of {verification.entries} receipts. Verified: {verdict}.")


def _draw(release: Release, path: Path) -> None:
    from sfumato.plots import noise_panels

    table, bounds = release.table, release.interval(0.95, "noise")
    noise_panels(
        table["city"].to_pylist(),
        {
            label: (
                table[name].to_pylist(),
                bounds[f"{name}_low"].to_pylist(),
                bounds[f"{name}_high"].to_pylist(),
            )
            for name, label in (("visits", "visits"), ("mean_cost", "mean cost in euro"))
        },
        title="Visits and their mean cost by city",
        confidence=0.95,
        path=path,
    )


def _picture(stage: _Stage, release: Release, folder: Path) -> Path | None:
    stage.part("8  A picture")
    path: Path | None = folder / "visits.png"
    try:
        _draw(release, folder / "visits.png")
        stage.words("The released values with the band that the noise leaves around them:")
        stage.figure(path)
    except MissingExtra as missing:
        path = None
        stage.words(f"Left out. {missing}")
    stage.words("Data, catalog and ledger are there, too. Go on with what is left of the budget:")
    stage.figure(
        f'cd {folder}\nsfumato query "SELECT AVG(age) AS age FROM visits" --epsilon 0.1\nsfumato ledger show'
    )
    stage.words("Or begin with a table of your own:")
    stage.figure("sfumato init FILE")
    return path
