"""Classes that agree about their secret: as printed, of many people, and private ones."""

import numpy as np
import pyarrow as pa
import pytest

from crowds import DOMAINS, crowd, marginal_table
from sfumato.anonymity import Hierarchy, measure, mondrian
from sfumato.attacks.homogeneity import homogeneity
from sfumato.attacks.printed import SCORE_BANDS, table_1, table_2
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded
from verdicts import sure

QUASI = ["zip", "age"]
BOTH = {"quasi": QUASI, "sensitive": "score"}


def test_the_printed_classes_are_diverse_until_scores_are_banded():
    exact = homogeneity(table_2(), **BOTH)
    assert exact.reached.hits == 0
    assert exact.detail == {
        "classes": 2,
        "classes with one value": 0,
        "k": 4,
        "people with a rarer value": 7,
        "of them certain": 0,
        "certain of": {},
    }
    assert exact.works is False
    assert exact.power.noticed == 1
    banded = homogeneity(table_2(), **BOTH, bands=SCORE_BANDS, target="Table 2")
    assert banded.reached.hits == banded.reached.trials == 8
    assert banded.baseline == 0
    assert banded.detail["certain of"] == {"Fair": [4, 4], "Very good": [4, 4]}
    assert banded.works


def test_people_in_their_thirties_are_found_to_be_fair():
    people = table_1().append_column("score", table_2()["score"])
    found = homogeneity(table_2(), **BOTH, bands=SCORE_BANDS, people=people)
    assert found.reached.hits == 7  # all but Marcia, whose printed zip code is not hers
    assert homogeneity(table_2(), quasi="age", sensitive="score", bands=SCORE_BANDS, people=people).rate == 1
    # Whose score is not what all others of the class have is not known, but mistaken.
    wrong = people.set_column(3, "score", pa.array([300] * 8))
    assert homogeneity(table_2(), **BOTH, bands=SCORE_BANDS, people=wrong).reached.hits == 0


def wards(ill):
    """Fifty wards of four, nearly all well: the ill of each ward."""
    return pa.table(
        {
            "ward": [ward for ward in range(50) for _ in range(4)],
            "ill": ["yes" if bed < ill.get(ward, 0) else "no" for ward in range(50) for bed in range(4)],
        }
    )


WARDS = {"quasi": "ward", "sensitive": "ill"}


def test_only_harmful_values_are_counted_if_they_are_named():
    together = homogeneity(wards({7: 4, 8: 1}), **WARDS, values=["yes"], target="the wards")
    assert together.works
    assert (together.reached.hits, together.reached.trials, together.baseline) == (4, 5, 0)
    assert together.detail["people with a rarer value"] == 5
    assert together.detail["of them certain"] == 4
    assert together.detail["certain of"] == {"yes": [4, 5]}
    text = " ".join(str(together).split())
    assert "a person's class has one value alone in 4 of 5 (80.0%" in text
    assert "A guess (nobody is certain who has not seen the table) reaches 0.0%" in text
    # One in each of four wards: certain is only who is well.
    apart = wards(dict.fromkeys(range(4), 1))
    found = homogeneity(apart, **WARDS, values=["yes"])
    assert (found.reached.hits, found.reached.trials, found.works) == (0, 4, False)
    # Nobody can tell that this is no harm unless it is said: to be certain of it is a finding.
    assert homogeneity(apart, **WARDS).detail["certain of"] == {"no": [184, 196]}
    assert homogeneity(apart, **WARDS).works
    assert homogeneity(wards({}), **WARDS).works


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8, 1.0])
def test_a_frequent_value_that_is_certain_is_no_all_clear(share):
    # A share of the wards has nothing but hiv, the others three beds in four: far more than half have it.
    draw = simulation(3)
    full = draw.random(200) < share
    rows = pa.table(
        {
            "ward": np.repeat(np.arange(200), 4),
            "ill": np.where(np.repeat(full, 4) | (np.tile(np.arange(4), 200) < 3), "hiv", "none"),
        }
    )
    found = homogeneity(rows, **WARDS)
    assert found.works
    assert found.rate == full.mean()
    assert found.detail["certain of"]["hiv"][0] == 4 * full.sum()


