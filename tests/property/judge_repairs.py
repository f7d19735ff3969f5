"""Judges many repairs of the plugin, and prints the totals:
python -m tests.property.judge_repairs PROGRAM [--seconds 60] [--first SEED].

PROGRAM is opensm_bridge/build/sweeps_run, maybe of a changed copy. Exit code 1 with findings, each
with its seed and the file that replays it."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.property.test_judged import tell
from tests.worlds.repair_steps import SHAPES


def totals(seen: Counter[str], findings: list[str]) -> str:
    """By fabric and event: how often each answer was given."""
    events: dict[str, Counter[str]] = {}
    for name, count in seen.items():
        event, colon, how = name.rpartition(": ")
        if colon:
            events.setdefault(event, Counter())[how] += count
    rows = [f"{event}: {', '.join(f'{k} {v}' for k, v in sorted(hows.items()))}"
            for event, hows in sorted(events.items())]  # fmt: skip
    rows += [f"{name}: {count}" for name, count in sorted(seen.items()) if ": " not in name]
    return "\n".join([*rows, f"findings: {len(findings)}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=5_000_000)
    given = parser.parse_args()
    seen, findings, seed = Counter[str](), list[str](), given.first
    until = time.monotonic() + given.seconds
    folder = Path(tempfile.mkdtemp(prefix="judged-"))
    while time.monotonic() < until:
        for shape in SHAPES:
            try:
                tell(seed, shape, folder, given.program, seen)
            except AssertionError as error:
                findings.append(str(error))
                print(error, flush=True)
        seed += 1
    print(totals(seen, findings))
    return bool(findings)


if __name__ == "__main__":
    raise SystemExit(main())
