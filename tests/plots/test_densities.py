"""Pictures of laws: what two neighbours have in common, and how laws differ in their tails."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.plots import density_curves, neighbouring_densities

AT = np.linspace(-16, 17, 301)
LAPLACE, GAUSSIAN = sf.Laplace(1, 1), sf.Gaussian(1, "1e-5", sensitivity=1)


def both(mechanism):
    return mechanism.log_density(AT), mechanism.log_density(AT, value=1)


def marked(figure):
    """How much of the ratio is drawn outside the band."""
    return int(np.isfinite(figure.axes[1].lines[1].get_ydata()).sum())


def test_laplace_noise_stays_within_the_band(inside, tmp_path):
    figure = neighbouring_densities(
        AT, *both(LAPLACE), epsilon=1, title="Two neighbours", path=tmp_path / "n.png"
    )
    assert marked(figure) == 0
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["without", "with"]
    assert "no answer is more than e^ε times as likely" in figure._supxlabel.get_text()
    assert inside(figure)
    assert (tmp_path / "n.png").stat().st_size > 10_000


def test_gaussian_noise_leaves_it_and_half_of_the_noise_too(inside):
    figure = neighbouring_densities(AT, *both(GAUSSIAN), epsilon=1)
    assert marked(figure) > 10
    assert "delta" in figure._supxlabel.get_text()
    assert inside(figure)
    assert marked(neighbouring_densities(AT, *both(sf.Laplace(2, 1)), epsilon=1)) > 100


def test_what_only_one_input_can_give_is_at_the_edge(inside):
    figure = neighbouring_densities(AT, *both(sf.TruncatedLaplace(1, "0.01", sensitivity=1)), epsilon=1)
    assert marked(figure) > 5
    assert np.nanmax(np.abs(figure.axes[1].lines[1].get_ydata())) < figure.axes[1].get_ylim()[1]
    assert inside(figure)


def test_laws_over_each_other_are_told_apart_by_more_than_colour(inside):
    curves = {"Laplace": LAPLACE.log_density(AT), "Gaussian": GAUSSIAN.log_density(AT)}
    figure = density_curves(AT, curves, title="Laplace over Gaussian", note="At one price.")
    assert len({line.get_linestyle() for line in figure.axes[0].lines}) == 2
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [*curves]
    assert inside(figure)


@pytest.mark.parametrize(
    ("at", "curves"),
    [
        (AT, {}),
        (AT, {str(i): AT for i in range(5)}),
        (AT, {"a": AT[:3]}),
        (AT[::-1], {"a": AT}),
        ([0.0], {"a": [0.0]}),
        (AT, {"a": np.full(301, np.nan)}),
        (AT, {"a": np.full(301, np.inf)}),
        (AT, {"a": np.full(301, -np.inf)}),
    ],
)
def test_unusable_laws_are_refused(at, curves):
    with pytest.raises(InvalidParameter):
        density_curves(at, curves)


@pytest.mark.parametrize("epsilon", [0, -1, np.inf, np.nan])
def test_the_band_needs_an_epsilon(epsilon):
    with pytest.raises(InvalidParameter):
        neighbouring_densities(AT, AT, AT, epsilon=epsilon)
