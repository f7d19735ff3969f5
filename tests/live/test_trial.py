"""`sar-agent trial` on a simulated site: whatever ends it, the switches themselves say that the
site's own tables are back, entry for entry."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_agent.agent.state import StateStore
from sar_agent.commands.inputs import read_mix, read_routes
from sar_agent.fabric.spec import load_fabric
from sar_agent.quality import measure
from sar_lab.live.process import PATIENCE, wait_until
from tests.worlds.live import readback
from tests.worlds.live.agent_process import CLI
from tests.worlds.live.built import ROOT
from tests.worlds.live.site import plugin
from tests.worlds.live.trial_site import RESERVATION, SimulatedSite, simulated_site

pytestmark = pytest.mark.live
QUICK = "quick=bash -c 'sleep .2; [ $SLURM_PROCID -gt 0 ] || echo trial: 1.5 s'"


class TrialSite:
    """A simulated site, and commands of the agent on it."""

    def __init__(self, folder: Path, site: SimulatedSite) -> None:
        self.folder, self.site = folder, site
        self.state = folder / "state"
        self.before = readback.installed(site.ibsim)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [*CLI, *words, "--config", str(self.site.config)]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ask(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        text, _ = process.communicate(timeout=300 * PATIENCE)
        return process.returncode, text

    def trial(self, *more: str, run: str = QUICK) -> tuple[str, ...]:
        words = ("--run", run, "--tables", "sar-plus,dmodk", "--perfquery", "none", "--anyway")
        return "trial", str(self.folder / "page"), "--reservation", RESERVATION, *words, *more

    def now(self) -> readback.Tables:
        """The entries in force, without those, between switches, that OpenSM had left empty."""
        found = readback.installed(self.site.ibsim)
        return {at: port for at, port in found.items() if at in self.before}

    def wait_changed(self, trial: subprocess.Popen[str]) -> None:
        """Until other tables are in force."""
        if not wait_until(lambda: self.now() != self.before or trial.poll() is not None, 60, 0.1):
            trial.kill()
        assert self.now() != self.before, trial.communicate()[0]

    def wait_held(self, trial: subprocess.Popen[str]) -> None:
        """Until other tables are in force, and the agent is to leave them: an install is over."""

        def held() -> bool:
            state = StateStore(self.state).load()
            return (state is not None and state.held) or trial.poll() is not None

        if not wait_until(held, 120, 0.1) or self.now() == self.before:
            trial.kill()
            raise AssertionError(trial.communicate()[0])

    def wait_back(self, seconds: float = 60) -> None:
        """Until no trial is open; then the tables are those of before."""
        assert wait_until(lambda: not (self.state / "trial.json").exists(), seconds, 0.1)
        assert self.now() == self.before

    def generation(self) -> int:
        state = StateStore(self.state).load()
        return state.generation if state else 0


@pytest.fixture(params=["plugin", "file"])
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[TrialSite]:
    monkeypatch.setenv("SLURM_CONF", "")  # the site sets it, and it is put back
    monkeypatch.setenv("SAR_PLUGIN", str(plugin()))
    with simulated_site(tmp_path, request.param) as simulated:
        yield TrialSite(tmp_path, simulated)


def test_a_whole_trial_its_page_and_what_may_be_sent(site: TrialSite) -> None:
    code, text = site.ask(*site.trial("--rounds", "2", "--beside", "sleep 5"))
    assert code == 0, text
    assert "the site's own tables are in force again, entry for entry" in text
    site.wait_back()
    found = json.loads((site.folder / "page" / "trial.json").read_text())
    assert len(found["samples"]) == 2 * 3 * 2 and found["is_back"], found["notes"]
    assert sorted(found["order"]) == sorted([r, t] for r in (1, 2) for t in site_tables())
    page = (site.folder / "page" / "index.html").read_text()
    assert "quick beside the second job" in page
    assert "until <code>sar-agent resume</code>" in page and "`" not in page

    sent = site.folder / "page" / "to-send"
    texts = {path.name: path.read_text() for path in sent.iterdir()}
    assert set(texts) == {"fabric.net", "jobs.txt", "lfts.dump", "trial.json"}
    assert not any(word in body for body in texts.values() for word in ("n001", "S1-0", "sleep"))
    fabric = load_fabric(str(sent / "fabric.net"))
    mix = read_mix(str(sent / "jobs.txt"), fabric)
    measures = measure(fabric, mix, read_routes(sent / "lfts.dump", fabric))
    row = found["tables"][-1]["rows"][0]
    assert found["tables"][-1]["beside"] and row["tables"] == "own"
    assert measures.load_max == pytest.approx(row["load_max"])


def site_tables() -> tuple[str, ...]:
    return "own", "sar-plus", "dmodk"


KILLS = pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.long)])


@KILLS
def test_kill_9_at_random_moments(site: TrialSite, kills: int) -> None:
    dice, installed = random.Random(39), 0
    for _ in range(kills):
        trial, generation = site.start(*site.trial("--rounds", "20")), site.generation()
        assert wait_until((site.state / "trial.json").exists, 60, 0.02), trial.stdout
        time.sleep(dice.uniform(0, 4))
        os.killpg(trial.pid, signal.SIGKILL)
        trial.wait()
        site.wait_back()
        installed += site.generation() > generation
    assert installed, "no trial was killed after an install"


def test_its_guard_dies_too_and_an_agent_starts(site: TrialSite) -> None:
    slow = "slow=bash -c 'sleep 5; [ $SLURM_PROCID -gt 0 ] || echo trial: 1.5 s'"
    trial = site.start(*site.trial("--rounds", "3", run=slow))
    site.wait_held(trial)
    children = Path(f"/proc/{trial.pid}/task/{trial.pid}/children").read_text().split()
    for pid in [trial.pid, *map(int, children)]:
        os.kill(pid, signal.SIGKILL)
    trial.wait()
    in_force = site.now()
    assert in_force != site.before
    code, text = site.ask("once")
    assert code == 0, text
    assert site.now() == in_force, "the agent leaves what is held"
    code, text = site.ask("trial", str(site.folder / "page"), "--undo")
    assert code == 0 and "entry for entry" in text
    site.wait_back()
    assert "no trial is open" in site.ask("trial", "page", "--undo")[1]


def test_ctrl_c_a_closed_terminal_and_a_dead_cable(site: TrialSite) -> None:
    trial = site.start(*site.trial("--rounds", "20"))
    site.wait_changed(trial)
    os.kill(trial.pid, signal.SIGINT)
    text, _ = trial.communicate(timeout=120 * PATIENCE)
    assert "ended by SIGINT" in text and "entry for entry" in text
    site.wait_back()

    trial = site.start(*site.trial("--rounds", "20"))
    site.wait_changed(trial)
    assert trial.stdout
    trial.stdout.close()  # as when a terminal is closed
    os.kill(trial.pid, signal.SIGHUP)
    trial.wait(120 * PATIENCE)
    site.wait_back()

    trial = site.start(*site.trial("--rounds", "20"))
    site.wait_changed(trial)
    site.site.ibsim.unlink("S1-0", 5)
    text, _ = trial.communicate(timeout=120 * PATIENCE)
    assert "but for" in text and "led over what is dead now" in text, text
    site.site.ibsim.relink("S1-0", 5)

    def back() -> bool:
        text = site.ask("trial", "page", "--undo")[1]
        return "entry for entry" in text or "no trial is open" in text

    assert wait_until(back, 60, 1)
    site.wait_back()


def test_the_agents_own_tables_come_back_and_it_goes_on(site: TrialSite) -> None:
    site.site.slurm.salloc("n[003,007,011,015]")
    assert site.ask("once")[0] == 0
    site.before = readback.installed(site.site.ibsim)
    code, text = site.ask(*site.trial("--rounds", "1"))
    assert code == 0, text
    site.wait_back()
    state = StateStore(site.state).load()
    assert state and state.hold is None and not state.jobs


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run", "silent=true"), "silent printed nothing; known are"),
        (("--run", "wrong=false"), "exit code 1"),
        (("--reservation", "nobodys"), "Slurm has no reservation nobodys"),
        (("--minutes", "1000"), "ends in"),
        (("--rounds", "90", "--minutes", "2"), "give --rounds 1"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_installed(
    site: TrialSite, words: tuple[str, ...], said: str
) -> None:
    code, text = site.ask(*site.trial(*words))
    assert code in (1, 2) and said in text and "Traceback" not in text
    assert site.now() == site.before and not site.generation()


def test_adaptive_routing_is_said_and_a_look_installs_nothing(site: TrialSite) -> None:
    conf = site.folder / "opensm.conf"
    conf.write_text("routing_engine ar_updn\n")
    look = ("trial", "page", "--reservation", RESERVATION, "--tables", "dmodk")
    code, text = site.ask(*look, "--opensm-conf", str(conf))
    assert code == 0 and "nothing was run or installed" in text and "expected with dmodk" in text
    assert f"{conf}: adaptive routing is on" in text
    code, text = site.ask(*look, "--opensm-conf", str(conf), "--run", QUICK)
    assert code == 2 and "give --anyway" in text
    assert site.now() == site.before and not site.generation()


def test_a_rehearsal_times_the_command_on_own_tables_and_installs_nothing(site: TrialSite) -> None:
    """Each rank is on an emulated host, and sends over its cables."""
    command = "sh -c 'ip -4 -o address show dev ib0 | grep -q 10.77. && echo trial: 1.5 MB/s'"
    words = ("--rehearse", "--rounds", "1", "--minutes", "1", "--beside", "sleep 1")
    code, text = site.ask(*site.trial(*words, run=f"here={command}"))
    assert "Traceback" not in text, text
    found = json.loads((site.folder / "page" / "trial.json").read_text())
    assert found["rehearsal"] and found["back"] == "nothing was installed on the site"
    busy = sum("this machine is busy" in note for note in found["notes"])
    lost = sum("no answer" in note for note in found["notes"])  # a start that hung three times
    assert len(found["samples"]) + lost == 3 * (2 - busy), text
    assert code == (0 if found["samples"] else 1), text
    assert all(s["unit"] == "MB/s" and s["value"] == 1.5 for s in found["samples"])
    assert {s["tables"] for s in found["samples"]} <= set(site_tables())
    page = (site.folder / "page" / "index.html").read_text()
    assert "A rehearsal in an emulated fabric" in page and "Mbit/s, idle at least" in page
    assert site.now() == site.before and not site.generation()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to rehearse; give --run"),
        (("--run", "wrong=sh -c 'exit 3'"), "lost (job 1"),
    ],
)
def test_a_rehearsal_that_cannot_be(site: TrialSite, words: tuple[str, ...], said: str) -> None:
    page = str(site.folder / "page")
    rehearse = (
        "trial",
        page,
        "--reservation",
        RESERVATION,
        "--rehearse",
        "--minutes",
        "1",
        "--rounds",
        "1",
    )
    code, text = site.ask(*rehearse, "--tables", "dmodk", *words)
    assert code in (1, 2) and said in text and "Traceback" not in text
    assert site.now() == site.before and not site.generation()
