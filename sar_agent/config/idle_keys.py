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
        ("slurm.jobs_file", slurm.source == "file", "slurm.source is not file"),
        ("slurm.deadline_seconds", slurm.source != "file", "slurm.source is file"),
        ("slurm.rest_", slurm.source == "slurmrestd", "slurm.source is not slurmrestd"),
        ("opensm.fabric_source", not config.fabric.file, "fabric.file is read instead"),
        (
            "fabric.command fabric.deadline_seconds fabric.environment",
            not config.fabric_from_plugin,
            "the plugin tells the fabric (opensm.fabric_source, or agent.mode = install)",
        ),
        (
            "events.trusted_users events.munge_socket events.environment agent.debounce_",
            config.events.has_address,
            "events.tcp_address and events.socket are empty",
        ),
        ("watch.window_seconds watch.wait_bytes", config.watch.counters, "watch.counters is empty"),
        (
            "fabric.command fabric.deadline_seconds fabric.environment",
            not config.fabric.file,
            "fabric.file is read instead",
        ),
        (
            "opensm.lfts_dump",
            opensm.method != "plugin" or agent.mode == "observe",
            "the plugin tells the tables (agent.mode = install)",
        ),
        (
            "opensm.lfts_dump",
            opensm.method != "file" or not opensm.read_back_command,
            "opensm.read_back_command is asked instead",
        ),
        ("opensm.pid_file", not opensm.reload_command, "opensm.reload_command is run instead"),
        ("opensm.plugin_socket", opensm.method == "plugin", "opensm.method is not plugin"),
        (
            "opensm.lfts_file opensm.pid_file opensm.reload_command opensm.read_back_command "
            "opensm.head_of_queue_lifetime",
            opensm.method != "plugin",
            "opensm.method is not file",
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
