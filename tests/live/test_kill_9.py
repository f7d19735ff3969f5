"""kill -9 of agent and OpenSM, a thousand times, at random moments of installs, updates in five
phases and installs of routing keys.

What must hold each time:
- no lower generation comes into force: in the life of one OpenSM never, and after its death never
  one lower than that of `routes.sar`;
- what the agent's state calls installed was in force on all switches, confirmed;
- tables of LID offset 0 never change while a subscriber may use them;
- in the end `routes.sar`, the agent's state, OpenSM's copy and the switches' own tables agree.

`SAR_KILLS` says how many kills (1,000), `SAR_SEED` repeats a run; both are printed.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.state import State
from sar_agent.errors import SarError
from sar_agent.formats.routes_file import read_generation, read_routes_file
from sar_agent.opensm.plugin_client import PluginStatus
from sar_lab.live.process import wait_until
from tests.worlds.live import readback
from tests.worlds.live.forked import Forks
from tests.worlds.live.munged import credential, message, tell
from tests.worlds.live.phased import Phased, phased
from tests.worlds.live.plugin_watch import PluginWatch
from tests.worlds.live.subscriber import Subscriber

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.timeout(7200)]
KILLS = int(os.environ.get("SAR_KILLS", "1000"))
FIXED = ("n[001,005,009]", "n[002,006]")
"""The jobs that subscribe."""
PATIENCE = 120.0


class Watch(PluginWatch):
    """What the plugin may never say, and when it sent tables."""

    def __init__(self, site: Phased) -> None:
        super().__init__(site)
        self.settled: set[int] = set()
        """Generations that were in force, confirmed by all switches."""
        self.sends: list[tuple[float, float, int]] = []
        """Between which times blocks changed, and which generation was in force, confirmed,
        before."""
        self._looked = 0.0
        self.last_settled = 0
        self.newest: PluginStatus | None = None
        self.wrong: list[str] = []

    def saw(self, asked: float, status: PluginStatus) -> None:
        before, self.newest = self.newest, status
        blocks = before.lft_blocks_confirmed if before and before.pid == status.pid else 0
        if status.lft_blocks_confirmed != blocks:
            self.sends.append((self._looked, time.time(), self.last_settled))
        self._looked = asked
        if status.settled and status.generation_in_force:
            self.last_settled = status.generation_in_force
            self.settled.add(self.last_settled)
        same = before if before and before.pid == status.pid else None
        if same and 0 < status.generation_in_force < same.generation_in_force:
            self.wrong.append(
                f"OpenSM {status.pid} went from generation {same.generation_in_force} back to "
                f"{status.generation_in_force}"
            )


class Offsets:
    """Which LID offsets a subscriber used when, by its own trace."""

    def __init__(self, one: Subscriber) -> None:
        self.one, self._read = one, 0
        self._changes: list[tuple[float, frozenset[int]]] = [(0.0, frozenset({1}))]

    def within(self, begin: float, end: float) -> set[int]:
        """All that it may have used between two times."""
        self._go_on()
        used: set[int] = set()
        for n, (at, offsets) in enumerate(self._changes):
            until = self._changes[n + 1][0] if n + 1 < len(self._changes) else time.time() + 1
            if at <= end and until >= begin:
                used |= offsets
        return used

    def _go_on(self) -> None:
        if not self.one.trace.exists():
            return
        with self.one.trace.open() as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole.encode())
        for line in map(json.loads, whole.splitlines()):
            if line["event"] == "move":
                now = self._changes[-1][1] | {line["offset"]}
            elif line["event"] == "moved":
                now = frozenset({line["offset"]})
            else:
                continue
            self._changes.append((line["at"], now))


class Chaos:
    """One site, its agent and OpenSM, and what is done to them."""

    def __init__(self, site: Phased, forks: Forks, watch: Watch, rng: random.Random) -> None:
        self.site, self.forks, self.watch, self.rng = site, forks, watch, rng
        self.offsets = [Offsets(one) for one in site.subscribers]
        self.killed: Counter[str] = Counter()
        self.phases: Counter[str] = Counter()
        """Phases of an update in which somebody was killed."""
        self.base: dict[int, bytes] = {}
        """Tables of LID offset 0 by generation, as far as they were seen."""
        self.wanted: set[frozenset[str]] = set()
        """Hosts of the multi-switch jobs."""
        self.checked = self.moves = 0

    def state(self) -> State | None:
        path = self.site.folder / "state/state.json"
        return State.model_validate_json(path.read_bytes()) if path.exists() else None

    def _learn(self) -> None:
        """What generations hold, while they are kept."""
        folder = self.site.folder / "state/generations"
        for path in (*folder.glob("*.sar"), self.site.sm.routes_path):
            with suppress(SarError):
                kept = read_routes_file(path)
                self.base.setdefault(kept.generation, kept.forwarding[0].tobytes())

    def stir(self, keys: bool) -> None:
        """Other jobs; or, with `keys`, now and then a request for a key."""
        rng = self.rng
        others = [rng.sample(range(1, 17), rng.randint(2, 6)) for _ in range(rng.randint(1, 3))]
        names = [f"n[{','.join(f'{n:03d}' for n in sorted(one))}]" for one in others]
        self.site.jobs(*FIXED, *names)
        jobs = [(1, 5, 9), (2, 6), *others]
        self.wanted = {
            frozenset(f"n{n:03d}" for n in one)
            for one in jobs
            if len({(n - 1) // 4 for n in one}) > 1
        }
        if keys and rng.random() < 0.7:
            asks = message("key", "1", phase=f"p{rng.randrange(4)}", traffic="ring")
            with suppress(OSError, ValueError):
                tell(self.site.socket, credential(self.site.munge, asks))

    def let_it_begin(self) -> None:
        """Until a random moment: most often of an install."""
        if (kind := self.rng.random()) < 0.8:
            path = self.site.sm.routes_path.with_name("routes.next")

            def begun() -> bool:
                if kind < 0.4:
                    return path.exists()
                return self.watch.newest is not None and self.watch.newest.state != "built"

            wait_until(begun, 1.5, 0.001)
        time.sleep(self.rng.random() * self.rng.choice((0.02, 0.1, 0.5)))

    def kill(self) -> None:
        """Somebody, and start it again."""
        victim = self.rng.choices(["agent", "opensm", "both"], [5, 3, 2])[0]
        self.phases[self.site.saved_phase()] += 1
        if victim != "opensm":
            self.forks.kill()
            self._judge_state()
        if victim != "agent":
            self.site.sm.kill()
            promised = self._on_disk()
            self.site.sm.start()
            assert wait_until(lambda: self._routes(), PATIENCE, 0.02), self._story()
            found = self.watch.newest
            assert found is not None
            if found.engine_in_force == "sar":
                assert found.generation_in_force >= promised, self._story()
        if victim != "opensm":
            self.forks.start()
        self.killed[victim] += 1

    def _routes(self) -> bool:
        with suppress(SarError):
            status = self.site.bridge.status()
            self.watch.saw(time.time(), status)
            return status.pid == self.site.sm.pid and status.routings > 0
        return False

    def _on_disk(self) -> int:
        path = self.site.sm.routes_path
        return read_generation(path) if path.exists() else 0

    def _judge_state(self) -> None:
        """Of an agent that has just died."""
        state = self.state()
        if state is not None:
            assert state.generation in self.watch.settled, (state, self._story())

    def recover(self) -> None:
        """Waits until the site is quiet again; then all parties must agree."""

        def quiet() -> bool:
            with suppress(SarError):
                state, status = self.state(), self.site.bridge.status()
                return (
                    state is not None
                    and {frozenset(one) for one in state.jobs} == self.wanted
                    and status.settled
                    and status.generation_in_force == state.generation == self._on_disk()
                    and self.site.saved_phase() == "idle"
                )
            return False

        assert wait_until(quiet, PATIENCE, 0.02), self._story()
        assert not self.watch.wrong, (self.watch.wrong, self._story())
        self.checked += 1

    def judge_offsets(self) -> None:
        """No subscriber used offset 0 while its tables changed."""
        self._learn()
        sends, self.watch.sends = self.watch.sends, []
        after = self.watch.last_settled
        for begin, end, before in reversed(sends):
            if self.base.get(before) != self.base.get(after):
                self.moves += 1
                for one in self.offsets:
                    used = one.within(begin, end)  # some milliseconds, unless the watch waited
                    where = (one.one.trace, begin, end, before, after, used)
                    assert 1 in used, (where, self._story())
            after = before

    def judge_switches(self) -> None:
        """What the switches say themselves, with a tool that is not ours."""
        lids = readback.lids(self.site.sm.folder / "cache")

        def agree() -> bool:  # keys may be on their way still
            kept = read_routes_file(self.site.sm.routes_path)
            return readback.installed(self.site.fabric) == readback.wanted(kept, lids)

        assert wait_until(agree, PATIENCE, 0.2), self._story()

    def _story(self) -> dict[str, Any]:
        return {
            "killed": dict(self.killed),
            "state": self.state(),
            "status": self.watch.newest,
            "phase": self.site.saved_phase(),
            "on disk": self._on_disk(),
            "log": self.site.log()[-6000:],
        }


@contextmanager
def chaos(tmp_path: Path, seed: int, lmc: int, mode: str) -> Iterator[Chaos]:
    with phased(tmp_path, lmc=lmc, mode=mode, lease_seconds=1.5) as site:
        site.jobs(*FIXED)
        config = site.config()
        with Forks(config, tmp_path / "agent.log") as forks, Watch(site) as watch:
            forks.start()
            site.wait_installed()
            if mode == "five-phase":
                site.subscribe(1)
                site.subscribe(2)
                site.wait_subscribed(2)
                site.wait_all_on(0)
            yield Chaos(site, forks, watch, random.Random(seed))


@pytest.mark.parametrize("kind", ["keys", "five-phase"])
def test_a_thousand_kills(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("SAR_SEED", str(random.randrange(2**32))))
    lmc, mode = (2, "fast") if kind == "keys" else (1, "five-phase")
    with chaos(tmp_path, seed, lmc, mode) as here:
        kills, began = KILLS // 2, time.monotonic()
        while here.killed.total() < kills:
            here.stir(kind == "keys")
            here.let_it_begin()
            here.kill()
            if here.rng.random() < 0.3:
                continue  # and once more before it has recovered
            here.recover()
            if kind == "five-phase":
                here.judge_offsets()
            if here.checked % 20 == 0:
                here.judge_switches()
        here.recover()
        here.judge_switches()
        with capsys.disabled():
            print(
                f"\n{kind}, seed {seed}: {here.killed.total()} kills {dict(here.killed)} in phases "
                f"{dict(here.phases)}\njudged: {here.checked} recoveries, {here.moves} sends to "
                f"offset 0; {len(here.watch.settled)} generations, {time.monotonic() - began:.0f} s"
            )
