"""Published facts, carried with their source, and compared only with their own kind."""

import subprocess
import sys

import pytest

from sfumato.errors import InvalidParameter
from sfumato.explain import KINDS, Deployment, compare, deployments, source


def test_every_fact_is_complete():
    known = deployments()
    assert len(known) == 35
    assert len({one.name for one in known}) == 35
    for one in known:
        assert one.kind in KINDS
        assert (one.kind == "not stated") == (one.unit is None)
        assert one.model in {"central", "local", "varies"}
        assert one.epsilon or one.rho
        assert one.published[4] == "-"
        assert one.curator in str(one)
    assert "opendp/deployments-registry-data" in source()
    assert "July 2026" in source()


@pytest.mark.parametrize(
    ("name", "stated", "kind"),
    [
        ("Broadband Coverage", "ε = 0.2", "person"),
        ("Audience Engagement API", "ε = 34.9, δ = 7e-09", "person and period"),
        ("Disclosure Avoidance System for Redistricting Data", "ρ = 2.63", "person"),
        ("FLEX", "ε = 0.01, δ = n^(−ε ln n)", "record"),
        ("User-URL Privacy Dataset", "ε = 1.453, δ = 1e-05, ρ = 0.0728", "person"),
        ("Census County Business Patterns", "ρ = 12.058", "organisation"),
    ],
)
def test_some_facts_as_published(name, stated, kind):
    (one,) = (one for one in deployments() if one.name == name)
    assert (one.stated, one.kind) == (stated, kind)


@pytest.mark.parametrize("curator", ["U.S. Census Bureau", "Apple", "Google", "Meta", "LinkedIn"])
def test_the_deployments_that_everybody_names_have_a_price_and_a_source(curator):
    found = [one for one in deployments() if curator in one.curator]
    assert found
    assert all((one.epsilon or one.rho) and one.published for one in found)


@pytest.mark.parametrize("unit", ["person", "user", "row", "event", "person and period", "organisation"])
@pytest.mark.parametrize("model", ["central", "local"])
def test_only_the_same_kind_is_near(unit, model):
    found = compare(1, "1e-6", unit, model=model)
    assert all((one.kind, one.model) == (found.kind, model) for one in (*found.near, *found.otherwise))
    assert not any((one.kind, one.model) == (found.kind, model) for one in found.apart)
    assert sorted((*found.near, *found.otherwise, *found.apart), key=lambda one: one.name) == sorted(
        deployments(), key=lambda one: one.name
    )
    assert [one.epsilon for one in found.near] == sorted(one.epsilon for one in found.near)
    assert all(one.epsilon is None for one in found.otherwise)
    assert found.smaller == sum(one.epsilon < 1 for one in found.near)
    assert found.larger == sum(one.epsilon > 1 for one in found.near)


def test_the_text_says_where_and_that_units_differ():
    text = str(compare(4, "1e-6", "user"))
    assert max(map(len, text.splitlines())) <= 80
    said = " ".join(text.split())
    assert "smaller 3, the same 1, larger 4" in said
    assert "An epsilon is a price per unit" in said
    assert "21 others have another unit or model" in said
    assert source() in said.replace("deployments- registry", "deployments-registry")
    lines = text.splitlines()
    (here,) = (place for place, line in enumerate(lines) if "◂ here" in line)
    assert "Assistive AI" in lines[here - 1]
    assert "Recurve" in lines[here + 1]
    assert "Popular Emojis" not in text


def test_nothing_near_is_said():
    found = compare(1, 0, "organisation")
    assert found.near == ()
    assert "no published deployment" in str(found)
    assert "12.058" in str(found)


def test_the_notebook_display_is_escaped_and_marks_the_place(monkeypatch):
    found = compare(4, 0, "user")
    odd = Deployment("<b>x</b>", "<i>", "2020-01-01", "", "", "central", None, "person", 4.5, None, None)
    shown = type(found)(4.0, 0.0, "person", "central", (*found.near, odd), (), found.apart)._repr_html_()
    assert "<b>x" not in shown
    assert "&lt;b&gt;x" in shown
    assert shown.index("Assistive AI") < shown.index("<b>here</b>") < shown.index("Recurve")
    assert "price per unit" in shown


def test_the_picture_keeps_units_apart(tmp_path):
    figure = compare(1, "1e-6", "user").plot(tmp_path / "where.svg")
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows[0] == "person, central"
    assert rows.index("▸ here") == 2
    assert "Popular Emojis (Apple)" in rows[rows.index("record, local") :]
    assert (tmp_path / "where.svg").exists()
    rows = [label.get_text() for label in compare(1, 0, "organisation").plot().axes[0].get_yticklabels()]
    assert rows[rows.index("organisation, central") + 1] == "▸ here"


@pytest.mark.parametrize(
    "arguments", [(1, 0, "company"), (1, 0, "not stated"), (0, 0, "user"), (-1, 0, "user"), (1, 1, "user")]
)
def test_unusable_arguments_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        compare(*arguments)


def test_an_unknown_model_is_refused():
    with pytest.raises(InvalidParameter, match="central"):
        compare(1, 0, "user", model="shuffle")


def test_explaining_needs_no_pictures():
    program = (
        "import sys, sfumato.explain as e; e.compare(1, 0, 'user'); assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
