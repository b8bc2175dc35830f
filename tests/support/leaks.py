"""A leak planted in front of every attack: people's own rows, exact answers, models that remember."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato import attacks
from sfumato.attacks import Outcome
from sfumato.attacks import _power as planting
from sfumato.errors import InvalidParameter
from sfumato.random import simulation


def attacks_in(package: Any) -> set[str]:
    """The names of all attacks of a package: its functions that give an outcome, or what has one."""
    found = set()
    for name, function in vars(package).items():
        if inspect.isfunction(function):
            gives = function.__annotations__.get("return")
            kind = getattr(attacks, gives, None) if isinstance(gives, str) else gives
            if kind is Outcome or hasattr(kind, "outcome"):
                found.add(name)
    return found


# ── tables


def crowd(people, columns, draw):
    """People with so many columns of one to six values, and a number of their own."""
    made = {f"c{place}": draw.integers(0, 2 + place % 5, people) for place in range(columns - 1)}
    return pa.table({**made, "amount": draw.normal(size=people).round(1)})


def leaking(released, people, share, draw):
    """The table with a share of its rows replaced by people's own: what every attack here is to notice."""
    return planting.planted(released, people, people.column_names, share, draw)[0]


def rated(table, start):
    """A long table of eight films for each person: people whose rows are the same saw the same."""
    rows = [repr(row) for row in table.to_pylist()]
    films = [zlib.crc32(f"{place} {row}".encode()) % 1009 for row in rows for place in range(8)]
    return pa.table({"person": np.repeat(np.arange(start, start + len(rows)), 8), "film": films})


