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
    assert "not how likely they are" in " ".join(figure._supxlabel.get_text().split())
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


NOISE = [
    sf.Laplace(1, 1),
    sf.Laplace(100, 1),
    sf.Gaussian(1, "1e-5", sensitivity=1),
    sf.Gaussian(sigma="0.01", sensitivity=1),
    sf.Staircase(1, 1),
    sf.TruncatedLaplace(1, "0.01", sensitivity=1),
    sf.Geometric(1, 1),
    sf.Geometric(20, 1),
    sf.DiscreteGaussian(sigma=2, sensitivity=1),
]


@pytest.mark.parametrize("noise", NOISE, ids=repr)
@pytest.mark.parametrize(
    "at", [np.arange(-30, 31), np.arange(-300, 301, 10), np.linspace(-1, 1, 401), AT], ids=len
)
def test_logarithms_are_drawn_on_any_grid_and_densities_are_refused(noise, at):
    whole = isinstance(noise, sf.Geometric | sf.DiscreteGaussian)
    if whole and np.any(at != np.rint(at)):
        at = np.arange(-5, 6)
    law = noise.log_density(at)
    figure = density_curves(at, {"noise": law})
    if whole:
        assert figure.axes[0].get_ylabel() == "probability"
    elif np.any(at != np.rint(at)):
        assert figure.axes[0].get_ylabel() == "density"
    if at[-1] - at[0] <= 2:
        return  # so short a range may have a density of 1 everywhere
    with pytest.raises(InvalidParameter, match="log_density"):
        density_curves(at, {"noise": np.exp(law)})
    with pytest.raises(InvalidParameter, match="log_density"):
        neighbouring_densities(at, np.exp(law), np.exp(law), epsilon=1)


def test_a_picture_needs_a_folder_that_is_there(tmp_path):
    for wrong in (tmp_path / "nope" / "x.png", tmp_path / "nope" / "x.svg"):
        with pytest.raises(InvalidParameter, match=f"no folder for {wrong.name}; make it first"):
            density_curves(AT, {"noise": LAPLACE.log_density(AT)}, path=wrong)
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(InvalidParameter, match=r"taken\.png cannot be written there"):
        density_curves(AT, {"noise": LAPLACE.log_density(AT)}, path=tmp_path / "taken.png")
    assert [each.name for each in tmp_path.iterdir()] == ["taken.png"]
