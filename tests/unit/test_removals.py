"""Parts that can be deleted, their files and their lines: all else works as before.

They are the observers of the pass, research with the engines that only papers need, routing keys,
five-phase updates, the standby, and one each of what there are several of: an engine, a job source,
a command, a metric.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import pytest

from sar_agent.agent.observers import OBSERVERS

ROOT = Path(__file__).parents[2]
WHERE = "sar_agent/agent/observers"
KEPT = ("sar_agent", "sar_lab", "tests", "docs", "deploy", "ARCHITECTURE.md", "pyproject.toml")
RESEARCH_COMMANDS = ("simulate-trace", "make-trace", "count-congestion", '"lab"')


def copy_to(tree: Path) -> None:
    """The repository at `tree`; what no test changes is the same."""
    for other in ROOT.iterdir():
        if other.name not in (*KEPT, "out") and not other.name.startswith((".", "sar_agent.")):
            (tree / other.name).symlink_to(other)
    for name in KEPT:
        if (ROOT / name).is_dir():  # kernels that are compiled already come along
            shutil.copytree(ROOT / name, tree / name)
        else:
            shutil.copy2(ROOT / name, tree / name)
    (tree / "sitecustomize.py").write_text(NO_EDITABLE)


NO_EDITABLE = """
import sys

sys.meta_path[:] = [f for f in sys.meta_path if "__editable__" not in getattr(f, "__module__", "")]
"""
"""An editable install would serve the files that are gone in a copy from the original."""


def remove_lines(file: Path, line: str) -> None:
    """Lines that hold `line` are gone from the file."""
    kept = [each for each in file.read_text().splitlines(True) if line not in each]
    assert len(kept) < len(file.read_text().splitlines())
    file.write_text("".join(kept))


def replace_text(file: Path, text: str, other: str) -> None:
    """The file has `other` where it had `text`."""
    assert text in file.read_text(), text
    file.write_text(file.read_text().replace(text, other))


def without_observer(observer: str, tree: Path) -> None:
    (tree / WHERE / f"{observer}.py").unlink()
    remove_lines(tree / WHERE / "__init__.py", f'    "{observer}",\n')


def without_research(tree: Path) -> None:
    """The package as it is installed without the folder has no entry points that lead there."""
    shutil.rmtree(tree / "sar_lab/research")
    remove_lines(tree / "sar_lab/pyproject.toml", "sar_lab.research")
    remove_lines(tree / "ARCHITECTURE.md", "| `sar_lab/research/` |")
    install(tree, "sar_lab")


def install(tree: Path, package: str) -> None:
    """Its entry points are those of `tree` and not of the environment."""
    file = tree / ("pyproject.toml" if package == "sar_agent" else f"{package}/pyproject.toml")
    project = tomllib.loads(file.read_text())["project"]
    installed = tree / f"{package}-0.dist-info"
    installed.mkdir()
    name = project["name"]
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n")
    groups = project["entry-points"] | {"console_scripts": project["scripts"]}
    (installed / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
            for group, points in groups.items()
        )
    )


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
        ("sar_agent/keys", "sar_agent/agent/install_keys.py", "sar_agent/commands/key.py"),
        (
            ("ARCHITECTURE.md", "| `sar_agent/keys/` |"),
            ("sar_agent/cli.py", "    key,\n"),
            ("sar_agent/cli.py", "key.app"),
            ("sar_agent/agent/parts.py", "KeyPool"),
            ("sar_agent/agent/planner.py", "import KeyPool"),
            ("sar_agent/agent/build.py", "sar_agent.keys"),
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
            ("sar_agent/agent/explain.py", "sar_agent.keys"),
            ("sar_agent/agent/explain.py", "KeyDescription"),
            ("sar_agent/agent/explain.py", "routing keys."),
            ("sar_agent/agent/explain.py", "self.keys]"),
            ("sar_agent/agent/explain.py", "keys=keys_of"),
            ("sar_agent/agent/status.py", "sar_agent.keys"),
            ("sar_agent/agent/status.py", "list[Lease]"),
            ("sar_agent/agent/status.py", "Routing keys."),
            ("sar_agent/agent/status.py", "words_of"),
            ("sar_agent/agent/status.py", "Leases(folder)"),
            ("sar_agent/standby/adopt.py", "Lease"),
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
        ("sar_agent.keys", "install_keys", "key_site", "leases.json"),
    ),
    "five phases": Part(
        ("sar_agent/five_phase", "sar_agent/agent/phased_updates.py"),
        (
            ("ARCHITECTURE.md", "| `sar_agent/five_phase/` |"),
            ("sar_agent/agent/install_held.py", "require_no_subscribers"),
            ("sar_agent/agent/explain.py", "subscribers_of"),
            ("sar_agent/telemetry/metrics.py", "sar_agent.five_phase"),
        ),
        "",
        (
            ("ARCHITECTURE.md", "events, five_phase, opensm", "events, opensm"),
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
        ("sar_agent.five_phase", "worlds.five_phase"),
    ),
    "standby": Part(
        ("sar_agent/standby", "tests/unit/conftest.py"),
        (("ARCHITECTURE.md", "| `sar_agent/standby/` |"),),
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
EVERY_MODULE = """
import importlib, pkgutil, sar_agent, sar_lab
for package in (sar_agent, sar_lab):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""


