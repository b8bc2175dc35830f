"""Random SQL over the tables of `random_tables`: a grammar of texts, most of which are to be accepted."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.schema import Float, Int, PrivateTable, Text

__all__ = ["Asked", "make_query"]

_HOLE = re.compile(r"\{(\w)\}")

# In a template {N} is a number, {I} a whole one, {B} a condition, {T} a text, {D} a date, {S} a timestamp,
# {C} a time of day, {K} a number that these have, as deep as there is room for; the small letters are
# constants of these, and {p} is a pattern. What stands twice comes up more often, so that all functions are
# called often enough.
_BOUNDED = (
    "({N} + {N})", "({N} - {N})", "(-{N})", "TRUNC({N})", "({N} * {n})", "({N} % {n})", "(-{N})",
    "ABS({N})", "SIGN({N})", "({N} / {n})", "FLOOR({N})", "CEIL({N})", "TRUNC({N})", "ROUND({N})",
    "ROUND({N}, 1)", "({I} // {i})", "({I} % {i})", "SQRT(ABS({N}))", "EXP(LEAST({N}, 3))",
    "WIDTH_BUCKET({N}, 0, 100, 7)", "CASE WHEN {B} THEN {N} ELSE {N} END",
    "CASE WHEN {B} THEN {N} WHEN {B} THEN {n} END", "IF({B}, {N}, {n})", "COALESCE({N}, {n})",
    "NULLIF({N}, {n})", "GREATEST({N}, {N})", "LEAST({N}, {N}, {n})", "CAST({N} AS DOUBLE)", "(-{N})",
    "TRUNC({N})", "CEIL({N})", "LN(GREATEST({N}, 1))", "LOG10(GREATEST({N}, 2))",
    "LOG2(GREATEST({N}, 0.5))", "POWER(LEAST(GREATEST({N}, -9), 9), 2)", "{I}", "CEIL({N})",
    "EXP(LEAST({N}, 3))", "LOG2(GREATEST({N}, 0.5))", "LOG10(GREATEST({N}, 2))", "(-{N})",
)  # fmt: skip
_UNBOUNDED = (
    "({N} / {N})", "LENGTH({T})", "POSITION({t} IN {T})", "CAST({T} AS DOUBLE)", "CAST({T} AS INTEGER)",
    "EXP({N})", "({N} * {N})", "LN({N})", "LOG2({N})", "LOG10({N})", "POWER({N}, {n})", "SQRT({N})",
    "n_free", "f_free", "({I} // {I})", "STRPOS({T}, {t})", "({N} % {N})", "POWER({N}, {N})",
    "CAST({N} AS INTEGER)", "ROUND({N}, -1)", "f_free / n_free", "CAST({T} AS DOUBLE)",
    "CAST({T} AS DOUBLE)",
)  # fmt: skip
_WHOLE = (
    "EXTRACT(year FROM {D})", "EXTRACT(quarter FROM {D})", "MONTH({D})", "EXTRACT(day FROM {D})",
    "DAYOFWEEK({D})", "EXTRACT(isodow FROM {D})", "EXTRACT(doy FROM {D})", "WEEK({D})", "({D} - {D})",
    "DATE_DIFF('month', {D}, {D})", "DATE_DIFF('day', day, {D})", "CAST(flag AS INTEGER)",
    "CAST({B} AS INTEGER)", "({I} + {I})", "({I} - {i})", "CAST(LEAST(GREATEST({N}, -50), 50) AS INTEGER)",
    "ABS({I})", "CASE WHEN {B} THEN {i} ELSE {i} END", "LENGTH(grp)", "EXTRACT(day FROM {D})",
    "EXTRACT(day FROM {D})", "EXTRACT(quarter FROM {D})", "WEEK({D})", "({D} - {D})",
    "EXTRACT(isodow FROM {D})", "EXTRACT(quarter FROM {D})", "EXTRACT(quarter FROM {D})",
    "EXTRACT(isodow FROM {D})", "({D} - {D})", "WEEK({D})", "EXTRACT(day FROM {D})",
    "{K}", "{K}",
)  # fmt: skip
_OF_CLOCKS = (
    "DATE_DIFF('minute', {S}, {S})", "DATE_DIFF('minute', {S}, {D})",
    "DATE_DIFF('minute', {C}, TIME '12:30')",
    "EXTRACT(EPOCH FROM ({S} - TIMESTAMP '2024-02-28'))", "DATE_DIFF('second', {S}, {S})",
    "DATE_DIFF('second', {C}, clock)", "DATE_DIFF('hour', TIME '07:00', {C})", "DATE_DIFF('hour', {S}, {S})",
    "EXTRACT(hour FROM {S})", "HOUR({C})", "MINUTE({S})", "EXTRACT(minute FROM {C})", "SECOND({S})",
    "SECOND({C})", "EXTRACT(EPOCH FROM {S})", "EPOCH({C})", "EPOCH({S})", "MINUTE({C})", "SECOND({S})",
)  # fmt: skip
_MOMENTS = (
    "at", "at", "at_free", "at", "({S} + INTERVAL 90 SECOND)", "({S} - INTERVAL 2 HOUR)",
    "({S} + INTERVAL 1 MONTH)",
    "CAST({D} AS TIMESTAMP)", "CAST({S} AS TIMESTAMP)", "CAST({S} AS TIMESTAMP)", "CAST({S} AS TIMESTAMP)",
    "DATE_TRUNC('minute', {S})", "DATE_TRUNC('hour', {S})", "COALESCE({S}, {D})",
)  # fmt: skip
_CLOCKS = (
    "clock", "clock", "clock", "clock", "CAST({S} AS TIME)", "CAST(clock AS TIME)", "CAST(clock AS TIME)",
    "DATE_TRUNC('minute', {C})", "DATE_TRUNC('hour', {C})", "CAST({C} AS TIME)",
)  # fmt: skip
_TRUTHS = (
    "{N} < {N}", "{N} <= {n}", "{N} > {n}", "{N} >= {N}", "{I} = {i}", "{I} <> {i}",
    "{N} BETWEEN {n} AND {n}", "{I} IN ({i}, {i}, {i})", "{I} NOT IN ({i}, {i})", "{T} = {t}", "{T} <> {t}",
    "{T} < {t}", "{T} IN ({t}, {t})", "{T} LIKE {p}", "{T} NOT LIKE {p}", "{T} ILIKE {p}",
    "{T} LIKE {p} ESCAPE '!'", "STARTS_WITH({T}, {t})", "ENDS_WITH({T}, {t})", "CONTAINS({T}, {t})",
    "{N} IS NULL", "{T} IS NOT NULL", "{D} IS NULL", "{B} IS TRUE", "{I} IS DISTINCT FROM {i}",
    "{T} IS DISTINCT FROM {t}", "ENDS_WITH({T}, {t})", "{T} ILIKE {p}", "{T} ILIKE {p}",
    "{T} IS NOT DISTINCT FROM {t}",
    "({B} AND {B})", "({B} OR {B})", "NOT {B}", "{D} < {d}", "{D} >= {d}", "{D} BETWEEN {d} AND {d}",
    "{D} IN ({d}, {d})", "flag", "({B} OR {B} OR {B})", "{N} = {N}", "CAST({I} AS BOOLEAN)",
    "COALESCE({B}, FALSE)", "{D} > {D}", "flag IS NOT TRUE", "({N} > {n} AND {N} < {n})",
    "CASE WHEN {B} THEN {B} ELSE flag END", "CAST({T} AS BOOLEAN)", "STARTS_WITH({T}, {t})",
    "STARTS_WITH({T}, {t})", "CONTAINS({T}, {t})", "CONTAINS({T}, {t})", "ENDS_WITH({T}, {t})",
    "{S} < '2024-02-29 12:00'", "at_free >= {d}", "{C} BETWEEN '08:00' AND TIME '09:30:30'", "{S} > {D}",
    "CAST({S} AS TIME) < {C}",
)  # fmt: skip
_LIKELY = (
    "n_pos >= 1", "f_pos > 0.1", "n_mix BETWEEN -30 AND 30", "flag IS NOT NULL", "n_big IS NOT NULL",
    "f_mix <= 1000", "code IN (1, 2, 5, 0, -7, 40)", "name IS NOT NULL", "(grp <> 'zz' OR n_neg < 0)",
    "day > DATE '1969-12-01'", "NOT n_one = 17", "grp IN ('a', 'b', 'c', 'A', 'only')",
    "COALESCE(n_pos, 0) >= 0", "f_neg < 1 AND n_mix > -31",
)  # fmt: skip
_TEXTS = (
    "name", "name", "grp", "grp", "LOWER({T})", "UPPER({T})", "TRIM({T})", "LTRIM({T})", "RTRIM({T}, 'n ')",
    "LEFT({T}, 2)", "RIGHT({T}, 2)", "SUBSTRING({T}, 2, 3)", "SUBSTRING({T}, 2)", "({T} || {t})",
    "CONCAT({T}, '-', {T})", "REPLACE({T}, 'on', 'x')", "CASE WHEN {B} THEN {t} ELSE {T} END",
    "COALESCE({T}, {t})", "CAST({I} AS TEXT)", "NULLIF({T}, {t})", "LTRIM({T}, 'L')", "CAST(flag AS TEXT)",
    "CAST({D} AS TEXT)", "LOWER({T})", "RTRIM({T})", "TRIM({T})", "REPLACE({T}, 'on', 'x')",
    "RIGHT({T}, 2)", "REPLACE({T}, 'on', 'x')", "CAST({I} AS TEXT)", "CAST({N} AS TEXT)",
    "CAST(f_mix AS TEXT)", "CAST(f_pos AS TEXT)",
)  # fmt: skip
_DATES = (
    "day", "day", "day", "day_free", "DATE_TRUNC('year', {D})", "DATE_TRUNC('quarter', {D})",
    "DATE_TRUNC('month', {D})", "DATE_TRUNC('week', {D})", "({D} + INTERVAL 3 DAY)",
    "({D} - INTERVAL 2 MONTH)", "({D} + INTERVAL 1 YEAR)", "({D} + {i})", "({D} - {I})",
    "COALESCE({D}, {d})", "CAST({T} AS DATE)", "GREATEST({D}, {d})", "LEAST({D}, {d})",
    "CASE WHEN {B} THEN {D} ELSE {d} END", "({D} - {i})", "(day + n_mix)", "DATE_TRUNC('year', {D})",
    "DATE_TRUNC('year', {D})", "DATE_TRUNC('week', {D})", "CAST({T} AS DATE)",
    "CAST(at AS DATE)", "DATE_TRUNC('month', at_free)",
)  # fmt: skip
_KEYS = (
    "grp", "grp", "code", "flag", "n_mix", "day", "EXTRACT(month FROM day)", "EXTRACT(year FROM day)",
    "DAYOFWEEK(day)", "FLOOR(n_pos / 10) * 10", "CASE WHEN {B} THEN 'x' WHEN {B} THEN 'y' ELSE 'z' END",
    "({B})", "UPPER(grp)", "n_one", "COALESCE(grp, 'none')", "WIDTH_BUCKET(f_pos, 0, 100, 5)",
    "DATE_TRUNC('month', day)", "SIGN({N})", "code + 1", "CAST(flag AS INTEGER)", "n_pos % 7",
    "NULLIF(code, 2)", "ROUND(f_mix / 100)", "LENGTH(grp)", "n_mix // 3", "DATE_TRUNC('quarter', day)",
    "LEFT(grp, 1)", "CASE WHEN {B} THEN 1 ELSE 0 END", "GREATEST(LEAST(n_free, 3), -3)", "CONCAT(grp, '!')",
    "EXTRACT(doy FROM day)", "grp || '-' || grp", "n_neg", "EXTRACT(hour FROM at)", "DATE_TRUNC('hour', at)",
    "DATE_TRUNC('minute', {C})", "HOUR({C})",
)  # fmt: skip
_LISTED = (  # a key, and the condition that makes its values public
    ("name", "name IN ('Lyon', 'lyon', '', 'nowhere')"), ("n_free", "n_free IN (1, 3, 1000, -1, 0)"),
    ("f_free", "f_free IN (1.0, -1000.0, 0.0)"),
    ("day_free", "day_free IN (DATE '2024-03-18', DATE '1961-10-15')"),
    ("at_free", "at_free IN (TIMESTAMP '2024-02-28 23:59:59', '1969-12-31 23:59:59')"),
    ("n_pos", "n_pos BETWEEN 90 AND 120"), ("n_free", "n_free BETWEEN -3 AND 3"),
)  # fmt: skip
_OWN = {
    Int: "uid IN (1000, 1001, 1002, 1010)",
    Float: "uid IN (0.0, 1000.25, 1001.25, 1002.25)",
    Text: "uid IN ('u0', 'u1', 'u2', '')",
}
_AGGREGATES = (
    "COUNT(*)", "COUNT({A})", "COUNT({T})", "COUNT(DISTINCT uid)", "SUM({A})", "SUM({A})", "AVG({A})",
    "VAR_POP({A})", "VAR_SAMP({A})", "VARIANCE({A})", "STDDEV({A})", "STDDEV_POP({A})", "STDDEV_SAMP({A})",
    "COUNT_IF({B})", "COUNT(*) FILTER (WHERE {B})", "SUM({A}) FILTER (WHERE {B})",
    "AVG({A}) FILTER (WHERE {B})", "SUM({B})", "COUNT(DISTINCT uid)", "AVG({A})", "COUNT({D})",
    "CORR({A}, {N})", "MEDIAN({A})", "COUNT(DISTINCT {T})", "GEOMETRIC_MEAN(GREATEST({A}, 1))",
    "HARMONIC_MEAN(GREATEST({A}, 0.5))", "HARMONIC_MEAN(GREATEST({A}, 0.5))",
)  # fmt: skip
_RESULTS = (
    "{0}", "{0}", "{0}", "{0}", "{0}", "{0} / {1}", "100 * {0} / COUNT(*)", "ROUND({0}, 2)", "{0} - {1}",
    "ABS({0})", "CASE WHEN {0} > 10 THEN {1} ELSE 0 END", "COALESCE({0}, 0)", "SQRT({0})",
    "GREATEST({0}, {1}, 0)", "{0} + 2 * {1}",
)  # fmt: skip
REFUSED = (
    "SELECT * FROM people", "SELECT n_pos FROM people", "SELECT SUM(n_free) FROM people",
    "SELECT AVG(f_free) FROM people", "SELECT SUM(DISTINCT n_pos) FROM people",
    "SELECT COUNT(*) FROM people JOIN people AS o ON people.n_pos = o.n_pos",
    "SELECT COUNT(*) FROM people, people AS o", "SELECT COUNT(*) OVER () FROM people",
    "SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 3)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT grp FROM people)",
    "SELECT COUNT(*) FROM people WHERE n_pos > (SELECT AVG(n_pos) FROM people)",
    "SELECT COUNT(*) FROM people WHERE uid IN (SELECT uid FROM people)",
    "SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people", "DELETE FROM people",
    "SELECT COUNT(*) FROM people; SELECT 1", "SELECT SUM(RANDOM()) FROM people",
    "SELECT COUNT(nope) FROM people", "SELECT SUM(SUM(n_pos)) FROM people",
    "SELECT COUNT(*) FROM people WHERE n_pos", "SELECT COUNT(*) FROM people WHERE name > 3",
    "SELECT SUM(name) FROM people", "SELECT grp, COUNT(*) FROM people",
    "SELECT COUNT(*) FROM read_csv('x')", "SELECT SUM(n_big * n_big) FROM people",
    "SELECT STRING_AGG(name, ',') FROM people", "SELECT MEDIAN(n_free) FROM people",
    "SELECT SUM(1 / f_mix) FROM people", "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM people GROUP BY grp)",
    "SELECT MIN(name) FROM people", "SELECT CORR(n_pos, n_free) FROM people",
    "SELECT COUNT(*) FROM people TABLESAMPLE 10%", "COPY people TO 'x'", "",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """A question.

    Attributes:
        text: In SQL.
        hopeless: Whether it must be refused.
        parameters: Of the text.
        bounding: How units are held within their limits, if not as fits the keys.
        auto: Bounds for what has none; with them the question that finds some is asked too.
    """

    text: str
    hopeless: bool = False
    parameters: Any = None
    bounding: Any = None
    auto: tuple[Fraction, Fraction] | None = None


def make_query(draw: random.Random, table: PrivateTable, *, plain: bool = False) -> Asked:
    """One random query over the table `people`; `plain`: none that is meant to be refused."""
    if not plain:
        roll = draw.random()
        if roll < 0.09:
            return Asked(draw.choice(REFUSED), hopeless=True)
        if roll < 0.2:
            return Asked(_torn(draw, _Query(draw, table).text()))
    return Asked(_Query(draw, table).text())


def _torn(draw: random.Random, text: str) -> str:
    """The text with a piece lost, doubled or moved: a statement that nobody wrote."""
    words = re.findall(r"\w+|\s+|[^\w\s]", text)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(words))
        match draw.randrange(3):
            case 0:
                del words[place]
            case 1:
                words.insert(place, words[draw.randrange(len(words))])
            case _:
                words[place] = draw.choice(
                    ("(", ")", "'", ",", "NULL", "*", "--", ";", "é", "GROUP", "1e999", "\0")
                )
    return "".join(words)


class _Query:
    """Writes one query, with every choice drawn anew."""

    def __init__(self, draw: random.Random, table: PrivateTable) -> None:
        self.draw = draw
        self.own = _OWN.get(type(table.schema.get("uid")))  # where it is declared: groups of one unit each
        self.whole = ["n_pos", "n_neg", "n_mix", "n_one", "code", "n_pos", "n_mix"]
        self.numbers = [
            *self.whole,
            "n_big",
            "f_pos",
            "f_neg",
            "f_mix",
            "f_tiny",
            "f_huge",
            "f_one",
            "f_pos",
            "f_mix",
        ]

    def text(self) -> str:
        """The whole SELECT."""
        draw = self.draw
        keys, conditions = self.keys()
        if draw.random() < 0.45:
            conditions.append(
                draw.choice(_LIKELY) if draw.random() < 0.5 else self.fill("{B}", draw.randint(1, 2))
            )
        shown = [f"{key} AS k{i}" for i, key in enumerate(keys)]
        outputs = [self.output() for _ in range(draw.choice((1, 1, 1, 1, 2, 3)))]
        parts = [
            "SELECT",
            ", ".join([*shown, *(f"{each} AS x{i}" for i, each in enumerate(outputs))]),
            "FROM people",
        ]
        if conditions:
            parts.append("WHERE " + f" {draw.choice(('AND', 'AND', 'and'))} ".join(conditions))
        if keys:
            listed = [f"k{i}" if draw.random() < 0.7 else str(i + 1) for i in range(len(keys))]
            parts.append("GROUP BY " + ("ALL" if draw.random() < 0.1 else ", ".join(listed)))
        if draw.random() < 0.25:
            parts.append(
                "HAVING "
                + draw.choice(("COUNT(*) > 3", "x0 > 1", "x0 IS NOT NULL", "NOT x0 < 5 OR x0 IS NULL"))
            )
        if draw.random() < 0.3:
            order = draw.choice(("x0", "x0 DESC", "1", "x0 DESC NULLS LAST", "ABS(x0), 1 DESC", "ALL"))
            parts.append(f"ORDER BY {order}")
        if draw.random() < 0.25:
            parts.append(draw.choice(("LIMIT 3", "LIMIT 10 OFFSET 2", "LIMIT 0", "OFFSET 1")))
        return " ".join(parts)

    def keys(self) -> tuple[list[str], list[str]]:
        """The grouping expressions, few enough to keep the groups few, and conditions that some need."""
        draw, keys, conditions = self.draw, [], []
        for _ in range(draw.choices((0, 1, 2, 3), (30, 40, 22, 8))[0]):
            if draw.random() < 0.15:
                own = (("uid", self.own),) if self.own else ()
                key, condition = draw.choice((*_LISTED, *own))
                conditions.append(condition)
            else:
                key = self.fill(draw.choice(_KEYS), 1)
            if key not in keys:
                keys.append(key)
        return keys, conditions

    def output(self) -> str:
        """A column of the result: an aggregate, or something computed from two."""
        shape = self.draw.choice(_RESULTS)
        return (
            shape.format(self.aggregate(), self.aggregate())
            if "1" in shape
            else shape.format(self.aggregate())
        )

    def aggregate(self) -> str:
        template = self.draw.choice(_AGGREGATES).replace("{A}", self.argument())
        return self.fill(template, self.draw.choice((1, 1, 2)))

    def argument(self) -> str:
        """A number to aggregate: a column, or something nested, held within bounds where it may have none."""
        roll = self.draw.random()
        if roll < 0.3:
            return self.draw.choice(self.numbers)
        if roll < 0.4:
            return self.fill("LEAST(GREATEST({K}, -90), 1000)", 1)
        return self.fill("{N}", self.draw.choice((1, 1, 2, 3)))

    def fill(self, template: str, depth: int) -> str:
        return _HOLE.sub(lambda hole: self.hole(hole[1], depth), template)

    def hole(self, kind: str, depth: int) -> str:
        return getattr(self, f"_{'constant' if kind.islower() else 'part'}_{kind.lower()}")(depth - 1)  # type: ignore[no-any-return]

    def _part_n(self, depth: int) -> str:
        if depth < 0:
            return self.draw.choice(self.numbers)
        if self.draw.random() < 0.3:
            low, high = self.draw.choice(((0, 100), (-5, 5), (-1000, 0), (0.5, 2.25), (-0.1, 1e6)))
            return f"LEAST(GREATEST({self.fill(self.draw.choice(_UNBOUNDED), depth)}, {low}), {high})"
        templates = self.draw.choice((_BOUNDED, _BOUNDED, _WHOLE, self.numbers))
        return self.fill(self.draw.choice(templates), depth)

    def _part_i(self, depth: int) -> str:
        return self.draw.choice(self.whole) if depth < 0 else self.fill(self.draw.choice(_WHOLE), depth)

    def _part_b(self, depth: int) -> str:
        return self.draw.choice(_LIKELY) if depth < 0 else self.fill(self.draw.choice(_TRUTHS), depth)

    def _part_t(self, depth: int) -> str:
        return self.short(_TEXTS, min(depth, 0))

    def _part_d(self, depth: int) -> str:
        return self.short(_DATES, min(depth, -1))  # the statements grow threefold with every date function

    def _part_k(self, depth: int) -> str:
        return self.fill(self.draw.choice(_OF_CLOCKS), max(depth, 1))

    def _part_s(self, depth: int) -> str:
        return self.short(_MOMENTS, min(depth, -1))

    def _part_c(self, depth: int) -> str:
        return self.short(_CLOCKS, min(depth, -1))

    def short(self, templates: tuple[str, ...], depth: int) -> str:
        """A text or a date: these may go one level deeper, where numbers end, and begin with four columns."""
        if depth < -1 or self.draw.random() < 0.3:
            return self.draw.choice(templates[:4])
        return self.fill(self.draw.choice(templates[4:]), depth)

    def _constant_n(self, _: int) -> str:
        return self.draw.choice(
            ("0", "1", "2", "-3", "0.5", "7", "40", "1e3", "-0.25", "100", "0.1", "12345678901")
        )

    def _constant_i(self, _: int) -> str:
        return self.draw.choice(("0", "1", "2", "3", "5", "7", "-2", "40", "12"))

    def _constant_t(self, _: int) -> str:
        return self.draw.choice(("'a'", "'b'", "'Lyon'", "''", "'O''Hara'", "'A'", "'n'", "'ü'"))

    def _constant_p(self, _: int) -> str:
        return self.draw.choice(("'L%'", "'%o_'", "'a'", "'%'", "'_'", "'!%%'", "'%N'"))

    def _constant_d(self, _: int) -> str:
        return self.draw.choice(
            ("DATE '2024-01-15'", "DATE '1970-01-01'", "DATE '2020-06-30'", "DATE '0001-01-01'")
        )
