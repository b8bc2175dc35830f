"""The front door: the README is short, its figures are those of the benchmarks, its words are explained."""

import json
import re
from pathlib import Path

import pytest

from typed import TYPED

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [
    ROOT / "README.md",
    *sorted(set((ROOT / "docs").rglob("*.md")) - set((ROOT / "docs/reference").iterdir())),
]
WORDS = re.findall(r"^## (.+)$", (ROOT / "docs/glossary.md").read_text(), flags=re.M)
STARTS = sorted((ROOT / "docs/start").glob("*.md"))


def test_it_is_two_screens_and_has_the_two_commands():
    assert README.count("\n") <= 120
    assert re.findall(r"^make (\w+) ", README, flags=re.M) == ["demo", "test"]


def test_three_lines_lead_to_a_first_answer():
    (block,) = re.findall(r"^```sh\n(.*?)^```", README, flags=re.S | re.M)
    install, *commands = block.splitlines()
    assert install.endswith("pip install path/to/sfumato")
    assert len(commands) == 2
    assert ROOT / "README.md" in TYPED
    for line in commands:  # run, with what it says, in test_typed.py
        assert f"\n$ {line}\n" in README, line


def _figure(subject: str, what: str) -> float:
    (found,) = [each for each in _results(subject)["figures"] if each["what"] == what]
    return found["value"]


def _row(subject: str, case: str, who: str, column: str) -> float:
    (found,) = [
        each for each in _results(subject)["rows"] if (each.get("case"), each.get("who")) == (case, who)
    ]
    return found[column]


def _results(subject: str) -> dict:
    return json.loads((ROOT / f"benchmarks/results/{subject}.json").read_text())


BY_COUNTRY = "sum and mean by country: {} over ours"
MEASURED = {
    "sum and mean by country": [
        _figure("query", BY_COUNTRY.format(who)) for who in ("OpenDP, 5 rows", "Qrlew", "SmartNoise")
    ],
    "total error of a count": [_figure("errors", "count by country: our total error over OpenDP's")],
    "a vector of Gaussian noise": [_figure("noise", "float vector Gaussian, sigma 1: OpenDP over ours")],
    "epsilon of DP-SGD": [
        _row("accounting", "DP-SGD", who, "relative_error")
        for who in ("sfumato", "Google PLD 1e-4", "Opacus PRV")
    ],
    "a private training step on a GPU": [_figure("deep_gpu", "CIFAR CNN: Opacus's best step over ours")],
    "the same on a CPU": [_figure("deep", "MLP 2048: ours over Opacus's best")],
    "synthetic Adult table": [
        _row("synth", f"{method}, epsilon 1", who, column)
        for method, who in (("adaptive", "sfumato"), ("aim", "mbi"))
        for column in ("cpu", "variation")
    ],
    "spent beyond the budget": [_figure("query", "overdrafts, 8 processes on SQLite")],
}


def test_every_figure_is_one_of_the_benchmarks():
    table = README.partition("| what | beside | result |\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert len(table) == len(MEASURED)
    for line, (name, values) in zip(table, MEASURED.items(), strict=True):
        assert line.startswith(f"| {name}"), line
        shown = [
            float(text.replace(",", ""))
            for text in re.findall(r"\d[\d.]*(?:,\d{3})*(?:e-\d+)?", line.split("|")[3])
        ]
        assert shown == pytest.approx(values, rel=0.03 if "e-" in line else 0.005), line


def test_words_are_listed_once_in_order():
    assert len(WORDS) >= 40
    assert sorted(set(WORDS), key=str.lower) == WORDS


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_parts_of_pages_lead_to_headings(page):
    for name, anchor in re.findall(r"\]\(([^)#\s:]*\.md)?#([^)\s]+)\)", page.read_text()):
        text = re.sub(
            r"^```.*?^```", "", ((page.parent / name) if name else page).read_text(), flags=re.S | re.M
        )
        headings = [_anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, flags=re.M)]
        assert anchor in headings, f"{page.name} links to {name}#{anchor}"


def test_there_is_a_start_for_each_user_and_the_readme_leads_to_it():
    assert [page.stem for page in STARTS] == ["analyst", "ml", "office", "steward", "teacher"]
    for page in STARTS:
        assert f"](docs/start/{page.name})" in README
        assert "](../glossary.md#" in page.read_text()
        assert page in TYPED
