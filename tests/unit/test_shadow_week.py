"""`tests.bench.shadow_week`: its queue and its clock; the week itself needs ibsim and OpenSM."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime
from pathlib import Path

from sar_lab.history import read_history
from tests.bench.shadow_site import queue_of
from tests.bench.shadow_week import EXAMPLES, JumpingClock

HISTORY = read_history(EXAMPLES / "history.csv")
BEGIN = datetime(2026, 11, 2).timestamp()


def test_a_short_history_begins_again_each_day() -> None:
    jobs = queue_of(HISTORY, BEGIN, 72)
    assert len({job.id for job in jobs}) == len(jobs)
    whole = [job for job in jobs if job.end <= BEGIN + 72 * 3600]
    days = Counter(datetime.fromtimestamp(job.start).day for job in whole)
    assert set(days) == {2, 3, 4}
    first, second = ([j for j in jobs if datetime.fromtimestamp(j.start).day == d] for d in (2, 3))
    assert [(j.start + 86400, j.end + 86400, j.nodes) for j in first] == [
        (j.start, j.end, j.nodes) for j in second
    ]


def test_a_job_is_a_line_of_squeue(tmp_path: Path) -> None:
    from sar_agent.slurm.job_files import read_jobs_file

    job = queue_of(HISTORY, BEGIN, 24)[0]
    (tmp_path / "squeue").write_text(f"{job.line()}\n")
    [found] = read_jobs_file(tmp_path / "squeue")
    assert (found.id, set(found.hosts), found.start) == (job.id, set(job.nodes), job.start)


def test_the_clock_jumps_forward_only() -> None:
    clock = JumpingClock(3600)
    first, now, last = time.time(), clock.time(), time.time()
    assert first - 1e-3 <= now + 3600 <= last + 1e-3
    before = clock.monotonic(), clock.time()
    clock.go_to(before[1] + 1000)
    assert clock.time() >= before[1] + 1000 and clock.monotonic() >= before[0] + 999
    clock.go_to(before[1])
    assert clock.time() >= before[1] + 1000
    clock.catch_up()
    now, last = clock.time(), time.time()
    assert first <= now <= last + 1e-3
