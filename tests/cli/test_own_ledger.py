"""Which ledger pays is the steward's: no flag and no variable of a named analyst moves it."""

import pytest

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
ASKED = ("query", BY_CITY, "--epsilon", "0.1")


@pytest.fixture
def shared(hospital):
    with (hospital / "sfumato.toml").open("a") as file:
        file.write("\n[datasets.visits.analysts]\nada = { epsilon = 0.15 }\n")
    return hospital


@pytest.mark.parametrize("command", ["query", "quote"])
@pytest.mark.parametrize("name", ["flag", "environment"])
@pytest.mark.parametrize("ledger", ["flag", "environment"])
@pytest.mark.parametrize("place", ["mine.ledger", "sub/../mine.ledger", "postgresql://localhost:1/mine"])
def test_a_named_analyst_cannot_name_another_ledger(cli, shared, monkeypatch, command, name, ledger, place):
    given = [command, *ASKED[1:]]
    for option, variable, how, value in (
        ("--analyst", "SFUMATO_ANALYST", name, "ada"),
        ("--ledger", "SFUMATO_LEDGER", ledger, place),
    ):
        if how == "flag":
            given += [option, value]
        else:
            monkeypatch.setenv(variable, value)
    done = cli(*given)
    assert done.code == 2
    assert "leave out --ledger" in " ".join(done.err.split())
    assert not (shared / "mine.ledger").exists()


def test_after_a_refusal_no_ledger_of_ones_own_answers(cli, shared):
    assert cli(*ASKED, "--analyst", "ada").code == 0
    more = ("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1", "--analyst", "ada")
    assert cli(*more).code == 3
    assert cli(*more, "--ledger", "mine.ledger").code == 2
    assert cli(*more, "--analyst", "Ada").code == 3  # nor does another spelling


def test_the_files_own_ledger_may_be_named(cli, shared, monkeypatch):
    (shared / "link.ledger").symlink_to(shared / "sfumato.ledger")
    for place in ("sfumato.ledger", str(shared / "sfumato.ledger"), "link.ledger"):
        assert cli(*ASKED, "--analyst", "ada", "--ledger", place).code == 0
        monkeypatch.setenv("SFUMATO_LEDGER", place)
        assert cli(*ASKED, "--analyst", "ada").code == 0


SERVER = "postgresql://db.example/ledgers"


@pytest.mark.parametrize(
    ("address", "moved"),
    [
        (SERVER, False),
        ("postgresql://u:secret@db.example/ledgers", False),
        ("postgresql://u:secret@DB.example:5432/ledgers?sslmode=require&password=x", False),
        ("postgresql://db.example/mine", True),
        ("postgresql://db.example:5433/ledgers", True),
        ("postgresql://u@mine.example/ledgers", True),
        (SERVER + "?options=-csearch_path%3Dmine", True),
        (SERVER + "?host=mine.example", True),
        (SERVER + "?dbname=mine", True),
        ("ledgers", True),
    ],
)
def test_an_address_may_bring_a_password_and_nothing_else(hospital, address, moved):
    from sfumato.catalog import Catalog

    with (hospital / "sfumato.toml").open("a") as file:
        file.write(f'\n[ledger]\nurl = "{SERVER}"\n')
    found = Catalog.read(hospital / "sfumato.toml", environ={"SFUMATO_LEDGER": address})
    assert (found.ledger, found.moved) == (address, moved)
    assert moved or found.state == hospital / ".sfumato"


def test_reading_commands_take_any_ledger_and_the_steward_too(cli, hospital, monkeypatch):
    assert cli(*ASKED, "--ledger", "other.ledger").code == 0
    monkeypatch.setenv("SFUMATO_ANALYST", "ada")
    assert cli("ledger", "show", "--ledger", "other.ledger", "--json").json["entries"] > 0
    assert cli("ledger", "verify", "--ledger", "other.ledger").code == 0


def test_two_spellings_of_an_analyst_in_the_file_are_refused(cli, shared):
    with (shared / "sfumato.toml").open("a") as file:
        file.write("Ada = { epsilon = 0.5 }\n")
    done = cli(*ASKED, "--analyst", "ada")
    assert done.code == 2
    assert "another spelling" in " ".join(done.err.split())


@pytest.mark.parametrize("last", ["١", "１", "--last=१"])
def test_a_number_in_other_digits_is_wrong_usage(cli, hospital, last):
    given = (last,) if last.startswith("--") else ("--last", last)
    done = cli("ledger", "show", *given)
    assert done.code == 2
    assert "digits 0 to 9" in done.err
    assert cli("query", BY_CITY, "--epsilon", "０.１").code == 2
