"""Pictures of the documentation: each file is made by a function of a script, and made again the same."""

import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

import gallery
import look
import mechanisms
from sfumato.plots import _figure as house

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
SCRIPTS = {"mechanisms": mechanisms.PICTURES, "gallery": gallery.PICTURES}
AGAIN = [  # one of each kind: curves, stems, bars, steps; and what is read from measurements
    (folder, each)
    for folder, names in {
        "mechanisms": ("laplace", "geometric", "exponential", "above_threshold"),
        "gallery": ("synthetic_fidelity", "small_groups"),
    }.items()
    for each in SCRIPTS[folder]
    if each.__name__ in names
]


@pytest.mark.parametrize("folder", SCRIPTS)
def test_scripts_and_files_agree_by_day_and_by_night(folder):
    names = {look.slug(each) for each in SCRIPTS[folder]}
    assert len(names) == len(SCRIPTS[folder])
    files = {path.name for path in (PICTURES / folder).iterdir()}
    assert files == {f"{name}{twin}.svg" for name in names for twin in ("", "-dark")}


@pytest.mark.parametrize(("folder", "drawing"), AGAIN, ids=lambda given: getattr(given, "__name__", given))
def test_a_picture_made_again_is_the_same_file(folder, drawing):
    for how, twin in ((look.DAY, ""), (look.NIGHT, "-dark")):
        path = PICTURES / folder / f"{look.slug(drawing)}{twin}.svg"
        assert look.drawn(drawing, how) == path.read_text(), f"make it again: {path.name}"


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*/*.svg")), ids=lambda path: path.stem)
def test_files_are_small_say_what_one_sees_and_carry_no_date(path):
    text = path.read_text()
    words = re.search(r"<title>([^<]+)</title>", text)[1]
    assert len(words) > 60
    assert len(text) <= 40_000
    assert "<metadata>" not in text
    assert not re.search(r"(?:href|url\()=?[\"']?https?:", text)
    colours = set(re.findall(r"#[0-9a-f]{6}\b", text))
    own = look.NIGHT if path.stem.endswith("-dark") else look.DAY
    assert colours <= {*vars(own).values()}
    assert own.paper in colours


@pytest.mark.parametrize(
    "drawing", [each for drawings in SCRIPTS.values() for each in drawings], ids=look.slug
)
def test_each_picture_has_words_and_a_script_of_its_own(drawing):
    assert len(look.words(drawing)) > 60
    assert drawing.__module__ in {"noise", "choices", "selections", "gallery"}


def over_the_title(sheet, axes):
    corner = {"loc": "upper left", "bbox_to_anchor": (0, 1), "bbox_transform": sheet.figure.transFigure}
    axes.legend(**corner).set_in_layout(False)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda sheet, axes: sheet.say("a title that is much too long for one line " * 3, ""), "cut off"),
        (lambda sheet, axes: axes.set_xticks([0, 0.01, 0.02], ["left", "middle", "right"]), "x-axis"),
        (over_the_title, "over the title"),
        (lambda sheet, axes: axes, None),
    ],
    ids=["title", "ticks", "legend", "none"],
)
def test_a_picture_with_a_fault_is_not_made(spoil, fault):
    sheet = look.Sheet(look.DAY)
    (axes,) = sheet.panels(x="x", y="y")
    axes.plot([0, 1], [0, 1], label="a line")
    sheet.say("A title", "A note.")
    sheet.legend(axes)
    spoil(sheet, axes)
    if fault is None:
        assert sheet.svg("words").startswith("<?xml")
    else:
        with pytest.raises(ValueError, match=fault):
            sheet.svg("words")


def test_the_gallery_shows_each_picture_with_its_words_and_its_command():
    page = (ROOT / "docs" / "gallery.md").read_text()
    shown = re.findall(r"!\[(.+)\]\(pictures/gallery/(.+)\.svg\)", page)
    assert shown == [(look.words(each), look.slug(each)) for each in gallery.PICTURES]
    commands = re.findall(r"Made by `python examples/pictures/gallery.py (\S+)`\. Read on: \[", page)
    assert commands == [name for _, name in shown]


def test_colours_by_day_are_those_of_the_library_and_lines_differ_by_more_than_colour():
    day = look.DAY
    own = (day.ink, day.grey, day.faint, day.blue, day.band, day.orange)
    assert own == (house.INK, house.GREY, house.FAINT, house.DOT, house.BAND, house.ACCENT)
    for colours in (look.DAY, look.NIGHT):
        assert len({dashes for _, dashes in look.Sheet(colours).lines}) == 4


def test_pictures_that_pages_show_have_words():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)", page.read_text()):
            assert words.strip(), f"{page.name}: {target}"
            assert not re.search(r"pictures/(mechanisms|gallery)/.*-dark\.svg$", target), (
                f"{page.name}: {target}"
            )
