"""`sfumato validate`: the command is the steward's, pays nothing and leaves everything as it is."""


def test_the_report_and_its_json(cli, hospital):
    before = {path.name: path.read_bytes() for path in hospital.iterdir() if path.is_file()}
    shown = cli("validate")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("For the steward alone.")
    assert "40 units" in shown.out
    told = cli("validate", "visits", "--json").json
    assert told["steward_only"] is True
    (table,) = told["tables"]
    assert table["units"]["rows"] == {"3": 40}
    assert table["units"]["cut"][0] == {"limit": 1, "units": 40, "rows": 80}
    assert {path.name: path.read_bytes() for path in hospital.iterdir() if path.is_file()} == before


def test_an_analyst_is_refused(cli, hospital, monkeypatch):
    monkeypatch.setenv("SFUMATO_ANALYST", "ada")
    refused = cli("validate")
    assert refused.code != 0
    assert "Only the steward" in refused.err
    assert not refused.out


def test_a_table_that_is_not_there(cli, hospital):
    assert cli("validate", "visit").code == 2
