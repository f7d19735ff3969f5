"""The trial itself: rounds, each with all tables in random order, and all benchmarks on each.

A round is a block: what changes slowly at a site changes all tables of a round alike, so tables are
compared within rounds. One run of everything on the site's own tables comes first. It shows that
the commands work, and how long they take, before anything is installed.
"""

from __future__ import annotations

import logging
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from sar_agent.agent.build import build_site
from sar_agent.agent.state import StateStore
from sar_agent.config.model import Config
from sar_agent.counters.compare import RESOLUTION, rank_correlation
from sar_agent.errors import InputError, SarError
from sar_agent.install.transit import NotSafe
from sar_agent.util.lock_file import Lock
from sar_agent.util.plural import plural
from sar_lab.emulate.benchmark import Benchmark
from sar_lab.trial.benchmarks import Beside, Launcher
from sar_lab.trial.port_counts import PortCounts
from sar_lab.trial.site_look import OWN, SiteLook
from sar_lab.trial.way_back import (
    LOCK,
    FabricChanged,
    TrialFiles,
    TrialRecord,
    guarded,
    install,
    take_back_now,
)

log = logging.getLogger(__name__)
RETRY = "it is tried for ten minutes more; then run sar-agent trial --undo"
INSTALL_SECONDS = 20.0
"""What an install is expected to take at most, before the first."""


@dataclass(frozen=True)
class Sample:
    """One run of one benchmark."""

    round: int
    tables: str
    benchmark: str
    beside: bool
    value: float
    unit: str
    time: float
    """Grows with the time that was taken, whatever was printed."""
    seconds: float
    """Of the whole run."""
    counted_max: float | None = None
    """The largest share of its speed that a link between switches carried; None: not counted."""
    rank: float | None = None
    """Rank correlation of predicted loads and counted bytes."""


