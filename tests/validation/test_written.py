"""Numbers and days in all common forms: whoever follows what `validate` advises reads what is meant.

Each file is made of columns with known values. The advice is followed until there is none. A column is then
read with its true values, or a finding names it: a number that is a thousand times too small, or a day in
another month, is never read in silence.
"""

from __future__ import annotations

import datetime
import random

import duckdb
import pytest

import sfumato as sf
from sfumato.engines._tables import plan_table
from sfumato.engines.sources import locate
from sfumato.validation import numbers

ROWS = 60
TYPES = {
    "int": sf.Int(),
    "float": sf.Float(),
    "date": sf.Date(),
    "timestamp": sf.Timestamp(),
    "text": sf.Text(),
    "bool": sf.Bool(),
}


def number(decimal, apart, places, *, before="", after="", largest=10**6):
    """A way to write numbers, with values to the places."""

    def write(draw):
        value = round(draw.uniform(-0.2, 1) * draw.choice([largest, largest / 100, 10]), places)
        whole, _, part = f"{abs(value):.{places}f}".partition(".")
        groups = f"{int(whole):,}".replace(",", apart)
        sign = "-" if value < 0 else ""
        return f"{before}{sign}{groups}{decimal if part else ''}{part}{after}", value

    return write


NUMBERS = {
    "whole": number("", "", 0),
    "points": number(".", "", 2),
    "commas": number(",", "", 2),
    "points of three": number(".", "", 3),
    "commas of three": number(",", "", 3),
    "small points of three": number(".", "", 3, largest=900),
    "small commas of three": number(",", "", 3, largest=900),
    "thousands by points": number("", ".", 0, largest=99_000),
    "thousands by commas": number("", ",", 0, largest=99_000),
    "large thousands by points": number("", ".", 0, largest=9_000_000),
    "German": number(",", ".", 2),
    "English": number(".", ",", 2),
    "French": number(",", " ", 2),
    "narrow": number(",", "\u202f", 0),
    "Swiss": number(".", "'", 2),
    "Swiss commas": number(",", "’", 0),
    "euros": number(",", ".", 2, after=" €"),
    "dollars": number(".", ",", 2, before="$"),
    "rupees": number(".", ",", 0, before="₹ "),
    "code": number(".", "", 2, before="CHF "),
}
HOURS = ["", " %H:%M", " %H:%M:%S"]
DAYS = {
    form + hours: form + hours
    for form in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y-%m-%d")
    for hours in HOURS
} | {
    form: form
    for form in (
        *("%d.%m.%y", "%m/%d/%y", "%d %b %Y", "%b %d, %Y", "%d-%b-%y", "%Y%m%d", "%m/%d/%Y %I:%M %p"),
        *("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+02:00", "%d.%m.%Y, %H:%M:%S"),
    )
}


def day(form, *, early=False):
    """A way to write days or moments; early ones are before the 13th, so that a month is as good."""

    zone = datetime.timezone(datetime.timedelta(hours=2 if "+02" in form else 0))

    def write(draw):
        hours = draw.randint(0, 23) if "%H" in form or "%I" in form else 0
        minutes = draw.randint(0, 59) if hours else 0
        last = 12 if early else 28
        value = datetime.datetime(
            2023, draw.randint(1, 12), draw.randint(1, last), hours, minutes, tzinfo=zone
        )
        text = value.strftime(form)
        if draw.random() < 0.5 and "/" in form and not hours:
            text = "/".join(part.lstrip("0") or part for part in text.split("/"))
        return text, value

    return write


def written(columns, path, delimiter, draw):
    """A file of columns, and the values that are meant."""
    cells = {name: [write(draw) for _ in range(ROWS)] for name, write in columns.items()}
    lines = [delimiter.join(["id", *(f'"{name}"' for name in cells)])]
    for row in range(ROWS):
        texts = [f'"{cells[name][row][0]}"' for name in cells]
        lines.append(delimiter.join([f"p{row}", *texts]))
    path.write_text("\n".join(lines) + "\n")
    return {name: [value for _, value in column] for name, column in cells.items()}


def followed(path, schema, settings=None):
    """What is declared once the advice has been followed until there is none, and what was said at last."""
    settings, said = dict(settings or {}), []
    for _ in range(6):
        source = sf.Csv(path, **settings) if settings else path
        unit = sf.PrivacyUnit("id", max_groups=2, max_rows=5)
        (found,) = sf.validate(
            sf.PrivateTable("t", source=source, unit=unit, schema=schema), threads=1
        ).tables
        said += [finding for finding in found.findings if finding not in said]
        if not found.changes:
            return schema, settings, found, said
        for change in found.changes:
            name, _, rest = (change.new or change.old).partition(" = ")
            if change.section == "csv" and change.new is None:
                settings.pop(name)
            elif change.section == "csv":
                settings[name] = eval(rest, {"true": True})
            else:
                schema[name.strip('"')] = TYPES[rest.split('"')[1]]
    raise AssertionError(f"The advice has no end: {found.changes}")


