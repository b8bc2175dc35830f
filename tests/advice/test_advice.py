"""Every combination of answers gives advice that runs and keeps its error, or a sentence with the fix."""

import contextlib
import io
import itertools
import re
from pathlib import Path

import pytest

import sfumato as sf
from advised import Made

ROOT = Path(__file__).parents[2]
DETAILS = {"lower": 0, "upper": 8, "groups": 3, "steps": 5, "columns": 2, "questions": 6}
USED = {  # by what is published: what is said beside people, rows and the price
    "count": "",
    "sum": "lower upper",
    "mean": "lower upper",
    "median": "lower upper",
    "most common": "groups known",
    "histogram": "groups known",
    "groups": "lower upper groups known",
    "stream": "steps",
    "model": "columns",
    "synthetic": "columns groups",
    "devices": "groups known",
    "questions": "questions",
}
AT_DEVICES = {"stream": "groups"}  # where that differs
SURE = 1 - 1e-9  # an error that is stated with this confidence does not fail by chance


def combinations():
    for want, holder, rows, delta, known in itertools.product(
        USED, ("you", "people"), (1, 3), (0, "1e-6"), (True, False)
    ):
        at_devices = holder == "people"
        names = (AT_DEVICES.get(want, USED[want]) if at_devices else USED[want]).split()
        if "known" not in names and not known:
            continue
        if at_devices and (rows > 1 or (delta == 0) == (want == "model")):  # their price is pure, or never
            continue
        said = {name: DETAILS[name] for name in names if name != "known"}
        said |= {"known": known} if "known" in names else {}
        said |= {} if at_devices else {"rows": rows}
        yield want, {"epsilon": 2, "people": 240, "delta": delta, "holder": holder, **said}


ALL = list(combinations())
IDS = [
    f"{want}-{said['holder']}-{said.get('rows', 1)}-{said['delta']}-{said.get('known', True)}"
    for want, said in ALL
]


def refused(want, said):
    """Why a combination has no advice; None: it must have one."""
    if want == "devices" and said["holder"] == "you":
        return "held by people"
    if want in ("groups", "synthetic", "questions") and said["holder"] == "people":
        return "somebody must hold all rows"
    if not said["delta"] and (want in ("model", "synthetic")):
        return "needs a delta"
    if not said["delta"] and not said.get("known", True) and said["holder"] == "you":
        return "need a delta"
    return None


@pytest.mark.parametrize(("want", "said"), ALL, ids=IDS)
def test_each_combination_is_advised_and_runs_and_keeps_its_error_or_is_refused(
    want, said, tmp_path, monkeypatch
):
    reason = refused(want, said)
    if reason is not None:
        with pytest.raises(sf.errors.InvalidParameter, match=reason) as caught:
            sf.advise(want, **said)
        is_a_sentence(str(caught.value))
        is_a_sentence(caught.value.shell or str(caught.value))
        return
    advice = sf.advise(want, confidence=SURE, **said)
    monkeypatch.chdir(tmp_path)
    made, scope = Made(advice.said, tmp_path), {}
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(compile(advice.code, "advice", "exec"), scope)
    assert shown.getvalue().strip()
    assert "session" not in scope or scope["session"].balance().spent <= 2
    if advice.error is not None:
        assert made.off(scope["answer"]) <= advice.error
        stated = made.stated(scope["answer"], SURE)
        if stated is not None:
            assert stated == pytest.approx(advice.error, abs=0.6)  # whole numbers are rounded
    says_it_all(advice)


def is_a_sentence(text):
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 300


def says_it_all(advice):
    text = str(advice)
    assert max(map(len, text.splitlines())) <= 80
    for told in (advice.why, advice.price, advice.trap, advice.meaning, advice.reads, advice.use):
        assert told
        assert "  " not in told
    best, *others = advice.options
    plain = [option.error for option in others if not option.but]
    if best.error is not None and not best.but:
        assert all(error >= best.error * 0.95 for error in plain if error is not None), advice.options
    page = ROOT / advice.docs
    assert page.exists(), advice.docs
    assert "error" in advice.to_dict()
    assert not re.search(r"None|Fraction|nan", text)


@pytest.mark.parametrize("questions", [1, 7, 400])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_as_many_questions_as_were_said_fit_in_the_budget_and_hardly_more(questions, delta):
    advice = sf.advise("questions", questions=questions, epsilon=1, delta=delta, people=900)
    each = float(re.search(r"epsilon=([\d.e-]+)[,\n]", advice.code.split("release(")[1])[1])
    if 'accountant="gaussian"' not in advice.code:
        assert 0.99 <= each * questions <= 1
        return
    noise = sf.Gaussian(epsilon=str(each), delta=delta, sensitivity=1)
    whole = sf.Budget(epsilon=1, delta=delta, accountant="gaussian").limits[0]
    assert 0.99 <= noise.rho * questions / whole <= 1


def test_many_groups_of_a_person_and_found_ones():
    said = {"rows": 1000, "groups": 50, "known": False, "people": 9000}
    for epsilon, delta in ((1, "1e-6"), ("0.001", "1e-12")):
        says_it_all(sf.advise("histogram", epsilon=epsilon, delta=delta, **said))
