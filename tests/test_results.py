"""What public functions give prints in words: no record of fields, no address in memory."""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import _dataclasses
from sfumato.plan.questions.declared import Declared

MODULES = ("", *(".anonymity", ".attacks", ".audit", ".dossier", ".explain"))
MODULES += (".games", ".ledger", ".local", ".session")
# What is made to be handed on, or written as the call that makes it: no result to be read.
PARTS = {
    *(
        "Agg",
        "Budget",
        "CharacterModel",
        "Col",
        "Engine",
        "Facts",
        "Filter",
        "Hierarchy",
        "Known",
        "Mark",
        "Memo",
    ),
    *(
        "Median",
        "NearestRecords",
        "PrivacyLoss",
        "PureLoss",
        "Reading",
        "Recipe",
        "Right",
        "RowsRead",
        "Shown",
        "Steps",
    ),
    *("Subject", "Vault", "Answer", "Purchase", "Bought", "Stream", "ColumnType", "Keys", "Example"),
}


def _functions() -> Iterator[tuple[str, typing.Any]]:
    for name in MODULES:
        module = importlib.import_module(f"sfumato{name}")
        for public in module.__all__:
            thing = getattr(module, public)
            if inspect.isfunction(thing):
                yield f"{name}.{public}", thing
            elif inspect.isclass(thing):
                methods = inspect.getmembers(thing, inspect.isroutine)
                yield from ((f"{public}.{method}", it) for method, it in methods if method[0] != "_")


def _given() -> dict[type, str]:
    """The classes of this package that public functions give, each with one that does."""
    given: dict[type, str] = {}
    for name, function in _functions():
        plain = getattr(function, "__func__", function)
        names = vars(sf) | getattr(plain, "__globals__", {})
        try:
            wanted = eval(str(inspect.signature(plain).return_annotation), dict(names))
        except (NameError, SyntaxError, TypeError, AttributeError):
            continue  # names that only type checkers see
        for one in (wanted, *typing.get_args(wanted)):
            if inspect.isclass(one) and one.__module__.startswith("sfumato"):
                given.setdefault(one, name)
    return given


def _is_made(one: type) -> bool:
    """Whether its ways to print were written by `dataclass`, or by nobody."""
    files = [
        getattr(getattr(way, "__code__", None), "co_filename", "") for way in (one.__str__, one.__repr__)
    ]
    return not any("sfumato" in Path(file).parts and file != _dataclasses.__file__ for file in files)


@pytest.mark.stats
def test_all_results_have_words_of_their_own():
    given = _given()
    bare = {one.__name__: by for one, by in given.items() if _is_made(one)}
    assert min(len(given), 4 * len(bare)) > 60  # the search sees those that are left out below
    for part in [name for name in bare if name in PARTS or name.endswith("Aggregate")]:
        del bare[part]
    assert not bare


@pytest.fixture(scope="module")
def session():
    rows = pa.table({"who": [i % 50 for i in range(200)], "kind": ["a", "b"] * 100, "fee": [1.0] * 200})
    schema = {"kind": sf.Enum("a", "b"), "fee": sf.Float(0, 9)}
    table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit("who", max_groups=2), schema=schema)
    with sf.Session(table, budget=sf.Budget(10**6, 1e-6)) as opened:
        yield opened


COUNT = "SELECT kind, COUNT(*) AS n FROM t GROUP BY kind"
RESULTS = {
    "quote": lambda s: s.sql(COUNT).quote(1),
    "release": lambda s: s.sql(COUNT).release(1),
    "question": lambda s: s.sql(COUNT),
    "profile": lambda s: s.profile("t", 1),
    "profile of groups": lambda s: s.profile("t", 1, by="kind"),
    "declared profile": lambda s: Declared.of({1: 100, 20: 5, 1000: 1}),
    "most common": lambda s: s.most_common("kind", 1),
    "first above": lambda s: s.first_above(["SELECT COUNT(*) AS n FROM t"], 10, 1),
    "share": lambda s: s.sql("SELECT SUM(fee) AS n FROM t").release(1, touched=True).touched(),
    "balance": lambda s: s.balance(),
    "receipt": lambda s: s.releases()[-1],
    "verification": lambda s: s.ledger.verify(),
    "dataset": lambda s: s.ledger.datasets()[0],
    "spare": lambda s: s.ledger.spare("t"),
}
TABLES = ("quote", "release", "profile", "profile of groups", "declared profile")


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_prints_as_words_within_the_page(session, kind):
    result = RESULTS[kind](session)
    for text in (str(result), repr(result)):
        assert not re.search(rf"object at|<|\bFraction\(|array\(|{type(result).__name__}\(|\w=\S", text), text
        assert max(map(len, text.splitlines())) <= (80 if kind != "most common" else 100)
    if kind in TABLES:
        assert result._repr_html_().startswith("<table")
