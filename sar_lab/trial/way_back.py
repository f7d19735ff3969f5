"""The way back from a trial: a record on disk from before the first install, and one function that
installs the site's own tables again, by the proved steps of every plan.

The end of a trial, Ctrl-C, a deadline, a change of the fabric and `--undo` all call `take_back`. So
does the process `guard`, which outlives a trial that was killed. During a trial every install is
held, so an agent that runs, or starts meanwhile, leaves the tables alone.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from sar_agent.agent.build import build_site
from sar_agent.agent.install_held import PATIENCE, ChosenTables, Held, install_held
from sar_agent.agent.state import SavedHold, StateStore
from sar_agent.check import check_routes
from sar_agent.config.model import Config, load_config
from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.routes_file import RoutesFile, read_routes_file, write_routes_file
from sar_agent.install.changes import differences
from sar_agent.install.subnet_manager import SmRefused
from sar_agent.jobs import JobMix
from sar_agent.jobs.source import Poll
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.util.lock_file import Lock
from sar_agent.util.plural import plural
from sar_agent.util.store import JsonStore

T = TypeVar("T")
LOCK = "trial.lock"
LATE = 180.0
"""Seconds after its deadline at which a trial that has not ended is ended by its guard."""
STUBBORN = 600.0
"""Seconds for which the way back is tried while OpenSM or Slurm do not answer."""


class TrialRecord(BaseModel):
    """A trial that is not taken back yet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ends: float
    """Unix seconds: its deadline."""
    as_user: tuple[str, ...]
    """What precedes `scancel`, so that it is the user of the jobs: `sudo -n -u alice`."""
    jobs: tuple[str, ...]
    """The names of its jobs."""
    ours: bool
    """Whether the site's own tables were the agent's; then the agent goes on as before."""
    hold: SavedHold | None
    """The hold of before."""


class TrialFiles:
    """`trial.json` and `trial-own.sar` in the state folder."""

    def __init__(self, config: Config) -> None:
        folder = config.agent.state_dir
        self.tables = folder / "trial-own.sar"
        self.record: JsonStore[TrialRecord] = JsonStore(
            folder / "trial.json", TrialRecord, "run sar-agent leave instead"
        )

    def begin(self, record: TrialRecord, own: RoutesFile) -> None:
        """The record is last: where it is, the tables are. Raises `InputError`."""
        # OpenSM's own tables have the number 0, which no file may have.
        write_routes_file(self.tables, replace(own, generation=max(1, own.generation)))
        self.record.write(record)

    def end(self) -> None:
        self.record.path.unlink(missing_ok=True)
        self.tables.unlink(missing_ok=True)


def installing(config: Config) -> Config:
    """In mode install, whatever the file says: a trial is a person's wish."""
    agent = config.agent.model_copy(update={"mode": "install"})
    return config.model_copy(update={"agent": agent})


def install(config: Config, name: str, routes: Routes, fabric: Fabric) -> Held:
    """Install `routes` by proved steps, and hold them. Raises `FabricChanged` where they are of
    another fabric, else as `install_held`."""

    def on(now: Fabric) -> Routes:
        if now.digest != fabric.digest:
            raise FabricChanged("a cable, a switch or a host has changed since the trial began")
        return routes

    words = f"the tables of {name}"
    return _retried(
        partial(install_held, config, lambda *_: ChosenTables(routes.engine, words, on), ""), 60.0
    )


class FabricChanged(SarError):
    """The fabric is no longer the one that was looked at."""


def take_back(config: Config, patience: float = STUBBORN) -> str:
    """Install the site's own tables; returns what was done, in words. A trial that runs is waited
    for as long as a lock is. Raises `SarError` where it cannot be done within `patience` seconds;
    the record then stays."""
    with Lock(config.agent.state_dir, LOCK, patience=1.0):
        return take_back_now(config, patience)


def take_back_now(config: Config, patience: float = STUBBORN) -> str:
    """`take_back` for a process that has the lock."""
    files = TrialFiles(config)
    record = files.record.read()
    if record is None:
        return "no trial is open; nothing was changed"
    end_jobs(record.as_user, record.jobs)
    own = read_routes_file(files.tables)
    words, made = "the site's own tables", list[OwnTables]()

    def on(fabric: Fabric) -> Routes:
        made.append(own_tables(fabric, own))
        return made[-1].routes

    def go() -> int:
        site = build_site(config, source=_NoJobs())
        with Lock(config.agent.state_dir, "pass.lock", PATIENCE):
            site.manager.recover()
        found = site.observer.observe().in_force
        if found and found.confirmed and not differences(own, found.file):
            return 0
        chosen = ChosenTables(own.engine, words, on)
        return install_held(config, lambda *_: chosen, "back to ", site=site).entries

    changed = _retried(go, patience)
    if record.ours:
        _hold_as_before(config, record.hold)
    if made and made[-1].instead:
        return (
            f"{words} are in force again, but for {plural(made[-1].instead, 'entry', 'entries')} "
            "that led over what is "
            "dead now; run `sar-agent trial --undo` again once it is repaired"
        )
    files.end()
    rest = ""
    if made and made[-1].filled:
        rest = f"; {made[-1].filled} between switches that OpenSM had left empty are filled"
    if changed and not record.ours:
        rest += "; the agent leaves them until `sar-agent resume`"
    return f"{words} are in force again, entry for entry ({changed} changed){rest}"


