"""Accounting: composed epsilon and running totals, beside Google's and Opacus's accountants and the truth."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import sfumato as sf
from benchmarks.harness import Report, Timing, no_collection, peer, race, seconds, times
from benchmarks.truths import HETEROGENEOUS, MULTIPLIER, TRAINING
from benchmarks.truths import recipe as draw_recipe
from sfumato import accounting


class Recipe:
    """500 Laplace, 500 Gaussian and 100 pure losses drawn from a fixed seed."""

    def __init__(self) -> None:
        self.laplace, self.sigma, self.pure = draw_recipe()

    def losses(self, *, jitter: float = 0.0) -> list[sf.PrivacyLoss]:
        """Build our losses, Laplace and Gaussian in turns and then the pure ones.

        A jitter far below the tolerance makes every repetition a question not asked before, so that no cache
        can answer it.
        """
        more = 1.0 + jitter
        found: list[sf.PrivacyLoss] = []
        for epsilon, sigma in zip(self.laplace, self.sigma, strict=True):
            found.append(sf.loss.LaplaceLoss(float(epsilon * more)))
            found.append(sf.Gaussian(sigma=float(sigma * more), sensitivity=1).loss)
        found.extend(sf.loss.PureLoss(float(epsilon * more)) for epsilon in self.pure)
        return found

    def google(self, step: float) -> list[Callable[[], Any]]:
        """Give makers of Google's privacy-loss distributions in the same order."""
        module = peer("dp_accounting.pld.privacy_loss_distribution")
        common = peer("dp_accounting.pld.common")
        found: list[Callable[[], Any]] = []
        for epsilon, sigma in zip(self.laplace, self.sigma, strict=True):
            found.append(
                lambda e=epsilon: module.from_laplace_mechanism(1.0 / e, value_discretization_interval=step)
            )
            found.append(
                lambda s=sigma: module.from_gaussian_mechanism(s, value_discretization_interval=step)
            )
        for epsilon in self.pure:
            point = common.DifferentialPrivacyParameters(epsilon, 0.0)
            found.append(
                lambda p=point: module.from_privacy_parameters(p, value_discretization_interval=step)
            )
        return found


def heterogeneous(report: Report) -> None:
    """Epsilon of 1,100 different losses at delta 1e-6."""
    report.heading("epsilon of 1,100 different losses, delta 1e-6", "wall", "CPU", "relative error")
    recipe = Recipe()
    case = "Gaussian, Laplace, pure"
    fresh = itertools.count(1)
    ready = [recipe.losses(jitter=1e-12 * next(fresh)) for _ in range(12)]
    supply = iter(ready)
    first = sf.compose(recipe.losses()).epsilon(1e-6)
    contenders: dict[str, Callable[[], object]] = {
        "sfumato": lambda: sf.compose(next(supply)).epsilon(1e-6),
        "with its losses": lambda: sf.compose(recipe.losses(jitter=1e-12 * next(fresh))).epsilon(1e-6),
    }
    answers = {"sfumato": first, "with its losses": first}
    if peer("dp_accounting.pld.privacy_loss_distribution") is not None:
        makers = recipe.google(1e-3)

        def google() -> float:
            total = makers[0]()
            for make in makers[1:]:
                total = total.compose(make())
            return float(total.get_epsilon_for_delta(1e-6))

        contenders["Google PLD 1e-3"] = google
        answers["Google PLD 1e-3"] = google()
    timing = race(contenders, repeats=9, warm=1, budget=6.0)
    _answers(report, case, timing, answers, HETEROGENEOUS)
    if "Google PLD 1e-3" not in timing:
        report.missing(case, "Google PLD 1e-3")
    _time(report, "1,100 different losses, time", timing["sfumato"], 30)
    _accuracy(report, "1,100 different losses", first, HETEROGENEOUS, 1e-6)


