"""A short tour of the exact core: `make demo` runs it."""

from __future__ import annotations

import time

import numpy as np

import sfumato as sf


def heading(text: str) -> None:
    print(f"\n{text}\n{'─' * len(text)}")


def private_average() -> None:
    heading("1. A private average, with its error bar")
    truth = 38.2
    print("   10,000 people, ages between 0 and 100, true mean 38.2 years.")
    print("   epsilon   private answer      95 % error bar")
    for epsilon in (0.1, 0.5, 1.0):
        mechanism = sf.Laplace(epsilon=epsilon, sensitivity=100 / 10_000)
        print(f"   {epsilon:<9} {mechanism.release(truth):<18.4f}  ± {mechanism.error(0.95):.4f} years")


def low_bits() -> None:
    heading("2. Why the noise must be exact")
    print("   Add noise to a secret that is 0 or 1, keep answers near 0, and look")
    print("   at their last bits only. How many are finer than 2⁻⁵³?")
    careless = sf.random.simulation(0)
    ours = sf.Laplace(epsilon=1.0, sensitivity=1.0)
    noises = {
        "numpy's laplace": lambda secret, n: secret + careless.laplace(size=n),
        "sfumato's Laplace": lambda secret, n: ours.release(np.full(n, float(secret))),
    }
    for name, noisy in noises.items():
        shares = []
        for secret in (0, 1):
            answers = noisy(secret, 200_000)
            near = answers[np.abs(answers) < 0.25] * 2.0**53
            shares.append(np.mean(near != np.rint(near)))
        verdict = "the secret is out" if abs(shares[0] - shares[1]) > 0.01 else "nothing to see"
        print(f"   {name:<18} secret 0: {shares[0]:4.0%}   secret 1: {shares[1]:4.0%}   {verdict}")


def composition() -> None:
    heading("3. What a hundred answers cost together")
    print("   Each has Laplace noise at ε = 0.1; the total is read at δ = 10⁻⁶.")
    loss = sf.Laplace(epsilon=0.1, sensitivity=1.0).loss
    for name, epsilon in sf.accounting.compare([loss] * 100, delta=1e-6).items():
        if epsilon is not None:
            print(f"   {name:<10} ε = {epsilon:9.6f}   {'█' * round(epsilon * 4)}")


def training() -> None:
    heading("4. Private training: 15,000 steps of DP-SGD")
    print("   Noise of one clipping norm, each record in a batch with probability 0.004.")
    step = sf.Gaussian(sigma=1.0, sensitivity=1.0).loss.sampled(0.004)
    start = time.perf_counter()
    epsilon = (step * 15_000).epsilon(delta=1e-5)
    took = time.perf_counter() - start
    print(f"   ε = {epsilon:.7f} at δ = 10⁻⁵, rounded up, in {took * 1000:.0f} ms")
    multiplier = float(sf.accounting.noise_multiplier(epsilon=2, delta=1e-5, rate=0.004, steps=15_000))
    print(f"   for ε = 2 the noise multiplier must be {multiplier:.7f}")


def selection() -> None:
    heading("5. Choosing in private")
    print("   A thousand private choices of the best film, ε = 0.5 each.")
    films = {"Alphaville": 31, "Brazil": 57, "Contact": 12, "Dune": 52}
    mechanism = sf.Exponential(epsilon=0.5, sensitivity=1.0, monotone=True)
    picks = [list(films)[mechanism.select(list(films.values()))] for _ in range(1000)]
    for film, votes in films.items():
        share = picks.count(film) / len(picks)
        print(f"   {film:<11} {votes:3} votes   chosen {share:5.1%}  {'█' * round(share * 30)}".rstrip())


def audit() -> None:
    heading("6. Catching a mechanism that claims too much")
    print("   200,000 answers on each side of two neighbours, 99.9 % confidence.")
    honest = sf.Geometric(epsilon=1.0, sensitivity=1)
    halved = sf.Geometric(epsilon=2.0, sensitivity=1)  # half the noise, sold as epsilon = 1
    zeros, ones = np.zeros(200_000, dtype=np.int64), np.ones(200_000, dtype=np.int64)
    for name, mechanism in (("honest", honest), ("half the noise", halved)):
        bound = sf.audit.lower_bound(mechanism.release(zeros), mechanism.release(ones), confidence=0.999)
        verdict = "caught" if bound.epsilon > 1 else "nothing against it"
        print(f"   {name:<15} claims ε = 1; samples prove ε ≥ {bound.epsilon:.3f}: {verdict}")


if __name__ == "__main__":
    print(f"Sfumato {sf.__version__}: the picture stays, no single stroke can be made out.")
    for scene in (private_average, low_bits, composition, training, selection, audit):
        scene()
    print("\nNext: README.md, docs/tour.md, then the guides in docs/.")
