"""What `make release-check` refuses. What it builds, installs and runs is seen when it is run itself."""

import importlib.util
import subprocess
import zipfile

import pytest

import sfumato as sf
from tracked import ROOT

_SPEC = importlib.util.spec_from_file_location("release_check", ROOT / "requirements" / "release_check.py")
release_check = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(release_check)
Unready = release_check.Unready

CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added

- A thing.

## [0.1.0] - 2026-11-01

- The first.
"""


def test_the_version_is_that_of_the_package():
    assert release_check.version() == sf.__version__
    release_check.written_once(ROOT, sf.__version__)


@pytest.mark.parametrize("written", ["1.2", "1.2.3.dev0", "1.2.3rc1", "next"])
def test_a_version_that_is_not_three_numbers_is_not_released(tmp_path, written):
    (tmp_path / "src/sfumato").mkdir(parents=True)
    (tmp_path / "src/sfumato/__init__.py").write_text(f'__version__ = "{written}"\n')
    with pytest.raises(Unready, match="three numbers"):
        release_check.version(tmp_path)


def test_a_second_version_is_noticed(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 0.1.0\n")
    with pytest.raises(Unready, match=r"CITATION\.cff has a version of its own"):
        release_check.written_once(tmp_path, "0.1.0")


def test_the_notes_are_the_part_of_the_version():
    assert release_check.notes(CHANGELOG, "0.2.0") == "### Added\n\n- A thing.\n"
    assert release_check.notes(CHANGELOG, "0.1.0") == "- The first.\n"


@pytest.mark.parametrize(
    ("changelog", "words"),
    [
        (CHANGELOG.replace("0.2.0", "0.3.0"), "no part for it"),
        (CHANGELOG.replace(" - 2026-12-01", ""), "no part for it"),
        (CHANGELOG.replace("### Added\n\n- A thing.\n", ""), "is empty"),
        (CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- More.\n"), "left under Unreleased"),
    ],
    ids=["absent", "without a date", "empty", "unreleased"],
)
def test_a_changelog_that_is_not_ready_is_refused(changelog, words):
    with pytest.raises(Unready, match=words):
        release_check.notes(changelog, "0.2.0")


def test_what_is_not_committed_is_named(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    release_check.committed(tmp_path)
    (tmp_path / "new.py").touch()
    with pytest.raises(Unready, match=r"new\.py"):
        release_check.committed(tmp_path)


@pytest.mark.parametrize("missing", ["sfumato/py.typed", "licenses/LICENSE", "Version"])
def test_a_wheel_without_types_license_or_version_is_refused(tmp_path, missing):
    about = "sfumato-0.2.0.dist-info"
    held = {
        "sfumato/py.typed": "",
        f"{about}/METADATA": "Name: sfumato\nVersion: 0.2.0\n",
        f"{about}/licenses/LICENSE": "",
    }
    wheel = tmp_path / "sfumato-0.2.0-py3-none-any.whl"
    for broken in (False, True):
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, text in held.items():
                if not (broken and name.endswith(missing)):
                    archive.writestr(name, text.replace(missing, "Other") if broken else text)
        if broken:
            with pytest.raises(Unready):
                release_check.holds(wheel, "0.2.0")
        else:
            release_check.holds(wheel, "0.2.0")


def test_a_command_that_fails_says_why(tmp_path):
    with pytest.raises(Unready, match="failed: no such thing"):
        release_check.run(["sh", "-c", "echo no such thing >&2; exit 3"], tmp_path)


def test_all_lines_are_said_before_it_ends(capsys):
    def fails() -> None:
        raise Unready("Mend it.")

    assert not release_check.check("one", fails)
    assert release_check.check("two", lambda: None)
    assert capsys.readouterr().out == "no  one: Mend it.\nok  two\n"