@dataclass
class TrialResult:
    """What was measured, and how it ended."""

    rehearsal: bool
    seed: int
    rounds: int
    began: float
    order: list[tuple[int, str]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    installs: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: str = "all rounds are complete"
    back: str = ""
    """How the site's own tables came back."""
    is_back: bool = False
    seconds: float = 0.0

    def json(self) -> dict[str, Any]:
        """For trial.json."""
        return asdict(self)


class Interrupted(SarError):
    """A person or the deadline ended the trial."""


@dataclass(eq=False)
class Trial:
    """A trial of a site that was looked at; `run` does it."""

    config: Config
    config_path: Path
    look: SiteLook
    launcher: Launcher
    benchmarks: Sequence[Benchmark]
    second: Benchmark | None
    counts: PortCounts | None
    result: TrialResult
    ends: float
    """Unix seconds."""
    tell: Callable[[str], None]
    interrupted: str = ""
    _expected: dict[tuple[str, bool], float] = field(default_factory=dict)
    """Seconds of a benchmark, alone or not, as they were the first time."""

    def run(self) -> TrialResult:
        """Raises `SarError` before anything is installed. Later, whatever happens ends in the way
        back, and the result says so."""
        files, result = TrialFiles(self.config), self.result
        with ExitStack() as stack:
            stack.enter_context(Lock(self.config.agent.state_dir, LOCK))
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                old = signal.signal(number, self._interrupt)
                stack.callback(signal.signal, number, old)
            self._try_commands()
            state = StateStore(self.config.agent.state_dir).load()
            hold = state.hold if state and self.look.ours else None
            launcher = self.launcher
            record = TrialRecord(
                ends=self.ends,
                as_user=launcher.as_user,
                jobs=(launcher.jobs, launcher.beside),
                ours=self.look.ours,
                hold=hold,
            )
            files.begin(record, self.look.own.file)
            stack.enter_context(guarded(self.config_path))
            try:
                self._rounds()
            except (Interrupted, FabricChanged, KeyboardInterrupt) as error:
                result.ended = str(error) or "interrupted"
            except SarError as error:
                result.ended = f"it was given up: {error}"
            finally:
                self.interrupted = ""
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)  # the way back is not interrupted
                self.say(f"going back to the site's own tables ({result.ended})")
                try:
                    result.back, result.is_back = take_back_now(self.config), True
                except SarError as error:
                    result.back = f"the site's own tables are NOT in force: {error}; {RETRY}"
                self.say(result.back)
            result.seconds = time.time() - result.began
        return result

    def say(self, line: str) -> None:
        """Nobody may be listening any more; that must not stop the way back."""
        with suppress(OSError):
            self.tell(line)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """The first signal ends the trial. While a kernel is compiled, the compiler drops the
        exception; then the next step raises it."""
        self.interrupted = f"ended by {signal.Signals(number).name}"
        raise KeyboardInterrupt(self.interrupted)

    def _go_on(self, needed: float) -> None:
        """Raises `Interrupted` where the trial is to end, or `needed` seconds are not left."""
        if self.interrupted:
            raise Interrupted(self.interrupted)
        if time.time() + needed > self.ends:
            raise Interrupted("the time was over before all rounds were complete")

    def _runs(self) -> list[tuple[Benchmark, bool]]:
        both = (False, True) if self.second else (False,)
        return [(benchmark, second) for benchmark in self.benchmarks for second in both]

    def _try_commands(self) -> None:
        for benchmark, second in self._runs():
            sample = self._sample(0, OWN, benchmark, second=second)
            self._expected[benchmark.name, second] = sample.seconds
            words = " beside the second job" if second else ""
            printed = f"{sample.value:g} {sample.unit}"
            self.say(f"{benchmark.name}{words}: {printed} in {sample.seconds:.0f} s")
        result = self.result
        one = len(self.look.tables) * (INSTALL_SECONDS + sum(self._expected.values()))
        left = self.ends - time.time()
        if one * result.rounds > left:
            fits = int(left // one)
            raise InputError(
                f"{result.rounds} rounds may take {one * result.rounds / 60:.0f} minutes, and "
                f"{left / 60:.0f} are left",
                remedy=f"give --rounds {fits}" if fits else "give shorter commands, or --minutes",
            )

    def _rounds(self) -> None:
        dice, result = random.Random(self.result.seed), self.result
        for number in range(1, result.rounds + 1):
            names = list(self.look.tables)
            dice.shuffle(names)
            for name in names:
                self._go_on(INSTALL_SECONDS)
                result.order.append((number, name))
                identity = self._install(number, name)
                block = [
                    sample
                    for benchmark, second in self._runs()
                    if (sample := self._try_sample(number, name, benchmark, second=second))
                ]
                status = build_site(self.config).manager.status()
                if (status.identity, status.amendments) == (identity, 0):
                    result.samples += block
                else:
                    raise FabricChanged(
                        f"the tables of {name} did not stay in force while they were measured; "
                        "OpenSM has routed something that changed"
                    )

    def _install(self, number: int, name: str) -> str:
        """Returns the identity of the tables in force."""
        began, fabric, routes = time.monotonic(), self.look.fabric, self.look.tables[name]
        try:
            held = install(self.config, name, routes, fabric)
        except NotSafe:  # from the site's own tables every way is proved
            install(self.config, OWN, self.look.way_back, fabric)
            held = install(self.config, name, routes, fabric)
        seconds = time.monotonic() - began
        self.result.installs.append(
            {"round": number, "tables": name, "entries": held.entries, "seconds": seconds}
        )
        self.say(
            f"round {number}: {name}, {plural(held.entries, 'entry', 'entries')} changed in "
            f"{seconds:.1f} s, read back"
        )
        return build_site(self.config).manager.status().identity

    def _try_sample(
        self, number: int, tables: str, benchmark: Benchmark, *, second: bool
    ) -> Sample | None:
        self._go_on(2 * self._expected[benchmark.name, second])
        try:
            return self._sample(number, tables, benchmark, second=second)
        except SarError as error:
            self._go_on(0)
            self.result.notes.append(f"round {number}, {tables}: {error}")
            return None

    def _sample(self, number: int, tables: str, benchmark: Benchmark, *, second: bool) -> Sample:
        look, counts = self.look, self.counts
        beside = (
            Beside(self.launcher, self.second, look.beside)
            if second and self.second
            else nullcontext()
        )
        with beside:
            before = counts.read() if counts else None
            began = time.monotonic()
            reading = self.launcher.run(benchmark, look.nodes, max(1.0, self.ends - time.time()))
            seconds = time.monotonic() - began
            most = rank = None
            if counts and before:
                try:
                    window = counts.since(before)
                except SarError as error:
                    self.result.notes.append(f"round {number}, {tables}, counters: {error}")
                else:
                    load, known = look.predicted[tables, second].load, window.known
                    share = window.share[known]
                    most = float(share.max(initial=0.0))
                    if most > RESOLUTION:  # below, it is management packets
                        rank = rank_correlation(load[known], share)
        return Sample(
            number,
            tables,
            benchmark.name,
            second,
            reading.value,
            reading.unit,
            reading.time,
            seconds,
            most,
            rank,
        )
