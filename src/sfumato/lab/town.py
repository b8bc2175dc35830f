"""A made-up town with a governor in it: a list of voters, and what its hospital published without names."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sfumato.random import simulation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Town", "town"]

_PEOPLE, _PATIENTS = 54_000, 9_000
_FIRST, _DAYS = datetime.date(1900, 1, 1), 29_200  # eighty years of birth dates
_ZIPS = ("02138", "02139", "02140", "02141", "02142", "02143", "02144")
DIAGNOSES = ("asthma", "broken bone", "diabetes", "flu", "heart", "migraine", "pneumonia", "ulcer")
_BORN, _ZIP = datetime.date(1945, 7, 31), "02138"


class Town(NamedTuple):
    """The people of a made-up town.

    Attributes:
        voters: Everybody, with `name`, `birth_date`, `sex` and `zip`: a list that can be bought.
        hospital: Some of them, with `birth_date`, `sex`, `zip` and `diagnosis`; no names.
        names: The name of each row of `hospital`, which only the hospital knows.
        governor: What everybody knows about one of them.
    """

    voters: pa.Table
    hospital: pa.Table
    names: tuple[str, ...]
    governor: dict[str, object]


def town(seed: int = 1997) -> Town:
    """The town: 54,000 voters, 9,000 patients among them; the same for the same seed.

    Six people are born on the governor's day, three of them men, and one of these lives in his zip code.
    """
    import pyarrow as pa

    rng = simulation(seed)
    born = rng.integers(_DAYS, size=_PEOPLE)
    sex, home = rng.integers(2, size=_PEOPLE), rng.integers(len(_ZIPS), size=_PEOPLE)
    # Nobody else on that day; then the governor and five who share it.
    special = (_BORN - _FIRST).days
    born[born == special] += 1
    born[:6], sex[:6] = special, [1, 1, 1, 0, 0, 0]
    home[:6] = [0, 1, 3, 0, 2, 5]
    days = np.datetime64(_FIRST, "D") + born
    names = [f"Voter {number:05}" for number in range(_PEOPLE)]
    names[0] = "the governor"
    sick = np.concatenate([[0], rng.choice(np.arange(1, _PEOPLE), _PATIENTS - 1, replace=False)])
    diagnosis = rng.integers(len(DIAGNOSES), size=_PATIENTS)
    order = rng.permutation(_PATIENTS)
    known = {
        "birth_date": days.astype("datetime64[D]"),
        "sex": np.array(["F", "M"])[sex],
        "zip": np.array(_ZIPS)[home],
    }
    hospital = {name: pa.array(values[sick][order]) for name, values in known.items()}
    return Town(
        pa.table({"name": names, **{name: pa.array(values) for name, values in known.items()}}),
        pa.table({**hospital, "diagnosis": np.array(DIAGNOSES)[diagnosis][order]}),
        tuple(names[place] for place in sick[order]),
        {"birth_date": _BORN, "sex": "M", "zip": _ZIP},
    )
