"""Everything by name: no honest claim is called broken, planted ones are, and the table says which."""

import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit import Audit, Finding, audit_mechanism, run, subjects
from sfumato.audit.registry import Subject, examined
from sfumato.continual import Continual
from sfumato.errors import InvalidParameter
from sfumato.loss import PrivacyLoss, PureLoss
from sfumato.testing import MUTANTS, seeded
from sfumato.testing.mutants.local import LOCAL_MUTANTS

SURE = 1 - 1e-7
# Bought, drawn as files, or published step by step, again for each sample.
SLOW = ("choice: ", "profile: ", "query: wards written", "series: ")
# Planted bugs that make an answer worse and no less private: nothing for an auditor. Honest twins are cleared
# in tests/statistical/test_mutants.py and tests/local/test_audit.py.
HARMLESS = {"twice the noise", "biased survey estimator"}


@dataclass(frozen=True, slots=True)
class Claims:
    """A mechanism that claims what it is told to."""

    inner: object
    loss: PrivacyLoss

    def release(self, value):
        return self.inner.release(value)


def stacked(mechanism):
    return lambda value, count: mechanism.release(np.full(count, value))


PAIRS = {
    "laplace": (lambda epsilon: sf.Laplace(epsilon, sensitivity=1), 0.0, 1.0),
    "response": (lambda epsilon: sf.RandomizedResponse(epsilon=epsilon), True, False),
}


@pytest.mark.parametrize("name", [pytest.param("laplace", marks=pytest.mark.stats), "response"])
def test_five_percent_are_caught_with_a_million_samples_and_the_honest_one_is_cleared(name):
    make, left, right = PAIRS[name]
    claim = PureLoss(Fraction(1))
    findings = {}
    for epsilon in ("1.05", "1"):
        mechanism = make(epsilon)
        with seeded(f"five percent {name} {epsilon}"):
            findings[epsilon] = audit_mechanism(
                Claims(mechanism, claim),
                left,
                right,
                samples=1_000_000,
                confidence=0.999,
                draw=stacked(mechanism),
            )
    assert findings["1.05"].verdict == "broken"
    assert findings["1.05"].claimed == 1.0
    assert 1.0 < findings["1.05"].proven <= 1.05
    assert findings["1"].verdict == "holds"
    assert findings["1"].proven > 0.97


def test_no_registered_claim_is_called_broken():
    # Choices are bought again for each sample, and models fitted: some here, all of them in the long run.
    some = {"choice: the two most common", "choice: first above", "profile: rows"}
    some |= {"moments: a row at the corner", "standard scaler: somebody with many rows"}
    names = [
        each.name
        for each in subjects()
        if each.name in some or not (each.kind == "fit" or each.name.startswith(SLOW))
    ]
    with seeded("all"):
        audit = run(names, samples=500, confidence=1 - 1e-6)
    assert audit.broken == ()
    kinds = {finding.kind for finding in audit}
    assert kinds == {"mechanism", "client", "game", "query", "fit", "floats"}
    assert len(audit) > len(names)  # low bits beside
    assert {finding.name for finding in audit} == set(names)


@pytest.mark.stats
def test_no_registered_claim_is_called_broken_over_many_samples():
    with seeded("all, long"):
        audit = run(samples=200_000, confidence=1 - 1e-6)
    assert audit.broken == ()
    shown = [finding.proven / finding.claimed for finding in audit if finding.kind == "mechanism"]
    assert np.median(shown) > 0.7  # most come close: they are not cleared by blindness


@pytest.mark.stats
def test_files_whose_noise_comes_from_no_seed_are_told_from_honest_ones(monkeypatch):
    """Parts that all draw from one key have the same noise in each answer."""
    with seeded("written"):
        honest = run(["wards written"], samples=500, confidence=1 - 1e-6)
    monkeypatch.setattr("sfumato.session.drawing.hmac.digest", lambda *_: bytes(32))
    planted = run(["wards written"], samples=500, confidence=1 - 1e-6)
    assert (len(honest.broken), len(planted.broken)) == (0, 1)


