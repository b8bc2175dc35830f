"""`sfumato start`: what keeps it from beginning, and the steward's token that ends with it."""

import re
from importlib.resources import files

import pytest

from commands import invoke
from sfumato.cli import app
from sfumato.cli.start import _given, _house, _steward, _where_it_is
from sfumato.errors import InvalidParameter, LoginFailed
from sfumato.server.access import Role


def test_what_keeps_it_from_beginning_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke(app, ["start", "nowhere", "--port", "0"])
    assert done.exit_code == 2
    assert "There is no folder nowhere" in " ".join(done.stderr.split())
    assert invoke(app, ["start", "--port", "0"], env={"SFUMATO_ANALYST": "ada"}).exit_code != 0
    (tmp_path / "sfumato.toml").write_text("[tables\n")
    done = invoke(app, ["start", "--port", "0"])
    assert done.exit_code == 2
    assert "not valid TOML" in " ".join(done.stderr.split())
    monkeypatch.chdir("/")
    done = invoke(
        app, ["start", str(tmp_path / "sfumato.toml"), "--port", "0"]
    )  # a file: its folder is meant
    assert "not valid TOML" in " ".join(done.stderr.split())
    assert [each.name for each in tmp_path.iterdir()] == ["sfumato.toml"]


def test_a_file_that_lies_in_the_folder_is_to_be_taken_there(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("city\nLyon\n")
    assert _given(file) == (tmp_path, "people.csv")
    assert _given(tmp_path) == (tmp_path, "")
    template = files("sfumato.server.page") / "templates/start_file.html"
    (quoted,) = re.findall('"(.+)"', _where_it_is(file.name))
    assert f"<summary>{quoted}</summary>" in template.read_text()  # what the page calls it


@pytest.mark.parametrize(("name", "said"), [("people.xlsx", "save it as CSV"), ("people.csv", "is empty")])
def test_a_file_that_is_no_table_is_told_before_a_browser_opens(tmp_path, name, said):
    (tmp_path / name).touch()
    done = invoke(app, ["start", str(tmp_path / name), "--port", "0"])
    assert done.exit_code == 1
    assert said in " ".join(done.stderr.split())
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_serving_nothing_names_both_ways_to_begin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke(app, ["serve", "--port", "0"])
    assert done.exit_code == 2
    assert "sfumato init FILE, or be led through it in a browser: sfumato start" in " ".join(
        done.stderr.split()
    )


def test_a_folder_without_a_catalog_has_a_house_with_nothing_to_ask(tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_LEDGER", str(tmp_path / "elsewhere.ledger"))  # the folder decides
    with _house(tmp_path) as (house, _):
        assert house.datasets == []
    assert (tmp_path / "sfumato.ledger").exists()
    assert not (tmp_path / "elsewhere.ledger").exists()


def test_the_token_ends_with_the_run_and_all_is_on_record(tmp_path):
    with _house(tmp_path) as (house, accounts):
        with _steward(accounts, house.ledger) as (name, role, token):
            assert (name, role) == ("steward", Role.STEWARD)
            assert accounts.check(token).role is Role.STEWARD
        with pytest.raises(LoginFailed):
            accounts.check(token)
    with _house(tmp_path) as (house, accounts):
        for _ in range(12):  # more than an account may have at once
            with _steward(accounts, house.ledger) as (_, _, again):
                assert accounts.check(again).name == "steward"
        acts = [each.memo["act"] for each in house.ledger.entries()]
    assert acts.count("account added as steward") == 1
    assert acts.count("token revoked") == 13


def test_an_account_of_that_name_with_another_role_is_left(tmp_path):
    with _house(tmp_path) as (house, accounts):
        accounts.add("steward", Role.AUDITOR)
        with pytest.raises(InvalidParameter, match="another role"), _steward(accounts, house.ledger):
            pass
