"""The builder: what is chosen is what the SQL asks, whatever names and values hold; and nothing is spent."""

import datetime
import random
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest
from playwright.sync_api import expect

import sfumato as sf
from chromium import violations
from sfumato import col
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.tree import Column
from sfumato.server.page.ask.picking import Offer, Unfinished, picked
from sfumato.server.page.ask.wording import LENGTHS, STATISTICS, Number
from sfumato.server.page.looks import Looks
from sfumato.sql.asking import ask

EVIL = [
    'say "x"', "o'clock", "two words", "<script>alert(1)</script>", "naïve ∑ 数", "SELECT", "order", "all",
    "if", "map", "rows", "people", "x;--", "/* c */", "?", "$1", ":p", "@z", "a\nb", "tab\there", "{0}",
    "%s", "back\\slash", "1st", " lead", "day_month", "total_x", "current_date", "🎲", "_", "N", "interval",
]  # fmt: skip
VALUES = ["it's", 'say "x"', "</select>", "a\nb", "\\", "%", "", " ", "数", "--", "{0}", "NULL"]
MAKE = {
    "sum": sf.sum, "mean": sf.mean, "median": sf.median, "min": sf.min, "max": sf.max, "std": sf.std
}  # fmt: skip


def some_kind(rng):
    start = datetime.date(2020, 1, 1) + datetime.timedelta(days=rng.randrange(900))
    end = start + datetime.timedelta(days=rng.randrange(1, 500))
    nullable = rng.random() < 0.7
    low = rng.randrange(-20, 20)
    return rng.choice(
        [
            lambda: sf.Int(low, low + rng.randrange(1, 200), nullable=nullable),
            lambda: sf.Int(nullable=nullable),
            lambda: sf.Float(low, low + 9.5, nullable=nullable),
            lambda: sf.Float(nullable=nullable),
            lambda: sf.Enum(*rng.sample(VALUES, rng.randrange(1, 6)), nullable=nullable),
            lambda: sf.Enum(*rng.sample(range(-5, 30), 4), nullable=nullable),
            lambda: sf.Bool(nullable=nullable),
            lambda: sf.Text(nullable=nullable),
            lambda: sf.Date(start, end, nullable=nullable),
            lambda: sf.Date(nullable=nullable),
            lambda: sf.Timestamp(start, end, nullable=nullable),
            lambda: sf.Time(nullable=nullable),
        ]
    )()


def some_table(rng):
    names = rng.sample(EVIL, 9)
    schema = {name: some_kind(rng) for name in names[1:]}
    unit = sf.PrivacyUnit(names[0], max_groups=3) if rng.random() < 0.7 else sf.PrivacyUnit.row()
    stored = {"integer": pa.int64(), "float": pa.float64(), "boolean": pa.bool_(), "date": pa.date32()}
    stored |= {"timestamp": pa.timestamp("s"), "time": pa.time32("s")}
    kinds = {names[0]: pa.int64()} | {
        name: stored.get(kind.kind, pa.string()) for name, kind in schema.items()
    }
    data = pa.table({name: pa.array([], kind) for name, kind in kinds.items()})
    return sf.PrivateTable(rng.choice(["t", "group", "Table_1"]), source=data, unit=unit, schema=schema)


def some_sent(rng, offer):
    """A form, filled in at random with what is offered."""
    sent = {"order": rng.choice(["", "0:down", "1:up", "2:down"]), "limit": rng.choice(["", "3"])}
    for at in range(rng.randrange(1, 4)):
        sent[f"what{at}"] = rng.choice(offer.statistics)[0]
        if offer.numbers:
            sent[f"of{at}"] = str(rng.choice(offer.numbers)[0])
        if rng.random() < 0.3:
            sent |= {f"low{at}": str(rng.randrange(-9, 5)), f"high{at}": rng.choice(["7", "7.25"])}
    for at in range(rng.randrange(3) if offer.groups else 0):
        sent[f"by{at}"] = rng.choice(offer.groups)[0]
    for at in range(rng.randrange(4)):
        place = rng.randrange(len(offer.columns))
        sent |= {f"where{at}": str(place), f"is{at}": rng.choice(offer.operators(place))[0]}
        listed, typed = offer.values(place), offer.typed(place)["type"]
        some = {
            "number": ["3", "-2", "0"]
            + (["2.5", "-0.125"] if offer.typed(place).get("step") == "any" else []),
            "date": ["2021-02-03"],
            "datetime-local": ["2021-02-03T04:05", "2021-02-03T04:05:06"],
            "time": ["04:05", "23:59:59"],
            "text": [value for value in VALUES if value],
        }[typed]
        sent[f"value{at}"] = str(rng.randrange(len(listed))) if listed is not None else rng.choice(some)
    return sent