PLANTED = {
    "somebody in all steps": ("stream.touches_of", lambda *_: 1),
    "two days of somebody": ("stream.touches_of", lambda *_: 1),
    "somebody alone in a clinic that nobody knew": ("stream.steps_of", lambda *_: 1),
    "somebody who counts in one step of a clinic that nobody knew": (
        "roster.Roster.admit",  # in all of them
        lambda self, units: setattr(self, "now", [b""] * len(units)) or np.ones(len(units), np.bool_),
    ),
    "somebody more in a clinic that nobody knew": (  # the exact number of units decides
        "finding.Finding.joining",
        lambda self, names, units, known, key: np.flatnonzero(
            (units > self.selection.threshold) & [name not in known for name in names]
        ),
    ),
    "somebody who is erased and comes again, in two steps": (
        "pricing.Continual",
        lambda plan, *, rho, **more: Continual(plan, rho=9 * rho, **more),
    ),
    "a row that is deleted again": (  # noise of half the size that was paid for
        "pricing.Continual",
        lambda plan, *, rho, **more: Continual(plan, rho=4 * rho, **more),
    ),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.stats) for name in PLANTED])
def test_series_of_neighbouring_histories_are_cleared_and_planted_bugs_are_not(name, monkeypatch):
    with seeded(name):
        honest = run([f"series: {name}"], samples=300_000, confidence=1 - 1e-6)
        place, new = PLANTED[name]
        monkeypatch.setattr(f"sfumato.session.series.{place}", new)
        planted = run([f"series: {name}"], samples=300_000, confidence=1 - 1e-6)
    assert (len(honest.broken), len(planted.broken)) == (0, 1)
    (finding,) = honest
    # Seen; a delta that is large enough for so few samples hides what honest selections show.
    assert finding.proven > 0.1 * finding.claimed or "nobody knew" in name


def test_one_series_is_cleared_and_a_planted_bug_is_not(monkeypatch):
    with seeded("series"):
        monkeypatch.setattr("sfumato.session.series.stream.touches_of", lambda *_: 1)
        planted = run(["series: somebody in all steps"], samples=500, confidence=1 - 1e-6)
    assert len(planted.broken) == 1


@pytest.mark.stats
def test_two_processes_audit_as_one_does():
    some = ["randomized response", "partition selection", "geometric"]
    audit = run(some, samples=2000, confidence=1 - 1e-9, processes=2)
    assert audit.broken == ()
    with seeded("one"):
        alone = run(some, samples=2000, confidence=1 - 1e-9)
    assert [(f.name, f.kind, f.samples) for f in audit] == [(f.name, f.kind, f.samples) for f in alone]


def test_names_are_unique_within_their_kind():
    keys = [(subject.kind, subject.name) for subject in subjects()]
    assert len(set(keys)) == len(keys) >= 80


def planted(name, kind, example, loss):
    return Subject(name, kind, lambda: (loss, example.draw))


@pytest.mark.parametrize("name", sorted(set(MUTANTS) - HARMLESS))
def test_every_planted_mechanism_is_caught(name):
    example = MUTANTS[name].planted
    # The discrete Gaussian's epsilon is a twentieth above its claim: the one that takes more to see.
    samples = 1_000_000 if name.startswith("discrete") else 20_000
    with seeded(f"planted {name}"):
        found = examined(
            planted(name, "mechanism", example, example.mechanism.loss), samples=samples, share=0.9999
        )
    broken = [finding for finding in found if finding.verdict == "broken"]
    assert broken
    assert ("floats" in {finding.kind for finding in broken}) or name != "float noise"


@pytest.mark.parametrize("name", LOCAL_MUTANTS)
def test_every_planted_client_is_caught(name):
    example = LOCAL_MUTANTS[name].planted
    with seeded(f"planted {name}"):
        (found,) = examined(planted(name, "client", example, example.loss), samples=8_000, share=0.9999)
    assert found.verdict == "broken"


def test_names_choose():
    with seeded("some"):
        audit = run(["LAPLACE: vector", "query: count by"], samples=500, confidence=SURE)
    assert {finding.name for finding in audit} == {
        "laplace: vector",
        "truncated laplace: vector",
        "query: count by city",
    }
    with pytest.raises(InvalidParameter, match="nothing registered is called 'laplac3'"):
        run(["laplac3"])
    with pytest.raises(InvalidParameter, match="samples"):
        run(["laplace"], samples=10)


