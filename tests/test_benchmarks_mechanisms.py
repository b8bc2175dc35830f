"""What mechanisms cost to compute: every stated order is measured, and pages have the figures."""

import dataclasses
import re
from pathlib import Path

import pytest
from benchmarks import mechanism_cases, mechanism_pages, mechanisms
from benchmarks.harness import Report, best
from benchmarks.mechanism_cases import GROWTHS, ORDERS, Growth

import sfumato as sf
from sfumato.mechanisms import Mechanism

GUIDE = Path(__file__).parents[1] / "docs" / "mechanisms.md"
PAGES = sorted(mechanism_pages.PAGES.glob("*.md"))
SLUGS = sorted({mechanism_pages.slug(name) for name in ORDERS})


def stated() -> dict[str, str]:
    """The column "cost of one answer" of the guide, by mechanism."""
    rows = re.findall(r"^\| [^|]+ \| (\[?`[^|]+) \| [^|]+ \| ([^|]+) \|$", GUIDE.read_text(), flags=re.M)
    return {name: cost for names, cost in rows for name in re.findall(r"`(?:continual\.)?(\w+)`", names)}


def test_every_public_mechanism_is_measured():
    public = {getattr(sf.mechanisms, name): name for name in sf.mechanisms.__all__}
    kinds = {name for kind, name in public.items() if isinstance(kind, type) and issubclass(kind, Mechanism)}
    assert {*kinds - {"Mechanism"}, "Continual"} == set(ORDERS)


def test_the_order_that_the_guide_states_is_the_one_that_is_checked():
    assert stated() == ORDERS


@pytest.mark.parametrize("name", ORDERS)
def test_all_that_an_order_names_grows(name):
    grown = [case for case in GROWTHS if case.name == name]
    rest = ORDERS[name]
    for over in sorted({case.over for case in grown if case.law != "none"}, key=len, reverse=True):
        assert over in rest
        rest = rest.replace(over, "")
    # What is left is no size, but the words around sizes.
    assert re.fullmatch(r"O\( ?(×| |log)*\)( a step( and )?| a round|, after your \w+|, .* each )?", rest)
    for case in grown:
        assert case.sizes[-1] >= 100 * case.sizes[0]
        assert len(case.sizes) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_figures_of_the_results(page):
    text = page.read_text()
    assert re.findall(r"<!-- measured: (.+) -->", text) == [page.stem] * (page.stem in SLUGS)
    assert mechanism_pages.written(text) == text, "Run: python -m benchmarks.mechanism_pages"


def filled(folder: Path, slug: str) -> str:
    return mechanism_pages.written(f"<!-- measured: {slug} -->\nstale\n<!-- end -->\n", folder)


@pytest.mark.stats
def test_a_run_becomes_the_figures_of_the_pages(monkeypatch, tmp_path):
    few = {"TURN": 0.0, "REPEATS": 1, "FRESH": 1, "MANY": 50, "SCALES": (1, 1000)}
    for name, value in few.items():
        monkeypatch.setattr(mechanisms, name, value)
    for name, value in {"MANY": 50, "CELLS": 50}.items():
        monkeypatch.setattr(mechanism_cases, name, value)
    # A call of several steps needs a horizon that holds them.
    small = [
        dataclasses.replace(case, sizes=(512, 1024) if case.steps > 1 else (64, 128)) for case in GROWTHS
    ]
    monkeypatch.setattr(mechanism_cases, "GROWTHS", small)
    report = Report("mechanisms")
    for part in mechanisms.PARTS:
        part(report)
    assert {row["mechanism"] for row in report.rows} == set(ORDERS)
    report.write(tmp_path)
    for slug in SLUGS:
        page = filled(tmp_path, slug)
        tables = sum(mechanism_pages.slug(case.name) == slug for case in GROWTHS)
        assert page.count("\n| --- | --- |") == tables
        assert "stale" not in page
    with pytest.raises(ValueError, match="No mechanism has the page none"):
        filled(tmp_path, "none")


@pytest.mark.parametrize(("power", "reached"), [(1.0, True), (1.1, True), (1.2, False), (2.0, False)])
def test_a_quadratic_mechanism_misses_and_its_page_says_so(power, reached, monkeypatch, tmp_path):
    def timed(calls):
        return {name: best([1.0], [1e-9 * int(name) ** power]) for name in calls}

    monkeypatch.setattr(mechanisms, "timed", timed)
    case = Growth("Laplace", "d", ("number", "numbers"), lambda size: lambda: size)
    monkeypatch.setattr(mechanism_cases, "GROWTHS", [case])
    report = Report("mechanisms")
    mechanisms.growth(report)
    (figure,) = report.figures
    assert figure["exponent"] == pytest.approx(power)
    assert figure["reached"] is reached
    report.rows.append(
        {"case": "made and first used", "who": "sf.Laplace", "mechanism": "Laplace", "median": 1.0}
    )
    report.write(tmp_path)
    page = filled(tmp_path, "laplace")
    assert f"the time grows with the power {power:.2f}: {'as' if reached else '**not** as'} O(d) says" in page


def test_slow_growth_is_held_to_its_logarithm(monkeypatch):
    counter = next(case for case in GROWTHS if case.name == "TreeCounter")
    monkeypatch.setattr(mechanism_cases, "GROWTHS", [counter])
    for longest, reached in ((2.9, True), (3.1, False)):
        ends = {counter.sizes[0]: 1.0, counter.sizes[-1]: longest}
        monkeypatch.setattr(
            mechanisms,
            "timed",
            lambda calls, ends=ends: {name: best([1.0], [ends.get(int(name), 1.0)]) for name in calls},
        )
        report = Report("mechanisms")
        mechanisms.growth(report)
        assert [figure["reached"] for figure in report.figures] == [reached]