def plain(value):
    if isinstance(value, Number):
        return float(value.text) if "." in value.text else int(value.text)
    return value


def held(one):
    term, value = col(one.column), plain(one.value)
    return {
        "eq": lambda: term == value,
        "ne": lambda: term != value,
        "lt": lambda: term < value,
        "le": lambda: term <= value,
        "ge": lambda: term >= value,
        "gt": lambda: term > value,
        "starts": lambda: term.str.starts_with(value),
        "contains": lambda: term.apply("contains", value),
        "true": lambda: term,
        "false": lambda: ~term,
        "missing": term.is_null,
        "present": term.is_not_null,
    }[one.operator]()


def in_python(session, choice):
    """The same question, by the builder of Python."""
    rows = session.table(choice.table.name)
    for one in choice.conditions:
        rows = rows.filter(held(one))
    for group, name in zip(choice.groups, choice.names, strict=False):
        term = col(group.column)
        rows = rows.group_by(**{name: term.dt.truncate(group.length) if group.length else term})
    results = {}
    for figure, name in zip(choice.figures, choice.names[len(choice.groups) :], strict=True):
        if figure.statistic == "rows":
            results[name] = sf.count()
        elif figure.statistic == "people":
            results[name] = sf.count_distinct(choice.table.unit.column)
        else:
            over = col(figure.column)
            over = over.clip(*map(plain, figure.limits)) if figure.limits else over
            results[name] = MAKE[figure.statistic](over)
    query = rows.agg(**results)
    if choice.groups and choice.order is not None:
        query = query.sort(choice.names[choice.order[0]], descending=choice.order[1])
    return query.head(choice.limit) if choice.groups and choice.limit is not None else query


def outcome(make):
    try:
        query = make()
    except QueryRefused as refused:
        return refused.code, None
    return "asked", query.report


@pytest.mark.parametrize("seed", range(6))
def test_what_is_chosen_is_what_is_asked(seed):
    """Tables and questions at random, with names and values of every bad kind."""
    rng = random.Random(seed)
    asked = 0
    for _ in range(3):
        table = some_table(rng)
        offer = Offer.of(table)
        with sf.Session(table, budget=sf.Budget(4, 1e-6)) as session:
            for _ in range(12):
                try:
                    choice = picked(offer, some_sent(rng, offer)).choice()
                except Unfinished:
                    continue
                text = choice.sql()
                meant = outcome(lambda choice=choice: in_python(session, choice))
                assert outcome(lambda text=text: session.sql(text)) == meant, text
                asked += meant[0] == "asked"
    assert asked > 10


@pytest.mark.parametrize("name", EVIL)
def test_any_column_can_be_the_order(name):
    """Also one that is called all: its quotes are lost on the way, and ORDER BY ALL means something else."""
    schema = {"x": sf.Int(0, 3), name: sf.Enum("a", "b")}
    table = sf.PrivateTable("t", source=None, unit=sf.PrivacyUnit.row(), schema=schema)
    choice = picked(Offer.of(table), {"by0": "0:", "by1": "1:", "order": "1:down"}).choice()
    report = ask(choice.sql(), {"t": table}).report
    assert report.child.keys[1].expression == Column(name)
    assert [(item.expression, item.descending) for item in report.order] == [(Column("k1"), True)]


# ── the form