def test_progress_is_told():
    told = []
    with seeded("told"):
        run(["randomized response"], samples=500, progress=lambda *each: told.append(each))
    assert [each[:2] for each in told] == [(1, 3), (2, 3), (3, 3)]
    assert told[0][2] == "randomized response: coins"


def test_a_mechanism_of_ones_own():
    with seeded("own"):
        honest = audit_mechanism(sf.Geometric(epsilon=1, sensitivity=1), 0, 1, samples=2000, confidence=SURE)
        lying = audit_mechanism(
            Claims(sf.Geometric(epsilon=4, sensitivity=1), PureLoss(Fraction(1))), 0, 1, samples=2000
        )
        choice = audit_mechanism(
            sf.Exponential(epsilon=1, sensitivity=1), [0.0, 2.0], [1.0, 1.0], samples=1000, confidence=SURE
        )
    assert (honest.name, honest.kind, honest.verdict) == ("Geometric", "mechanism", "holds")
    assert lying.verdict == "broken"
    assert lying.name == "Claims"
    assert choice.verdict == "holds"


def test_a_client_of_ones_own():
    client = sf.local.KaryResponse(epsilon=1, domain=4)
    with seeded("client"):
        assert audit_mechanism(client, 0, 1, samples=5000, confidence=SURE).verdict == "holds"


@pytest.mark.parametrize("thing", [None, "laplace", 5, object(), sf.PrivacyUnit.row(), [1, 2]])
def test_what_is_no_mechanism_is_refused(thing):
    with pytest.raises(InvalidParameter, match="An audit needs a mechanism, and this is a"):
        audit_mechanism(thing, 0, 1)


def test_a_loss_without_a_verb_is_refused():
    @dataclass
    class Priced:
        loss: PrivacyLoss

    with pytest.raises(InvalidParameter, match="release, select"):
        audit_mechanism(Priced(PureLoss(Fraction(1))), 0, 1)
    with pytest.raises(InvalidParameter, match="at least 500"):
        audit_mechanism(sf.Laplace(1, 1), 0.0, 1.0, samples=100)


@pytest.mark.parametrize("wrong", [{"confidence": 1}, {"samples": 600.0}])
def test_nothing_is_drawn_for_parameters_that_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        audit_mechanism(sf.Laplace(1, 1), 0.0, 1.0, draw=lambda *_: pytest.fail("drawn"), **wrong)


def test_answers_that_are_missing_on_one_side_are_outputs_too():
    # None on one side alone: no low bits to look at, and nothing that ends in an error.
    def draw(value, count):
        return [value + at % 7 / 8 if value or at % 3 else None for at in range(count)]

    with seeded("missing"):
        found = audit_mechanism(sf.Laplace(1, 1), 0.0, 1.0, samples=np.int64(600), draw=draw)
    assert (found.verdict, found.samples) == ("broken", 600)


def finding(**more):
    plain = {
        "name": "laplace: small epsilon, odd sensitivity, and a name that has no end",
        "kind": "mechanism",
        "claimed": 1.0,
        "delta": 0.0,
        "proven": 0.93,
        "confidence": 0.9999,
        "event": "output up to 0 (left over right)",
        "samples": 1000,
    }
    return Finding(**{**plain, **more})


def test_a_table_of_eighty_columns_says_what_is_broken():
    lie = finding(name="liar", proven=1.2)
    audit = Audit((finding(), lie), 0.999)
    assert audit.broken == (lie,)
    lines = str(audit).splitlines()
    assert max(map(len, lines)) <= 80
    assert "broken" in next(line for line in lines if line.startswith("liar"))
    assert "1 of 2 claims is broken" in str(audit)
    assert "liar: by output up to 0" in str(audit).replace("\n", " ")
    assert "broken" in str(lie)
    whole = Audit((finding(),), 0.999)
    assert "The claim holds" in str(whole)
    assert "99.9 %" in str(whole)


def test_findings_are_plain_data():
    audit = Audit((finding(), finding(name="liar", proven=1.2)), 0.999)
    read = json.loads(json.dumps(audit.to_dict()))
    assert read["holds"] is False
    assert read["broken"] == ["liar"]
    assert read["findings"][0]["verdict"] == "holds"
    assert set(read["findings"][0]) >= {"name", "kind", "claimed", "delta", "proven", "confidence", "event"}
