"""A week in shadow mode within minutes: python -m tests.bench.shadow_week [--hours H] [--out DIR].

A simulated fabric, a stock OpenSM without our plugin, and the agent in observe mode. It reads a
replayed queue by a `squeue`, the fabric by ibnetdiscover and the tables in force from OpenSM's
dump; only its clock jumps, from one thing that is due to the next. DIR then holds the agent's
state, its metrics, the page of the week, and pictures of it and of the live page.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from unittest import mock

EXAMPLES = Path(__file__).parents[2] / "docs/examples"


class JumpingClock:
    """The machine's clock, set back by `behind` seconds; `go_to` skips what lies between."""

    def __init__(self, behind: float) -> None:
        self._wall, self._monotonic = time.time, time.monotonic
        self.behind, self.skipped = behind, 0.0

    def time(self) -> float:
        """Unix seconds."""
        return self._wall() - self.behind + self.skipped

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._monotonic() + self.skipped

    def go_to(self, moment: float) -> None:
        """Let it be `moment` (Unix seconds), if it is not later already."""
        self.skipped += max(0.0, moment - self.time())

    def catch_up(self) -> None:
        """Let it be as late as on the machine, by which browsers tell how old a page is."""
        self.go_to(self._wall())


def main() -> None:
    """Runs the week and prints where its pages are."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.shadow_week",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--hours", type=float, default=168.0, help="of the cluster (168)")
    parser.add_argument("--out", type=Path, default=Path("out/shadow-week"), metavar="DIR")
    parser.add_argument(
        "--fabric", default=str(EXAMPLES / "cluster.ibnetdiscover"), help="as of assess"
    )
    parser.add_argument(
        "--history",
        default=str(EXAMPLES / "history.csv"),
        help="as of assess; a shorter one than --hours begins again",
    )
    parser.add_argument("--engine", default="minhop", help="OpenSM's routing_engine (minhop)")
    parser.add_argument(
        "--serve", action="store_true", help="keep the page and the metrics until Enter"
    )
    given = parser.parse_args()
    clock = JumpingClock(given.hours * 3600)
    with mock.patch.multiple(time, time=clock.time, monotonic=clock.monotonic):
        # Only now: many modules bind the clock's functions when they are imported.
        from tests.bench.shadow_site import run_week

        page = run_week(clock, given.hours, given.fabric, given.history, given.engine, given.out)
        if given.serve:
            input(f"{page} and {page}metrics until Enter ")


if __name__ == "__main__":
    main()
