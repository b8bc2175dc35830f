"""The noise of tensors: the cipher, the tables of the law, and draws of these tables."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from flint import ctx

from deep import threads, torch
from sfumato.learn.torch import law
from sfumato.learn.torch import noise as noises
from sfumato.learn.torch.noise import EACH, Noise, keystream

KEYS = np.random.default_rng(5).integers(-(2**31), 2**31, (4, 8)).astype(np.int32)


@pytest.mark.parametrize("stream", [0, 1])
@pytest.mark.parametrize("first", [0, 7, 2**24 - 3])
@pytest.mark.parametrize("key", KEYS, ids=range(4))
def test_the_keystream_is_that_of_the_cipher(key, first, stream):
    counter = torch.arange(first, first + 50, dtype=torch.int32)
    words = torch.stack(keystream(torch.from_numpy(key), counter, stream), 1).numpy().tobytes()
    nonce = first.to_bytes(4, "little") + stream.to_bytes(4, "little") + bytes(8)
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


def _slowly(words, more):
    """A draw from two words and two more in whole numbers, None where 48 bits do not decide."""
    where, against, *middles = (int(word) & 0xFFFFFFFF for word in (*words, *more))
    value = 0
    for table, shift, middle, worth in zip(law.tables(), (0, 16), middles, (1, law.COARSE), strict=True):
        place, first = where >> shift & 0xFFFF, against >> shift & 0xFFFF
        threshold, other = table.column(place & 0x7FFF)
        drawn = (first << 32) + middle
        if drawn == threshold >> 48:
            return None
        size = place & 0x7FFF if drawn < threshold >> 48 else other
        value += worth * (-size if place >> 15 else size)
    return value


def _streams(key, blocks):
    return (torch.stack(keystream(key, torch.arange(blocks, dtype=torch.int32), at)).numpy() for at in (0, 1))


def test_draws_follow_from_the_words_as_in_whole_numbers():
    key = torch.from_numpy(KEYS[0])
    drawn = Noise().keyed(key, EACH * 900).values()
    first, second = _streams(key, 900)
    for each in range(EACH):
        pair = slice(2 * each, 2 * each + 2)
        for block in range(900):
            slow = _slowly(first[pair, block], second[pair, block])
            assert slow is None or slow == drawn[each * 900 + block]


def test_what_16_bits_leave_open_is_decided_by_the_second_stream():
    """Among so many draws some are open, of either table."""
    key, blocks, met = torch.from_numpy(KEYS[2]), 40_000, 0
    drawn = Noise().keyed(key, EACH * blocks).values().numpy()
    first, second = _streams(key, blocks)
    for each in range(EACH):
        pair = slice(2 * each, 2 * each + 2)
        unsure = noises.drawn(torch.from_numpy(first[pair]), Noise()._here)[1].nonzero().flatten().tolist()
        met += len(unsure)
        for block in unsure:
            assert drawn[each * blocks + block] == _slowly(first[pair, block], second[pair, block])
    assert met > 3


@pytest.mark.parametrize("many", [1, 2, 5])
def test_a_processor_reads_words_as_an_accelerator_does(many):
    words = np.random.default_rng(3).integers(0, 2**32, (2, 150_000), np.uint32)
    words[1, ::3] = np.array([table.packed[5] for table in law.tables()]).view(np.uint32)[0] >> 16
    words[0, ::3] = 5  # a column whose threshold it is
    values, undecided = noises.drawn(torch.from_numpy(words.view(np.int32)), Noise()._here)
    with threads(many):
        again, likewise = noises._drawn_here(words)
    assert (values == again).all()
    assert (undecided == likewise).all()
    assert undecided[::3].all()
    assert not undecided.all()


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


def _unsure():
    """Words whose first table is not decided by 48 bits, and by how much of the rest it is."""
    table = law.tables()[0]
    column = next(
        at for at in range(law.COLUMNS) if 2**46 < table.rest[at] < 3 * 2**46 and table.column(at)[1] != at
    )
    threshold, _ = table.column(column)
    words, more = [column, threshold >> 80], [threshold >> 48 & 0xFFFFFFFF, 0]
    as_signed = [[each - 2**32 if each >= 2**31 else each] for each in (*words, *more)]
    every = torch.tensor(as_signed, dtype=torch.int32)
    return every[:2], every[2:], column, float(table.rest[column]) / 2**48


def test_what_48_bits_leave_open_is_decided_by_48_more():
    source, (words, more, column, chance) = Noise(), _unsure()
    values, undecided = noises.redrawn(words, more, source._here)
    assert noises.drawn(words, source._here)[1].tolist() == undecided.tolist() == [True]
    kept = [
        int(source._exactly(words, more, values.clone(), undecided)[0]) % law.COARSE == column % law.COARSE
        for _ in range(4000)
    ]
    assert abs(sum(kept) / 4000 - chance) < 0.06


def test_words_that_16_bits_leave_open_are_settled_with_new_ones():
    source, (words, _, column, _) = Noise(), _unsure()
    threshold, other = law.tables()[0].column(column)
    many = words.expand(2, 4000).contiguous()
    values = source._settled(many, *noises.drawn(many, source._here)) % law.COARSE
    kept = float((values == column % law.COARSE).double().mean())
    assert abs(kept - (threshold & 2**80 - 1) / 2**80) < 0.06
    assert set(values.tolist()) <= {column % law.COARSE, other % law.COARSE}


def test_groups_with_an_open_draw_are_made_again(monkeypatch):
    source, key = Noise(), torch.from_numpy(KEYS[1])
    plain = source.keyed(key, 8_000).values().view(EACH, 1000)

    def pretends(key, values, tables):
        listed = noises._chunk(key, values, tables)
        values.fill_(7)
        listed[0], listed[1] = 1, 2
        return listed

    monkeypatch.setattr(source, "_chunk", pretends)
    again = source.keyed(key, 8_000).values().view(EACH, 1000)
    assert (again[:, 512:768] == plain[:, 512:768]).all()
    assert (again[:, :512] == 7).all()
    assert (again[:, 768:] == 7).all()


def test_two_calls_share_nothing():
    one, other = (Noise().draw(1000).values() for _ in range(2))
    assert (one == other).sum() < 10