def training(report: Report) -> None:
    """Epsilon of DP-SGD: sampling rate 0.004, noise multiplier 1, 15,000 steps, delta 1e-5."""
    report.heading(
        "epsilon of DP-SGD, q 0.004, sigma 1, 15,000 steps, delta 1e-5", "wall", "CPU", "relative error"
    )
    case = "DP-SGD"
    fresh = itertools.count(1)
    noise = sf.Gaussian(sigma=1, sensitivity=1).loss

    def ours(jitter: float) -> float:
        return (noise.sampled(0.004 * (1.0 + jitter)) * 15_000).epsilon(1e-5)

    first = ours(0.0)
    contenders: dict[str, Callable[[], object]] = {"sfumato": lambda: ours(1e-12 * next(fresh))}
    answers = {"sfumato": first}
    for who, call in _training_peers().items():
        if call is None:
            report.missing(case, who)
        else:
            contenders[who] = call
            answers[who] = call()
    timing = race(contenders, repeats=7, budget=6.0)
    _answers(report, case, timing, answers, TRAINING)
    _time(report, "DP-SGD epsilon, time", timing["sfumato"], 100)
    _accuracy(report, "DP-SGD epsilon", first, TRAINING, 1e-5)


def _training_peers() -> dict[str, Callable[[], float] | None]:
    found: dict[str, Callable[[], float] | None] = dict.fromkeys(
        ("Google PLD 1e-4", "Google RDP", "Opacus PRV", "Opacus RDP")
    )
    google = peer("dp_accounting")
    if google is not None:
        pld, rdp = peer("dp_accounting.pld"), peer("dp_accounting.rdp")
        event = google.PoissonSampledDpEvent(0.004, google.GaussianDpEvent(1.0))

        def compose(make: Callable[[], Any]) -> float:
            return float(make().compose(event, 15_000).get_epsilon(1e-5))

        found["Google PLD 1e-4"] = lambda: compose(
            lambda: pld.PLDAccountant(value_discretization_interval=1e-4)
        )
        found["Google RDP"] = lambda: compose(rdp.RdpAccountant)
    opacus = peer("opacus.accountants")
    if opacus is not None:

        def account(kind: Callable[[], Any]) -> float:
            accountant = kind()
            accountant.history = [(1.0, 0.004, 15_000)]
            return float(accountant.get_epsilon(delta=1e-5))

        found["Opacus PRV"] = lambda: account(opacus.PRVAccountant)
        found["Opacus RDP"] = lambda: account(opacus.RDPAccountant)
    return found


def multiplier(report: Report) -> None:
    """The noise multiplier that meets epsilon 2 at delta 1e-5 over 15,000 steps of sampling rate 0.004."""
    report.heading(
        "noise multiplier for epsilon 2, delta 1e-5, q 0.004, 15,000 steps", "wall", "CPU", "relative error"
    )
    case = "noise multiplier"
    fresh = itertools.count(1)

    def ours(jitter: float) -> float:
        return float(accounting.noise_multiplier(2.0 * (1.0 + jitter), 1e-5, rate=0.004, steps=15_000))

    first = ours(0.0)
    contenders: dict[str, Callable[[], object]] = {"sfumato": lambda: ours(1e-12 * next(fresh))}
    answers = {"sfumato": first}
    for who, call in _multiplier_peers().items():
        if call is None:
            report.missing(case, who)
        else:
            contenders[who] = call
            answers[who] = call()
    timing = race(contenders, repeats=5, warm=0, budget=4.0)
    _answers(report, case, timing, answers, MULTIPLIER)
    _time(report, "noise multiplier, time", timing["sfumato"], 500)
    _accuracy(report, "noise multiplier", first, MULTIPLIER, 1e-6)


def _multiplier_peers() -> dict[str, Callable[[], float] | None]:
    found: dict[str, Callable[[], float] | None] = dict.fromkeys(
        ("Google PLD 1e-4", "Opacus PRV", "Opacus RDP")
    )
    google = peer("dp_accounting")
    if google is not None:
        pld = peer("dp_accounting.pld")
        found["Google PLD 1e-4"] = lambda: google.calibrate_dp_mechanism(
            lambda: pld.PLDAccountant(value_discretization_interval=1e-4),
            lambda sigma: google.SelfComposedDpEvent(
                google.PoissonSampledDpEvent(0.004, google.GaussianDpEvent(sigma)), 15_000
            ),
            2.0,
            1e-5,
        )
    utilities = peer("opacus.accountants.utils")
    if utilities is not None:

        def search(accountant: str) -> float:
            return float(
                utilities.get_noise_multiplier(
                    target_epsilon=2.0,
                    target_delta=1e-5,
                    sample_rate=0.004,
                    steps=15_000,
                    accountant=accountant,
                )
            )

        found["Opacus PRV"] = lambda: search("prv")
        found["Opacus RDP"] = lambda: search("rdp")
    return found


