"""Several questions for one price: what is debited covers all of them, a receipt reads each of them once."""

import datetime
import math
import re
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.engines import DuckDB
from sfumato.errors import AccessDenied, BudgetExceeded, Cancelled, EngineFailed, LedgerUnusable, SfumatoError
from sfumato.ledger import Ledger
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices import quoting
from sfumato.plan.prices.bundle import NOTHING
from sfumato.plan.prices.extras import PricedQuantiles
from sfumato.plan.prices.touched import PricedTouched
from sfumato.session.payload import Answer
from sfumato.session.vault import Vault
from sfumato.testing import seeded
from tables import make, rows

CANARY = 'zYx-canary-"42"'
DELTA = Fraction(1, 10**7)
FORMS = {
    "found groups": "SELECT city, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY city",
    "found groups and sums": "SELECT city, SUM(age) AS s, AVG(amount) AS a FROM visits GROUP BY city",
    "everything": (
        "SELECT city, COUNT(DISTINCT user_id) AS n, SUM(age) AS s, MEDIAN(age) AS m, MAX(amount) AS x, "
        "COUNT(DISTINCT age) AS d FROM visits GROUP BY city"
    ),
    "quantiles": "SELECT MEDIAN(age) AS m, QUANTILE_CONT(amount, 0.9) AS q FROM visits",
    "distinct": "SELECT country, COUNT(DISTINCT age) AS d FROM visits GROUP BY country",
    "public groups": "SELECT country, COUNT(*) AS n, MIN(age) AS m FROM visits GROUP BY country",
}


@pytest.fixture(scope="module")
def table():
    return make(rows(300, 80))


@pytest.fixture(scope="module")
def unspent(table):
    """A session in which nothing is bought."""
    with sf.Session(table, budget=sf.Budget(5, "1e-5")) as session:
        yield session


def selects(name):
    return "city" in FORMS[name]


# Price.


def parts_of(quote):
    """The loss of every single draw that an answer is made of."""
    parts = [each.loss for each in quote.mechanisms]
    for each in quote.extras:
        if isinstance(each, PricedQuantiles):
            parts += [each.selection.loss, each.bars.loss]
        else:
            parts += [each.mechanism.loss] * (2 if isinstance(each, PricedTouched) else 1)
    return parts + [each.loss for each in quote.selections]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("touched", [False, True])
def test_the_parts_of_a_pure_price_add_up_to_it(unspent, name, touched):
    asked = unspent.sql(FORMS[name])
    quote = asked.quote(epsilon="0.7", delta=DELTA, mechanism="laplace", touched=touched)
    delta = DELTA if selects(name) else 0
    assert (quote.epsilon, quote.delta) == (Fraction("0.7"), delta)
    gate = sf.Budget(1, "1e-3").filter()
    prices = [gate.price(each) for each in parts_of(quote)]
    assert (sum(each[0] for each in prices), sum(each[1] for each in prices)) == (Fraction("0.7"), delta)
    assert gate.price(quote.loss) == (Fraction("0.7"), delta)
    assert sum(each.share for each in quote.measurements) == pytest.approx(1)
    assert len(quote.measurements) == len(quote.mechanisms) + len(quote.extras) + selects(name)
    assert bool(quote.extras and isinstance(quote.extras[-1], PricedTouched)) == touched


@pytest.mark.parametrize("name", ["found groups and sums", "everything", "public groups"])
@pytest.mark.parametrize("touched", [False, True])
def test_the_parts_of_a_gaussian_price_add_up_to_it(unspent, name, touched):
    asked = unspent.sql(FORMS[name])
    quote = asked.quote(epsilon="0.7", delta=DELTA, mechanism="gaussian", touched=touched)
    assert (quote.epsilon, quote.delta) == (Fraction("0.7"), DELTA)
    assert sf.Budget(1, "1e-3").filter().price(quote.loss) == (Fraction("0.7"), DELTA)
    rest = sum((each.epsilon for each in quote.extras), Fraction(0))
    own = DELTA
    if quote.selection is not None:
        rest += quote.selection.epsilon
        own -= quote.selection.delta
        assert quote.selection.delta == DELTA / 2
    rho = sum(each.loss.rho for each in quote.mechanisms)
    sigma = sf.accounting.gaussian_sigma(quote.epsilon - rest, own)
    assert rho == 1 / (2 * sigma**2)


