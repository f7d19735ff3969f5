"""30 days of job records at 5,000 a day: bytes, and milliseconds of a pass and of `explain`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np

from sar_agent.agent.explain_ended import ended_job
from sar_agent.agent.job_days import KEPT_DAYS, MOST_LEAVES, MOST_SHARED, JobDay, JobDays
from sar_agent.config.model import parse_config
from sar_agent.services.job_days.observer import WRITE_SECONDS
from tests.bench.table import Table
from tests.bench.timing import Times

JOBS, DAY, MEAN_SECONDS, SEED = 5000, 86400, 7200.0, 1
ASKED = 50
LEAF, SPINE = "MF0;ib-leaf-{:03}:MQM8700/U1", "MF0;ib-spine-{:02}:MQM8700/U1"
"""Names as long as those of switches at sites."""


def rows_of(day: int, rng: np.random.Generator) -> list[JobDay]:
    """The jobs of a day, in the order of their starts: sizes log-uniform from 2 to 512 hosts."""
    begin = (day - date(1970, 1, 1).toordinal()) * DAY
    starts = np.sort(rng.integers(0, DAY, JOBS)).tolist()
    seconds = np.minimum(rng.exponential(MEAN_SECONDS, JOBS), DAY).tolist()
    found = []
    for i, (start, lasts) in enumerate(zip(starts, seconds, strict=True)):
        hosts = int(2 ** rng.uniform(1, 9))
        leaves = int(rng.integers(2, max(3, hosts + 1)))
        named, each = range(min(leaves, MOST_LEAVES)), 1 + hosts // leaves
        others = int(rng.integers(0, 20))
        id = day % 1000 * JOBS + i
        sums = rng.uniform(1, 3, 6) * lasts
        found.append(
            JobDay(
                day, str(id), begin + start, False, f"user{id % 300:03}", hosts,
                {LEAF.format(leaf): each for leaf in named},
                leaves, begin + start, begin + start + lasts, lasts,
                {"in_force": [lasts, *sums[:2].tolist()], "planned": [lasts, *sums[2:4].tolist()],
                 "baseline": [lasts, *sums[4:].tolist()]},
                "minhop", float(rng.uniform(0.1, 3)), begin + start + lasts / 2,
                f'"{SPINE.format(id % 40)}"[{id % 40}] -> "{LEAF.format(id % 800)}"[{id % 40}]',
                [str(id - 1 - n) for n in range(min(others, MOST_SHARED))], others,
                float(rng.uniform(0, 1)),
            )
        )  # fmt: skip
    return found


def tables(full: bool) -> Iterator[Table]:
    """The table after 30 days, of which the last is written pass by pass as the daemon does."""
    rng, today = np.random.default_rng(SEED), date.today().toordinal()
    table = Table(
        f"{KEPT_DAYS} days of job records, {JOBS:,} jobs a day",
        ("what", "value"),
        f"`history.sqlite` of jobs with 2 to 512 hosts that last two hours in the mean; the last "
        f"day's rows are written every {WRITE_SECONDS:.0f} s while their jobs run, as by `run`.",
    )
    with tempfile.TemporaryDirectory(prefix="sar-bench-") as folder:
        days = JobDays(Path(folder))
        for day in range(today - KEPT_DAYS + 1, today):
            days.keep(rows_of(day, rng))
        passes, running = _last_day(days, rows_of(today, rng))
        size, count = days.path.stat().st_size, len(days.all())
        text = f'[agent]\nstate_dir = "{folder}"\n'
        config, asked = parse_config(text), Times()
        named, with_users = parse_config(f"{text}explain_names_users = true\n"), Times()
        for job in rng.integers(0, JOBS, ASKED).tolist():
            id = str((today - int(rng.integers(0, KEPT_DAYS))) % 1000 * JOBS + job)
            with asked.one():
                ended_job(config, id)
            with with_users.one():
                ended_job(named, id)
    table.add("rows", f"{count:,}")
    table.add("bytes", f"{size:,}")
    table.add("bytes a job", f"{size / count:.0f}")
    table.add("running jobs, mean of the passes", f"{running:.0f}")
    table.add("a pass that writes, ms: median, largest, median of CPU", _ms(passes))
    for what, times in (("", asked), (", users named", with_users)):
        table.add(f"`explain` of an ended job{what}, ms: the same", _ms(times))
    yield table


def _last_day(days: JobDays, rows: list[JobDay]) -> tuple[Times, float]:
    passes, running, midnight = Times(), list[int](), min(row.start for row in rows) // DAY * DAY
    for now in np.arange(WRITE_SECONDS, DAY + 1, WRITE_SECONDS).tolist():
        then, at = midnight + now - WRITE_SECONDS, midnight + now
        due = [row for row in rows if row.start <= at and row.last > then]
        running.append(len(due))
        with passes.one():
            days.keep(due)
    return passes, float(np.mean(running))


def _ms(times: Times) -> str:
    values = times.median, max(times), median(times.cpu)
    return ", ".join(f"{1000 * each:.1f}" for each in values)