def without(part: Part, tree: Path) -> None:
    for file, line in part.lines:
        remove_lines(tree / file, line)
    for file, text, other in part.edits:
        replace_text(tree / file, text, other)
    for gone in part.gone:
        if (tree / gone).is_dir():
            shutil.rmtree(tree / gone)
        else:
            (tree / gone).unlink()
    install(tree, "sar_agent")
    run(tree, "-m", "docs.reference_tools")


def rest_of_tests(tree: Path, of: Callable[[str], bool], own: Collection[str]) -> list[str]:
    """The unit tests whose text is `of` a kind and has no name of the part's own."""
    return [
        str(path.relative_to(tree))
        for path in sorted((tree / "tests/unit").glob("test_*.py"))
        if path.name != Path(__file__).name
        and of(text := path.read_text())
        and not any(name in text for name in own)
    ]


def assert_pass(tree: Path, files: list[str]) -> None:
    run(tree, "-c", EVERY_MODULE)
    print(run(tree, "-m", "pytest", "-q", "-x", "-m", "not long", *files).splitlines()[-1])


def run(tree: Path, *words: str) -> str:
    """What Python prints in `tree`."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("observer", OBSERVERS)
def test_all_else_works_without_an_observer(observer: str, tmp_path: Path) -> None:
    copy_to(tmp_path)
    without_observer(observer, tmp_path)
    own = (f"observers.{observer} ", f'observers["{observer}"]')
    files = rest_of_tests(
        tmp_path, lambda text: "fake_opensm" in text or "agent_world import" in text, own
    )
    assert len(files) > 10
    assert_pass(tmp_path, files)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_else_works_without_research(tmp_path: Path) -> None:
    copy_to(tmp_path)
    without_research(tmp_path)
    own = ("research", *RESEARCH_COMMANDS)
    files = rest_of_tests(
        tmp_path, lambda text: re.search(r"sar_lab|said\(", text) is not None, own
    )
    assert len(files) > 10
    assert_pass(tmp_path, files)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", PARTS)
def test_what_is_next_to_a_part_works_without_it(part: str, tmp_path: Path) -> None:
    copy_to(tmp_path)
    without(PARTS[part], tmp_path)
    names = PARTS[part].tests.split()
    files = [f"tests/unit/test_{name}.py" for name in names] or rest_of_tests(
        tmp_path,
        lambda text: "fake_opensm" in text or "agent_world import" in text,
        PARTS[part].own,
    )
    assert files
    assert_pass(tmp_path, [*files, "tests/unit/test_rooms.py"])
