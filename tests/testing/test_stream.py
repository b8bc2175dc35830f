"""The repeatable stream repeats, and cannot be had outside a test."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from sfumato import random
from sfumato.errors import InvalidParameter
from sfumato.testing import SeededStream, assert_bernoulli, seeded


def test_equal_seeds_give_equal_words_on_every_machine():
    assert SeededStream(7).words32(3).tolist() == SeededStream(7).words32(3).tolist()
    assert SeededStream(7).words64(4).tolist() != SeededStream(8).words64(4).tolist()
    assert SeededStream(7).bits(64) != SeededStream("7").bits(64)
    # Fixed for good: AES-256-CTR under SHA-256 of the seed, little-endian.
    assert SeededStream(1).words32(3).tolist() == [872109712, 3696773138, 2791696555]


def test_words_have_the_promised_types_and_can_be_written_to():
    stream = SeededStream(1)
    for words, kind in ((stream.words32(5), np.uint32), (stream.words64(5), np.uint64)):
        assert words.dtype == kind
        words[0] = 0
    assert stream.words32(0).shape == (0,)
    assert stream.bits(0) == 0


@pytest.mark.parametrize("width", [1, 5, 8, 13, 64, 200])
def test_bits_are_uniform(width):
    stream = SeededStream(width)
    drawn = [stream.bits(width) for _ in range(2000)]
    assert max(drawn) < 1 << width
    for place in {0, width // 2, width - 1}:
        assert_bernoulli(sum(value >> place & 1 for value in drawn), len(drawn), 0.5)


def test_seeded_block_repeats_and_is_left_as_it_was_entered():
    before = random.current()
    with seeded(3) as stream:
        assert random.current() is stream
        first = random.integers(1 << 60, 4).tolist()
    assert random.current() is before
    with seeded(3):
        assert random.integers(1 << 60, 4).tolist() == first
    with seeded(4):
        assert random.integers(1 << 60, 4).tolist() != first
    with pytest.raises(ZeroDivisionError), seeded(3):
        _ = 1 / 0
    assert random.current() is before


def test_seeded_blocks_nest():
    with seeded("outer") as outer:
        with seeded("inner"):
            random.integers(10, 3)
        assert random.current() is outer


def test_bad_seeds_are_refused():
    for seed in (None, 1.5, True, b"x"):
        with pytest.raises(InvalidParameter, match="seed"):
            SeededStream(seed)


PROGRAM = """
import sfumato.errors
from sfumato.testing.stream import SeededStream, seeded
for attempt in (lambda: SeededStream(1), lambda: seeded(1).__enter__()):
    try:
        attempt()
    except sfumato.errors.SfumatoError as refusal:
        assert "pytest" in str(refusal)
    else:
        raise SystemExit("predictable noise outside a test")
print("refused")
"""


@pytest.mark.parametrize("marks", [{}, {"PYTEST_CURRENT_TEST": "x", "PYTEST_VERSION": "9"}])
def test_outside_a_test_it_refuses_whatever_the_environment_says(marks):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | marks
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.strip() == "refused", done.stderr


def test_only_this_module_swaps_the_stream():
    package = pathlib.Path(random.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"(?<![.\w])_replace\(|random\._replace\(", path.read_text(encoding="utf-8"))
    }
    assert users == {"random.py", "testing/stream.py"}