def running(report: Report) -> None:
    """The total after each of 1,000 spends: its time, how that grows, and how tight the last answer is."""
    report.heading(
        "total after each of 1,000 spends, delta 1e-6", "mean a spend", "last over first", "relative error"
    )
    recipe = Recipe()
    case = "500 Laplace, 500 Gaussian"
    truth = sf.compose(recipe.losses()[:1000]).epsilon(1e-6)
    best: tuple[float, list[float], list[float], float] | None = None
    for repetition in range(3):
        tally = accounting.Tally(1e-6)

        def spend(loss: sf.PrivacyLoss, tally: Any = tally) -> float:
            tally.add(loss)
            return _upper(tally.epsilon())

        losses = recipe.losses(jitter=1e-12 * (repetition + 1))
        walls, cpus, answer = _spends(spend, losses[:1000])
        if best is None or sum(walls) < sum(best[1]):
            best = (answer, walls, cpus, [spend(loss) for loss in losses[1000:]][-1])
    answer, walls, cpus, final = best
    growth = _spend_row(report, case, "sfumato", walls, cpus, answer, truth)
    for who, step in _running_peers(recipe).items():
        if step is None:
            report.missing(case, who)
        else:
            walls_, cpus_, answer_ = _spends(step, range(1000))
            _spend_row(report, case, who, walls_, cpus_, answer_, truth)
    mean, slowest = float(np.mean(walls)), float(np.max(walls))
    report.figure(
        "total after a spend, mean of 1,000",
        mean * 1e3,
        "<=",
        1,
        unit=" ms",
        cpu=float(np.mean(cpus)) * 1e3,
        slowest_ms=slowest * 1e3,
    )
    report.figure("total after a spend, last 100 over first 100", growth, "<=", 1.25, unit=" ×")
    _accuracy(report, "running total after all 1,100", final, HETEROGENEOUS, 1e-6)


def _upper(figure: Any) -> float:
    """Give the answer of a figure that may carry its error."""
    return float(getattr(figure, "upper", figure))


def _spends(
    spend: Callable[[Any], float], items: Sequence[Any] | range
) -> tuple[list[float], list[float], float]:
    walls, cpus, answer = [], [], math.nan
    with no_collection():
        for item in items:
            cpu = time.process_time()
            wall = time.perf_counter()
            answer = spend(item)
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
    return walls, cpus, answer


def _spend_row(
    report: Report, case: str, who: str, walls: list[float], cpus: list[float], answer: float, truth: float
) -> float:
    growth = float(np.median(walls[-100:]) / np.median(walls[:100]))
    report.row(
        case,
        who,
        seconds(float(np.mean(walls))),
        times(growth),
        f"{answer / truth - 1:+.1e}",
        mean_seconds=float(np.mean(walls)),
        mean_cpu_seconds=float(np.mean(cpus)),
        slowest_seconds=float(np.max(walls)),
        growth=growth,
        epsilon=answer,
        relative_error=answer / truth - 1,
        wall_of_each_spend=walls,
    )
    return growth


