"""What anonymising cost: the figures against their definitions, the report and the picture."""

import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato.anonymity import Hierarchy, generalize, mondrian
from sfumato.anonymity.loss import average_class, discernibility, ncp
from sfumato.errors import InvalidParameter

TABLE = pa.table(
    {
        "age": [20, 21, 35, 36, 70, 71, 90],
        "city": ["Aix", "Aix", "Bern", "Bern", "Cork", "Cork", "Delft"],
        "ill": ["a", "b", "c", "d", "e", "f", "g"],
    }
)


def test_the_penalty_is_the_mean_over_cells_and_a_suppressed_row_lost_all():
    assert ncp([[0, 1], [0.5, 0.5]], rows=2) == 0.5
    assert ncp([[0, 0], [0, 0]], rows=4, suppressed=2) == 0.5
    assert ncp([np.ones(3)], rows=3) == 1.0
    for costs, rows in (([], 3), ([[0.0]], 0)):
        with pytest.raises(InvalidParameter, match="at least one column and one row"):
            ncp(costs, rows=rows)


def test_discernibility_counts_pairs_that_cannot_be_told_apart():
    assert discernibility([3, 2, 1], rows=6) == 14
    assert discernibility([3, 2], rows=6, suppressed=1) == 9 + 4 + 6
    assert discernibility([2**40], rows=2**40) == 2**80  # whole numbers of any size
    assert average_class([3, 3, 6], k=3) == pytest.approx(4 / 3)
    assert math.isnan(average_class([], k=3))


def test_the_figures_of_a_small_table():
    done = generalize(TABLE, {"age": Hierarchy.intervals(10, 40), "city": None}, 2, suppress="1/7")
    assert done.table["ill"].to_pylist() == ["a", "b", "c", "d", "e", "f"]
    assert done.table["age"].to_pylist() == ["[20, 30)"] * 2 + ["[30, 40)"] * 2 + ["[70, 80)"] * 2
    assert done.table["city"].to_pylist() == ["Aix", "Aix", "Bern", "Bern", "Cork", "Cork"]
    assert (done.rows, done.suppressed, done.classes, done.k, done.wanted_k) == (7, 1, 3, 2, 2)
    assert done.before.tolist() == [1] * 7
    assert done.after.tolist() == [2, 2, 2]
    assert done.discernibility == 3 * 4 + 7
    assert done.average_class == 1.0
    assert done.lost == pytest.approx({"age": (6 * 10 / 70 + 1) / 7, "city": 1 / 7})
    assert done.ncp == pytest.approx(sum(done.lost.values()) / 2)


def test_the_report_fits_a_terminal_and_shows_no_value():
    wide = TABLE.rename_columns(["age " * 30, "city", "ill"])
    for done in (
        mondrian(TABLE, ["age", "city"], 3, l=2, t=1, sensitive="ill"),
        generalize(TABLE, {"age": Hierarchy.intervals(10, 40), "city": None}, 2, suppress="1/7"),
        generalize(wide, [wide.column_names[0], "city"], 7, suppress=0),
    ):
        assert str(done) == done.report
        assert max(map(len, done.report.splitlines())) <= 80
        assert not any(city in done.report for city in TABLE["city"].to_pylist())
        assert "for the steward" in done.report
    assert "every row is one of at least 7 that look the same" in done.report
    assert "100.0 %" in done.report


def test_suppressing_everybody_is_said_as_it_is():
    lone = pa.table({"q": ["a", "b"]})
    done = generalize(lone, {"q": Hierarchy.flat()}, 2, suppress=1)
    assert done.k == 2  # telling nothing loses as much, and keeps the rows
    everyone = generalize(lone, {"q": Hierarchy.flat()}, 1, suppress=1)
    assert (everyone.suppressed, everyone.ncp) == (0, 0.0)


def test_the_picture_shows_the_table_before_and_after(tmp_path):
    done = generalize(TABLE, {"age": Hierarchy.intervals(10, 40), "city": None}, 2, suppress="1/7")
    figure = done.plot(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").exists()
    assert figure.get_suptitle() == "Full-domain generalisation, k = 2, at most 14.2857 % suppressed"
    assert "Of 7 rows, 100 % were one of a kind before" in figure.get_supxlabel().replace("\n", " ")


def test_an_anonymised_table_goes_in_again():
    once = mondrian(TABLE, ["age", "city"], 2)
    again = mondrian(once.table, ["age", "city"], 3)
    assert again.k >= 3
    assert again.before.tolist() == once.after.tolist()


def test_columns_that_name_people_and_columns_that_others_know_are_pointed_out():
    people = TABLE.append_column("patient_id", pa.array(range(7))).append_column("sex", pa.array(["f"] * 7))
    for done in (mondrian(people, "age", 2, sensitive="ill"), generalize(people, ["age"], 2)):
        assert (done.naming, done.overlooked) == (("patient_id",), ("city", "sex"))
        said = " ".join(str(done).split())
        assert "names point at one person: patient_id. Leave them out first, with deidentify()." in said
        assert "others may know them: city, sex." in said
        assert max(map(len, done.report.splitlines())) <= 80
    bare = mondrian(people.drop_columns(["patient_id", "sex"]), ["age", "city"], 2)
    assert (bare.naming, bare.overlooked, bare.emptied, bare.warnings) == ((), (), (), ())


def test_rows_that_were_left_out_explain_a_loss_of_what_is_exact():
    done = generalize(TABLE, {"age": Hierarchy.intervals(10, 40), "city": None}, 2, suppress="1/7")
    assert done.levels["city"] == "exact"
    assert "Left out: 1 row (14.3 %). All that was in them counts as lost" in done.report
    assert "Left out" not in mondrian(TABLE, "age", 2).report


def test_a_column_of_which_nothing_is_left_is_pointed_out():
    done = generalize(TABLE, ["age", "city"], 2, t=0, sensitive="ill", suppress=0)
    assert done.emptied == ("age", "city")
    assert "Nothing is left of age, city but *" in done.report
    assert mondrian(TABLE, ["age"], 7).emptied == ("age",)
    assert mondrian(TABLE, ["age"], 2).emptied == ()


def test_mondrian_says_where_hierarchies_belong():
    with pytest.raises(InvalidParameter, match="give the hierarchies to generalize"):
        mondrian(TABLE, {"age": Hierarchy.intervals(10)}, 2)