@pytest.mark.parametrize("name", FORMS)
def test_a_budget_admits_exactly_one_release_of_its_size(table, name):
    delta = DELTA if selects(name) else 0
    with sf.Session(table, budget=sf.Budget("0.7", delta)) as session:
        query = session.sql(FORMS[name])
        other = session.sql(FORMS[name].replace("FROM visits", "FROM visits WHERE age > 3"))
        with pytest.raises(BudgetExceeded):
            query.release(epsilon="0.7000001", delta=delta or None)
        assert session.balance().spent == 0
        release = query.release(epsilon="0.7", delta=delta or None)
        assert not release.free
        balance = session.balance()
        assert (balance.spent, balance.remaining, balance.spent_delta) == (Fraction("0.7"), 0, delta)
        with pytest.raises(BudgetExceeded):
            other.release(epsilon="0.0001", delta=delta or None)
        assert session.balance().spent == Fraction("0.7")
        (receipt,) = session.releases()
        memo = dict(receipt.memo)
        assert (memo["epsilon"], memo["delta"]) == ("7/10", str(delta))
        assert receipt.fingerprint == release.quote.fingerprint
        assert receipt.loss == release.quote.loss
        assert query.release(epsilon="0.7", delta=delta or None).free


GATES = {
    "zcdp with delta aside": sf.Budget(3, "1e-5", "zcdp", aside="1e-6"),
    "zcdp": sf.Budget(3, "1e-5", "zcdp"),
    "rdp": sf.Budget(3, "1e-5", "rdp"),
    "gaussian": sf.Budget(3, "1e-5", "gaussian"),
}
ADMITTED = {
    ("zcdp with delta aside", "everything"),
    ("zcdp with delta aside", "public groups"),
    ("zcdp", "public groups"),
    ("rdp", "public groups"),
}


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("name", ["everything", "public groups"])
def test_every_gate_is_charged_for_all_parts_or_refuses_at_no_cost(table, gate, name):
    budget = GATES[gate]
    with sf.Session(table, budget=budget) as session:
        query = session.sql(FORMS[name])
        if (gate, name) not in ADMITTED:
            with pytest.raises(SfumatoError):
                query.release(epsilon="0.2", delta=DELTA)
            assert session.balance().spent == 0
            assert not session.releases()
            return
        quote = query.quote(epsilon="0.2", delta=DELTA)
        query.release(epsilon="0.2", delta=DELTA)
        (receipt,) = session.releases()
        assert receipt.loss == quote.loss
        filtered = budget.filter()
        parts = [budget.totals(filtered.price(each)) for each in parts_of(quote)]
        assert len(parts) == {"everything": 1 + 4 + 1 + 1, "public groups": 1 + 2}[name]
        whole = budget.totals(filtered.price(quote.loss))
        for mine, theirs in zip(whole, map(sum, zip(*parts, strict=True)), strict=True):
            assert float(mine) == pytest.approx(float(theirs), rel=1e-9)
        assert session.balance().spent > 0


def test_a_forgotten_part_would_be_noticed(table, monkeypatch):
    honest = quoting.loss_of
    noticed = (AssertionError, pytest.fail.Exception)
    for plant in (
        lambda main, extras, selection: honest(main, extras[1:], selection),
        lambda main, extras, selection: honest(main, extras, ()),
        lambda main, extras, selection: honest(NOTHING, extras, selection),
    ):
        monkeypatch.setattr(quoting, "loss_of", plant)
        # A session keeps its quotes: this one has none yet.
        with sf.Session(table, budget=sf.Budget(5, "1e-5")) as fresh, pytest.raises(noticed):
            test_the_parts_of_a_pure_price_add_up_to_it(fresh, "everything", touched=False)
        with pytest.raises(noticed):
            test_every_gate_is_charged_for_all_parts_or_refuses_at_no_cost(
                table, "zcdp with delta aside", "everything"
            )


# One receipt.


class Watching(DuckDB):
    """Counts reads, and can fail at one of them."""

    def __init__(self, fail_at=None, error=None):
        super().__init__()
        self.reads, self.fail_at, self.error, self.before = 0, fail_at, error, []
        self.ledger = None

    def fetch(self, statement):
        self.reads += 1
        if self.ledger is not None:
            self.before.append(self.ledger.balance("visits").spent)
        if self.reads == self.fail_at:
            raise self.error
        return super().fetch(statement)


def watched(table, **more):
    engine = Watching(**more)
    session = sf.Session(table, budget=sf.Budget(5, "1e-5"), engine=engine)
    engine.ledger = session.ledger
    return session, engine