def _parts(table):
    names = table.column_names[:-1]
    half = max(1, len(names) // 2)
    return names, table.column_names[-1], names[:half], [*names[half:], table.column_names[-1]]


def _linkage(people, released, others, **given):
    yield attacks.linkage(people, released, on=people.column_names, control=others, **given)


def _sparse_linkage(people, released, others, **given):
    known, shown, strangers = rated(people, 0), rated(released, 5), rated(others, 10**6)
    # One film more than anybody else has in common with a stranger is no match.
    named = {"person": "person", "item": "film", "eccentricity": 5.0}
    yield attacks.sparse_linkage(known, shown, control=strangers, **named, **given)


def _homogeneity(people, released, others, **given):
    names, last, *_ = _parts(people)
    yield attacks.homogeneity(released, quasi=names, sensitive=last, people=people, control=others, **given)


def _swapping(people, released, others, **given):
    *known, secret, last = people.column_names
    named = {"on": [*known, last], "sensitive": secret}
    yield attacks.swapping(people, released, **named, **given)
    yield attacks.swapping(people, released, control=others, **named, **given)


def _singling_out(people, released, others, **given):
    yield attacks.singling_out(people, released, others, **given)
    yield attacks.singling_out(people, released, others, width=3, attacks=100, **given)


def _inference(people, released, others, **given):
    names, last, *_ = _parts(people)
    yield attacks.inference(people, released, others, known=names, secret=last, tolerance=0.0, **given)


def _linkability(people, released, others, **given):
    _, _, left, right = _parts(people)
    yield attacks.linkability(people, released, others, left=left, right=right, **given)


def _nearness(people, released, others, **given):
    yield attacks.nearness(people, released, others, **given)


def _intersection(people, released, others, **given):
    names, last, *_ = _parts(people)
    known = {"people": people, "control": others, "quasi": names, "sensitive": last, "truth": last}
    yield attacks.intersection([released, released], **known, **given).outcome


TABLES: dict[str, Callable[..., Iterator[Outcome]]] = {
    "homogeneity": _homogeneity,
    "inference": _inference,
    "intersection": _intersection,
    "linkability": _linkability,
    "linkage": _linkage,
    "nearness": _nearness,
    "singling_out": _singling_out,
    "sparse_linkage": _sparse_linkage,
    "swapping": _swapping,
}
"""Attacks on tables: from people, a table and strangers to what is said of it."""


def table_attacks(people, released, others, share, seed):
    """What all attacks on tables say, each with its name; nothing where one cannot be made at all."""
    for name, attack in TABLES.items():
        outcomes = attack(people, released, others, leak=share, seed=seed)
        while True:
            try:
                yield name, next(outcomes)
            except (StopIteration, InvalidParameter):  # such as nobody who matches one row alone
                break


# ── answers and models


def _some_exact(size, share, draw, scale=1.0):
    exact = iter((np.arange(size) < max(1, round(share * size))).tolist())
    return lambda: scale * (7.0 if next(exact) else float(draw.integers(0, 20)))


def _differencing(size, share, seed):
    ask, known = _some_exact(size, share, simulation(seed), 0.5), {"first_size": 1, "second_size": 2}
    given = {"truth": 7, "tolerance": 0, "trials": size, "bounds": (0, 20), "leak": share}
    yield attacks.differencing(lambda: 0.0, ask, **known, **given)


def _differencing_totals(size, share, seed):
    ask = _some_exact(size, share, simulation(seed))
    given = {"truth": 7, "tolerance": 0, "trials": size, "bounds": (0, 20), "leak": share}
    yield attacks.differencing_totals(ask, lambda: 0.0, **given)


def _averaging(size, _share, seed):
    draw = simulation(seed)
    yield attacks.averaging(lambda: float(draw.normal()), truth=0, tolerance=0.2, times=size, trials=40)


def _reconstruction(size, _share, seed):
    secret = np.arange(size) % 2 == 0
    for queries in (2, size, None):
        ask = lambda who: int(secret[who].sum())  # noqa: E731
        yield attacks.reconstruction(ask, secret, queries=queries, seed=seed)


def _isolation(size, _share, seed):
    people = pa.table({"number": np.arange(size)})
    for columns in (None, "number"):
        ask = lambda who: int(who.sum())  # noqa: E731
        yield attacks.isolation(people, ask, columns=columns, trials=20, seed=seed)


def _tracing(size, _share, seed):
    draw = simulation(seed)
    for columns in (2, 20, 400):
        # Columns that come in fives, all alike: 400 of them tell no more than 80.
        base = draw.random((size + 400, max(1, columns // 5))) < 0.5
        rows = np.repeat(base, 5, axis=1)[:, :columns].astype(float)
        members, others, known = rows[:size], rows[size : size + 200], rows[size + 200 :]
        yield attacks.tracing(members.mean(axis=0), known, members, others, seed=seed)


def _remembering(attack):
    def leaks(size, _share, seed):
        """A model that knows half of its records by heart."""
        draw = simulation(seed)
        rows, known = np.arange(2 * size), draw.random(2 * size) < 0.5

        def train(data, _labels, _seed):
            logits = draw.normal(size=2 * size)
            logits[data[known[data]]] += 8
            return logits

        def confidence(logits, data, _labels):
            return 1 / (1 + np.exp(-logits[data]))

        order, part = draw.permutation(2 * size), size // 2
        members, others = order[:part], order[part : 2 * part]
        given = {"members": members, "others": others, "shadows": 8, "seed": seed}
        yield attack(train, confidence, rows, rows, **given)

    return leaks


def _gradient_leakage(size, _share, seed):
    draw = simulation(seed)
    rows = draw.normal(size=(size, 6))
    for batch in (1, max(1, size // 2)):
        send = lambda some, _: draw.normal(size=(1, len(some))) @ some  # noqa: E731
        yield attacks.gradient_leakage(send, rows, np.zeros(size), batch=batch, seed=seed)


def _extraction(size, share, seed):
    draw = simulation(seed)
    people = [f"person {place:03d} " for place in range(size)]
    told = set(people[: max(1, round(share * size))])

    def score(model, texts):
        """High for the secrets that it tells, and anything for all others."""
        return np.array([9.0 if text[:11] in told and text in model else draw.random() for text in texts])

    for candidates, top in ((1000, 1), (20, 5)):
        codes = [f"{code:03d}" for code in range(candidates)]
        train = lambda documents, _: frozenset(documents)  # noqa: E731
        given = {"candidates": codes, "top": top, "leak": share, "seed": seed}
        yield attacks.extraction(train, score, [], people, **given)


ANSWERS: dict[str, Callable[[int, float, int], Iterator[Outcome]]] = {
    "averaging": _averaging,
    "differencing": _differencing,
    "differencing_totals": _differencing_totals,
    "extraction": _extraction,
    "gradient_leakage": _gradient_leakage,
    "isolation": _isolation,
    "likelihood_ratio": _remembering(attacks.likelihood_ratio),
    "reconstruction": _reconstruction,
    "shadow": _remembering(attacks.shadow),
    "tracing": _tracing,
}
"""Attacks on answers and models: from a size, a share of leaks and a seed to what is said of them."""
