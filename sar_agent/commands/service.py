"""`run`, `once`, `rollback`, `resume`, `warm-up`: the agent itself. They write its state, so each
requires to be run by the user whose files these are."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.host_options import TrafficOption, with_traffic
from sar_agent.commands.inputs import (
    CONFIG_PATH,
    ConfigOption,
    JsonOption,
    print_answer,
    print_json,
)
from sar_agent.commands.times import seconds_of

if TYPE_CHECKING:
    from sar_agent.config.model import Config

log = logging.getLogger(__name__)


def run(config: ConfigOption = CONFIG_PATH, traffic: TrafficOption = None) -> None:
    """Run the agent as a daemon: watch Slurm and the fabric, and match the routes to the jobs."""
    log_to_stderr()
    settings = with_traffic(for_writing(config, "run"), traffic)
    from sar_agent.agent.daemon import run as run_daemon

    run_daemon(settings)


def once(
    config: ConfigOption = CONFIG_PATH,
    traffic: TrafficOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do one pass and exit, for cron.

    Exit code 0 if the pass succeeded or had nothing to do, 1 if it failed.
    """
    import gc

    gc.disable()  # this process lives two seconds; garbage collection would take 0.3 of them
    log_to_stderr()
    settings = with_traffic(for_writing(config, "once"), traffic)
    from sar_agent.agent.build import build_agent
    from sar_agent.agent.daemon import only_agent
    from sar_agent.agent.quiet import PASSES
    from sar_agent.util.lock_file import Lock

    with only_agent(settings), Lock(settings.agent.state_dir, PASSES):
        report = build_agent(settings).pass_once()
    if as_json:
        print_json(
            {
                "result": report.result.value,
                "reason": report.reason and report.reason.value,
                "sentence": report.sentence,
            }
        )
    if not report.ok:
        raise typer.Exit(1)


def rollback(
    config: ConfigOption = CONFIG_PATH,
    to: Annotated[
        int | None,
        typer.Option(
            "--to", help="generation to install; without it, the one before the tables in force"
        ),
    ] = None,
    hold: Annotated[
        str | None,
        typer.Option(
            "--hold",
            metavar="TIME",
            help="how long the agent leaves the routes alone (30m, 2h, 1d); without it, until "
            "`sar-agent resume`",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Install the routes of an earlier generation, and hold them until `sar-agent resume`."""
    log_to_stderr()
    minutes = seconds_of(hold, "--hold") / 60 if hold is not None else None
    settings = for_writing(config, "rollback")
    from sar_agent.agent.rollback import rollback as roll_back

    sentence = roll_back(settings, to, minutes)
    print_answer({"sentence": sentence}, sentence, as_json=as_json)


def resume(config: ConfigOption = CONFIG_PATH, as_json: JsonOption = False) -> None:
    """End the hold of a rollback: the next pass plans again."""
    settings = for_writing(config, "resume")
    from sar_agent.agent.rollback import resume as end_hold

    sentence = end_hold(settings)
    print_answer({"sentence": sentence}, sentence, as_json=as_json)


def warm_up(config: ConfigOption = CONFIG_PATH, as_json: JsonOption = False) -> None:
    """Compile the kernels that the agent computes with, so that no pass waits for a compiler.

    Changes nothing in the fabric.
    Without a configuration file, the defaults are used.
    """
    from sar_agent.agent.rights import require_cache

    log_to_stderr()
    require_cache("warm-up")
    from sar_agent.agent.rehearsal import rehearse
    from sar_agent.config.model import Config, load_config
    from sar_agent.util.kernels import collect_seldom

    collect_seldom()
    use_defaults = config == CONFIG_PATH and not config.exists()
    settings = Config() if use_defaults else load_config(config)
    done = rehearse(settings)
    new = f"{done.compiled} kernels compiled"
    summary = new if done.compiled else "all kernels were compiled already"
    words = f"engine {settings.agent.engine}: {summary} ({done.seconds:.1f} s)"
    print_answer({"compiled": done.compiled, "seconds": done.seconds}, words, as_json=as_json)


def fetch_state(config: ConfigOption = CONFIG_PATH, as_json: JsonOption = False) -> None:
    """Give OpenSM the routes that are in force, before it starts on this machine.

    They are the other machine's (agent.peer) or, where there is none or it does not answer, the
    newest that this agent has on disk: a reboot empties run_dir. Exit code 1 if there are none.
    """
    log_to_stderr()
    settings = for_writing(config, "fetch-state")
    from sar_agent.agent.restore import restore_routes

    if settings.agent.peer:
        from sar_agent.errors import SarError
        from sar_agent.services.archive.exchange import fetch

        try:
            said = fetch(settings)
        except SarError as error:
            said = str(error)
        sentence = f"{said}; {restore_routes(settings)}"
    else:
        sentence = restore_routes(settings)
    print_answer({"sentence": sentence}, sentence, as_json=as_json)


def for_writing(config: Path, command: str) -> Config:
    """The configuration. Raises `SarError` if this user may not write the files that `command`
    writes."""
    from sar_agent.agent.rights import require_cache, require_owner
    from sar_agent.config.gone_keys import gone_keys
    from sar_agent.config.model import load_config

    settings = load_config(config)
    for sentence in gone_keys(config):
        log.warning("%s: %s", config, sentence)
    require_owner(settings.agent.state_dir, command)
    require_cache(command)
    return settings


def log_to_stderr() -> None:
    """Logs sentences without a time, since systemd and cron add theirs. Where stderr is the
    journal, each line begins with its priority, so that `journalctl -p warning` works."""
    journal = _stderr_is_journal()

    class Plain(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            prefix = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
            text = prefix + super().format(record)
            if not journal:
                return text
            mark = f"<{_PRIORITIES.get(record.levelno, 6)}>"
            return "\n".join(mark + line for line in text.split("\n"))

    handler = logging.StreamHandler()
    handler.setFormatter(Plain("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


_PRIORITIES = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.DEBUG: 7}
"""syslog's numbers, as sd-daemon(3) reads them; INFO is 6."""


def _stderr_is_journal() -> bool:
    """Whether systemd connected stderr to the journal: JOURNAL_STREAM is its device and inode."""
    try:
        found = os.fstat(2)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
