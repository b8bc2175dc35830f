from __future__ import annotations

import copy
import os
import pickle
import re
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import sfumato
from sfumato import random
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.samplers.wholes import Wholes

LARGEST = 2**63 - 1
PACKAGE = Path(sfumato.__file__).parent


class Fixed:
    """Words of a counter-based generator with a fixed seed."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.Generator(np.random.Philox(seed))

    def words32(self, count):
        return self.generator.integers(0, 2**32, count, np.uint32)

    def words64(self, count):
        return self.generator.integers(0, 2**64, count, np.uint64)

    def bits(self, count):
        return int.from_bytes(self.generator.bytes((count + 7) // 8), "little") >> (-count % 8)


@pytest.fixture
def seeded():
    previous = random._replace(Fixed(11))
    yield
    random._replace(previous)


# The source of bits.


def test_words_are_uniform_and_fresh():
    stream = random.Keystream()
    for words in (stream.words32(100_000), stream.words64(100_000), stream.words32(100)):
        assert np.unique(words).size > 0.99 * words.size
        counts = np.bincount(words.view(np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-9
        words[:] = 0  # writable
    assert [stream.bits(k) >> k for k in range(200)] == [0] * 200
    assert stream.bits(0) == 0
    assert stream.bits(10**6).bit_length() > 10**6 - 100
    assert stream.words64(0).size == 0


def test_what_was_read_is_erased():
    stream = random.Keystream()
    value = stream.bits(256)
    assert value.to_bytes(32, "little") not in bytes(stream._buffer)
    words = stream.words32(20)
    assert words.tobytes() not in bytes(stream._buffer)
    assert bytes(stream._buffer[: stream._position]) == bytes(stream._position)
    # Single words are taken from a list, and leave it.
    short = stream.bits(64)
    assert short not in stream._words
    assert len(stream._words) == random._AHEAD - 1
    # The unread part is there, so that the test above is not empty.
    assert any(stream._buffer[stream._position :])


def test_every_refill_and_every_large_request_has_a_key_of_its_own(monkeypatch):
    keys = []
    encrypt = random.Keystream._encrypt
    monkeypatch.setattr(
        random.Keystream,
        "_encrypt",
        staticmethod(lambda key, view, size: (keys.append((key, size)), encrypt(key, view, size))),
    )
    stream = random.Keystream()
    for _ in range(40):
        stream.words64(4000)
        stream.words64(300_000)
    for _ in range(3000):
        stream.bits(512)
    assert len(keys) > 100
    assert len({key for key, _ in keys}) == len(keys)
    assert max(size for _, size in keys) <= 2**20
    # The key that made the present buffer is gone: what is held now is another.
    assert stream._key not in {key for key, _ in keys}


def test_a_keystream_is_never_pickled_or_copied():
    stream = random.Keystream()
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="same noise"):
            attempt(stream)


def _fingerprint() -> bytes:
    scale, units = Fraction(10**6), Fraction(2**61)
    draws = [random.discrete_laplace(scale) for _ in range(20)] + [
        random.add_gaussian(0, 0, units) for _ in range(20)
    ]
    words = [random.integers(2**60) for _ in range(5)]
    return repr((draws, random.token(), words, random.integers(2**60, 3).tolist())).encode()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_draws_its_own_noise():
    """Pools, buffer and a stream that is held directly: all differ from the parent's."""
    for _ in range(40):  # fills the pools before the fork
        _fingerprint()
    held = random.current()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, _fingerprint() + b"|" + str(held.bits(128)).encode())
        os._exit(0)
    os.close(write)
    parent = _fingerprint() + b"|" + str(held.bits(128)).encode()
    with os.fdopen(read, "rb") as pipe:
        theirs = pipe.read()
    os.waitpid(child, 0)
    ours, other = re.findall(rb"-?\d{4,}|[0-9a-f]{32}", parent), re.findall(rb"-?\d{4,}|[0-9a-f]{32}", theirs)
    assert len(ours) > 30
    assert not set(ours) & set(other)