def test_the_same_holds_of_people_and_beside_a_control():
    people, others = wards({7: 4, 8: 1}), wards({9: 4, 10: 1})
    known = homogeneity(people, **WARDS, people=people, values=["yes"])
    assert known.works
    assert (known.reached.hits, known.reached.trials, known.baseline) == (4, 5, 0)
    beside = homogeneity(people, **WARDS, people=people, control=others, confidence=0.9)
    assert (beside.reached.hits, beside.guess.hits, beside.guess.trials) == (4, 0, 5)
    assert beside.success == "a person's rarer value is certain, and right"
    assert homogeneity(people, **WARDS, people=people, control=wards({})).reached.trials == 200
    many, strangers = wards(dict.fromkeys(range(4), 4)), wards(dict.fromkeys(range(4, 8), 4))
    found = homogeneity(many, **WARDS, people=many, control=strangers)
    assert found.works
    assert (found.guess.hits, found.guess.trials) == (0, 16)


def test_a_private_table_of_rare_values_tells_no_more_than_of_strangers():
    domains = {"ward": range(50), "ill": ["yes", "no"]}
    people, others = (wards(dict.fromkeys(some, 4)) for some in (range(4), range(4, 8)))
    with seeded("wards"):
        private = marginal_table(people, domains, 1.0)
    found = homogeneity(private, **WARDS, people=people, control=others, confidence=1 - 1e-6)
    assert found.reached.trials == found.guess.trials == 16
    assert sure(found).within


def test_a_few_people_are_a_finding_too():
    few = pa.table({"zip": ["1", "1", "1", "2", "2"], "ill": ["a", "a", "a", "b", "c"]})
    found = homogeneity(few, quasi="zip", sensitive="ill")
    assert (found.reached.hits, found.reached.trials) == (3, 5)
    assert found.works


def test_pairs_often_agree_and_a_private_table_tells_no_more_than_of_strangers():
    people, others = crowd(1500, 4), crowd(1500, 5)
    rich = [
        pa.array(np.where(each["income"].to_numpy() > 22_000, "rich", "poor")) for each in (people, others)
    ]
    people, others = (
        each.append_column("rich", own) for each, own in zip((people, others), rich, strict=True)
    )
    known = {"quasi": ["zip", "age"], "sensitive": "rich"}
    pairs = mondrian(people.drop_columns(["id", "name"]), known["quasi"], 2).table
    assert measure(pairs, known["quasi"]).k == 2
    found = homogeneity(pairs, **known, people=people, control=others)
    assert found.works
    assert found.rate > 0.25
    domains = {"zip": DOMAINS["zip"], "age": DOMAINS["age"], "rich": ["rich", "poor"]}
    with seeded("rich"):
        private = marginal_table(people, domains, 1.0)
    found = homogeneity(private, **known, people=people, control=others, target="epsilon 1")
    assert sure(found).within
    assert found.reached.hits > 50


def test_the_names_of_a_tree_are_understood():
    tree = Hierarchy.tree({"alone": ["Divorced", "Widowed"], "couple": ["Married"]})
    people = pa.table({"status": ["Divorced", "Widowed", "Married", "Married"], "ill": ["a", "a", "b", "c"]})
    released = pa.table({"status": ["alone", "alone", "couple", "couple"], "ill": ["a", "a", "b", "c"]})
    given = {"quasi": "status", "sensitive": "ill", "people": people}
    assert homogeneity(released, **given).reached.hits == 0
    assert homogeneity(released, **given, hierarchies={"status": tree}).reached.hits == 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: homogeneity(table_2(), quasi="zip", sensitive="zip"), "both quasi and sensitive"),
        (lambda: homogeneity(table_2(), quasi="zip", sensitive=["score"]), "name of one column"),
        (lambda: homogeneity(table_2(), **BOTH, control=table_1()), "control needs people"),
        (lambda: homogeneity(table_2(), **BOTH, bands={"a": (0, 700)}), "leave out a value"),
        (lambda: homogeneity(table_2(), **BOTH, bands={"a": (0, 700), "b": (700, 900)}), "not overlap"),
        (lambda: homogeneity(table_2(), **BOTH, bands={"a": (9, 7)}), "least first"),
        (lambda: homogeneity(table_2(), **BOTH, bands={}), "Each band needs"),
        (lambda: homogeneity(table_2(), **BOTH, bands={"a": 5}), "Each band needs"),
        (lambda: homogeneity(table_2(), **BOTH, confidence=2), "strictly between"),
        (lambda: homogeneity(table_2(), **BOTH, values=[1]), "values that the sensitive column has"),
        (lambda: homogeneity(table_2(), **BOTH, values="797"), "a list of values"),
        (lambda: homogeneity(table_2(), **BOTH, leak=0), "leak is the share"),
        (
            lambda: homogeneity(
                crowd(60, 1), quasi="age", sensitive="ill", people=crowd(60, 1), control=crowd(60, 1)
            ),
            "holds rows of the people",
        ),
    ],
)
def test_what_cannot_be_attacked_is_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()
