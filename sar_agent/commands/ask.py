"""`status`, `history`, `explain`: they show what the agent knows and change nothing."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from sar_agent.commands.host_options import TrafficOption, with_traffic
from sar_agent.commands.inputs import CONFIG_PATH, ConfigOption, JsonOption, print_answer
from sar_agent.util.plural import plural

if TYPE_CHECKING:
    from sar_agent.agent.history import Row


def status(
    config: ConfigOption = CONFIG_PATH,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="print one line for a monitoring plugin; exit code 0 OK, 1 WARNING, 2 CRITICAL, "
            "3 UNKNOWN",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the routes that the agent installed and the routes that OpenSM really has in force."""
    from sar_agent.config.model import load_config

    if check:
        _check(config)
    settings = load_config(config)
    from sar_agent.agent.status import read_agent_status

    report = read_agent_status(settings)
    print_answer(report.json(), report.words(), as_json=as_json)


def _check(config: Path) -> NoReturn:
    from sar_agent.agent.status import read_agent_status
    from sar_agent.commands.status_check import MonitoringCode, judge_status
    from sar_agent.config.model import load_config
    from sar_agent.errors import SarError

    try:
        code, sentence = judge_status(read_agent_status(load_config(config)))
    except SarError as error:
        code, sentence = MonitoringCode.UNKNOWN, " ".join(str(error).split())
    typer.echo(f"sar-agent {code.name}: {sentence}")
    raise typer.Exit(code)


def history(
    config: ConfigOption = CONFIG_PATH,
    count: Annotated[
        int, typer.Option("-n", min=1, help="number of decisions, the newest first")
    ] = 20,
    as_json: JsonOption = False,
) -> None:
    """List when routes were changed, why, and what the change achieved."""
    from sar_agent.config.model import load_config

    settings = load_config(config)
    from sar_agent.agent.history import History

    rows = History(settings.agent.state_dir).last(count)
    words = "\n".join(map(_line, rows)) or "the agent has not made a decision yet"
    print_answer({"decisions": [asdict(row) for row in rows]}, words, as_json=as_json)


def explain(
    job: Annotated[str, typer.Argument(help="Slurm's job number")],
    config: ConfigOption = CONFIG_PATH,
    page: Annotated[
        Path | None,
        typer.Option(
            "--user-page",
            metavar="FILE",
            help="also write a page for the job's user, without names of others",
        ),
    ] = None,
    traffic: TrafficOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe one job: hosts, leaf switches, its most loaded link, and who shared that.

    A job that has ended is described from the agent's history of the last 30 days.
    """
    from sar_agent.config.model import load_config

    settings = with_traffic(load_config(config), traffic)
    from sar_agent.agent.explain import explain as explain_job

    report = explain_job(settings, job)
    if page:
        from sar_agent.agent.user_page import user_page
        from sar_agent.util.text_files import write_text

        write_text(page, user_page(report))
    print_answer(report.json(), report.words(), as_json=as_json)


def _line(row: Row) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.at))
    result = f"{row.result} generation {row.generation}" if row.generation else row.result
    changed = (
        ""
        if row.entries_changed is None
        else f", {plural(row.entries_changed, 'entry', 'entries')}"
    )
    if row.blocks_changed is not None:
        changed += f" in {plural(row.blocks_changed, 'block')}"
    if row.entries_changed and row.ring_entries_moved is not None:
        changed += f", {row.ring_entries_moved} of them of running rings"
    if row.sl2vl_tables:
        changed += f" and {row.sl2vl_tables} SL2VL tables"
    if row.transition:
        changed += f", {row.transition}"
    gain = _gain(row.before, row.achieved or row.predicted)
    problem = f"; {row.message}" if row.message else ""
    method = "" if row.how in ("", "direct") else f" [{row.how}]"
    return f"{when}  {row.who}: {result}{method} ({row.why}){changed}{gain}{_phases(row)}{problem}"


def _phases(row: Row) -> str:
    """`, 3 subscribers: unpath 0.12 s, install 0.60 s, repath 0.08 s`."""
    if not row.phases:
        return ""
    times = ", ".join(
        f"{phase} {seconds:.2f} s" for phase, seconds in row.phases["seconds"].items()
    )
    late = f", {row.phases['late']} late" if row.phases["late"] else ""
    return f", {row.phases['subscribers']} subscribers: {times}{late}"


def _gain(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    if after is None:
        return ""

    def change(name: str, form: str) -> str:
        now = format(after[name], form)
        return f"{format(before[name], form)} → {now}" if before else now

    try:
        return (
            f", dark fiber {change('dark_fiber_ratio', '.1%')}, "
            f"effective EFI max {change('effective_efi_max', 'd')}, "
            f"largest load {change('load_max', '.2f')}, "
            f"one message at a time {change('phase_contention_mean', '.2f')} times as long"
        )
    except (KeyError, TypeError, ValueError):
        return ", measures that cannot be read"