@pytest.fixture(scope="module")
def offer():
    schema = {
        "age": sf.Int(0, 120),
        "free": sf.Float(),
        "ward": sf.Enum("a", "b"),
        "ok": sf.Bool(),
        "day": sf.Date("2024-01-01", "2024-12-31"),
        "note": sf.Text(nullable=False),
    }
    return Offer.of(
        sf.PrivateTable("t", source=None, unit=sf.PrivacyUnit("who", max_groups=2), schema=schema)
    )


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"what0": "sum"}, "Choose a column for the sum."),
        ({"what0": "sum", "of0": "1"}, "free has no declared bounds"),
        ({"what0": "sum", "of0": "1", "low0": "5", "high0": "2"}, "the wrong way round"),
        ({"what0": "sum", "of0": "1", "low0": "0", "high0": "1); DROP"}, "free takes a number"),
        ({"where0": "0", "is0": "ge"}, "Give a value for the filter on age."),
        ({"where0": "0", "is0": "ge", "value0": "1.5"}, "age takes a whole number"),
        ({"where0": "0", "is0": "ge", "value0": "1 OR 1=1"}, "age takes a whole number"),
        ({"where0": "0", "is0": "starts", "value0": "1"}, "Choose what age is held against."),
        ({"where0": "2", "is0": "eq", "value0": "7"}, "Choose a value for the filter on ward."),
        ({"where0": "2", "is0": "eq", "value0": "a"}, "Choose a value for the filter on ward."),
        ({"where0": "4", "is0": "eq", "value0": "yesterday"}, "value of day cannot be used"),
        ({"where0": "5", "is0": "eq", "value0": "\0"}, "value of note cannot be used"),
        ({"where0": "5", "is0": "missing"}, "Choose what note is held against."),
        ({"by0": "2:", "limit": "0"}, "a whole number above 0"),
        ({"by0": "2:", "limit": "1; DROP"}, "a whole number above 0"),
    ],
)
def test_what_is_not_finished_is_told_and_asks_nothing(offer, sent, told):
    with pytest.raises(Unfinished, match=told.replace("(", "[(]")):
        picked(offer, sent).choice()


def test_whatever_is_not_offered_is_not_picked(offer):
    sent = {"what0": "DROP", "by0": "0:month", "by1": "9:", "where0": "99", "where1": "-1", "order": "7:down"}
    assert picked(offer, sent).choice().sql() == "SELECT COUNT(*) AS rows\nFROM t"


@pytest.mark.parametrize(
    "text", ["9" * 5_000, "0" * 6 + "99", "0" * 6 + "9" * 5_000, "0" * 5_000, "٣", "²", "-0"]
)
@pytest.mark.parametrize(
    "field", ["what0", "of0", "low0", "by0", "where0", "is0", "value0", "order", "limit"]
)
def test_numbers_of_any_length_are_read_or_told(offer, field, text):
    """No field of the form is taken for another place, or for more than can be read."""
    sent = {
        "what0": "sum",
        "of0": "0",
        "by0": "2:",
        "where0": "0",
        "is0": "eq",
        "value0": "5",
        "order": "1:down",
    }
    with suppress(Unfinished):
        picked(offer, sent | {field: text}).choice().sql()


def test_a_long_list_to_choose_from_is_text_with_one_choice():
    listed = ["<b>", 'a"b', *map(str, range(3))]
    text = Looks()._made.from_string("{{ options(listed, '1') }}").render(listed=listed)
    assert text.startswith('<option value="0">&lt;b&gt;</option><option value="1" selected>a&#34;b</option>')
    assert (text.count("<option"), text.count("selected")) == (5, 1)


def test_names_are_there_while_a_filter_is_unfinished(offer):
    """So that an order that was chosen is not lost meanwhile."""
    sent = {
        "what0": "sum",
        "of0": "0",
        "what1": "rows",
        "of1": "0",
        "what2": "rows",
        "by0": "2:",
        "by1": "2:",
    }
    assert picked(offer, sent).names == picked(offer, sent).choice().names
    assert picked(offer, sent | {"where0": "0"}).names == ["ward", "total_age", "rows", "rows_2"]
    assert picked(offer, sent | {"of0": ""}).names == ["ward", "total_…", "rows", "rows_2"]


