"""Until the first debit whatever is declared last holds; from then on unit, bounds and budget are fixed."""

from __future__ import annotations

import itertools
import random
import shlex
from fractions import Fraction

import pytest

from sfumato.errors import AccessDenied, BudgetExceeded, LedgerMismatch, LedgerTampered
from sfumato.ledger import Budget, Counter, Steward
from sfumato.loss import GaussianLoss, PureLoss

F = Fraction
UNITS = ("user_id", "usr_id", {"column": "user_id", "adjacency": "exchange"})
BOUNDS = ({"max_groups": 1}, {"max_groups": 5, "columns": {"age": {"upper": 99}}})
BUDGETS = (Budget(5, "1e-6"), Budget("0.5", "1e-7"), Budget(1, "1e-6", "zcdp"), Budget(2, "1e-6", "rdp"))
VERSIONS = (None, "2024-02")
EVERY = [
    ({"unit": unit, "schema": {"visits": bounds}, "version": version}, budget)
    for unit, bounds, version, budget in itertools.product(UNITS, BOUNDS, VERSIONS, BUDGETS)
]


def pay(ledger, known=None, analyst=None, loss=None, dataset="visits"):
    return ledger.debit(
        dataset, loss or PureLoss("0.01"), fingerprint="q", analyst=analyst, known=known
    ).receipt


def test_what_is_declared_last_holds_and_the_first_debit_fixes_it(place):
    draw = random.Random(7)
    with place.open() as ledger:
        for declaration, budget in draw.sample(EVERY, 12):
            known = ledger.register("visits", declaration, budget)
            assert (known.declaration, known.budget) == (declaration, budget)
            assert ledger.register("visits", declaration, None) == known  # and once more changes nothing
            assert ledger.balance("visits").epsilon == budget.epsilon
        pay(ledger, known)
        for other, another in EVERY:
            fixed = other | {"version": None} == declaration | {"version": None}
            if fixed and another == budget:
                assert ledger.register("visits", other, another).declaration == other
                continue
            with pytest.raises(LedgerMismatch) as refused:
                ledger.register("visits", other, another)
            ways = ("Steward.raise_budget", "another dataset=", "Steward.redeclare")
            assert any(way in str(refused.value) for way in ways)
        assert ledger.verify().ok
    with place.open() as ledger:
        assert ledger.datasets()[0].budget == budget
        assert ledger.verify().ok


def test_refusals_name_what_differs(place):
    with place.open() as ledger:
        declaration = {"unit": {"column": "user_id"}, "schema": {"visits": BOUNDS[1]}}
        pay(ledger, ledger.register("visits", declaration, Budget(1, "1e-6")))
        with pytest.raises(LedgerMismatch, match=r"unit\.column user_id on record, usr_id now"):
            ledger.register("visits", declaration | {"unit": {"column": "usr_id"}}, None)
        fewer = {"visits": BOUNDS[1] | {"max_groups": 3}}
        with pytest.raises(LedgerMismatch, match=r"visits\.max_groups 5 on record, 3 now\. Declare"):
            ledger.register("visits", declaration | {"schema": fewer}, None)
        named = "visits of '24"  # as a shell takes it
        pay(ledger, ledger.register(named, declaration, Budget(1, "1e-6")), dataset=named)
        with pytest.raises(LedgerMismatch) as refused:
            ledger.register(named, declaration | {"schema": fewer}, None)
        typed = str(refused.value).partition("(")[2].partition(", Steward")[0]
        assert shlex.split(typed) == ["sfumato", "ledger", "redeclare", named, "--reason", "…"]
        with pytest.raises(LedgerMismatch, match="Once something was spent"):
            Steward(ledger).raise_budget("visits", Budget("0.5", "1e-6"), reason="less")


def test_the_steward_may_lower_and_redeclare_before_the_first_debit(place):
    with place.open() as ledger:
        ledger.register("visits", {"unit": "usr_id"}, Budget(5))
        Steward(ledger).raise_budget("visits", Budget("0.5"), reason="a slip")
        Steward(ledger).redeclare("visits", {"unit": "user_id"}, reason="a slip")
        known = ledger.register("visits", {"unit": "user_id"}, Budget("0.5"))
        with pytest.raises(BudgetExceeded):
            pay(ledger, known, loss=PureLoss(1))
        pay(ledger, known, loss=PureLoss("0.5"))
        assert ledger.verify().ok


def test_who_priced_for_an_earlier_declaration_is_refused_by_the_debit(place):
    with place.open() as first, place.open() as second:
        for change in ({"unit": "row"}, None), ({"unit": "user_id"}, Budget(3)), ({"unit": "x"}, Budget(9)):
            before = first.register("visits", {"unit": "user_id"}, Budget(1))
            after = second.register("visits", *change)
            with pytest.raises(LedgerMismatch, match="Open the session again"):
                pay(first, before, loss=PureLoss("0.1"))
            assert first.balance("visits").entries == 0
        pay(second, after, loss=PureLoss("0.1"))
        # A raised budget and a new version are no new declaration; a steward's redeclaration is.
        Steward(first).raise_budget("visits", Budget(10), reason="more")
        first.register("visits", {"unit": "x", "version": 2}, None)
        pay(second, after, loss=PureLoss("0.1"))
        Steward(first).redeclare("visits", {"unit": "x", "schema": {"age": 9}}, reason="wider")
        with pytest.raises(LedgerMismatch, match="Open the session again"):
            pay(second, after, loss=PureLoss("0.1"))


