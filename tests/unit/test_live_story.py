"""Time limits of the harness and of `emulate --live` on a busy machine, and what is read of jobs;
without daemons."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sar_agent.agent.history import Row
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, load_engine
from sar_lab.emulate.live import story as told
from sar_lab.emulate.live.losses import Losses
from sar_lab.emulate.live.mpi_jobs import Iteration, MpiJob
from sar_lab.emulate.live.page import LivePage, rings_of
from sar_lab.emulate.live.play import FIRST, SECOND
from sar_lab.emulate.live.story import StepFailed, Story
from sar_lab.live import process
from sar_lab.live.process import wait_until
from tests.worlds.agent_world import ROW


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The load average, on two processors."""
    load = [0.1]
    monkeypatch.setattr(os, "getloadavg", lambda: (load[0], 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(process, "PATIENCE", 1.0)
    return load


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    """Its scratch folder is tmp_path/scratch; limits are short."""
    (tmp_path / "scratch" / "slurm" / "log").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    monkeypatch.setattr(told, "STEP_SECONDS", 0.05)
    monkeypatch.setattr(told, "_LOOK", 0.01)
    return Story(tmp_path / "page")


def site(folder: Path, decided_after: int = 0, jobs: list[MpiJob] | None = None) -> Any:
    """The agent's decision is there at the look after so many."""
    looks: list[object] = []
    running = jobs or []

    def news() -> list[Row]:
        looks.append(None)
        return [ROW] if len(looks) == decided_after + 1 else []

    for name in ("log", "opensm.log", "slurm/log/slurmctld.log"):
        (folder / name).write_text(f"last words in {name}")
    return SimpleNamespace(
        agent=SimpleNamespace(news=news, log_path=folder / "log"),
        manager=SimpleNamespace(log_path=folder / "opensm.log"),
        bridge=SimpleNamespace(
            status=lambda: SimpleNamespace(engine_in_force="sar", last_error="")
        ),
        followed=SimpleNamespace(look=lambda: 0, trouble="dump_fts: no answer", routes=None),
        slurm=SimpleNamespace(folder=folder / "slurm"),
        jobs=SimpleNamespace(
            read=lambda: [job.read() for job in running],
            running=running,
            wrong=lambda: sum(i.wrong for job in running for i in job.iterations),
        ),
        settings=lambda: "agent.mode",
    )


def test_a_limit_grows_with_the_load(load: list[float]) -> None:
    """One that has begun, too: the load rises while the machine is waited for."""
    calls: list[float] = []

    def true() -> bool:
        calls.append(time.monotonic())
        load[0] = 40.0
        return len(calls) > 12  # 0.6 s

    assert wait_until(true, 0.1)
    load[0], begin = 0.1, time.monotonic()
    assert not wait_until(lambda: False, 0.1)
    assert time.monotonic() - begin < 30


def test_the_limit_of_a_step_is_a_minute_at_least() -> None:
    assert told.STEP_SECONDS >= 60


def test_a_failed_step_names_load_logs_settings_and_remedy(
    load: list[float], story: Story, tmp_path: Path
) -> None:
    load[0] = 26.0
    story.begin(site(tmp_path / "scratch", 5))
    assert story.decision("first routes", lambda row: True) == ROW
    story.begin(site(tmp_path / "scratch", 10**9))
    with pytest.raises(StepFailed) as failed:
        story.decision("first routes", lambda row: True)
    said = str(failed.value)
    assert said.startswith("first routes did not happen within 1 s (load average 26, 2 processors)")
    assert "dump_fts: no answer" in said
    assert "settings that are not the defaults: agent.mode;" in said
    assert "SAR_PATIENCE=10 make demo-live" in said
    kept = re.search(r"the logs are in (\S+);", said)
    assert kept and Path(kept[1]).parent == tmp_path, "the scratch folder is removed at the end"
    for name, source in (("agent.log", "log"), ("opensm.log", "opensm.log")):
        assert (Path(kept[1]) / name).read_text() == f"last words in {source}"
    assert (Path(kept[1]) / "slurmctld.log").exists()


PRINTED = """\
iteration 1: 0.900 s, ended 100.950, 0 sums wrong
iteration 2: 0.500 s, ended 101.500, 0 sums wrong
iteration 3: 0.700 s, ended 102.250, 0 sums wrong
iteration 4: 0.6"""


def printed(folder: Path, text: str) -> MpiJob:
    output = folder / "job-1.out"
    output.write_text(text)
    job = MpiJob("1", (0, 4), output)
    job.read()
    return job


def test_iterations_are_read_as_they_are_printed(tmp_path: Path) -> None:
    job = printed(tmp_path, PRINTED)
    assert [each.seconds for each in job.iterations] == [0.9, 0.5, 0.7]
    assert job.since(100.9) == [Iteration(0.5, 101.5, 0), Iteration(0.7, 102.25, 0)]
    assert job.median(100.9) == pytest.approx(0.6)
    assert not job.ended


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("srun: error: n005: task 1: Killed", "job 1 has ended: .*n005: task 1: Killed"),
        ("iteration 4: 0.500 s, ended 103.000, 3 sums wrong\n", "3 sums of the jobs are wrong"),
    ],
)
def test_a_job_that_ends_or_computes_wrong_sums_fails_the_step(
    story: Story, tmp_path: Path, line: str, said: str
) -> None:
    job = printed(tmp_path, PRINTED[: PRINTED.rindex("iteration")] + line)
    story.begin(site(tmp_path / "scratch", jobs=[job]))
    with pytest.raises(StepFailed, match=said):
        story.wait("anything", lambda: False)


