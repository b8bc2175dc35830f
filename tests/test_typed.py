"""Pages with commands, or with what Python prints: typed again, they say the same, figures included."""

import shutil
from pathlib import Path

import pytest

from typed import TYPED, typed_again

ROOT = Path(__file__).parent.parent


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the example files."""
    for file in ROOT.glob("examples/*.csv"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", TYPED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_says_what_is_said(page, folder):
    assert typed_again(page) == page.read_text()


def test_the_front_door_is_typed():
    assert ROOT / "README.md" in TYPED


WRONG = """
```python
print(1)
```

```text
2
```

```console
$ sfumato explain
sfumato: That option is not known.
$ sfumato schema --config nowhere.toml
…
  fix
```
"""


def test_a_page_that_says_something_else_is_noticed(folder):
    page = folder / "wrong.md"
    page.write_text(WRONG)
    again = typed_again(page)
    assert "```text\n1\n```" in again
    assert "not known" not in again
    assert "nowhere.toml" in again.partition("--config nowhere.toml\n")[2]


@pytest.mark.parametrize(
    ("shown", "said", "same"),
    [
        ("4.230778862039348", "4.230778862039351", True),
        ("0.02801448191262916", "0.02801448191262916", True),
        ("0.02801448191262916", "0.02801448291262916", False),
        ("1.862645149230957e-09", "1.862645149230957e-08", False),
        ("4.2307", "4.2308", False),
        ("head 0123456789abcdef", "head fedcba9876543210", True),
    ],
)
def test_figures_are_compared_but_for_what_depends_on_the_processor(folder, shown, said, same):
    page = folder / "figures.md"
    page.write_text(f"```python\nprint({said!r})\n```\n\n```text\n{shown}\n```\n")
    assert (typed_again(page) == page.read_text()) == same


def test_only_commands_of_sfumato_are_typed(folder):
    page = folder / "other.md"
    page.write_text("\n```console\n$ rm -r people.csv\n```\n")
    with pytest.raises(AssertionError, match="only commands of Sfumato"):
        typed_again(page)
    assert (folder / "people.csv").exists()
