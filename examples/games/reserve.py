"""A reserve price learned anew each day from the bids of the day before: thirty days from one budget."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sfumato import random
from sfumato.errors import BudgetExceeded
from sfumato.games.auction import price_grid
from sfumato.games.daily import DailyReserve
from sfumato.games.reserve import BidLog, ReservePrice
from sfumato.ledger import Budget, Ledger

AUCTIONS, BIDDERS, DAYS = 15_000, 40_000, 30
START = datetime.date(2026, 3, 1)


def bids_of_day(day: int, auctions: int = AUCTIONS) -> BidLog:
    """Two or three bidders an auction; what they would pay drifts upwards over the month."""
    chance = random.simulation(day)
    sizes = chance.integers(2, 4, auctions)
    rows = int(sizes.sum())
    worth = chance.uniform(0, 60 + day, rows).round(2)
    return BidLog(np.repeat(np.arange(auctions), sizes), chance.integers(0, BIDDERS, rows), worth)


def main(arguments: Sequence[str] = (), days: int = DAYS, auctions: int = AUCTIONS) -> None:
    del arguments
    grid = price_grid(top=100, step=1)
    reserve = ReservePrice("0.1", grid, max_auctions=2)
    # What the seller sees of a day without bounding anybody: for the comparison alone, not private.
    everything = ReservePrice(1, grid, max_auctions=10_000)
    print(f"{auctions:,} second-price auctions a day; one budget of epsilon {days / 10:g} for all days.")
    print(f"At epsilon 0.1 a day the reserve earns at most {reserve.guarantee('0.95'):,.0f} less than")
    print("the best one on what is kept of the log, with probability 0.95.\n")
    print("   learned on   reserve   next day: with it   no reserve   best in hindsight")
    gained: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "bids.ledger") as ledger:
        ledger.register("bids", {"unit": "bidder"}, Budget(f"{days}/10"))
        shop = DailyReserve(ledger, "bids", reserve)
        for day in range(days):
            date = START + datetime.timedelta(days=day)
            price = shop.learn(date, lambda day=day: bids_of_day(day, auctions))
            earned = everything.revenue(*bids_of_day(day + 1, auctions))
            with_it, without, best = earned[list(grid).index(price)], earned[0], earned.max()
            gained.append(with_it / without - 1)
            if day % 6 == 0 or day == days - 1:
                print(f"   {date}   {price:>7g}   {with_it:>17,.0f}   {without:>10,.0f}   {best:>17,.0f}")
        print(f"\nOn average the reserve brought in {np.mean(gained):.0%} more than none (a reserve of 1).")
        again = shop.learn(START, lambda: 1 / 0)  # never called: the day is on record
        print(f"Asked again about {START}: {again:g}, recalled, free, without reading the log.")
        print(f"Days left: {shop.days_left()}. The day after:")
        try:
            shop.learn(START + datetime.timedelta(days=days), lambda: bids_of_day(days, auctions))
        except BudgetExceeded as refused:
            print(f"   refused: {str(refused).splitlines()[0][:66]}…")


if __name__ == "__main__":
    main()