def test_only_public_groups_and_numbers_are_offered(offer):
    assert [words for _, words in offer.groups] == [
        "age", "ward", "ok", *(f"day, by {length}" for length in LENGTHS[:4]), "day"
    ]  # fmt: skip
    assert [name for _, name, _ in offer.numbers] == ["age", "free"]
    assert [name for name, _ in offer.statistics] == list(STATISTICS)
    rows = Offer.of(sf.PrivateTable("r", source=None, unit=sf.PrivacyUnit.row(), schema={"x": sf.Text()}))
    assert [name for name, _ in rows.statistics] == ["rows"]


def test_a_question_reads_well(offer):
    sent = {"what0": "people", "what1": "mean", "of1": "0", "by0": "4:month", "by1": "2:"}
    sent |= {"where0": "0", "is0": "ge", "value0": "18", "where1": "3", "is1": "true"}
    choice = picked(offer, sent | {"order": "2:down", "limit": "5"}).choice()
    assert choice.words() == (
        "The number of people and average of age in t, of rows where age is at least 18 and ok is true, "
        "for each month of day and ward."
    )
    assert choice.sql() == (
        "SELECT DATE_TRUNC('month', day) AS day_month,\n  ward,\n  COUNT(DISTINCT who) AS people,\n"
        "  AVG(age) AS average_age\nFROM t\nWHERE age >= 18\n  AND ok\n"
        "GROUP BY DATE_TRUNC('month', day), ward\nORDER BY people DESC\nLIMIT 5"
    )


# ── the page


@pytest.fixture
def debits(site):
    def number():
        with site.api("omar") as client:
            return sum(one["debits"] for one in client.get("/api/datasets/visits/analysts").json())

    before = number()
    yield
    assert number() == before


def test_somebody_builds_a_question_and_goes_on_to_ask_it(visit, debits):
    page = visit("ben", "/ask/build")
    page.focus("#by0")
    page.select_option("#by0", label="ward")
    page.locator("#order").wait_for()
    assert page.evaluate("document.activeElement.id") == "by0"
    page.select_option("#where0", label="age")
    page.locator("#written .note", has_text="Give a value for the filter on age.").wait_for()
    assert page.locator("text=Ask this").count() == 0
    page.select_option("#is0", "ge")
    page.fill("#value0", "65")
    page.locator("#written pre", has_text="WHERE age >= 65").wait_for()
    page.select_option("#order", "1:down")
    page.locator("#written pre", has_text="ORDER BY rows DESC").wait_for()
    asked = page.inner_text("#written pre")
    page.click("text=Ask this")
    page.wait_for_url("**/ask?sql=*")
    assert parse_qs(urlsplit(page.url).query)["sql"] == [asked]
    assert page.input_value("#sql") == asked


def test_without_scripts_a_button_writes_the_same(visit, debits):
    page = visit("omar", "/ask/build", java_script_enabled=False)
    page.select_option("#what0", "mean")
    page.click("text=Write the SQL")
    page.select_option("#of0", label="cost")
    page.select_option("#by0", label="day, by month")
    page.click("text=Write the SQL")
    expect(page.locator("#written pre")).to_contain_text("AVG(cost) AS average_cost")
    expect(page.locator("#written pre")).to_contain_text("GROUP BY DATE_TRUNC('month', day)")
    assert page.locator("text=Ask this").count() == 0  # an auditor asks nothing


def test_it_is_accessible(visit, debits):
    sent = "what0=rows&what1=mean&of1=3&by0=0:&where0=1&is0=ge&value0=18&where1=4&is1=eq&order=1:down"
    assert violations(visit("ben", f"/ask/build?{sent}")) == []


def test_what_is_sent_shows_as_text(site, debits):
    sent = {"where0": "1", "is0": "ge", "value0": '"><script>alert(1)</script>', "limit": "<b>", "by0": "0:"}
    with site.entered("ada") as client:
        page = client.get("/ask/build", params=sent).text
    assert "<script>alert" not in page
    assert 'value="<b>' not in page
