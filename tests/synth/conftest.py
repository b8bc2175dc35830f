"""What tests of synthetic tables share."""

from typing import Any

import pytest

import sfumato as sf
from synthetic import people, session_of


@pytest.fixture(scope="package")
def fitted() -> Any:
    """A synthesizer of 4,000 people at a generous price."""
    with session_of(people(4000)) as session:
        yield sf.synth.fit(session, "people", epsilon=20, delta=1e-9, method="mst")
