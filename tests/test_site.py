"""The site of the documentation builds without a warning, everything on it is found, and it asks nobody."""

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import sfumato as sf

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NOTEBOOKS = sorted(ROOT.glob("docs/lab/*.ipynb"))
HERE = bool(find_spec("sphinx") and find_spec("myst_parser") and find_spec("furo"))
pytestmark = pytest.mark.skipif(
    not HERE and not os.environ.get("CI"), reason="needs the packages of requirements/docs.txt"
)


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """What `make docs` runs."""
    options = ["-q", "-W", "--keep-going", "-c", str(ROOT / "docs"), "-d", str(target / ".trees")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(target)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = build(ROOT, target)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return target


@pytest.mark.slow
def test_every_page_is_built_and_can_be_reached_from_the_front(site):
    front = site / "docs" / "index.html"
    linked = {
        (front.parent / unescape(link)).resolve()
        for link in re.findall(r'<a [^>]*href="([^"#:]+)', front.read_text())
    }
    for page in PAGES:
        made = (site / page.relative_to(ROOT)).with_suffix(".html")
        assert made.exists(), page
        assert made.resolve() in linked or made == front, page
    assert "docs/index.html" in (site / "index.html").read_text()


@pytest.mark.slow
def test_notebooks_are_pages_with_what_they_printed_and_drew(site):
    lab = (site / "docs" / "lab.html").read_text()
    for path in NOTEBOOKS:
        page = (site / path.relative_to(ROOT)).with_suffix(".html").read_text()
        cells = json.loads(path.read_text())["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        pictures = [output for output in outputs if "data" in output]
        assert page.count('<img alt="Picture: ') == len(pictures) > 0
        assert page.count('<div class="highlight-text') == len(outputs) - len(pictures)
        assert page.count('<div class="highlight-python') == sum(
            cell["cell_type"] == "code" for cell in cells
        )
        assert "To think about: " in page
        copy = re.search(r'href="([^"]+\.ipynb)"', page)
        assert copy, path.name
        assert (site / "docs" / "lab" / copy[1]).resolve().read_bytes() == path.read_bytes()
        assert f'href="lab/{path.stem}.html"' in lab


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"([^\"]+)", page.read_text()
        )
        assert [address for address in loaded if re.match(r"(?:https?:)?//", address)] == [], page.name
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text()) == [], sheet.name


@pytest.mark.slow
def test_search_finds_a_word_from_files_alone(site):
    program = shutil.which("chromium")
    if program is None and not os.environ.get("CI"):
        pytest.skip("needs Chromium")
    from playwright.sync_api import sync_playwright

    outside: list[str] = []
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--headless", "--disable-background-networking", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        context = browser.new_context()
        context.on(
            "request", lambda asked: outside.append(asked.url) if asked.url.startswith("http") else None
        )
        page = context.new_page()
        page.goto(f"{site.as_uri()}/search.html?q=staircase")
        page.wait_for_selector("#search-results li a[href*='mechanisms']")
        page.goto(f"{site.as_uri()}/index.html")
        page.wait_for_url("**/docs/index.html")
        page.goto(f"{site.as_uri()}/docs/reference/mechanisms.html")
        browser.close()
    assert outside == []


@pytest.mark.slow
def test_pictures_have_their_dark_twins_by_night(site):
    for name in ("docs/gallery", "docs/mechanisms/laplace", "README"):
        page = site / f"{name}.html"
        shown = re.findall(r'<img alt="[^"]+" class="only-(light|dark)" src="([^"]+)"', page.read_text())
        assert len(shown) >= 2
        for (light, one), (dark, other) in zip(shown[::2], shown[1::2], strict=True):
            assert (light, dark) == ("light", "dark")
            assert other == re.sub(r"(-light)?(\.\w+)$", r"-dark\2", one)
            assert (page.parent / one).is_file()
            assert (page.parent / other).is_file()
    side_by_side = (site / "docs" / "page.html").read_text()
    assert "answer-dark.png" in side_by_side
    assert "only-light" not in side_by_side


@pytest.mark.slow
def test_the_reference_has_privacy_claims_in_boxes(site):
    page = (site / "docs" / "reference" / "mechanisms.html").read_text()
    assert page.count('class="privacy admonition"') >= 20
    for name in sf.mechanisms.__all__:
        if isinstance(getattr(sf.mechanisms, name), type):
            assert f'id="sfumato.mechanisms.{name}"' in page, name


def test_the_reference_lists_every_public_name():
    page = (ROOT / "docs/reference/index.md").read_text()
    assert set(re.findall(r"\[(\w+)\]\([\w.#]+\)", page)) == {*sf.__all__} - {"__version__"}


def test_links_and_anchors_that_lead_nowhere_are_errors(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(
        "# Front\n\n[a](a.md#nowhere) [b](b.md) [c](c.py)\n\n```{toctree}\na\n```\n"
        "\n```{eval-rst}\n.. autoclass:: sfumato.NoSuchName\n```\n"
    )
    (docs / "a.md").write_text("# A\n\n[here](#nor-here)\n")
    (docs / "alone.md").write_text("# In no list\n")
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode != 0
    for fault in ("nowhere", "b.md", "c.py", "nor-here", "alone.md", "NoSuchName"):
        assert fault in done.stderr, fault


def test_addresses_outside_are_well_formed():
    for page in PAGES:
        for address in re.findall(r"\]\((https?:[^)\s]*)\)", page.read_text()):
            parts = urlsplit(address)
            assert parts.scheme == "https", f"{page.name}: {address}"
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), f"{page.name}: {address}"