def test_losses_are_told_with_what_was_sent_in_vain() -> None:
    lost = Losses(10, 7, 5).minus(Losses(10, 3, 2))
    assert str(lost) == (
        "packets lost: 0; TCP sent 4 segments again, 3 of them although they had arrived"
    )
    assert str(Losses(0, 0, 0)) == "packets lost: 0; TCP sent 0 segments again"


@pytest.mark.parametrize(("engine", "meet"), [("ftree", True), ("sar-plus", False)])
def test_the_page_shows_where_messages_meet(tmp_path: Path, engine: str, meet: bool) -> None:
    """A job in its colour, a cable in red where two meet, and one that is pulled."""
    fabric = xgft_fabric("xgft:2;4,4;1,4")
    jobs = [MpiJob(str(n), places, tmp_path / "none") for n, places in enumerate((FIRST, SECOND))]
    jobs[0].iterations = [Iteration(0.5, 100.0, 0), Iteration(0.25, 101.0, 0)]
    mix = JobMix(tuple(make_job(job.number, list(job.terminals)) for job in jobs))
    routes = load_engine(engine).route(fabric, mix, Options())
    shown: Any = SimpleNamespace(
        fabric=fabric,
        followed=SimpleNamespace(routes=routes, compared=128),
        jobs=SimpleNamespace(running=jobs),
        pulled=set(),
    )
    unused = next(c for c in range(fabric.channels) if c not in rings_of(shown).channel)
    shown.pulled.add((int(fabric.channel_source[unused]), int(fabric.channel_port[unused])))
    page = LivePage(tmp_path / "page")
    page.lines.append((1.5, "jobs <start>"))
    page.write(shown)
    text = page.path.read_text()
    assert ('class="cable meet"' in text) == meet
    assert 'class="cable used j0"' in text and 'class="cable used j1"' in text
    assert text.count('class="cable pulled"') == 1
    assert "Job 0, 5 hosts: 0.25 s" in text and "Job 1, 5 hosts: starting" in text
    assert "jobs &lt;start&gt;" in text and 'http-equiv="refresh"' in text
    page.over = True
    page.write(None)
    assert 'http-equiv="refresh"' not in page.path.read_text()
    assert list(page.path.parent.iterdir()) == [page.path]
