"""Keys without effect because of another key's value, for `sar-agent config check`."""

from __future__ import annotations

from collections.abc import Collection

from sar_agent.config.model import Config


def idle_keys(config: Config, changed: Collection[str]) -> list[str]:
    """A sentence for each key of `changed` ("section.key") that has no effect."""
    agent, slurm, opensm = config.agent, config.slurm, config.opensm
    mode = config.update.mode
    stale = agent.max_staleness_seconds > agent.min_install_interval_seconds
    rules = (  # beginnings of keys, whether they act, and why not
        ("slurm.squeue", slurm.source == "squeue", "slurm.source is not squeue"),
        (
            "fabric.command fabric.deadline_seconds fabric.environment",
            not config.fabric.file,
            "fabric.file is read instead",
        ),
        ("opensm.plugin_socket", opensm.method == "plugin", "opensm.method is not plugin"),
        (
            "opensm.lfts_file opensm.pid_file opensm.reload_command",
            opensm.method != "plugin",
            'opensm.method is not "file"',
        ),
        (
            "agent.objective agent.target",
            agent.engine == "sar-plus",
            "agent.engine is not sar-plus",
        ),
        (
            "agent.hosts_use_path_records agent.spread_lanes",
            agent.max_lanes > 1,
            "agent.max_lanes is 1",
        ),
        ("agent.debounce_max_seconds", agent.debounce_seconds, "agent.debounce_seconds is 0"),
        (
            "agent.min_gain agent.min_install_interval_seconds",
            stale,
            "agent.max_staleness_seconds is not longer than agent.min_install_interval_seconds",
        ),
        ("agent.page", agent.metrics_address, "agent.metrics_address is empty"),
        ("keys.", config.keys.enabled, "keys.enabled is false"),
        ("update.windows", mode == "window", "update.mode is not window"),
        ("update.max_changed_entries", mode == "fast", "update.mode is not fast"),
        (
            "update.deadline update.lease update.lapsed update.trace",
            mode == "five-phase",
            "update.mode is not five-phase",
        ),
        ("agent.peer", agent.mode == "install", "agent.mode is not install"),
    )
    idle = [
        f"{key} has no effect, since {why}"
        for beginnings, acts, why in rules
        if not acts
        for key in changed
        if key.startswith(tuple(beginnings.split())) and key != "keys.enabled"
    ]
    if agent.debounce_seconds > agent.debounce_max_seconds > 0:
        idle.append(
            f"agent.debounce_seconds = {agent.debounce_seconds:g} has no effect, since "
            f"agent.debounce_max_seconds = {agent.debounce_max_seconds:g} is less"
        )
    return idle