@pytest.mark.parametrize("name", FORMS)
def test_every_question_is_read_once_and_after_the_whole_debit(table, name):
    session, engine = watched(table)
    with session:
        release = session.sql(FORMS[name]).release(epsilon=1, delta=DELTA)
        assert engine.reads == len(release.quote.recipe.questions)
        assert set(engine.before) == {1}
        session.sql(FORMS[name]).release(epsilon=1, delta=DELTA)
        assert engine.reads == len(release.quote.recipe.questions)
    engine.close()


def test_a_receipt_opens_each_place_once_and_for_its_own_questions(table):
    with sf.Session(table, budget=sf.Budget(5, "1e-5")) as session:
        quote = session.sql(FORMS["everything"]).quote(epsilon=1, delta=DELTA)
        questions = quote.recipe.questions
        receipt = session.ledger.debit("visits", quote.loss, fingerprint=quote.fingerprint)
        groups = session.vault.read(questions, receipt).groups
        with pytest.raises(AccessDenied):
            session.vault.read(questions, receipt)
        with pytest.raises(AccessDenied):
            session.vault.read(questions[:1], receipt)
        with pytest.raises(AccessDenied):
            session.vault.read(questions[::-1], receipt, place=1, over=groups)
        session.vault.read(questions, receipt, place=1, over=groups)
        with pytest.raises(AccessDenied):
            session.vault.read(questions, receipt, place=1, over=groups[:1])


def chain(error):
    seen = []
    while error is not None and error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return seen


@pytest.mark.parametrize("read", [1, 2, 3])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError(CANARY), EngineFailed),
        (MemoryError(CANARY), EngineFailed),
        (KeyboardInterrupt(CANARY), Cancelled),
    ],
    ids=["engine", "memory", "interrupt"],
)
def test_a_read_that_fails_stays_paid_and_releases_nothing(table, read, error, expected):
    session, engine = watched(table, fail_at=read, error=error)
    with session:
        query = session.sql(FORMS["everything"])
        with pytest.raises(expected) as caught:
            query.release(epsilon=1, delta=DELTA)
        for each in chain(caught.value):
            assert CANARY not in repr(each)
            assert CANARY not in str(each)
        assert engine.reads == read
        assert session.balance().spent == 1
        assert [receipt.kind for receipt in session.ledger.entries("visits")].count("release") == 0
        again = query.release(epsilon=1, delta=DELTA)
        assert not again.free
        assert session.balance().spent == 2
    engine.close()


def test_a_failure_while_bounds_are_bought_is_paid_alone():
    source = rows(40)
    unbounded = sf.PrivateTable(
        "visits", source=source, unit=sf.PrivacyUnit("user_id", max_groups=2), schema={"amount": sf.Float()}
    )
    session, engine = watched(unbounded, fail_at=1, error=RuntimeError(CANARY))
    with session:
        with pytest.raises(EngineFailed) as caught:
            session.sql("SELECT SUM(amount) AS s FROM visits").release(epsilon=1, bounds="auto")
        assert all(CANARY not in repr(each) for each in chain(caught.value))
        assert session.balance().spent == Fraction(1, 5)
    engine.close()


def test_planted_faults_of_the_path_are_noticed(table, monkeypatch):
    read = Vault.read

    def twice(self, questions, receipt, **options):
        read(self, questions, receipt, **options)
        receipt._used.clear()
        return read(self, questions, receipt, **options)

    for owner, name, plant in ((Vault, "read", twice), (Ledger, "record", lambda *_args: None)):
        with monkeypatch.context() as planted:
            planted.setattr(owner, name, plant)
            with pytest.raises(AssertionError):
                test_every_question_is_read_once_and_after_the_whole_debit(table, "quantiles")


# Recall.


def test_the_same_question_in_another_dress_is_free(table):
    with sf.Session(table, budget=sf.Budget(5, "1e-5")) as session:
        first = session.sql(
            "SELECT city, new, MEDIAN(age) AS m, SUM(age) AS s, COUNT(DISTINCT user_id) AS n "
            "FROM visits GROUP BY city, new"
        ).release(epsilon=1, delta=DELTA)
        other = session.sql(
            "select count(distinct v.user_id) as b, sum(v.age) + 1 as c, v.new as w, median(age) as a, "
            "city as z from visits as v group by v.new, city having sum(age) > -1e9 order by z, w"
        ).release(epsilon=1, delta=DELTA)
        assert other.free
        mine = sorted(
            (row["city"], row["new"], row["m"], row["s"] + 1, row["n"]) for row in first.table.to_pylist()
        )
        theirs = sorted((row["z"], row["w"], row["a"], row["c"], row["b"]) for row in other.table.to_pylist())
        assert mine == theirs
        assert session.balance().spent == 1


