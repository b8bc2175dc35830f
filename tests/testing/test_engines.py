"""The kit of engines: an honest engine passes, and one with a single wrong piece does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sfumato.engines import DuckDB, engine
from sfumato.engines.dialect import DUCKDB, PORTABLE, Dialect, Digest
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.testing import check_engine
from sfumato.testing.engines import engine_faults


def bent(**changes: Any) -> type[DuckDB]:
    """DuckDB with another dialect."""

    class Bent(DuckDB):
        @property
        def dialect(self) -> Dialect:
            return dataclasses.replace(DUCKDB, **changes)

    return Bent


def cast(kind: str, template: str) -> dict[str, str]:
    return {**DUCKDB.casts, kind: template}


def listed(kind: str, template: str) -> dict[str, str]:
    return {**DUCKDB.lists, kind: template}


def once(count: int) -> str:
    return f"hash({', '.join(f'{{{i}}}' for i in range(count))})"


LOW_NAN = "CASE WHEN ISNAN({0}) THEN CAST('-inf' AS DOUBLE) ELSE {0} END"
DOWN = "CASE WHEN {0} < 0 THEN -((-({0} + 1)) // {1}) - 1 ELSE {0} // {1} END"


def year(count: int) -> str:
    return f"hash(hash(CAST(strftime({{0}}, '%Y') AS TINYINT), {{{count - 1}}}))"


BENT: dict[str, tuple[dict[str, Any], str]] = {
    "sums in doubles": ({"sum": "SUM(CAST({0} AS DOUBLE))"}, "dialect: the sum of"),
    "sums in 64 bits": ({"sum": "CAST(SUM({0}) AS BIGINT)"}, "dialect: EngineFailed"),
    "products in 64 bits": ({"wide": "CAST({0} AS BIGINT)"}, "dialect: EngineFailed"),
    "products in doubles": ({"wide": "CAST({0} AS DOUBLE)"}, "dialect: the sum of wide products"),
    "a cast that raises": ({"casts": cast("integer", "CAST({0} AS BIGINT)")}, "dialect: EngineFailed"),
    "a cast of text that raises": ({"casts": cast("date", "CAST({0} AS DATE)")}, "dialect: EngineFailed"),
    "a cast that loses digits": (
        {"casts": cast("wide", "TRY_CAST(TRY_CAST({0} AS DOUBLE) AS HUGEINT)")},
        "in a wide type",
    ),
    "NaN is a number": ({"is_nan": "{0} <> {0}"}, "dialect: is_nan"),
    "NaN is missing": ({"nan": "CAST(0 AS DOUBLE)"}, "dialect: nan is"),
    "NaN is below all": ({"ordered": LOW_NAN}, "dialect: <"),
    "rounded to nearest": ({"truncate": "ROUND({0})"}, "dialect: truncate"),
    "rounded down": ({"truncate": "FLOOR({0})"}, "dialect: truncate"),
    "division in doubles": ({"divide": "TRUNC(CAST({0} AS DOUBLE) / {1})"}, "divided by"),
    "wide division in doubles": ({"wide_divide": "TRUNC(CAST({0} AS DOUBLE) / {1})"}, "divided by"),
    "division rounds down": ({"divide": DOWN}, "divided by"),
    "lists of doubles": (
        {"lists": listed("integer", "(SELECT UNNEST(CAST(CAST({0} AS DOUBLE[]) AS BIGINT[])))")}, "lists: "
    ),
    "lists of rounded doubles": (
        {"lists": listed("float", "(SELECT UNNEST(CAST(CAST({0} AS FLOAT[]) AS DOUBLE[])))")}, "lists: "
    ),
    "lists that are parted at commas": (
        {"lists": listed("text", "(SELECT UNNEST(STR_SPLIT(REPLACE({0}, {1}, ','), ',')))")}, "lists: "
    ),
    "the lesser": ({"greatest": "LEAST({0}, {1})"}, "the greater of"),
    "one type for all": ({"type_of": "'column'"}, "one type"),
    "a hash that is taken once": ({"digest": Digest("once", once)}, "digest: choices"),
    "a digest without the key": ({"digest": Digest("keyless", lambda _: "hash(hash({1}, {2}))")}, "two keys"),
    "a digest without the unit": ({"digest": Digest("alike", lambda _: "hash(hash({0}, {2}))")}, "neighbour"),
    "a digest that a day makes fail": ({"digest": Digest("year", year)}, "digest: EngineFailed"),
    "the group itself": ({"digest": Digest("itself", lambda _: "{2}")}, "digest: choices"),
}  # fmt: skip


def test_an_honest_engine_passes():
    check_engine(lambda: engine("duckdb", threads=2))


def test_the_other_digest_passes():
    assert engine_faults(bent(digest=PORTABLE)) == []


@pytest.mark.parametrize("name", BENT)
def test_a_wrong_piece_is_found(name):
    changes, words = BENT[name]
    found = engine_faults(
        bent(**changes),
        checks={next((check for check in ("digest", "lists") if check in changes), "dialect")},
    )
    assert any(words in fault for fault in found), found


class Chatty(DuckDB):
    """Tells what it fails on."""

    def fetch(self, statement: Any, *, guard: Any = None) -> Any:
        try:
            return super().fetch(statement, guard=guard)
        except EngineFailed as error:
            raise EngineFailed("it held canary-71") from error


class Merging(DuckDB):
    """Shows ids as text in small letters: two people are one."""

    def attach(self, name, source, columns, *, unit=None, pointers=()):
        super().attach(name, source, columns, unit=unit, pointers=pointers)
        if unit is not None:
            table = self._tables[name.lower()]
            parts = [
                dataclasses.replace(part, select=tuple(
                    f'lower(CAST({each.split(" AS ")[0]} AS VARCHAR)) AS "sfumato unit"'
                    if each.endswith('"sfumato unit"') else each for each in part.select))
                for part in table.parts
            ]  # fmt: skip
            self._tables[name.lower()] = dataclasses.replace(table, parts=tuple(parts))
            self._connection.close()
            self._connection, self._locked = None, False


class Open(DuckDB):
    """Shows values of private tables."""

    def _has_unit(self, name: str) -> bool:
        return False


class Ranked(DuckDB):
    """Takes every table for a prepared one."""

    def is_prepared(self, name: str) -> bool:
        return True


class Addressed(DuckDB):
    """Names addresses with their colon."""

    schemes = frozenset({"abacus://"})


class Suspicious(DuckDB):
    """Loses rows of everything."""

    def check_whole(self, source: Any) -> None:
        raise SourceUnusable("Rows are lost.")


class Partial:
    """Has no more than a name."""

    dialect = DUCKDB


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Chatty, "has another exception in its chain"),
        (Chatty, "quotes the data"),
        (Merging, "the unit is"),
        (Open, "values of a table with a unit is not refused"),
        (Ranked, "is said to have some"),
        (Addressed, "schemes are not names"),
        (Suspicious, "shown: SourceUnusable"),
        (Partial, "protocol: it lacks schemes, attach, schema, fetch, values"),
    ],
)
def test_what_it_shows_and_refuses_is_checked(kind, words):
    found = engine_faults(kind, checks={"shown", "public", "refusal"})
    assert any(words in fault for fault in found), found


SOME = frozenset({"abs"})
DECLARED: dict[str, tuple[dict[str, Any], str]] = {
    "a kind without a cast": ({"casts": {"integer": DUCKDB.casts["integer"]}}, "casts lack float, boolean"),
    "a function that nobody knows": ({"common": SOME | {"cube"}}, "cube is no scalar function"),
    "neither form nor reason": ({"common": SOME}, "round has neither a form nor a reason among refused"),
    "both form and reason": ({"refused": {"why": SOME}}, "abs has a form and is refused"),
    "different without a form": ({"common": SOME, "different": {"how": {"round"}}}, "round is different and"),
    "two reasons": ({"different": {"how": SOME, "why": SOME}}, "abs has several reasons"),
}


FORMS: dict[str, tuple[str, str, str]] = {
    "rounded down": ("trunc", "FLOOR({0})", "functions: trunc is not the same as on DuckDB: "),
    "letters by bytes": ("length", "STRLEN({0})", "functions: length is not the same"),
    "a cast that raises": ("to_integer", "CAST({0} AS BIGINT)", "functions: to_integer makes a read fail: "),
    "months from 0": ("month", "MONTH({0}) - 1", "functions: month leaves what is known of it: "),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_wrong_form_of_a_function_is_found(name):
    function, form, words = FORMS[name]
    found = engine_faults(bent(forms={function: form}), checks={"functions"})
    assert any(fault.startswith(words) for fault in found), found


def test_a_function_that_is_declared_to_differ_may():
    rough = {"ln": "CASE WHEN {0} > 0 THEN LN(CAST({0} AS DOUBLE)) * 1.0000000000000002e0 END"}
    assert any(
        "ln is not the same" in fault for fault in engine_faults(bent(forms=rough), checks={"functions"})
    )
    declared = bent(forms=rough, different={"other last digits": frozenset({"ln"})})
    assert engine_faults(declared, checks={"functions"}) == []


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_that_contradicts_itself_is_found(name):
    changes, words = DECLARED[name]
    found = engine_faults(bent(**changes), checks={"functions"})
    assert any(fault.startswith(f"functions: {words}") for fault in found), found


def test_the_piece_that_makes_a_read_fail_is_named():
    changes, _ = BENT["a cast that raises"]
    (fault,) = engine_faults(bent(**changes), checks={"dialect"})
    assert fault.endswith('What fails: CAST(TRUNC("x") AS BIGINT)')


def test_all_that_is_found_is_told():
    with pytest.raises(AssertionError, match="  public: values of a table with a unit is not refused"):
        check_engine(Open)
