"""A control that holds the people it is compared with is refused, and one that looks like them is not."""

import numpy as np
import pyarrow as pa
import pytest

from crowds import crowd
from sfumato.attacks.control import check_apart
from sfumato.attacks.singling import inference, linkability, singling_out
from sfumato.errors import InvalidParameter
from sfumato.random import simulation

PEOPLE, OTHERS = crowd(300, 1), crowd(300, 2, start=300)


def drawn(seed, rows, values):
    return pa.table({"cell": simulation(seed).integers(0, values, rows)})


@pytest.mark.parametrize(
    "control",
    [
        PEOPLE,
        PEOPLE.take(pa.array(np.arange(299, -1, -1))),
        PEOPLE.slice(0, 100),
        pa.concat_tables([OTHERS, PEOPLE.slice(0, 150)]),
        pa.concat_tables([OTHERS, crowd(3000, 3, start=600), PEOPLE]),
        PEOPLE.drop_columns(["id", "name"]),
    ],
    ids=["itself", "in another order", "a part", "half", "all and many others", "without names"],
)
def test_rows_of_the_people_are_seen(control):
    with pytest.raises(InvalidParameter, match="holds rows of the people"):
        check_apart(PEOPLE, control)


@pytest.mark.parametrize("values", [2, 30, 300, 3_000])
@pytest.mark.parametrize("rows", [(40, 40), (300, 300), (300, 3_000), (3_000, 300)])
def test_samples_of_one_population_are_apart_however_few_values_it_has(rows, values):
    for seed in range(10):
        check_apart(drawn(2 * seed, rows[0], values), drawn(2 * seed + 1, rows[1], values))


def test_a_few_people_in_both_and_tables_with_nothing_in_common_are_let_be():
    check_apart(PEOPLE, pa.concat_tables([OTHERS, PEOPLE.slice(0, 20)]))
    check_apart(PEOPLE, drawn(1, 300, 5))
    check_apart(PEOPLE.slice(0, 5), PEOPLE.slice(0, 5))  # so few could be alike by chance


@pytest.mark.parametrize(
    "attack",
    [
        lambda: inference(PEOPLE, PEOPLE, PEOPLE, known="age", secret="income"),
        lambda: singling_out(PEOPLE, PEOPLE, PEOPLE),
        lambda: linkability(PEOPLE, PEOPLE, PEOPLE, left="age", right="income"),
    ],
)
def test_attacks_on_synthetic_tables_refuse_it(attack):
    with pytest.raises(InvalidParameter, match="give a control of other people"):
        attack()
