"""The page of benchmarks is what its script makes of the results; misses and peers cannot drop out of it."""

import json
import re

import pytest
from benchmarks import overview, overview_subjects
from benchmarks.__main__ import SUBJECTS
from benchmarks.overview_tables import Table, split, value

ALL_OURS = {"growth", "coverage", "learn_coverage_survival"}  # `who` is a size or a setting there
NOT_SHOWN = {"noise alone", "no privacy", "not private", "one sync"}  # parts of others, or without the value


@pytest.fixture(scope="module")
def page() -> str:
    return overview.page()


def test_the_page_is_what_the_results_say(page):
    assert overview.PAGE.read_text() == page, "Run: python -m benchmarks.overview"


def test_every_subject_is_described_and_shown_once(page):
    assert set(overview_subjects.SUBJECTS) == set(SUBJECTS) == set(overview.compared())
    titles = re.findall(r"^## (.+)$", page, flags=re.M)
    assert titles == [
        "What missed its target",
        *(overview_subjects.SUBJECTS[result["subject"]].title for result in overview.results()),
    ]
    for anchor in re.findall(r"\]\((#.+?)\)", page):
        assert anchor in {overview._anchor(title) for title in titles}


def test_every_miss_is_counted_and_named_twice(page):
    figures = [figure for result in overview.results() for figure in result["figures"]]
    lost = sum(not figure["reached"] for figure in figures)
    assert f"{len(figures)} figures in {len(overview.results())} subjects" in page
    assert f"{lost} missed them" in page
    assert page.count("| **missed:** ") == lost
    listed = page.partition("## What missed its target")[2].partition("\n## ")[0]
    assert listed.count("\n| [") == lost


@pytest.mark.parametrize("result", overview.results(), ids=lambda result: result["subject"])
def test_no_row_of_a_peer_is_left_out(result, page):
    if result["subject"] in ALL_OURS:
        assert not overview_subjects.SUBJECTS[result["subject"]].tables
        return
    shown = overview.section(result, "")
    others = [row for row in result["rows"] if not row["who"].startswith("sf") and row["case"] != "version"]
    for row in others:
        if row["who"] not in NOT_SHOWN and row["case"] != "browser":
            assert f"| {row['case']} | {row['who']} |" in shown


def test_lines_fit_a_phone(page):
    assert max(line.count(" | ") for line in page.splitlines() if line.startswith("| ")) <= 5


def test_a_figure_has_the_digits_that_show_its_verdict():
    near = {"value": 1.2501453, "unit": " ×", "target": "<= 1.25", "reached": False}
    assert overview.measured(near) == "1.2501 ×"
    assert overview.measured(near | {"value": 1.2, "reached": True}) == "1.2 ×"
    assert overview.measured(near | {"value": None}) == "did not run"
    assert overview.aim(near | {"target": ">= 2000"}) == "≥ 2,000 ×"


def test_a_worse_result_and_a_failure_change_the_page(tmp_path):
    result = json.loads((overview.RESULTS / "calibration.json").read_text())
    result["figures"][0] |= {"value": 1.0, "reached": False}
    result["figures"].append({"what": "a part", "value": None, "reached": False, "error": "ValueError: no"})
    (tmp_path / "calibration.json").write_text(json.dumps(result))
    made = overview.page(tmp_path)
    assert "3 figures in 1 subjects: 1 reached their targets, 2 missed them" in made
    assert "| Gaussian calibration, worst relative error | **missed:** 1 | ≤ 1.0e-12 |" in made
    assert "| a part | **missed:** did not run |  |" in made


def test_a_subject_without_words_and_a_table_that_never_begins_are_errors(tmp_path):
    (tmp_path / "new.json").write_text("{}")
    with pytest.raises(ValueError, match=r"overview_subjects\.py how to show new"):
        overview.results(tmp_path)
    table = Table("One", ("a", "b"), (value("x", "x"),))
    with pytest.raises(ValueError, match="no row begins the table 'One'"):
        split("noise", [{"case": "a", "who": "c"}], [table])
