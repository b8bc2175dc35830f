"""`sfumato audit`: a table, a document, and the exit code 4 where a claim is broken."""

import json

import pytest
import typer
from typer.testing import CliRunner

from sfumato.audit import registry
from sfumato.audit.kept import FILE, kept
from sfumato.audit.registry import Subject
from sfumato.cli.audit import audit
from sfumato.demo import prepare
from sfumato.testing import MUTANTS, seeded


@pytest.fixture
def command():
    app = typer.Typer()
    app.command("audit")(audit)

    def run(*arguments):
        with seeded("cli"):
            return CliRunner().invoke(app, list(arguments))

    return run


SOME = ("geometric", "--samples", "2000", "--confidence", "0.9999999")


def test_a_table_and_a_sentence(command):
    done = command(*SOME)
    assert done.exit_code == 0
    assert "geometric: sensitivity 3" in done.stdout
    assert "at least" in done.stdout
    assert "All 3 claims hold" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_is_one_document(command):
    done = command(*SOME, "--json")
    found = json.loads(done.stdout)
    assert found["holds"] is True
    assert [each["name"] for each in found["findings"]] == [
        "geometric",
        "geometric: sensitivity 3",
        "geometric: vector",
    ]


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_broken_claim_ends_with_4(command, monkeypatch, more):
    example = MUTANTS["half the noise"].planted
    lie = Subject("liar", "mechanism", lambda: (example.mechanism.loss, example.draw))
    monkeypatch.setattr(registry, "subjects", lambda: (lie,))
    done = command("--samples", "5000", *more)
    assert done.exit_code == 4
    assert "liar" in done.stdout
    assert "broken" in done.stdout


def test_fast_is_for_few_samples(command):
    done = command("randomized response", "--fast", "--json", "--confidence", "0.9999999")
    assert done.exit_code == 0
    assert {each["samples"] for each in json.loads(done.stdout)["findings"]} == {1000}


def test_the_last_one_is_kept_beside_the_ledger_s_key(command, tmp_path):
    config = prepare(tmp_path)
    done = command(*SOME, "--keep", "--config", str(config))
    assert done.exit_code == 0
    found = kept(tmp_path / FILE)
    assert next(finding.name for finding in found.audit) == "geometric"
    assert not found.audit.broken
    assert command("geometric", "--keep", "--config", str(tmp_path / "none.toml")).exit_code != 0


def test_wrong_usage_is_told(command):
    assert command("nonsense").exit_code == 2
    done = command("geometric", "--fast", "--samples", "2000")
    assert done.exit_code == 2
    assert "give one of them" in " ".join(done.stderr.split())
    assert command("geometric", "--samples", "2").exit_code == 2
    assert command("geometric", "--samples", "1000", "--confidence", "1").exit_code == 2
