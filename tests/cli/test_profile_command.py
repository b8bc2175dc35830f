"""`sfumato profile`: bought once, shown again free, and given to all by the steward."""


def test_a_profile_is_bought_shown_and_given(cli, hospital):
    first = cli("profile", "--epsilon", "0.4", "--json")
    assert first.code == 0
    told = first.json
    assert told["up_to"][:3] == [1, 2, 5]
    assert len(told["units"]) == len(told["rows"]) == len(told["units_error"]) == len(told["up_to"])
    assert told["rows_error"][-1] > told["rows_error"][0]
    shown = cli("profile", "visits", "--epsilon", "0.3")
    assert shown.code == 0
    assert "their rows" in shown.out
    assert "3 to 5" in shown.out
    words = " ".join(shown.out.split())
    assert "It is declared or on record: free; it is kept" in words
    assert "± holds 95% of the time; units and their rows have noise of their own." in words
    balance = cli("ledger", "show").out.split("\n\n")[0]
    assert shown.out.rstrip().endswith(balance.rstrip())  # its lines stay lines
    given = cli("ledger", "give", "visits", str(told["receipt"]), "--reason", "for all")
    assert given.code == 0
    asked = ("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1", "--analyst", "ann", "--json")
    covering = cli(*asked).json["covering"][0]["n"]
    assert None not in covering  # two-sided, though ann has paid for no profile
    groups = cli("profile", "visits", "--by", "city", "--epsilon", "0.2", "--json").json
    assert (groups["up_to"], groups["by"], len(groups["groups"])) == ([1, 2], ["city"], 2)
    assert groups["receipt"] > told["receipt"]


def test_a_price_and_a_table_are_asked_for(cli, hospital):
    missing = cli("profile", "visits")
    assert missing.code == 2
    assert "--epsilon 0.5" in missing.err
    unknown = cli("profile", "nothing", "--epsilon", "1")
    assert unknown.code == 2
    assert "one of visits" in unknown.err
    assert cli("profile", "--epsilon", "9").code == 3


def test_a_declared_profile_is_not_said_to_have_noise(cli, hospital):
    toml = hospital / "sfumato.toml"
    unit = 'unit = "patient_id"'
    toml.write_text(toml.read_text().replace(unit, f"{unit}\nprofile = {{ 1 = 800, 20 = 90 }}"))
    shown = cli("profile", "visits", "--epsilon", "0.3")
    assert shown.code == 0
    assert "Declared, without noise" in shown.out
    assert "95%" not in shown.out
