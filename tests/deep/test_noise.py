"""The noise of tensors: the cipher, the tables of the law, and draws of these tables."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from flint import ctx

from deep import torch
from sfumato.learn.torch import law
from sfumato.learn.torch import noise as noises
from sfumato.learn.torch.noise import EACH, Noise, keystream

KEYS = np.random.default_rng(5).integers(-(2**31), 2**31, (4, 8)).astype(np.int32)


@pytest.mark.parametrize("first", [0, 7, 2**24 - 3])
@pytest.mark.parametrize("key", KEYS, ids=range(4))
def test_the_keystream_is_that_of_the_cipher(key, first):
    words = torch.stack(keystream(torch.from_numpy(key), first, 50), 1).numpy().tobytes()
    nonce = first.to_bytes(4, "little") + bytes(12)
    assert words == Cipher(algorithms.ChaCha20(key.tobytes(), nonce), None).encryptor().update(bytes(50 * 64))


def test_tables_hold_the_law_to_the_last_bit():
    fine, coarse = (table.weights() for table in law.tables())
    assert sum(fine) == sum(coarse) == 2**111
    with mpmath.workprec(400):
        s, whole = mpmath.mpf(law.DEVIATION), mpmath.mpf(2) ** 111
        norm = 1 + 2 * mpmath.nsum(lambda x: mpmath.exp(-(x**2) / (2 * s**2)), [1, law.COLUMNS - 1])
        for at in [*range(1, 40), *range(40, law.COLUMNS, 911), law.COLUMNS - 1]:
            cell = mpmath.erf((at + 0.5) / s / mpmath.sqrt(2)) - mpmath.erf((at - 0.5) / s / mpmath.sqrt(2))
            assert abs(fine[at] - cell * whole) < 1.001
            assert (
                abs(coarse[at] - 2 * mpmath.exp(-(mpmath.mpf(at) ** 2) / (2 * s**2)) / norm * whole) < 1.001
            )


@pytest.mark.parametrize(("deviation", "coarse"), [(3, 2), (4, 4), (5, 4), (6, 7), (9, 6)])
def test_the_sum_of_two_tables_is_as_close_to_a_gaussian_as_is_claimed(deviation, coarse):
    with mpmath.workprec(200), ctx.workprec(200):
        s, span = mpmath.mpf(deviation), 14 * deviation
        fine = {
            x: (mpmath.erf((x + 0.5) / s / mpmath.sqrt(2)) - mpmath.erf((x - 0.5) / s / mpmath.sqrt(2))) / 2
            for x in range(-span, span + 1)
        }
        raw = {y: mpmath.exp(-(mpmath.mpf(y) ** 2) / (2 * s**2)) for y in range(-span, span + 1)}
        total = sum(raw.values())
        together = dict[int, mpmath.mpf]()
        for x, p in fine.items():
            for y, q in raw.items():
                together[x + coarse * y] = together.get(x + coarse * y, 0) + p * q / total
        sigma = s * mpmath.sqrt(1 + coarse**2)

        def cell(t):
            ends = [(t + half) / sigma / mpmath.sqrt(2) for half in (-0.5, 0.5)]
            return (mpmath.erf(ends[1]) - mpmath.erf(ends[0])) / 2

        apart = sum(abs(p - cell(t)) for t, p in together.items()) / 2
        claimed = float(law.unevenness(deviation, coarse).upper())
        assert apart <= claimed * 1.0001
        assert apart > claimed / 50, "the bound is no bound of this"


def test_the_distance_is_what_the_parts_add_up_to():
    assert 2**-96 < law.DISTANCE < Fraction(1, 2**94)
    assert math.isclose(law.SIGMA, 4_108_480.94, rel_tol=1e-8)


def _slowly(words):
    """A draw from three words in whole numbers, None where 32 bits do not decide."""
    where, *firsts = (int(word) & 0xFFFFFFFF for word in words)
    value = 0
    for table, place, first, worth in zip(
        law.tables(), (where & 0xFFFF, where >> 16), firsts, (1, law.COARSE), strict=True
    ):
        column, high = place & 0x7FFF, int(table.first[place & 0x7FFF]) + 2**31
        if first == high:
            return None
        size = column if first < high else int(table.other[column])
        value += worth * (-size if place >> 15 else size)
    return value


def test_draws_follow_from_the_words_as_in_whole_numbers():
    key = torch.from_numpy(KEYS[0])
    drawn = Noise().keyed(key, EACH * 400).values()
    stream = torch.stack(keystream(key, 0, 400)).numpy()
    for each in range(EACH):
        for block in range(400):
            slow = _slowly(stream[3 * each : 3 * each + 3, block])
            assert slow is None or slow == drawn[each * 400 + block]


@pytest.mark.parametrize("way", ["words", "keyed"])
def test_draws_have_the_law(way):
    source = Noise()
    many = 400_000
    drawn = source.draw(many) if way == "words" else source.keyed(noises._key(), many)
    values = drawn.values().double().numpy() / law.SIGMA
    ends = np.linspace(-3, 3, 41)
    counted = np.histogram(values, [-np.inf, *ends, np.inf])[0]
    chances = np.diff([0, *(0.5 * (1 + np.vectorize(math.erf)(ends / math.sqrt(2)))), 1])
    square = ((counted - many * chances) ** 2 / (many * chances)).sum()
    assert square < 41 + 6 * math.sqrt(2 * 41)
    assert abs(values.std() - 1) < 0.01
    steps = drawn.values().numpy()
    assert len(np.unique(steps % law.COARSE)) > law.COARSE * 0.99, "the fine table is missing"


def test_what_32_bits_leave_open_is_decided_by_64_more():
    source, table = Noise(), law.tables()[0]
    column = int(
        np.argmax((table.rest > 2**62) & (table.rest < 3 * 2**62) & (table.other != np.arange(law.COLUMNS)))
    )
    first = int(table.first[column]) + 2**31
    kept = sum(noises._decided(table, column, first) == column for _ in range(4000)) / 4000
    assert abs(kept - int(table.rest[column]) / 2**64) < 0.06
    words = torch.tensor([[column], [first - 2**32 if first >= 2**31 else first], [0]], dtype=torch.int32)
    values, undecided = noises.drawn(tuple(words), *source._tables)
    assert undecided.tolist() == [True]
    sizes = {int(source._settled(words, values.clone(), undecided)[0]) % law.COARSE for _ in range(60)}
    assert len(sizes) == 2


def test_groups_with_an_open_draw_are_made_again(monkeypatch):
    source, key = Noise(), torch.from_numpy(KEYS[1])
    plain = source.keyed(key, 5_000).values()
    asked = list[int]()
    whole = noises._chunk

    def pretends(*given):
        values, groups = whole(*given)
        groups[0], groups[1] = 1, 2
        return values.fill_(7), groups

    monkeypatch.setattr(source, "_chunk", pretends)
    monkeypatch.setattr(source, "_settled", lambda words, values, _: asked.append(words.shape[1]) or values)
    again = source.keyed(key, 5_000).values().view(EACH, 1000)
    assert asked == [256] * EACH
    assert (again[:, 512:768] == plain.view(EACH, 1000)[:, 512:768]).all()
    assert (again[:, :512] == 7).all()


def test_two_calls_share_nothing():
    one, other = (Noise().draw(1000).values() for _ in range(2))
    assert (one == other).sum() < 10
