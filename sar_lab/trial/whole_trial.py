"""A trial from the options to the page."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sar_agent.commands.service import for_writing
from sar_agent.config.model import Config, load_config
from sar_agent.errors import InputError
from sar_lab.emulate.benchmark import Benchmark
from sar_lab.emulate.namespaces import require_emulation
from sar_lab.trial.benchmarks import Launcher
from sar_lab.trial.page import AIM, write_page
from sar_lab.trial.port_counts import PortCounts
from sar_lab.trial.rehearsal import rehearse, require_small
from sar_lab.trial.results import as_json, headline, tables_of
from sar_lab.trial.send import write_to_send
from sar_lab.trial.site_look import OWN, SiteLook, look
from sar_lab.trial.trial_run import Trial, TrialResult
from sar_lab.trial.way_back import TrialFiles, installing, take_back


@dataclass(frozen=True)
class Wishes:
    """The options of `sar-agent trial`."""

    folder: Path
    config: Path
    reservation: str = ""
    run: tuple[str, ...] = ()
    beside: str = ""
    launch: str = "srun"
    tables: tuple[str, ...] = ()
    rounds: int = 5
    minutes: float = 60
    seed: int = 1
    perfquery: str = "perfquery"
    opensm_conf: Path = Path("/etc/opensm/opensm.conf")
    anyway: bool = False
    undo: bool = False
    rehearse: bool = False
    rate: float = 8e6
    """Bits a second of the cables of a rehearsal."""


def whole_trial(wishes: Wishes, say: Callable[[str], None]) -> bool:
    """Whether the site's own tables are in force at the end. Raises `SarError` where nothing was
    installed."""
    began, settings = time.time(), _settings(wishes)
    if wishes.undo or (TrialFiles(settings).record.path.exists() and not wishes.rehearse):
        say(take_back(settings))
        if wishes.undo:
            return True
    benchmarks = [Benchmark.of(text) for text in wishes.run]
    if len({b.name for b in benchmarks}) < len(benchmarks):
        raise InputError("two benchmarks have one name", remedy="give --run NAME=COMMAND")
    second = Benchmark.of(wishes.beside) if wishes.beside else None
    site = look(
        settings,
        wishes.reservation,
        wishes.tables,
        second=second is not None,
        minutes=None if wishes.rehearse else wishes.minutes,
        opensm_conf=wishes.opensm_conf,
    )
    if wishes.rehearse:
        require_small(site.fabric)
    for line in in_words(site):
        say(line)
    if not benchmarks:
        for line in (*site.doubts, "nothing was run or installed; give --run to begin"):
            say(line)
        return True
    if site.doubts and not (wishes.anyway or wishes.rehearse):
        raise InputError(site.doubts[0], remedy="give --anyway to try all the same")
    folder = wishes.folder
    folder.mkdir(parents=True, exist_ok=True)
    result = TrialResult(wishes.rehearse, wishes.seed, wishes.rounds, began)
    if wishes.rehearse:
        site = rehearse(
            site,
            benchmarks,
            second,
            result,
            rate=wishes.rate,
            seconds=60 * wishes.minutes,
            tell=say,
        )
        result.seconds = time.time() - began
    else:
        _trial(wishes, settings, site, benchmarks, second, result, say).run()
    found = tables_of(site, result)
    text = json.dumps(as_json(site, result, found), indent=1)
    (folder / "trial.json").write_text(text + "\n")
    sent = write_to_send(site, json.loads(text), benchmarks, folder / "to-send")
    prefix = ["mpirun"] if wishes.rehearse else shlex.split(wishes.launch)
    named = [(b.name, b) for b in benchmarks] + ([("second job", second)] if second else [])
    runs = "\n".join(f"{name}: {shlex.join([*prefix, *b.command])}" for name, b in named)
    write_page(site, result, found, runs, sent, folder / "index.html")
    where = "emulated: " if result.rehearsal else ""
    say(where + headline(found, AIM if AIM in site.tables else list(site.tables)[-1]))
    say(f"{folder / 'index.html'}; nothing was sent. What may be sent is in {folder / 'to-send'}:")
    for line in sent:
        say(f"  {line}")
    return result.is_back and (bool(result.samples) or not result.rehearsal)


def _settings(wishes: Wishes) -> Config:
    """A rehearsal writes nothing of the agent's, so it may be another user, root."""
    if not wishes.rehearse:
        return installing(for_writing(wishes.config, "trial"))
    require_emulation()
    settings = load_config(wishes.config)
    if TrialFiles(settings).record.path.exists():
        raise InputError("a trial is open: its tables are in force", remedy="give --undo first")
    if not wishes.run:
        raise InputError("there is nothing to rehearse", remedy="give --run COMMAND")
    return settings


def _trial(
    wishes: Wishes,
    settings: Config,
    site: SiteLook,
    benchmarks: list[Benchmark],
    second: Benchmark | None,
    result: TrialResult,
    say: Callable[[str], None],
) -> Trial:
    query = () if wishes.perfquery == "none" else shlex.split(wishes.perfquery)
    prefix = tuple(shlex.split(wishes.launch))
    return Trial(
        config=settings,
        config_path=wishes.config,
        look=site,
        launcher=Launcher(prefix, wishes.reservation, f"sar-trial-{os.getpid()}"),
        benchmarks=benchmarks,
        second=second,
        counts=PortCounts(query, site.fabric) if query else None,
        result=result,
        ends=result.began + 60 * wishes.minutes,
        tell=say,
    )


def in_words(site: SiteLook) -> list[str]:
    """What was found, and what is to be expected, line by line."""
    lines = [f"{name}: {value}" for name, value in site.facts]
    lines.append(f"benchmark on {','.join(site.nodes)}")
    if site.beside:
        lines.append(f"second job on {','.join(site.beside)}")
    for name, second in site.predicted:
        if name != OWN:
            once, phases = (
                round(site.ratio(name, second, kind) - 1, 2) + 0.0 for kind in ("at_once", "phases")
            )
            where = "beside the second job" if second else "alone"
            lines.append(
                f"expected with {name}, {where}: {once:+.0%} time with all messages at once, "
                f"{phases:+.0%} with one at a time"
            )
    return lines