class _NoJobs:
    """The way back needs no jobs, so it does not wait for Slurm."""

    def poll(self) -> Poll:
        return Poll(())

    def allocated(self, hosts: Collection[str]) -> frozenset[str]:
        """None: that it shows no job is to be believed at once."""
        return frozenset()


class OwnTables(NamedTuple):
    """The site's own tables on the fabric as it is now."""

    routes: Routes
    instead: int
    """Entries that are others, since theirs lead over something dead."""
    filled: int
    """Entries that OpenSM has left empty."""


def own_tables(fabric: Fabric, own: RoutesFile) -> OwnTables:
    """Rows with an entry that leads over something dead are those of up*/down*, and so are all
    where that fails the check. Entries that OpenSM leaves empty, by which no packet of a host goes,
    are filled: a plan has none."""
    routes = replace(file_to_routes(fabric, own), senders=None, fabric_digest=fabric.digest)
    spare = routed(load_engine("updn"), fabric, JobMix(()), Options())
    switches = np.arange(fabric.switches)
    egress = routes.egress.copy()
    channel = fabric.channel_by_port[switches, egress]
    dead = (egress != NO_ROUTE) & ((channel < 0) | ~fabric.channel_up[channel])
    dead &= (fabric.destination_switch[:, None] != switches) & fabric.switch_up
    live = np.concatenate([fabric.terminal_up, fabric.switch_up])
    rows = dead.any(axis=2) & live
    empty = (egress == NO_ROUTE) & live[:, None]
    for offset, table in enumerate(egress):
        table[rows[offset]] = spare.egress[0][rows[offset]]
        np.copyto(table, spare.egress[0], where=empty[offset])
    done = replace(routes, egress=egress)
    if rows.any() and not check_routes(fabric, done).passed:
        done = spare
        egress = np.broadcast_to(spare.egress[:1], egress.shape)
    other = (egress != routes.egress) & (routes.egress != NO_ROUTE)
    return OwnTables(done, int(np.count_nonzero(other)), int(np.count_nonzero(empty)))


def end_jobs(as_user: Sequence[str], jobs: Sequence[str]) -> None:
    """Cancel jobs of these names, and wait until their nodes are free, if Slurm answers."""
    with suppress(OSError, subprocess.SubprocessError):
        for name in jobs:  # scancel takes one
            subprocess.run([*as_user, "scancel", "--name", name], capture_output=True, timeout=30)
        end, listed = time.monotonic() + 30, ["squeue", "-h", "-n", ",".join(jobs)]
        while subprocess.check_output(listed, timeout=30).strip() and time.monotonic() < end:
            time.sleep(0.2)


def _hold_as_before(config: Config, hold: SavedHold | None) -> None:
    with Lock(config.agent.state_dir, "pass.lock", PATIENCE):
        store = StateStore(config.agent.state_dir)
        state = store.load()
        if state is not None and state.hold != hold:
            jobs = state.jobs if hold else frozenset()  # new jobs: it plans again
            store.save(state.model_copy(update={"hold": hold, "jobs": jobs}))


def _retried(act: Callable[[], T], seconds: float) -> T:
    """Again while OpenSM is at work, or does not answer, or Slurm does not."""
    end = time.monotonic() + seconds
    while True:
        try:
            return act()
        except (SmRefused, Unavailable):
            if time.monotonic() >= end:
                raise
            time.sleep(1.0)


@contextmanager
def guarded(config_path: Path) -> Iterator[None]:
    """A process of its own that takes the tables back if this one has died, or could not do it."""
    # An installed package is on the path of its launcher only.
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import guard; guard()"
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", code, str(config_path), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the trial
    )
    assert process.stdin
    try:
        yield
    finally:
        process.stdin.close()


def guard() -> None:
    """The guard: wait for the end of the trial, which closes its standard input."""
    config, trial = installing(load_config(Path(sys.argv[1]))), int(sys.argv[2])
    while not select.select([sys.stdin], [], [], 5.0)[0]:
        with suppress(InputError):
            record = TrialFiles(config).record.read()
            if record and time.time() > record.ends + LATE:
                with suppress(ProcessLookupError):
                    os.kill(trial, signal.SIGKILL)
    if not TrialFiles(config).record.path.exists():
        return
    with Lock(config.agent.state_dir, LOCK, patience=60.0):
        sentence = take_back_now(config)
    with suppress(OSError):  # the terminal may be gone
        print(f"sar-agent: the trial has died: {sentence}", file=sys.stderr)
