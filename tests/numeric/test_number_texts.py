"""What is a number as text: the digits 0 to 9, and nothing that merely reads like one in Python."""

from __future__ import annotations

import unicodedata
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.catalog import Catalog
from sfumato.cli.question import value_of
from sfumato.errors import SfumatoError
from sfumato.loss import PureLoss
from sfumato.numeric import exact

F = Fraction
# Text → what it means wherever a number is taken as text.
PLAIN = {
    "0.1": F(1, 10), "1": F(1), "+1": F(1), " 1": F(1), "1 ": F(1), ".5": F(1, 2), "1.": F(1), "1/3": F(1, 3),
    "1e-6": F(1, 10**6), "1E+1": F(10), "010": F(10), "+2/4": F(1, 2),
}  # fmt: skip
ODD = [
    "",
    " ",
    "1_000",
    "0.1_0",
    "1_0/3",
    "0x1",
    "0b1",
    "1e",
    "e1",
    ".",
    "+",
    "1..2",
    "1.2.3",
    "--1",
    "+-1",
    "1,5",
    "1 000",
    "1/",
    "/3",
    "1/0",
    "1/-3",
    "1 / 3",
    "1.5/2",
    "1e1/2",
    "½",
    "⅓",
    "²",
    "①",
    "Ⅷ",
    "一",
    "∞",
    "NaN",
    "nan",
    "sNaN1",
    "inf",
    "-Infinity",
    "1e400000",
    "1e-400000",
    "1%",
    "1d",
    "1L",
    "0,1",
    "1\n",
    "\t1",
    "1\u00a0",
    "\u20031",
    "−1",
    "1\x00",
    "true",
    "None",
]
DIGITS = [chr(c) for c in range(128, 0x110000) if unicodedata.category(chr(c)) == "Nd"]


def foreign():
    """Every plain text with its first digit, and with all, in each other script's digits."""
    zeros = [letter for letter in DIGITS if unicodedata.digit(letter) == 0]
    for zero in zeros:
        for text in PLAIN:
            spelled = "".join(chr(ord(zero) + int(c)) if c.isdigit() else c for c in text)
            at = next(i for i, c in enumerate(text) if c.isdigit())
            yield spelled
            yield text[:at] + spelled[at] + text[at + 1 :]


def toml(tmp_path, epsilon):
    path = tmp_path / "sfumato.toml"
    content = f"""
[datasets.d]
epsilon = '''{epsilon}'''
[tables.t]
source = "t.parquet"
dataset = "d"
unit = "row"
[tables.t.columns]
x = {{ type = "int", lower = 0, upper = 9 }}
"""
    path.write_text(content, encoding="utf-8")
    return Catalog.read(path, environ={}).budgets["d"].epsilon


ENTRIES = {
    "Budget epsilon": lambda text: sf.Budget(text).epsilon,
    "Budget delta": lambda text: sf.Budget(1, text).delta,
    "PureLoss": lambda text: PureLoss(text).pure,
    "Laplace epsilon": lambda text: sf.Laplace(text, 1).loss.pure,
    "Laplace sensitivity": lambda text: sf.Laplace(1, text).sensitivity,
    "Gaussian rho": lambda text: sf.Gaussian(rho=text, sensitivity=1).loss.rho,
    "positive": lambda text: exact.positive(text, "x"),
    "nonnegative": lambda text: exact.nonnegative(text, "x"),
    "delta_of": lambda text: exact.delta_of(text),
}


def wrong(entry, text) -> bool:
    """Whether a text is taken for a number that it does not show."""
    try:
        found = entry(text)
    except (SfumatoError, ValueError):
        return False
    return text not in PLAIN or found != PLAIN[text]


def findings(entries) -> list[tuple[str, str]]:
    texts = [*PLAIN, *ODD, *foreign()]
    assert len(texts) > 1500
    return [(name, text) for name, entry in entries.items() for text in texts if wrong(entry, text)]


def test_only_plain_digits_are_numbers_wherever_text_is_taken():
    assert findings(ENTRIES) == []
    assert all(ENTRIES["Budget epsilon"](text) == value for text, value in PLAIN.items())


def test_the_search_finds_what_python_reads(monkeypatch):
    monkeypatch.setattr(exact, "_written", lambda text: F(text))
    assert len(findings({"Budget epsilon": ENTRIES["Budget epsilon"]})) > 1000


def test_an_epsilon_in_the_file_is_read_alike(tmp_path):
    few = [*PLAIN, *(text for text in ODD if "\n" not in text and "\x00" not in text), "١", "０.１", "1_000"]
    assert [text for text in few if wrong(lambda text: toml(tmp_path, text), text)] == []
    assert [toml(tmp_path, text) for text in PLAIN] == list(PLAIN.values())


@pytest.mark.parametrize("text", ["١", "1_0", "２", "1e400000", "nan"])
@pytest.mark.parametrize("key", ["threads", "timeout"])
def test_a_limit_in_the_file_is_read_alike(tmp_path, key, text):
    toml(tmp_path, "1")
    path = tmp_path / "sfumato.toml"
    path.write_text(path.read_text(encoding="utf-8") + f'\n[engine]\n{key} = "{text}"\n', encoding="utf-8")
    with pytest.raises(SfumatoError, match=f"engine.{key}"):
        Catalog.read(path, environ={})


def test_a_parameter_that_only_looks_like_a_number_is_text():
    for text in [*foreign(), *(text for text in ODD if text not in ("true", "1e400000", "1e-400000"))]:
        assert isinstance(value_of(text), str)
    assert [value_of(text) for text in ("12", "-3", "0.5", "1e3", "true")] == [12, -3, 0.5, 1000.0, True]


@pytest.mark.parametrize("zero", ["-0", "-0.0", " -0", "-0/1", "-0e5", -0.0])
def test_minus_zero_is_no_price(zero):
    for entry in (PureLoss, sf.Budget, lambda value: sf.Budget(1, value), exact.delta_of):
        with pytest.raises(SfumatoError):
            entry(zero)


@pytest.mark.parametrize("text", ["0,3", " 0,3", "0,125", "1,5", "1000,25", "12,3456"])
def test_a_comma_is_told_to_be_a_point(text):
    with pytest.raises(SfumatoError, match=f"write {text.strip().replace(',', '[.]')}, with a point[.]$"):
        exact.as_fraction(text, "epsilon")


@pytest.mark.parametrize("text", ["1,000", "12,500", "1,2,3", "0,3,", ",5", "٠,٣", "0,3" * 30])
def test_what_may_mean_something_else_gets_no_advice(text):
    with pytest.raises(SfumatoError) as told:
        exact.as_fraction(text, "epsilon")
    assert "with a point" not in str(told.value)