def test_threads_have_streams_of_their_own():
    seen = []

    def work() -> None:
        seen.append((random.current(), [random.discrete_laplace(Fraction(10**9)) for _ in range(50)]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work()
    assert len({id(stream) for stream, _ in seen}) == 5
    assert len({value for _, values in seen for value in values}) > 240


def test_replacing_the_stream_drops_the_pools(seeded):
    scale = Fraction(10**6)
    first = [random.discrete_laplace(scale) for _ in range(100)]
    previous = random._replace(Fixed(11))
    assert isinstance(previous, Fixed)
    assert [random.discrete_laplace(scale) for _ in range(100)] == first
    random._replace(Fixed(12))
    assert [random.discrete_laplace(scale) for _ in range(100)] != first


# The draws.


def test_shapes_and_types(seeded):
    one = Fraction(1)
    for draw in (
        lambda size: random.integers(7, size),
        lambda size: random.geometric(one, size),
        lambda size: random.discrete_laplace(one, size),
        lambda size: random.discrete_gaussian(one, size),
    ):
        assert type(draw(None)) is int
        assert draw(3).shape == (3,)
        assert draw((2, 5)).shape == (2, 5)
        assert draw(0).shape == (0,)
        assert draw(()).shape == ()
        assert draw(4).dtype == np.int64
    for toss in (lambda size: random.bernoulli(one / 3, size), lambda size: random.bernoulli_exp(one, size)):
        assert type(toss(None)) is bool
        assert toss((2, 2)).dtype == np.bool_
        assert toss((2, 2)).shape == (2, 2)
    assert random.bernoulli(0, 5).tolist() == [False] * 5
    assert random.bernoulli(1, 5).tolist() == [True] * 5
    assert random.bernoulli_exp(0, 5).tolist() == [True] * 5
    assert sorted(random.permutation(9).tolist()) == list(range(9))


def test_scalars_and_vectors_have_the_same_law(seeded):
    scale = Fraction(7, 2)
    for draw in (
        random.discrete_laplace,
        random.discrete_gaussian,
        lambda s, size=None: random.geometric(1 / s, size),
    ):
        singles = np.array([draw(scale) for _ in range(4000)])
        vector = draw(scale, 4000)
        short = np.concatenate([draw(scale, 5) for _ in range(800)])
        edges = np.arange(-6, 8)
        samples = (singles, vector, short)
        table = [np.bincount(np.digitize(values, edges), minlength=15) for values in samples]
        counts = np.array(table)[:, np.sum(table, axis=0) > 10]
        assert stats.chi2_contingency(counts).pvalue > 1e-9


@pytest.mark.parametrize(("add", "parameter", "truth"), [
    (random.add_laplace, Fraction(2**31), stats.laplace),
    (random.add_gaussian, Fraction(2**62), stats.norm),
])  # fmt: skip
def test_added_noise_is_continuous_and_centred_on_the_value(seeded, add, parameter, truth):
    value, half = 10**15, 2**63
    singles = np.array([add(value, half, parameter) - value for _ in range(4000)], float)

    def added(count):
        sums = add(Wholes(np.full(count, value)), np.full(count, half, np.uint64), parameter).tolist()
        return np.array([each - value for each in sums], float)

    vector, short = added(4000), np.concatenate([added(4) for _ in range(1000)])
    for noise in (singles, vector, short):
        assert stats.kstest(noise / 2.0**31, truth.cdf).pvalue > 1e-9
        assert stats.kstest(noise / 2.0**31 + 0.2, truth.cdf).pvalue < 1e-9  # a planted shift is seen


def test_scalars_of_any_size_and_numpy_integers(seeded):
    huge = 10**40
    assert abs(random.add_laplace(huge, 0, Fraction(1)) - huge) < 1000
    assert abs(random.add_gaussian(np.int64(2**62), np.uint64(5), Fraction(1)) - 2**62) < 1000
    # Without noise to speak of, rounding alone is left: halves go up.
    tiny = Fraction(1, 10**250)
    assert [random.add_laplace(w, f, tiny) for w, f in ((5, 0), (5, 2**62), (-5, 2**63 + 2**62))] == [
        5,
        5,
        -4,
    ]
    assert {random.add_gaussian(5, 2**63, tiny) for _ in range(60)} == {5, 6}
    for count in (1, 10):  # from the pools, and in one go
        wholes = [5, -5, LARGEST, -LARGEST - 1, huge, -huge] * count
        zeros = np.zeros(len(wholes), np.uint64)
        assert random.add_laplace(Wholes.of(wholes), zeros, tiny).tolist() == wholes


def test_what_cannot_be_drawn_is_refused():
    for call in (
        lambda: random.integers(0),
        lambda: random.integers(2**63 + 1),
        lambda: random.integers(5, -1),
        lambda: random.bernoulli(Fraction(3, 2)),
        lambda: random.bernoulli(-1),
        lambda: random.bernoulli_exp(-1),
        lambda: random.geometric(0),
        lambda: random.geometric(Fraction(1, 2**57)),
        lambda: random.discrete_laplace(Fraction(2**57)),
        lambda: random.discrete_laplace(Fraction(2**57), 3),
        lambda: random.discrete_gaussian(Fraction(2**114)),
        lambda: random.add_laplace(1, 0, Fraction(0)),
        lambda: random.add_laplace(np.array([1]), np.array([1], np.uint64), Fraction(1)),
        lambda: random.add_laplace(1.5, 0, Fraction(1)),
        lambda: random.choose(np.arange(3), Fraction(-1)),
        lambda: random.permutation(-1),
        lambda: random.salt(0),
    ):
        with pytest.raises(InvalidParameter):
            call()
    for call in (
        lambda: random.choose(np.array([], np.int64), Fraction(1)),
        lambda: random.choose(np.array([1.0]), Fraction(1)),
        lambda: random.flip(np.array([[1, 2]]), Fraction(1)),
        lambda: random.add_laplace(1, 2**64, Fraction(1)),
        lambda: random.add_laplace(1, -1, Fraction(1)),
        lambda: random.add_laplace(Wholes.of([1]), np.array([1]), Fraction(1)),
        lambda: random.add_gaussian(Wholes.of([1, 2]), np.array([1], np.uint64), Fraction(1)),
    ):
        with pytest.raises(InvalidValue):
            call()


def test_names_and_salts():
    assert re.fullmatch("[0-9a-f]{32}", random.token())
    assert random.token() != random.token()
    assert len(random.salt()) == 16
    assert len(random.salt(40)) == 40
    assert random.simulation(5).random() == random.simulation(5).random()
    assert random.simulation().random() != random.simulation().random()


# Where randomness may come from.

SOURCES = re.compile(
    r"numpy\.random|np\.random|^\s*import random|^\s*from random |\bsecrets\b"
    r"|os\.urandom|getrandom|\buuid4\b|SystemRandom",
    re.MULTILINE,
)
REPLACES = re.compile(r"random\._replace|(?<![.\w])_replace\(")


def _sources(*without: str) -> dict[str, str]:
    files = {str(path.relative_to(PACKAGE)): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    return {name: text for name, text in files.items() if not name.startswith(without)}


COINS = "learn/torch/coins.py"
"""Gives the generators of others secret states, from `random`, for what models toss; it draws nothing."""
TOSSES = "learn/torch/tosses.py"
"""Gives them chosen states while made-up records are tried, before a run is paid; for nothing else."""


def test_no_other_module_has_a_source_of_randomness():
    guilty = [
        name for name, text in _sources("random.py", "testing", COINS, TOSSES).items() if SOURCES.search(text)
    ]
    assert guilty == []


def test_coins_are_chosen_for_made_up_records_alone():
    taken = [name for name, text in _sources().items() if "sfumato.learn.torch.tosses" in text]
    assert {Path(name).name for name in taken} <= {"apart.py", "places.py", "recording.py", "surveying.py"}


def test_coins_draw_nothing_themselves():
    drawn = re.compile(
        r"(numpys?|np\.random|mtrand|pythons)\.(?!seed\b|[gs]et_?state|[gs]et_bit_generator|MT19937)\w+\("
    )
    assert not drawn.search((PACKAGE / COINS).read_text())


def test_only_the_tests_replace_the_stream():
    guilty = [name for name, text in _sources("random.py", "testing").items() if REPLACES.search(text)]
    assert guilty == []


@pytest.mark.parametrize(
    "line",
    [
        "x = np.random.normal()",
        "import random",
        "from random import gauss",
        "import secrets",
        "k = os.urandom(3)",
    ],
)
def test_the_search_finds_what_it_looks_for(line):
    assert SOURCES.search(f"import numpy as np\n{line}\n")
    assert not SOURCES.search("from sfumato import random\nx = random.integers(3)\n")
