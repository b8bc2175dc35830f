"""The textbook's names are all there, documented and priced."""

import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato import book
from sfumato.book.prices import PRICED
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import Gaussian

PROMISED = {
    "laplace_mech",
    "laplace_mech_vec",
    "gaussian_mech",
    "gaussian_mech_vec",
    "gaussian_mech_RDP_vec",
    "gaussian_mech_zCDP_vec",
    "above_threshold",
    "above_threshold_fail_signal",
    "naive_above_threshold",
    "sparse",
    "range_query_svt",
    "report_noisy_max",
    "exponential",
    "isKAnonymized",
    "generalize",
    "score",
    "avg_grad",
    "L2_clip",
    "noisy_gradient_descent",
    "rand_resp_sales",
    "encode",
    "perturb",
    "aggregate",
    "auto_avg",
    "ptr_avg",
    "saa_avg_age",
}
# What the originals are called with, in their order; where they read a global table, ours takes the data too.
ORIGINALS = {
    "laplace_mech": "v sensitivity epsilon",
    "laplace_mech_vec": "vec sensitivity epsilon",
    "gaussian_mech": "v sensitivity epsilon delta",
    "gaussian_mech_vec": "vec sensitivity epsilon delta",
    "gaussian_mech_RDP_vec": "vec sensitivity alpha epsilon_bar",
    "gaussian_mech_zCDP_vec": "vec sensitivity rho",
    "above_threshold": "queries df T epsilon",
    "above_threshold_fail_signal": "queries df T epsilon",
    "naive_above_threshold": "queries df T epsilon",
    "sparse": "queries df c T epsilon",
    "range_query_svt": "queries df c T epsilon",
    "report_noisy_max": "x R u sensitivity epsilon",
    "exponential": "x R u sensitivity epsilon",
    "isKAnonymized": "df k",
    "generalize": "df depths",
    "score": "data option",
    "avg_grad": "theta X y",
    "L2_clip": "v b",
    "noisy_gradient_descent": "iterations epsilon delta",
    "rand_resp_sales": "response",
    "encode": "response",
    "perturb": "encoded_response",
    "aggregate": "responses",
    "auto_avg": "df epsilon",
    "ptr_avg": "df u b epsilon delta logging",
    "saa_avg_age": "k epsilon logging",
    # Beyond those: what the chapters call on the way.
    "avg_attack": "query epsilon k",
    "ls_at_distance": "df u k",
    "dist_to_high_ls": "df u b",
    "gs_avg": "df u epsilon",
    "naive_select_b": "query df epsilon",
    "age_sum_query": "df b",
    "create_query": "b",
    "gradient_sum": "theta X y b",
    "unary_epsilon": "p q",
    "range_query": "df col a b",
    "range_query_synth": "syn_rep a b",
    "gen_samples": "n",
    "pct_error": "orig priv",
    "adv_comp": "k epsilon delta",  # what the original reads from globals comes after its own
    "seq_comp": "k epsilon",
}
DATA = {
    "noisy_gradient_descent": {"X", "y"},
    "saa_avg_age": {"df"},
    "encode": {"domain"},
    "gen_samples": {"syn_rep"},
}
# Chapter 12 has a file of its own; what is there is checked, and nothing here depends on it.
HOMES = {name: home for home, names in book._HOMES.items() for name in names.split()}
THERE = [n for n, home in HOMES.items() if importlib.util.find_spec(f"sfumato.book.{home}")]
SPENDING = {"noisy_gradient_descent", "perturb_bit", *PRICED}


def test_every_promised_name_has_a_home():
    assert set(book.__all__) >= PROMISED
    assert sorted(HOMES) == book.__all__ == sorted(set(book.__all__)) == dir(book)


@pytest.mark.parametrize("name", ORIGINALS)
def test_arguments_are_those_of_the_original_in_its_order(name):
    assert set(ORIGINALS) >= PROMISED
    given = inspect.signature(getattr(book, name)).parameters.values()
    placed = [each.name for each in given if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert placed == ORIGINALS[name].split()
    needed = {each.name for each in given if each.kind is each.KEYWORD_ONLY and each.default is each.empty}
    assert needed == DATA.get(name, needed & {"epsilon", "delta"})


@pytest.mark.parametrize("name", THERE)
def test_each_name_loads_and_states_its_price_and_the_trap(name):
    found = getattr(book, name)
    assert found.__module__ == f"sfumato.book.{HOMES[name]}"
    text = inspect.getdoc(found)
    assert "Privacy:" in text, name
    if name in PROMISED:
        assert re.search(r"Traps? of the original: \S", text), name
    if name in SPENDING - {"noisy_gradient_descent"}:
        assert re.search(r"Privacy:\n +Total", text), name


def test_every_name_is_in_the_guide():
    guide = (Path(__file__).parents[2] / "docs/book.md").read_text()
    assert [name for name in book.__all__ if f"`{name}" not in guide] == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'laplace_mechanism'"):
        _ = book.laplace_mechanism


def test_no_frame_library_is_needed():
    homes = sorted(set(book._HOMES) - {"learning"})
    code = f"import sys, importlib; [importlib.import_module('sfumato.book.' + h) for h in {homes}]; "
    code += "print({'pandas', 'polars'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "set()"


def parameters(name):
    asked = {"epsilon": "0.7", "delta": "1e-6", "alpha": 20, "epsilon_bar": "0.1", "rho": "0.02"}
    return {key: asked[key] for key in PRICED[name].needs}


@pytest.mark.parametrize("name", sorted(PRICED))
def test_the_price_is_what_was_asked_for(name):
    given = parameters(name)
    loss = book.price(name, **given)
    assert book.price(getattr(book, name), **given) == loss
    assert set(PRICED[name].needs) <= set(inspect.signature(getattr(book, name)).parameters)
    if "rho" in given or "alpha" in given:
        assert loss == Gaussian(rho=given.get("rho", "0.005"), sensitivity=3).loss
    elif "delta" in given:
        assert loss.delta(epsilon="0.7") == pytest.approx(1e-6, rel=1e-9)
    elif "epsilon" in given:
        assert loss.epsilon(delta=0) == 0.7
    else:
        assert loss.epsilon(delta=0) == pytest.approx(2.1972245773362196 / (1 + (name != "perturb")))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"function": "pct_error"}, "pct_error has no price here: it is not one of above_threshold, "),
        (
            {"function": "gaussian_mech", "epsilon": 1},
            "The price of gaussian_mech follows from epsilon and delta.",
        ),
        ({"function": "auto_avg", "epsilon": 1, "p": 0.7}, "The price of auto_avg follows from epsilon."),
        ({"function": "rand_resp_sales", "epsilon": 1}, "The price of rand_resp_sales follows from nothing."),
        ({"function": "perturb", "p": 0.2, "q": 0.3}, "p must exceed q"),
    ],
)
def test_a_price_that_is_not_there_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(InvalidParameter, match=re.escape(sentence)):
        book.price(**given)
