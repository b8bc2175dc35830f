"""What all clients share: plain data and back, fingerprints, and public names."""

import json
import subprocess
import sys

import numpy as np
import pytest

from sfumato import local
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local.base import Randomizer, randomizer_from, register
from sfumato.local.examples import examples

MADE = {repr(each.randomizer): each.randomizer for each in examples()}


@pytest.mark.parametrize("made", MADE.values(), ids=list(MADE))
def test_plain_data_and_back(made):
    data = json.loads(json.dumps(made.to_dict()))
    again = randomizer_from(data)
    assert again == made
    assert again.fingerprint == made.fingerprint
    assert data["kind"] == made.wire


@pytest.mark.parametrize("made", MADE.values(), ids=list(MADE))
def test_other_parameters_have_another_fingerprint_or_are_refused(made):
    try:
        other = randomizer_from({**made.to_dict(), "epsilon": "17/16"})
    except InvalidParameter:
        return  # an epsilon that the other parameters contradict
    assert other.fingerprint != made.fingerprint


@pytest.mark.parametrize("made", MADE.values(), ids=list(MADE))
def test_a_randomizer_is_a_value(made):
    with pytest.raises(AttributeError):
        made.epsilon = 3
    assert not hasattr(made, "__dict__")
    assert hash(made) == hash(randomizer_from(made.to_dict()))


@pytest.mark.parametrize("made", MADE.values(), ids=list(MADE))
def test_reports_have_the_stated_type_and_shape(made):
    values = [each.left for each in examples() if each.randomizer == made][:1] * 3
    reports = made.encode(values)
    assert reports.dtype == made.report_dtype
    assert reports.shape == (3, *made.report_shape)
    assert made.encode(values[:0]).shape == (0, *made.report_shape)
    assert made.aggregate(reports).count == 3
    with pytest.raises(InvalidValue):
        made.start().add(reports.astype(np.float32))
    with pytest.raises(InvalidValue):
        made.start().add(np.stack([reports, reports], axis=-1))


@pytest.mark.parametrize(
    "data",
    [
        {},
        None,
        [],
        {"kind": "kary.2", "epsilon": "1", "domain": 5},
        {"kind": 3},
        {"kind": ["kary.1"]},
        {"kind": "kary.1"},
        {"kind": "kary.1", "epsilon": "1"},
        {"kind": "kary.1", "epsilon": "-1", "domain": 5},
        {"kind": "kary.1", "epsilon": "1", "domain": 1},
        {"kind": "kary.1", "epsilon": "1", "domain": 5, "more": 1},
        {"kind": "kary.1", "epsilon": None, "domain": 5},
        {"kind": "unary.1", "epsilon": "1", "domain": 5, "optimised": "no"},
        {"kind": "subset.1", "epsilon": "1", "domain": 5, "size": 5},
        {"kind": "rappor.1", "epsilon": "1", "domain": 5, "one": "1/2"},
    ],
)
def test_unknown_kinds_versions_and_parameters_are_refused(data):
    with pytest.raises(InvalidParameter):
        randomizer_from(data)


def test_what_is_wrong_with_parameters_is_told():
    for change, why in (
        ({"epsilon": "-1"}, "epsilon must be"),
        ({"domain": 1}, "at least 2"),
        ({"x": 1}, "known"),
    ):
        with pytest.raises(InvalidParameter, match=why):
            randomizer_from({"kind": "kary.1", "epsilon": "1", "domain": 5, **change})
    with pytest.raises(InvalidParameter, match="not parameters of"):
        local.KaryResponse.from_dict({"kind": "unary.1", "epsilon": "1", "domain": 5})


def test_a_wire_name_is_given_once():
    with pytest.raises(InvalidParameter, match="taken"):
        register(type("Other", (Randomizer,), {"wire": "kary.1"}))


def test_every_public_name_resolves():
    assert sorted(local.__all__) == dir(local) == sorted(" ".join(local._HOMES.values()).split())
    for name in local.__all__:
        assert getattr(local, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = local.Nothing


def test_reading_a_randomizer_needs_no_other_import():
    code = (
        "from sfumato.local.base import randomizer_from as r;"
        "print(r({'kind': 'rappor.1', 'epsilon': '1', 'domain': 3}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "Rappor(epsilon=1, domain=3)"