@pytest.mark.parametrize("planted", [False, True])
def test_of_processes_that_declare_differently_one_pays(place, crew, planted):
    units = ("user_id", "row", "household")
    jobs = [
        ["declared", place.where, place.state, unit, epsilon, 2, planted]
        for epsilon, unit in enumerate(units, start=1)
    ]
    place.open().close()
    answers = crew.run(*jobs)
    assert [status for status, _ in answers] == [0, 0, 0]
    paid = [unit for _, ((what, unit),) in answers if what == "paid"]
    with place.open() as ledger:
        on_record = ledger.datasets()[0].declaration["unit"]
        assert ledger.balance("visits").entries == len(paid)
        assert ledger.verify().ok
    assert (paid == [on_record]) != planted  # without the check in its transaction each of them pays


def test_a_ledger_put_back_to_before_the_first_debit_stays_bound(place):
    with place.open() as ledger:
        known = ledger.register("visits", {"unit": "user_id"}, Budget(1))
    place.snapshot()
    with place.open() as ledger:
        pay(ledger, known, loss=PureLoss(1))
    place.restore()
    with pytest.raises(LedgerTampered):
        place.open()
    place.anchor.unlink()
    with pytest.raises(LedgerTampered):
        place.open()
    place.open(adopt=True).close()
    with place.open() as ledger:
        assert ledger.balance("visits").entries == 0
        with pytest.raises(LedgerMismatch, match="another privacy unit"):
            ledger.register("visits", {"unit": "row"}, None)
        with pytest.raises(LedgerMismatch, match="on record is epsilon 1"):
            ledger.register("visits", {"unit": "user_id"}, Budget(2))
        assert ledger.register("visits", {"unit": "user_id"}, Budget(1)).name == "visits"
        assert ledger.verify().ok


def test_a_closed_budget_is_bound(place):
    with place.made() as ledger:
        Steward(ledger).close_budget("visits", reason="deleted")
        with pytest.raises(LedgerMismatch, match="another privacy unit"):
            ledger.register("visits", {"unit": "user_id"}, None)


def test_limits_are_kept_in_what_a_new_accountant_adds_up(place):
    with place.open() as ledger:
        unit = {"unit": "user_id"}
        ledger.register("visits", unit, Budget(1, "1e-6"))
        steward = Steward(ledger)
        steward.limit("visits", "ada", Budget("0.2", "1e-7"), reason="a course")
        steward.allot("visits", {"bob": Budget("0.1", "1e-7")}, reason="spring")
        steward.revoke("visits", "bob", reason="left")
        ledger.register("visits", unit, Budget(2, "1e-6", "zcdp"))
        seat = ledger.balance("visits", "ada")
        assert (seat.accountant, seat.epsilon, seat.delta) == ("zcdp", F("0.2"), F("1e-7"))
        assert set(seat.gate) == {"rho", "delta"}
        assert not ledger.balance("visits", "bob").open
        with pytest.raises(BudgetExceeded, match="limit of 'ada'"):
            pay(ledger, analyst="ada", loss=GaussianLoss("0.01"))
        pay(ledger, analyst="ada", loss=GaussianLoss("0.0001"))
        assert ledger.verify().ok


def test_a_limit_that_another_accountant_cannot_hold_is_named(place):
    with place.made(Budget(1, "1e-6")) as ledger:
        Steward(ledger).limit("visits", "ada", Budget("0.2"), reason="a course")
        with pytest.raises(LedgerMismatch, match=r"limit of 'ada' on 'visits' is epsilon 0\.2, delta 0"):
            ledger.register("visits", {"unit": "row"}, Budget(1, "1e-6", "zcdp"))
        assert ledger.datasets()[0].budget == Budget(1, "1e-6")


def test_an_analyst_declares_nothing_before_the_first_debit_either(place):
    with place.made(Budget(1, "1e-6")) as ledger:
        counter = Counter(ledger, "ada")
        before = len(list(ledger.entries()))
        for declaration, budget in EVERY[:8]:
            with pytest.raises(AccessDenied, match="only the steward"):
                counter.register("visits", declaration, budget)
        assert len(list(ledger.entries())) == before


def test_verify_finds_what_changes_after_the_first_debit(place):
    changes = (
        ("open", {"budget": Budget(9).to_dict()}),
        ("raise", {"budget": Budget("0.5").to_dict()}),
        ("redeclare", {"declaration": {"unit": "other"}}),
    )
    with place.made() as ledger:
        pay(ledger, loss=PureLoss("0.1"))
        for kind, facts in changes:
            with ledger._journal.writing() as draft:
                draft.add(kind, "visits", **facts)
        problems = ledger.verify().problems
        assert sum("the first debit had fixed" in problem for problem in problems) == 3
