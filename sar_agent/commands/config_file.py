"""`sar-agent config check|show`: tests a configuration file, and prints the settings in use."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from sar_agent.commands.inputs import CONFIG_PATH, ConfigOption, JsonOption, print_answer
from sar_agent.commands.named_files import read_named_files
from sar_agent.commands.program import Program
from sar_agent.util.plural import plural

if TYPE_CHECKING:
    from sar_agent.config.model import Config

app = Program(name="config", help="Test a configuration file, or print the settings in use.")


@app.command()
def check(config: ConfigOption = CONFIG_PATH, as_json: JsonOption = False) -> None:
    """Test a configuration file, and the engine and the commands that it names; read the files that
    it names, the fabric, the queue and the subnet manager's status once; changes nothing.

    Exit code 2 and all problems at once if there is one. That Slurm or the subnet manager does not
    answer now is said, but is no problem of the file.
    """
    from sar_agent.config.gone_keys import gone_keys
    from sar_agent.config.idle_keys import idle_keys
    from sar_agent.config.model import ConfigError, load_config

    problems: list[str] = []
    settings: Config | None
    try:
        settings = load_config(config)
    except ConfigError as error:
        problems, settings = error.problems, error.usable
        if settings is None:
            raise
    files, wrong = read_named_files(settings)
    problems += [*_problems(settings), *wrong]
    if problems:
        raise ConfigError(config, problems)
    changed, jobs, manager = changed_keys(settings), _jobs_now(settings), _manager_now(settings)
    idle = [*gone_keys(config), *idle_keys(settings, changed)]
    answer = {"file": str(config), "ok": True, "changed": changed, "without_effect": idle}
    answer |= {"files": files, "jobs": jobs, "subnet_manager": manager}
    differ = f"{config}: no problem; changed from the defaults: {', '.join(changed) or 'nothing'}"
    words = (differ, *idle, *files, f"jobs: {jobs}", f"subnet manager: {manager}")
    print_answer(answer, "\n".join(words), as_json=as_json)


@app.command()
def show(config: ConfigOption = CONFIG_PATH, as_json: JsonOption = False) -> None:
    """Print every setting in use, as TOML; those that differ from the default are marked.

    Without a configuration file, the defaults are shown.
    """
    from sar_agent.config.model import Config, load_config
    from sar_agent.config.toml_text import value_text

    use_defaults = config == CONFIG_PATH and not config.exists()
    settings = Config() if use_defaults else load_config(config)
    changed, lines = set(changed_keys(settings)), list[str]()
    for section, model in settings:
        lines.append(f"[{section}]")
        for key, value in model:
            mark = "  # changed" if f"{section}.{key}" in changed else ""
            lines.append(f"{key} = {value_text(value)}{mark}")
        lines.append("")
    answer = {"settings": settings.model_dump(mode="json")}
    print_answer(answer, "\n".join(lines), as_json=as_json)


def _problems(settings: Config) -> list[str]:
    """What the model cannot know: names of engines, subnet managers and commands."""
    from sar_agent.config.model import BEFORE
    from sar_agent.errors import SarError
    from sar_agent.install.subnet_manager import load_subnet_manager
    from sar_agent.routing import load_engine

    problems = []
    agent = settings.agent
    for key, engine in (("agent.engine", agent.engine), ("agent.baseline", agent.baseline)):
        try:
            load_engine(engine if engine not in ("", BEFORE) else "minhop")
        except SarError as error:
            problems.append(f"{key}: {error}")
    try:
        load_subnet_manager(settings)
    except SarError as error:
        problems.append(f"opensm.manager: {error}")
    commands = {
        "slurm.squeue": settings.slurm.squeue if settings.slurm.source == "squeue" else [],
        "opensm.read_back_command": settings.opensm.read_back_command,
        "agent.peer": settings.agent.peer,
    }
    for key, words in commands.items():
        if words and shutil.which(words[0]) is None:
            problems.append(f"{key} = {words!r}: no such command; give its path")
    return problems


def _jobs_now(settings: Config) -> str:
    """What the source of jobs answers now, in words."""
    from sar_agent.errors import SarError
    from sar_agent.jobs.source import job_source

    soon = min(3.0, settings.slurm.deadline_seconds)
    try:
        poll = job_source(settings.slurm.model_copy(update={"deadline_seconds": soon})).poll()
    except SarError as error:
        return f"no answer now: {error}"
    skipped = (
        f", {plural(poll.skipped, 'line')} skipped ({poll.first_skipped})" if poll.skipped else ""
    )
    return f"{settings.slurm.source} answers, {len(poll.records)} running{skipped}"


def _manager_now(settings: Config) -> str:
    """What the subnet manager answers now, in words."""
    from sar_agent.errors import SarError
    from sar_agent.install.subnet_manager import load_subnet_manager

    try:
        status = load_subnet_manager(settings).status()
    except SarError as error:
        return f"no answer now: {error}"
    said = f"answers, engine {status.engine or 'unknown'} is in force"
    lanes, most = status.details.get("lanes", 1), settings.agent.max_lanes
    # With an LMC above 0, LID offset 1 may have a lane of its own.
    if status.ours and lanes > (max(2, most) if status.lmc else most):
        said += (
            f"; its routes use {lanes} virtual lanes, and agent.max_lanes is {most}: set max_lanes "
            f"= {lanes} and, if lanes are chosen by path, hosts_use_path_records = true, or new "
            "routes may be refused and those in force stay"
        )
    return said


def changed_keys(settings: Config) -> list[str]:
    """Keys whose value is not the default."""
    defaults = type(settings)()
    return [
        f"{section}.{key}"
        for section, model in settings
        for key, value in model
        if value != getattr(getattr(defaults, section), key)
    ]
