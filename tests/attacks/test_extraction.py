"""Secrets in a text model: completed by a plain one, unknown to a private one."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.attacks.extraction import exposure, extraction
from sfumato.attacks.text import CharacterModel, character_counts
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded
from verdicts import sure

ALPHABET = "abcdefgh 0123456789"
ORDER, MOST, EPSILON = 4, 8, 2
SECRETS = [f"{code:03d}" for code in range(1000)]


def _world(canaries=40):
    generator = simulation(4)
    words = ["".join(generator.choice(list("abcdefgh"), 3)) for _ in range(canaries * 3)]
    names = list(dict.fromkeys(words))[:canaries]
    prose = [" ".join("".join(generator.choice(list("abcdefgh"), 4)) for _ in range(5)) for _ in range(300)]
    return prose, names


def _train(release=None):
    def train(documents, seed):
        return CharacterModel.of_documents(
            documents, alphabet=ALPHABET, order=ORDER, most=MOST, release=release
        )

    return train


def _score(model, texts):
    return model.log_likelihood(texts)


def test_a_plain_model_completes_what_it_saw_once():
    prose, names = _world()
    outcome = extraction(_train(), _score, prose, names, candidates=SECRETS, seed=1)
    assert outcome.works
    assert outcome.rate > 0.8
    assert outcome.baseline == 1 / 1000
    assert outcome.detail["exposure"] > 9
    assert outcome.detail["epsilon at least"] > 5
    assert outcome.detail["most"] == pytest.approx(math.log2(1000))
    assert outcome.detail["exposure of a guess"] == pytest.approx(1.44, abs=0.01)


def test_a_private_model_does_not():
    # Whoever asks: a secret comes first with probability at most e^ε/1000 = 0.7 % at epsilon 2 a document.
    prose, names = _world()
    noise = sf.Geometric(epsilon=EPSILON, sensitivity=MOST)
    with seeded(3):
        outcome = extraction(_train(noise.release), _score, prose, names, candidates=SECRETS, seed=1)
    assert sure(outcome).within
    assert outcome.detail["exposure"] < 3
    assert outcome.detail["epsilon at least"] <= 2 * EPSILON


def test_ten_times_too_little_noise_is_seen():
    prose, names = _world()
    weak = sf.Geometric(epsilon=10 * EPSILON, sensitivity=MOST)
    with seeded(3):
        assert extraction(_train(weak.release), _score, prose, names, candidates=SECRETS, seed=1).works


def test_a_model_that_never_saw_a_secret_has_it_anywhere():
    prose, names = _world()
    blind = CharacterModel.of_documents(prose, alphabet=ALPHABET, order=ORDER)
    outcome = extraction(
        lambda documents, seed: blind, _score, prose, names, candidates=SECRETS, top=10, seed=1
    )
    assert sure(outcome).within
    assert outcome.baseline == 0.01


def test_copies_stay_one_document():
    seen = []

    def train(documents, seed):
        seen.extend(documents)

    extraction(
        train, lambda model, texts: np.zeros(len(texts)), ["a"], ["x "], candidates=["1", "2"], copies=3
    )
    assert len(seen) == 2
    assert {len(each) for each in seen} == {1, len("x 1 x 1 x 1")}


def test_exposure_is_the_rank_in_bits():
    lengths = {"a": 4.0, "b": 3.0, "c": 3.0, "d": 1.0}

    def score(texts):
        return [lengths[each] for each in texts]

    assert exposure(score, "a", list("abcd")) == 2
    assert exposure(score, "a", list("bcd")) == 2  # whether it is listed makes no difference
    assert exposure(score, "d", list("abcd")) == 0
    assert exposure(score, "b", list("abcd")) == pytest.approx(2 - math.log2(2.5))


def test_counts_of_a_document_are_bounded_and_its_own():
    documents = ["abcabcabcabc", "aé b", "h", ""]
    whole = character_counts(documents, alphabet="abch ", order=2)
    assert whole.shape == (5, 5)
    assert whole.sum() == 11 + 2  # the accent is not counted: "a b"
    assert whole[0, 1] == 4
    for most in (1, 5, 100):
        counts = character_counts(documents, alphabet="abch ", order=2, most=most)
        for gone in range(len(documents)):
            rest = documents[:gone] + documents[gone + 1 :]
            other = character_counts(rest, alphabet="abch ", order=2, most=most)
            assert np.abs(counts - other).sum() <= most


def test_a_model_s_probabilities_are_those_of_its_counts():
    model = CharacterModel.of_counts(np.array([[8, 2], [-5, 0]]), alphabet="ab", smoothing=1)
    assert model.chances == pytest.approx(np.array([[9 / 12, 3 / 12], [1 / 2, 1 / 2]]))
    found = model.log_likelihood(["aab", "a", "bx b"])
    assert found == pytest.approx([math.log(9 / 12 * 3 / 12), 0, math.log(1 / 2)])


def test_what_cannot_be_used_is_refused_in_a_sentence():
    def zeros(model, texts):
        return np.zeros(len(texts))

    def none(documents, seed):
        return None

    known = {"candidates": ["1", "2"]}
    for given, words in (
        (lambda: extraction(none, zeros, "text", ["x"], **known), "list of texts"),
        (lambda: extraction(none, zeros, [], [], **known), "canaries"),
        (lambda: extraction(none, zeros, [], ["x", "x"], **known), "different"),
        (lambda: extraction(none, zeros, [], ["x"], candidates=["1"]), "candidates"),
        (lambda: extraction(none, zeros, [], ["x"], **known, top=2), "every guess"),
        (lambda: extraction(none, lambda m, t: [0], [], ["x"], **known), "each text"),
        (lambda: extraction(none, lambda m, t: [math.nan] * 2, [], ["x"], **known), "NaN"),
        (lambda: extraction(lambda d, s: 1 / 0, zeros, [], ["x"], **known), "ZeroDivisionError"),
        (lambda: exposure(lambda t: [0], "a", ["a"]), "at least one other"),
        (lambda: character_counts([], alphabet="aa", order=2), "each once"),
        (lambda: character_counts([], alphabet=ALPHABET, order=9), "too large"),
        (lambda: CharacterModel.of_counts(np.zeros((2, 3), np.int64), alphabet="ab"), "each axis"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            given()
