"""No message of the textbook's functions shows a value."""

import pytest

from sfumato import book
from sfumato.errors import InvalidValue


@pytest.mark.parametrize(
    "call",
    [
        lambda: book.L2_clip(["SECRET"], 1),
        lambda: book.gradient([1.0], ["SECRET"], 1),
        lambda: book.predict([1.0], ["SECRET"]),
        lambda: book.loss([1.0], [1.0], "SECRET"),
        lambda: book.pct_error("SECRET", 1),
    ],
)
def test_a_text_is_refused_and_not_shown(call):
    with pytest.raises(InvalidValue) as caught:
        call()
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
