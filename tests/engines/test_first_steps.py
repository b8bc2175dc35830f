"""Who has counted in a series is known on every engine, whatever type ids have in a state of the table."""

from __future__ import annotations

import pytest

from first_steps import FORMS, counted

ON_ALL = ("int64", "text", "uint8")
MORE = ("float64", "decimal(10,2)")


@pytest.mark.parametrize("window", [None, 90])
def test_ids_of_other_types_are_the_same_people(make_shared, window):
    engine = make_shared()
    forms = ON_ALL if engine.dialect.name == "datafusion" else (*ON_ALL, *MORE)
    assert counted([FORMS[form] for form in forms], window, engine) == [4] + [0] * (len(forms) - 1)
