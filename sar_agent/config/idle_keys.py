"""Keys that cannot act because of another one, for `sar-agent config check`."""

from __future__ import annotations

from collections.abc import Collection

from sar_agent.config.model import Config


def idle_keys(config: Config, changed: Collection[str]) -> list[str]:
    """A sentence for each key of `changed` ("section.key") that has no effect."""
    agent, fabric, opensm, update = config.agent, config.fabric, config.opensm, config.update
    rules = (
        (config.slurm.source != "squeue", ("slurm.squeue",), "slurm.source is not squeue"),
        (
            config.slurm.source != "slurmrestd",
            ("slurm.slurmrestd_",),
            "slurm.source is not slurmrestd",
        ),
        (
            bool(fabric.file),
            ("fabric.command", "fabric.deadline_seconds", "fabric.environment"),
            "fabric.file is read instead",
        ),
        (
            opensm.method != "plugin",
            ("opensm.plugin_socket",),
            "opensm.method is not plugin",
        ),
        (
            opensm.method == "plugin",
            ("opensm.lfts_file", "opensm.pid_file", "opensm.reload_command"),
            'opensm.method is not "file"',
        ),
        (
            agent.engine != "sar-plus",
            ("agent.objective", "agent.target"),
            "agent.engine is not sar-plus",
        ),
        (
            not agent.debounce_seconds,
            ("agent.debounce_max_seconds",),
            "agent.debounce_seconds is 0",
        ),
        (
            agent.min_install_interval_seconds >= agent.max_staleness_seconds,
            ("agent.min_gain", "agent.min_install_interval_seconds"),
            "agent.max_staleness_seconds is not longer than agent.min_install_interval_seconds",
        ),
        (not agent.metrics_address, ("agent.page",), "agent.metrics_address is empty"),
        (config.counters.source == "off", ("counters.",), "counters.source is off"),
        (not config.keys.enabled, ("keys.",), "keys.enabled is false"),
        (update.mode != "window", ("update.windows",), "update.mode is not window"),
        (update.mode != "fast", ("update.max_changed_entries",), "update.mode is not fast"),
        (
            update.mode != "five-phase",
            ("update.deadline", "update.lease", "update.lapsed", "update.trace"),
            "update.mode is not five-phase",
        ),
        (
            not (config.standby.peer or config.standby.listen),
            ("standby.",),
            "standby.peer is empty",
        ),
    )
    return [
        f"{key} has no effect, since {because}"
        for holds, keys, because in rules
        if holds
        for key in changed
        if key.startswith(keys) and key != "keys.enabled"
    ]
