"""`sfumato advise`: the page's transcripts are what it says, and refusals are sentences with the fix."""

import re
import shlex
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/advise.md").read_text()
TRANSCRIPTS = re.findall(r"^```(?:console|text)\n\$ sfumato (.*?)\n(.*?)^```", PAGE, flags=re.S | re.M)


@pytest.fixture
def asked(monkeypatch):
    """As in a terminal, with somebody who answers."""
    monkeypatch.setattr("sfumato.cli.advise._can_ask", lambda quiet: not quiet)


def typed(transcript):
    """What was answered: behind a question, or nothing behind what is presumed."""
    interview = transcript.partition("\n\n")[0].splitlines()
    found = [re.search(r"(?:[?.]|^A number) ([^?.\]]+)$|(\])$", line) for line in interview]
    return "".join(f"{answer[1] or ''}\n" for answer in found if answer)


@pytest.mark.parametrize(("command", "shown"), TRANSCRIPTS, ids=[command for command, _ in TRANSCRIPTS])
def test_a_transcript_is_what_the_command_says(command, shown, cli, request):
    if command == "advise":
        request.getfixturevalue("asked")
    done = cli(*shlex.split(command), stdin=typed(shown) if command == "advise" else None)
    trimmed = "".join(f"{line.rstrip()}\n" for line in (done.out + done.err).splitlines())
    assert trimmed == shown
    assert max(map(len, shown.splitlines())) <= 80


def test_an_answer_that_cannot_be_is_asked_for_again(cli, asked):
    answers = "13\nmost-common\nnobody\nyou\nmany\n1e3\n0\n2\n20000\n12\nmaybe\nno\n-1\n1\n\n"
    done = cli("advise", stdin=answers)
    assert done.code == 0, done.err
    assert "take one of count, sum" in done.out
    assert "--holder is who has the data" in done.out
    assert "whole number such as 10000, not 'many'" in done.out
    assert "must be at most 10,000" in done.out
    assert "Say yes if everybody knows" in done.out
    assert "--known no --epsilon 1 --delta 1e-6" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Say what you want to publish"),
        (("count",), "give --epsilon"),
        (("counts", "--epsilon", "1"), "take one of count, sum"),
        (("count", "--epsilon", "1"), "give --people 10000"),
        (("count", "--epsilon", "-1", "--people", "9"), "epsilon"),
        (("count", "--epsilon", "99", "--people", "9"), "protects nobody"),
        (("count", "--epsilon", "1", "--people", "9", "--delta", "1"), "delta"),
        (("count", "--epsilon", "1", "--people", "9.5"), "whole number"),
        (("count", "--epsilon", "1", "--people", "9", "--groups", "3"), "no use for --groups"),
        (("sum", "--epsilon", "1", "--people", "9", "--lower", "3"), "give --upper 100"),
        (("sum", "--epsilon", "1", "--people", "9", "--lower", "3", "--upper", "x"), "upper"),
        (("sum", "--epsilon", "1", "--people", "9", "--lower", "3", "--upper", "3"), "below upper"),
        (("model", "--epsilon", "1", "--people", "9", "--columns", "3"), "give --delta 1e-6"),
        (("model", "--epsilon", "1", "--people", "9", "--columns", "3", "--lower", "1"), "both --lower and"),
        (("devices", "--epsilon", "1", "--people", "9", "--holder", "you"), "leave --holder out"),
        (("synthetic", "--epsilon", "1", "--people", "9", "--holder", "people"), "ask for histogram"),
        (("histogram", "--epsilon", "1", "--people", "9", "--groups", "99999"), "at most 10,000"),
        (("count", "--epsilon", "1", "--people", "9", "--confidence", "2"), "confidence"),
    ],
)
def test_what_cannot_be_is_told_with_the_fix(cli, arguments, said):
    done = cli("advise", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert said in " ".join(done.err.split())


def test_the_same_as_json(cli):
    done = cli("advise", "count", "--people", "900", "--epsilon", "0.5", "--json")
    assert done.json["use"] == "COUNT in SQL"
    assert done.json["options"][0]["error"] == done.json["error"] > 5