def test_another_way_of_bounding_is_another_question(table):
    text = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
    with sf.Session(table, budget=sf.Budget(50, "1e-5")) as session:
        query = session.sql(text)
        assert not query.release(epsilon=1, bounding="reweight").free
        assert query.release(epsilon=1).free
        assert not query.release(epsilon=1, bounding="choose").free
        assert not query.release(epsilon=1, touched=True).free
        assert not query.release(epsilon=1, touched=True, bounding="choose").free
        assert query.release(epsilon="0.5", bounding="choose").free
        assert not query.release(epsilon=2, bounding="choose").free
        google = session.sql(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) {text[7:]}")
        assert google.release().free
        tighter = session.sql(
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_groups_contributed=1) {text[7:]}"
        )
        assert not tighter.release().free
        assert session.balance().spent == 7


def test_answers_are_read_back_from_a_file(table, tmp_path):
    shown = {}
    for _ in range(2):
        with sf.Session(table, budget=sf.Budget(50, "1e-2"), ledger=tmp_path / "v.ledger") as session:
            for name in ("everything", "distinct", "found groups"):
                release = session.sql(FORMS[name]).release(epsilon=5, delta="1e-4")
                assert release.free == (name in shown)
                before, how, _ = re.split(r"\b(Paid|Answered again)\b", str(release))
                assert how == ("Answered again" if release.free else "Paid")
                assert shown.setdefault(name, before) == before


def test_an_answer_comes_back_to_the_last_bit():
    keys = (
        ("a", 3, True, datetime.date(1, 1, 1), 0.1, None),
        ("é\0'", -(2**62), False, datetime.date(9999, 12, 31), -math.inf, ""),
    )
    answer = Answer(
        (np.array([0.1, 1e300]), np.array([2**62, -3])),
        (Noise("laplace", 0.1, 0.01), Noise("geometric", 3.0, whole=True)),
        Fraction(1, 3),
        Fraction(1, 10**9),
        "laplace",
        keys,
        np.array([2**61, 5]),
        ((Fraction(1, 7), (np.arange(6).reshape(2, 3), np.array([[0.5], [0.25]]), np.zeros((0, 4)))),),
        (Fraction(1, 9), Fraction(1, 11)),
    )
    back = Answer.from_bytes(answer.to_bytes())
    assert back.groups == keys
    assert [tuple(map(type, row)) for row in back.groups] == [tuple(map(type, row)) for row in keys]
    assert (back.epsilon, back.delta, back.mechanism, back.selection) == (
        answer.epsilon, answer.delta, "laplace", answer.selection,
    )  # fmt: skip
    assert back.noises == answer.noises
    pairs = [*zip(back.noisy, answer.noisy, strict=True), (back.units, answer.units)]
    pairs += zip(back.extras[0][1], answer.extras[0][1], strict=True)
    for mine, theirs in pairs:
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        assert mine.tolist() == theirs.tolist()
    assert back.extras[0][0] == Fraction(1, 7)
    assert back.to_bytes() == answer.to_bytes()


def test_answers_of_the_first_format_are_still_read():
    old = (
        b'{"format":1,"epsilon":"1/2","delta":"0","mechanism":"laplace",'
        b'"noises":[["geometric","0x1.0000000000000p+1","0x0.0p+0",true,"0x0.0p+0"]],"noisy":[{"whole":[4,7]}]}'
    )
    answer = Answer.from_bytes(old)
    assert answer.noisy[0].tolist() == [4, 7]
    assert (answer.groups, answer.units, answer.extras, answer.selection) == (None, None, (), None)
    assert answer.to_bytes() == old
    with pytest.raises(LedgerUnusable):
        Answer.from_bytes(old.replace(b'"format":1', b'"format":9'))


def test_a_better_answer_serves_and_a_worse_one_does_not(table):
    """For each part: a cheaper selection, or cheaper extra question, is not as good."""
    with sf.Session(table, budget=sf.Budget(50, "1e-2")) as session, seeded("better"):
        query = session.sql(FORMS["everything"])
        query.release(epsilon=2, delta="1e-4")
        assert query.release(epsilon=2, delta="1e-4").free
        assert not query.release(epsilon=3, delta="1e-4").free
        assert not query.release(epsilon=2, delta="1e-3").free
        assert session.balance().spent == 7
        alone = session.sql(FORMS["quantiles"])
        assert not alone.release(epsilon=1).free
        assert not alone.release(epsilon=2).free
        assert alone.release(epsilon="1.5").free
