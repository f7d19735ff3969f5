"""Parts that can be deleted, beside services and research: their files, and the lines that go with
them. `tests/unit/test_removals.py` deletes each."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """What goes, and the unit tests of what is next to it."""

    gone: tuple[str, ...]
    """Files and folders."""
    lines: tuple[tuple[str, str], ...]
    """(file, text of the lines that go)"""
    tests: str
    """Names of test files; those of all agents where it is empty."""
    edits: tuple[tuple[str, str, str], ...] = ()
    """(file, text that goes, text in its place)"""
    own: tuple[str, ...] = ()
    """What test files name that go with the part."""


KEY_TURN = '''    def serve_keys(self) -> None:
        """Serve requests for routing keys, between passes; quick, and never raises."""
        with record_stages(self.metrics.timed):
            self.current = self.keys.serve(self.current)

'''
KEY_REQUESTS = """        if busy := agent.keys.waiting:
            agent.serve_keys()
"""
STATUS_OF_KEYS = """            "keys": [
                lease.model_dump(mode="json", exclude={"pairs", "hosts"}) for lease in self.leases
            ],
"""
PHASE_NUMBER = """    update_phase = gauge(
        "Phase of the five-phase update: "
        + ", ".join(f"{i} {p}" for i, p in enumerate(Phase))
        + "."
    )
"""
PHASE_SECONDS = """    update_phase_seconds = seconds(
        "Duration of each phase of a five-phase update.",
        phase=[phase for phase in Phase if phase is not Phase.IDLE],
    )
"""
LISTENS = "    listens = daemon and config.events.has_address\n"
PARTS = {
    "keys": Part(
        ("sar_agent/services/keys", "sar_agent/agent/install_keys.py", "sar_agent/commands/key.py"),
        (
            ("ARCHITECTURE.md", "| `sar_agent/services/keys/` |"),
            ("sar_agent/cli.py", "    key,\n"),
            ("sar_agent/cli.py", "key.app"),
            ("sar_agent/agent/parts.py", "KeyPool"),
            ("sar_agent/agent/planner.py", "import KeyPool"),
            ("sar_agent/agent/build.py", "sar_agent.services.keys"),
            ("sar_agent/agent/build.py", "KeyRequests("),
            ("sar_agent/agent/build.py", "KeyPool("),
            ("sar_agent/agent/build.py", "requests.of_job"),
            ("sar_agent/agent/build.py", "pool=pool"),
            ("sar_agent/agent/loop.py", "KeyInstaller"),
            ("sar_agent/agent/loop.py", "self.pool."),
            ("sar_agent/agent/loop.py", "self.keys.resume"),
            ("sar_agent/agent/loop.py", "self.keys.publish"),
            ("sar_agent/agent/daemon.py", "agent.keys."),
            ("sar_agent/agent/rehearsal.py", "import warm"),
            ("sar_agent/agent/rehearsal.py", "warm()"),
            ("sar_agent/agent/explain.py", "sar_agent.services.keys"),
            ("sar_agent/agent/explain.py", "KeyDescription"),
            ("sar_agent/agent/explain.py", "routing keys."),
            ("sar_agent/agent/explain.py", "self.keys]"),
            ("sar_agent/agent/explain.py", "keys=keys_of"),
            ("sar_agent/agent/status.py", "sar_agent.services.keys"),
            ("sar_agent/agent/status.py", "list[Lease]"),
            ("sar_agent/agent/status.py", "Routing keys."),
            ("sar_agent/agent/status.py", "words_of"),
            ("sar_agent/agent/status.py", "Leases(folder)"),
            ("sar_agent/services/archive/take.py", "Lease"),
        ),
        "",
        (
            ("sar_agent/agent/planner.py", "pool: KeyPool | None", "pool: None"),
            ("sar_agent/agent/build.py", "(*updates.handlers, requests)", "updates.handlers"),
            (
                "sar_agent/agent/build.py",
                "Planner(config, engine, pool)",
                "Planner(config, engine)",
            ),
            ("sar_agent/agent/loop.py", KEY_TURN, ""),
            ("sar_agent/agent/waiting.py", KEY_REQUESTS, ""),
            ("sar_agent/agent/waiting.py", "min(nap, KEYS_AGAIN) if busy else nap", "nap"),
            ("sar_agent/agent/status.py", STATUS_OF_KEYS, ""),
        ),
        ("sar_agent.services.keys", "install_keys", "key_site", "leases.json"),
    ),
    "five phases": Part(
        ("sar_agent/services/five_phase", "sar_agent/agent/phased_updates.py"),
        (
            ("ARCHITECTURE.md", "| `sar_agent/services/five_phase/` |"),
            ("sar_agent/agent/install_held.py", "require_no_subscribers"),
            ("sar_agent/agent/explain.py", "subscribers_of"),
            ("sar_agent/telemetry/metrics.py", "sar_agent.services.five_phase"),
        ),
        "",
        (
            ("ARCHITECTURE.md", "events, services/five_phase, opensm", "events, opensm"),
            ("sar_agent/telemetry/metrics.py", PHASE_NUMBER, ""),
            ("sar_agent/telemetry/metrics.py", PHASE_SECONDS, ""),
            ("sar_agent/agent/build.py", "phased_updates import Phased", "updates import "),
            ("sar_agent/agent/build.py", LISTENS, ""),
            (
                "sar_agent/agent/build.py",
                "PhasedUpdates(config, metrics, manager, observer, authority, listens=listens)",
                "Updates(config.update, metrics)",
            ),
        ),
        ("sar_agent.services.five_phase", "worlds.five_phase"),
    ),
    "archive": Part(
        ("sar_agent/services/archive", "sar_agent/commands/archive.py"),
        (
            ("ARCHITECTURE.md", "| `sar_agent/services/archive/` |"),
            ("sar_agent/cli.py", "    archive,\n"),
            ("sar_agent/cli.py", "archive.send_state"),
            ("sar_agent/cli.py", "archive.serve_state"),
        ),
        "config pass_order small_commands",
    ),
    "engine": Part(
        ("sar_agent/routing/keys/engines.py",),
        (("pyproject.toml", "routing.keys.engines:"),),
        "config keys_printed planner",
    ),
    "job source": Part(
        ("sar_agent/slurm/pyslurm_source.py",),
        (("pyproject.toml", "pyslurm_source:"),),
        "config squeue squeue_text",
    ),
    "command": Part(
        ("sar_agent/commands/rank_order.py",),
        (("sar_agent/cli.py", "    rank_order,\n"), ("sar_agent/cli.py", '"rank-order"')),
        "packages place",
    ),
    "metric": Part(
        (),
        (
            ("sar_agent/telemetry/metrics.py", "fabric_terminals = "),
            ("sar_agent/agent/publish.py", "fabric_terminals"),
        ),
        "metrics pass_order",
    ),
}
