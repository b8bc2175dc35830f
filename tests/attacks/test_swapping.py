"""What a swapped table says of a person is true but for the share that was swapped."""

import pyarrow as pa
import pytest

from crowds import DOMAINS, crowd, marginal_table
from sfumato.attacks.swapping import swap, swapping
from sfumato.errors import InvalidParameter
from sfumato.testing import seeded
from sfumato.testing.statistics import assert_bernoulli
from verdicts import sure

ON = ["zip", "age", "sex"]
PEOPLE, OTHERS = crowd(900, 1), crowd(900, 2)


def test_swapping_moves_a_share_of_the_values_and_keeps_every_count():
    done = swap(PEOPLE, sensitive=["ill", "income"], share=0.1, seed=3)
    assert done.column_names == PEOPLE.column_names
    assert done.drop_columns(["ill", "income"]).equals(PEOPLE.drop_columns(["ill", "income"]))
    pairs = [
        list(zip(each["ill"].to_pylist(), each["income"].to_pylist(), strict=True)) for each in (PEOPLE, done)
    ]
    assert sorted(pairs[0]) == sorted(pairs[1])  # columns of a row move together
    moved = sum(a != b for a, b in zip(*pairs, strict=True))
    assert 80 <= moved <= 90  # of the 90 that were swapped; incomes are rarely equal
    assert done.equals(swap(PEOPLE, sensitive=["ill", "income"], share=0.1, seed=3))
    assert not done.equals(swap(PEOPLE, sensitive=["ill", "income"], share=0.1, seed=4))
    assert swap(PEOPLE, sensitive="ill", share=0).equals(PEOPLE)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_an_attacker_is_right_but_for_the_share(share):
    swapped = swap(PEOPLE, sensitive="income", share=share, seed=5)
    found = swapping(PEOPLE, swapped, on=ON, sensitive="income", target=f"{share:.0%} swapped")
    assert found.works
    assert found.baseline < 0.01
    assert_bernoulli(found.reached.hits, found.reached.trials, 1 - share, alpha=1e-6)
    # Incomes of one's own also mean that strangers learn nothing.
    assert swapping(PEOPLE, swapped, on=ON, sensitive="income", control=OTHERS).works


def test_to_write_each_row_twice_hides_nobody():
    swapped = swap(PEOPLE, sensitive="income", share=0.1, seed=5)
    once, twice = (
        swapping(PEOPLE, each, on=ON, sensitive="income")
        for each in (swapped, pa.concat_tables([swapped, swapped]))
    )
    assert twice.reached == once.reached


def test_all_swapped_is_no_better_than_a_guess():
    # The illness of a random other: a ring of all rows breaks its link with age, too.
    swapped = swap(PEOPLE, sensitive="ill", share=1, seed=6)
    assert sure(swapping(PEOPLE, swapped, on=ON, sensitive="ill", control=OTHERS)).within


def test_a_private_table_is_right_about_strangers_as_often():
    # Age and illness keep what they have to do with each other: both members and strangers are read by it.
    domains = {name: DOMAINS[name] for name in (*ON, "ill")}
    groups = [["zip"], ["sex"], ["age", "ill"]]
    with seeded("swapping"):
        private = marginal_table(PEOPLE, domains, 1.0, together=groups)
    found = swapping(PEOPLE, private, on=ON, sensitive="ill", control=OTHERS, target="epsilon 1")
    assert sure(found).within
    assert found.reached.trials > 50


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: swap(PEOPLE, sensitive="ill", share=1.5), "from 0 to 1"),
        (lambda: swap(PEOPLE, sensitive="il", share=0.5), 'no column "il"'),
        (lambda: swap(PEOPLE, sensitive=[], share=0.5), "at least one column"),
        (lambda: swap(PEOPLE.slice(0, 0), sensitive="ill", share=0.5), "no rows"),
        (lambda: swapping(PEOPLE, PEOPLE, on=["ill"], sensitive="ill"), "must not be among on"),
        (lambda: swapping(PEOPLE, PEOPLE, on=["sex"], sensitive="ill"), "Nobody matches exactly one"),
        (lambda: swapping(PEOPLE, pa.table({"sex": ["f"]}), on="sex", sensitive="ill"), 'no column "ill"'),
    ],
)
def test_what_cannot_be_attacked_is_refused(make, words):
    with pytest.raises(InvalidParameter, match=words):
        make()
