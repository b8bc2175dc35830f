"""What is published of a table with states: each window once, whichever state is the newest."""

import json
from fractions import Fraction

from commands import invoke
from sfumato.cli import app


def named(state):
    assert invoke(app, ["state", "add", "visits", state]).exit_code == 0


def test_a_new_state_pays_for_new_windows_alone(clinic):
    named("february")
    clinic.publish("2024-03-01")
    assert clinic.spent() == Fraction(3, 2)
    before = clinic.files()
    clinic.month(3)
    named("march")
    assert "Nothing is new" in clinic.publish("2024-03-01")
    assert clinic.files() == before
    clinic.publish("2024-04-01")
    assert clinic.spent() == Fraction(7, 4)
    for name in ("daily.csv", "by_shop.csv"):
        assert clinic.files()[name].startswith(before[name])
    shops = json.loads(clinic.files()["manifest.json"])["releases"][1]
    assert shops["states"] == ["february and later", "february and later", "march and later"]
    assert "visits as it is when it is read" in clinic.files()["index.html"].decode()