def _running_peers(recipe: Recipe) -> dict[str, Callable[[int], float] | None]:
    found: dict[str, Callable[[int], float] | None] = dict.fromkeys(("Google RDP", "Google PLD 1e-3"))
    google = peer("dp_accounting")
    if google is None:
        return found
    accountant = peer("dp_accounting.rdp").RdpAccountant()
    makers = recipe.google(1e-3)
    total: list[Any] = []

    def rdp(at: int) -> float:
        parameter = recipe.sigma[at // 2] if at % 2 else 1.0 / recipe.laplace[at // 2]
        accountant.compose((google.GaussianDpEvent if at % 2 else google.LaplaceDpEvent)(parameter))
        return float(accountant.get_epsilon(1e-6))

    def pld(at: int) -> float:
        made = makers[at]()
        total[:] = [total[0].compose(made) if total else made]
        return float(total[0].get_epsilon_for_delta(1e-6))

    return {"Google RDP": rdp, "Google PLD 1e-3": pld}


def _answers(
    report: Report, case: str, timing: dict[str, Any], answers: dict[str, Any], truth: float
) -> None:
    for who, one in timing.items():
        error = float(answers[who]) / truth - 1
        report.row(
            case,
            who,
            seconds(one.wall),
            seconds(one.cpu),
            f"{error:+.1e}",
            timing=one,
            answer=float(answers[who]),
            truth=truth,
            relative_error=error,
            over_ours=one.wall / timing["sfumato"].wall,
        )


def _time(report: Report, what: str, timing: Timing, most: float) -> None:
    report.figure(what, timing.wall * 1e3, "<=", most, unit=" ms", cpu=timing.cpu * 1e3)


def _accuracy(report: Report, what: str, value: float, truth: float, tolerance: float) -> None:
    """Keep the error and its sign as two figures: near enough, and never below the truth."""
    error = value / truth - 1
    report.figure(f"{what}, relative error", abs(error), "<=", tolerance)
    # The truth is stored as the nearest float, so a shortfall of one rounding is none.
    report.figure(f"{what}, shortfall below the truth", max(0.0, -error), "<=", 4e-16)


def few(report: Report) -> None:
    """Compositions of few events, at the epsilons and deltas that were slow once."""
    report.heading("compositions of few events", "wall", "CPU")
    laplace, gauss = sf.loss.LaplaceLoss, sf.loss.GaussianLoss
    fresh = itertools.count(1)

    def near(value: float) -> float:
        return value * (1.0 + 1e-12 * next(fresh))

    questions: dict[str, Callable[[], object]] = {
        "two Laplace, delta at 0": lambda: (laplace(near(1.0)) * 2).delta(0),
        "50 Laplace of 0.1, delta at 0": lambda: (laplace(near(0.1)) * 50).delta(0),
        "three sampled Gaussians, epsilon at 1e-6": lambda: (gauss(near(0.5)).sampled("0.01") * 3).epsilon(
            1e-6
        ),
        "five sampled Gaussians, epsilon at 1e-12": lambda: (gauss(near(1.0)).sampled("0.001") * 5).epsilon(
            1e-12
        ),
        "50 discrete Gaussians of sigma 20": lambda: (sf.loss.DiscreteGaussianLoss(near(400.0)) * 50).epsilon(
            1e-6
        ),
        "two bounded ranges, epsilon at 1e-12": lambda: (sf.loss.BoundedRangeLoss(near(1.0)) * 2).epsilon(
            1e-12
        ),
        "two rare samples, delta at 1e-6": lambda: (gauss(near(3.7)).sampled("0.001") * 2).delta(1e-6),
        "five rare samples, delta at 1e-6": lambda: (gauss(near(3.7)).sampled("0.001") * 5).delta(1e-6),
        "ten rare samples, delta at 1e-6": lambda: (gauss(near(1.0)).sampled("0.001") * 10).delta(1e-6),
        "25 rare samples, epsilon at 1e-5": lambda: (gauss(near(1.2)).sampled("0.00001") * 25).epsilon(1e-5),
        "50 rare samples, epsilon at 1e-5": lambda: (gauss(near(0.1)).sampled("0.0001") * 50).epsilon(1e-5),
        "50 rare samples, delta at 5": lambda: (gauss(near(0.1)).sampled("0.0001") * 50).delta(5),
        "noise multiplier of 25 steps": lambda: accounting.noise_multiplier(near(1.0), 1e-5, 0.001, 25),
    }
    for case, question in questions.items():
        timing = race({"sfumato": question}, repeats=3, budget=4.0)["sfumato"]
        report.row(case, "sfumato", seconds(timing.wall), seconds(timing.cpu), cpu_seconds=timing.cpu)
        _time(report, case, timing, 500)


PARTS = (heterogeneous, training, multiplier, running, few)