def read(path, schema, settings):
    """The values that questions get."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        located = locate(sf.Csv(path, **settings) if settings else path)
        kinds = {name: kind.kind for name, kind in schema.items()}
        connection.execute("SET threads = 1")
        plan_table(connection, "t", located, kinds, unit=None).create(connection)
        shown = ", ".join(f'"{name}"' for name in kinds)
        rows = connection.execute(f"SELECT {shown} FROM t").fetchall()
    return dict(zip(kinds, zip(*rows, strict=True), strict=True))


def is_read(value, meant, kind):
    """Whether a value is what is meant; nothing is what no one reads."""
    if value is None or kind == "text":
        return None
    if isinstance(meant, datetime.datetime):
        return value == (meant.date() if kind == "date" else meant.timestamp())
    return abs(float(value) - float(meant)) < 1e-6


def check(columns, path, delimiter, seed, *, declared=None, settings=None):
    """That each column is read as it is meant, or told of by name; gives how many are read, and the words."""
    draw = random.Random(f"{seed} {sorted(columns)} {delimiter}")
    meant = written(columns, path, delimiter, draw)
    schema, settings, last, said = followed(
        path, dict(declared or dict.fromkeys(columns, sf.Text())), settings
    )
    found = read(path, schema, settings)
    whole = 0
    for name in columns:
        kind = schema[name].kind
        cells = [is_read(value, true, kind) for value, true in zip(found[name], meant[name], strict=True)]
        told = [finding for finding in last.findings if name in finding.partition(":")[0] + finding[:200]]
        whole += cells.count(True) == ROWS
        assert cells.count(True) == ROWS or told, (name, kind, settings, said)
        if False in cells:  # a value that nobody meant: that has to be said, and not only what is not read
            words = ("1.234", "3/4/2024", "thousands apart", "rounded")
            assert any(word in one for word in words for one in told), (name, kind, settings, said)
    return whole, said


def some(names, few):
    """All of them, most of them only where there is time."""
    return [pytest.param(name, marks=() if name in few else pytest.mark.stats) for name in names]


@pytest.mark.parametrize("name", some(NUMBERS, ("thousands by points", "thousands by commas", "German")))
@pytest.mark.parametrize("delimiter", ",;")
def test_one_column_of_numbers(tmp_path, name, delimiter):
    check({f"x {name}": NUMBERS[name]}, tmp_path / "t.csv", delimiter, 1)


@pytest.mark.parametrize("form", some(DAYS, ("%m/%d/%Y", "%Y-%m-%dT%H:%M:%SZ")))
@pytest.mark.parametrize("early", [False, True])
def test_one_column_of_days(tmp_path, form, early):
    check({"x": day(DAYS[form], early=early)}, tmp_path / "t.csv", ";", 1)


@pytest.mark.parametrize("seed", some(range(60), range(3)))
def test_several(tmp_path, seed):
    draw = random.Random(seed)
    columns = {}
    for i in range(draw.randint(2, 4)):
        if draw.random() < 0.5:
            name = draw.choice(list(NUMBERS))
            columns[f"c{i} {name}"] = NUMBERS[name]
        else:
            form = draw.choice(list(DAYS))
            columns[f"c{i} {form}".replace("%", "")] = day(DAYS[form], early=draw.random() < 0.3)
    declared = {name: draw.choice([sf.Text(), sf.Text(), *TYPES.values()]) for name in columns}
    check(columns, tmp_path / "t.csv", draw.choice(",;"), seed, declared=declared)


def test_columns_that_a_newcomer_had(tmp_path):
    thousands, prices = NUMBERS["thousands by points"], NUMBERS["commas"]
    read_, said = check({"Umsatz": thousands, "Preis": prices}, tmp_path / "t.csv", ";", 1)
    assert read_ == 1
    assert "Umsatz: numbers with a unit, in brackets, or with thousands apart" in " ".join(said)
    american, iso = day("%m/%d/%Y"), day("%Y-%m-%d %H:%M")
    assert check({"visit": american, "when": iso}, tmp_path / "t.csv", ",", 1)[0] == 2
    # A column that an earlier round of advice made unreadable is read again.
    declared = {"visit": sf.Date(), "when": sf.Date()}
    settings = {"dates": ["%m/%d/%Y"]}
    file = tmp_path / "t.csv"
    assert check({"visit": american, "when": iso}, file, ",", 1, declared=declared, settings=settings)[0] == 2
    # Commas that are declared, and that are not there, go.
    points = {"x": NUMBERS["points"]}
    assert check(points, file, ",", 1, settings={"decimal": ","})[0] == 1


def test_bounds_of_the_steward_settle_what_a_point_is(tmp_path):
    lines = ["id,x", *(f"p{row},{1 + row % 9}.{100 + row}" for row in range(40))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    unit = sf.PrivacyUnit("id", max_rows=1)
    for kind, words in ((sf.Text(), "Decide before"), (sf.Float(), "Decide before"), (sf.Float(0, 20), "")):
        table = sf.PrivateTable("t", source=tmp_path / "t.csv", unit=unit, schema={"x": kind})
        found = sf.validate(table, threads=1).tables[0]
        assert not found.changes
        assert [words in finding for finding in found.findings] == [True] * bool(words)


def test_a_planted_guess_is_found(tmp_path, monkeypatch):
    """With every point a decimal one, as it once was, a number is read in silence as a part of it."""
    written_ = dict(numbers._WRITTEN)
    monkeypatch.setattr(
        numbers, "_WRITTEN", written_ | {"either_points": (r"[^\s\S]", None), "apart": (r"[^\S\s]", None)}
    )
    with pytest.raises(AssertionError):
        check({"x": NUMBERS["thousands by points"]}, tmp_path / "t.csv", ",", 1)
