"""One film recommended to everybody by what its viewers thought, without showing what any viewer thought.

The obvious score is a film's average rating, and the obvious sensitivity "5 / number of ratings". Both are
wrong: how many rated *this* film is private, and a film that one person saw has an average that is that
person's. Two scores with a true sensitivity are chosen from instead: the sum of likes, and an average whose
divisor is never below a public floor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import sfumato as sf

FILMS = (
    "The Long Afternoon", "Harbour Lights", "Second Violin", "Paper Boats", "The Glass Orchard",
    "North of Here", "A Quiet Engine", "Salt and Iron", "The Understudy", "Winter Garden",
    "Last Tram Home", "The Cartographer",
)  # fmt: skip
RARE = FILMS.index("The Cartographer")
TICK = 2**20  # averages are compared in whole millionths, so that their sensitivity is a whole number


@dataclass(frozen=True)
class Ratings:
    """Who gave which film how many stars, one entry a rating."""

    viewer: NDArray[np.int64]
    film: NDArray[np.int64]
    stars: NDArray[np.int64]

    def likes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each film the sum of stars − 3, and how many rated it; one rating a viewer and film counts.

        Privacy:
            Whatever the data holds, one viewer adds a number of −2 … 2 and a count of at most 1 to each film.
        """
        _, first = np.unique(self.viewer * len(FILMS) + self.film, return_index=True)
        film, liked = self.film[first], np.clip(self.stars[first], 1, 5) - 3
        count = np.bincount(film, minlength=len(FILMS))
        return np.bincount(film, liked, len(FILMS)).astype(np.int64), count.astype(np.int64)

    def without(self, viewer: int) -> Ratings:
        """The same without one viewer."""
        kept = self.viewer != viewer
        return Ratings(self.viewer[kept], self.film[kept], self.stars[kept])


def viewers(count: int = 3_000, seed: int = 3) -> Ratings:
    """Made-up ratings: some films are seen by many, one by nobody but viewer 0, who loved it."""
    draw = sf.random.simulation(seed)
    seen = draw.random((count, len(FILMS))) < np.array([9, 7, 3, 5, 2, 6, 3, 4, 5, 2, 4, 0]) / 12
    taste = np.array([3.6, 3.4, 4.4, 3.0, 4.2, 2.8, 3.1, 3.3, 3.5, 2.6, 3.2, 3.0])
    seen[0, RARE] = True
    viewer, film = np.nonzero(seen)
    stars = np.clip(np.rint(draw.normal(taste[film], 1.0)), 1, 5).astype(np.int64)
    stars[(viewer == 0) & (film == RARE)] = 5
    return Ratings(viewer, film, stars)


def by_likes(ratings: Ratings, epsilon: str) -> tuple[sf.Exponential, NDArray[np.int64]]:
    """The choice by the sum of likes.

    Privacy:
        One viewer moves each score by at most 2, either way, however many films they rated.
    """
    return sf.Exponential(epsilon, 2), ratings.likes()[0]


def by_average(ratings: Ratings, epsilon: str, floor: int) -> tuple[sf.Exponential, NDArray[np.int64]]:
    """The choice by the average like, in ticks, the divisor never below a public floor F.

    Privacy:
        With c raters of sum S, one more of like x gives a change of |x − S/c|/(c + 1) ≤ 4/(F + 1) for c ≥ F,
        and of |x|/F ≤ 2/F for c < F, which is no more; rounding to ticks adds one at most.
    """
    total, count = ratings.likes()
    divisor = np.maximum(count, floor)
    scores = np.sign(total) * (np.abs(total) * TICK // divisor)
    return sf.Exponential(epsilon, -(-4 * TICK // (floor + 1)) + 1), scores


def careless(ratings: Ratings, epsilon: str) -> tuple[sf.Exponential, NDArray[np.float64]]:
    """WRONG: plain averages, with a sensitivity of 5 / all ratings, as is often written."""
    total, count = ratings.likes()
    return sf.Exponential(epsilon, 5 / len(ratings.stars)), 3 + total / np.maximum(count, 1)


def attack(epsilon: str, rounds: int = 200) -> dict[str, float]:
    """How often one choice tells whether viewer 0 is in the data: half is a guess."""
    ratings = viewers()
    rates = {}
    for name, choice in (
        ("careless average", lambda r: careless(r, epsilon)),
        ("sum of likes", lambda r: by_likes(r, epsilon)),
        ("average with a floor", lambda r: by_average(r, epsilon, 200)),
    ):
        there, gone = (choice(data) for data in (ratings, ratings.without(0)))
        # Somebody loved the film that only viewer 0 can have seen: then they are there.
        right = sum(there[0].select(there[1]) == RARE for _ in range(rounds))
        right += sum(gone[0].select(gone[1]) != RARE for _ in range(rounds))
        rates[name] = right / (2 * rounds)
    return rates


def main() -> None:
    """The films, two private choices with their bounds, and the attack on the careless one."""
    epsilon, ratings = "0.5", viewers()
    total, count = ratings.likes()
    people = len(np.unique(ratings.viewer))
    print(f"{people:,d} viewers, {len(ratings.stars):,d} ratings. The truth, which nobody is shown:\n")
    print("  film                   ratings   average   likes")
    for i in [*np.argsort(-total)[:4].tolist(), RARE]:
        print(f"  {FILMS[i]:<22} {count[i]:7,d}   {3 + total[i] / count[i]:7.2f}   {total[i]:5,d}")

    choice, scores = by_likes(ratings, epsilon)
    place, bound = choice.select(scores), choice.error(0.95, candidates=len(FILMS))
    below = scores.max() - scores[place]
    print(f"\nBy the sum of likes, ε = {epsilon}: “{FILMS[place]}”.")
    print(f"  With 95 % it is at most {bound:.0f} likes below the best; here it is {below}.")

    choice, ticks = by_average(ratings, epsilon, 200)
    place, bound = choice.select(ticks), choice.error(0.95, candidates=len(FILMS)) / TICK
    below = (ticks.max() - ticks[place]) / TICK
    print(f"By the average, divisor at least 200: “{FILMS[place]}”.")
    print(f"  With 95 % it is at most {bound:.2f} stars below the best; here it is {below:.2f}.")

    print(f"\nOne choice is published. Was viewer 0, who alone saw “{FILMS[RARE]}”,")
    print("in the data? A guess is right half the time; ε = 0.5 allows 62 %.")
    for name, share in attack(epsilon).items():
        print(f"  {name:<22} {share:4.0%} right")
    print("\nThe careless one divides by a number of ratings that is itself private: with")
    print("one rating, a person moves the average by whole stars, not by 5/n.")


if __name__ == "__main__":
    main()
