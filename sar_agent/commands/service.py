"""The agent itself: `run`, `once`, `rollback`, `warm-up`; and, in `ask`, what one can ask of it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands import ask
from sar_agent.commands.inputs import JsonOption, print_json
from sar_agent.commands.settings import DEFAULT, ConfigOption

if TYPE_CHECKING:
    from sar_agent.config.model import Config


def register(app: typer.Typer) -> None:
    """Adds the commands."""

    @app.command()
    def run(config: ConfigOption = DEFAULT) -> None:
        """The agent as a daemon: watch Slurm and the fabric, and keep the routes fitting."""
        from sar_agent.agent.daemon import run as run_daemon

        log_to_stderr()
        run_daemon(_for_writing(config, "run"))

    @app.command()
    def once(config: ConfigOption = DEFAULT, as_json: JsonOption = False) -> None:
        """One pass, for cron: exit code 0 if done or nothing to do, 1 if it failed."""
        import gc

        gc.disable()  # a process of two seconds; looking for garbage costs it 0.3 of them
        from sar_agent.agent.build import build_agent
        from sar_agent.util.lock_file import Lock

        log_to_stderr()
        settings = _for_writing(config, "once")
        with Lock(settings.agent.state_dir, "agent.lock"):
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

    ask.register(app)

    @app.command()
    def rollback(
        config: ConfigOption = DEFAULT,
        to: Annotated[
            int | None, typer.Option("--to", help="generation; else the one before the last")
        ] = None,
        hold: Annotated[
            float | None,
            typer.Option("--hold", min=0, help="minutes; else until the multi-switch jobs change"),
        ] = None,
    ) -> None:
        """Install an older generation's routes, and keep the agent from changing them for now."""
        from sar_agent.agent.rollback import rollback as roll_back

        log_to_stderr()
        typer.echo(roll_back(_for_writing(config, "rollback"), to, hold))

    @app.command("warm-up")
    def warm_up(config: ConfigOption = DEFAULT, as_json: JsonOption = False) -> None:
        """Compile what the agent computes with, so that no job waits for it; touches nothing.
        Without a settings file: with the defaults."""
        from sar_agent.agent.rehearsal import rehearse
        from sar_agent.agent.rights import require_cache
        from sar_agent.config.model import Config, load_config
        from sar_agent.util.kernel_cache import outlive_full_disk

        log_to_stderr()
        require_cache("warm-up")
        outlive_full_disk()
        none = config == DEFAULT and not config.exists()
        settings = Config() if none else load_config(config)
        done = rehearse(settings)
        if as_json:
            print_json({"compiled": done.compiled, "seconds": done.seconds})
        else:
            what = (
                f"{done.compiled} kernels compiled" if done.compiled else "all was compiled before"
            )
            typer.echo(f"engine {settings.agent.engine}: {what} ({done.seconds:.1f} s)")


def _for_writing(config: Path, command: str) -> Config:
    """The settings, where this is the user whose files `command` may write."""
    from sar_agent.agent.rights import require_cache, require_owner
    from sar_agent.config.model import load_config
    from sar_agent.util.kernel_cache import outlive_full_disk

    settings = load_config(config)
    require_owner(settings.agent.state_dir, command)
    require_cache(command)
    outlive_full_disk()
    return settings


def log_to_stderr() -> None:
    """Sentences without time: systemd and cron add theirs."""

    class Plain(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            prefix = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
            return prefix + super().format(record)

    handler = logging.StreamHandler()
    handler.setFormatter(Plain("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
