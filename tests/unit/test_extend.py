"""The package of docs/extend.md is installed outside the tree, and each of its extensions is
used as a user would: by name, from the command line and from the settings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extend.md").read_text()
BLOCK = re.compile(r"^<!-- file: (\S+) -->\n```\w*\n(.*?)^```$", re.M | re.S)
CABLES = """cables
n1 Leaf1
n2 Leaf1
n3 Leaf2
n4 Leaf2
Leaf1 Spine1
Leaf1 Spine2
Leaf2 Spine1
Leaf2 Spine2
"""
SETTINGS = """
[agent]
mode = "install"
engine = "least-ports"
state_dir = "{folder}/state"
run_dir = "{folder}/run"
[slurm]
source = "job-file"
topology_conf = ""
[fabric]
file = "{folder}/cables"
[opensm]
method = "in-memory"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's package as pip would install it, a fabric, jobs and settings."""
    folder = tmp_path_factory.mktemp("extend")
    files = dict(BLOCK.findall(PAGE))
    package = folder / "package"
    metadata = package / "site_extensions-0.1.dist-info"
    metadata.mkdir(parents=True)
    for name, content in files.items():
        (package / name).write_text(content)
    project = tomllib.loads(files["pyproject.toml"])
    points = project["project"]["entry-points"]
    modules = {value.split(":")[0] for names in points.values() for value in names.values()}
    assert {f"{module}.py" for module in modules} | {"pyproject.toml"} == set(files)
    assert set(project["tool"]["setuptools"]["py-modules"]) == modules
    assert len(points) == len(modules) == 6
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: site-extensions\nVersion: 0.1\n"
    )
    (metadata / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
            for group, names in points.items()
        )
    )
    (folder / "cables").write_text(CABLES)
    (folder / "jobs").write_text("17 n1 n3\n18 n2 n4\n")
    (folder / "settings.toml").write_text(SETTINGS.format(folder=folder))
    return folder


def sar_agent(site: Path, *words: str, fails: bool = False, command: str = "sar_agent") -> str:
    """What the command prints, with the package installed."""
    code = f"import sys; from {command}.cli import main; sys.argv[0] = '{command}'; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=site,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(site / "package"), str(ROOT)]),
            "JOB_FILE": str(site / "jobs"),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode != 0) is fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_engine_routes_a_fabric_of_the_format(site: Path) -> None:
    assert re.search(r"^least-ports +minhop without jobs", sar_agent(site, "engines"), re.M)
    printed = sar_agent(site, "route", "--fabric", "cables", "--jobs", "mix:1",
                        "--engine", "least-ports", "--out", "routes")  # fmt: skip
    assert "least-ports: 8 destinations on 4 switches, every pair reached" in printed


def test_the_check_refuses_routes(site: Path) -> None:
    many = "cables\n" + "".join(f"n{n} Leaf1\n" for n in range(1, 31))
    (site / "many").write_text(many)
    printed = sar_agent(site, "route", "--fabric", "many", "--jobs", "mix:1",
                        "--engine", "minhop", fails=True)  # fmt: skip
    assert "port 30 is reserved" in printed


def test_a_pass_uses_all_five(site: Path) -> None:
    """The format reads the fabric and the source the jobs; the engine routes, the check passes, and
    the manager installs."""
    printed = sar_agent(site, "once", "--config", "settings.toml")
    assert "generation 1 is in force" in printed
    assert "least-ports, 2 jobs" in printed
    history = sar_agent(site, "history", "--json", "--config", "settings.toml")
    assert '"least-ports"' in history and '"installed"' in history


def test_the_row_is_run_and_judged_again(site: Path) -> None:
    assert "site-load" in sar_agent(site, "lab", "list", command="sar_lab")
    words = ("lab", "run", "site-load", "--seeds", "3", "--out", "out")
    printed = sar_agent(site, *words, command="sar_lab")
    assert "verdict: statements of ours (orders 1 of 1)" in printed
    assert "## site-load" in (site / "out" / "reproduction.md").read_text()
    assert (site / "out" / "images" / "reproduction" / "site-load.svg").stat().st_size > 1000
    kept = json.loads((site / "out" / "draws" / "site-load.json").read_text())
    assert len(kept["draws"]) == 6 and "site_row" in kept["code"]["largest_load"]
    assert "sar_agent.routing.sar_plus" in kept["code"]["engine sar-plus"]
    again = sar_agent(site, *words, "--judge", command="sar_lab")
    assert "stale" not in again and "orders 1 of 1" in again
    module = site / "package" / "site_row.py"
    text = module.read_text()
    try:
        module.write_text(text.replace("xgft:2;8,8;1,4", "xgft:2;8,8;1,2"))
        assert "stale draws of largest_load: site_row changed since" in sar_agent(
            site, *words, "--judge", command="sar_lab"
        )
        module.write_text(re.sub(r"more\(.*\)", 'more("they do not pair", [1.0], [])', text))
        broken = sar_agent(site, *words, "--judge", command="sar_lab", fails=True)
        assert "site-load' of site-extensions 0.1" in broken and "Traceback" not in broken
    finally:
        module.write_text(text)


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ('engine = "least-ports"', "no engine is called 'ours'"),
        ('source = "job-file"', "there are file, job-file, pyslurm, slurmrestd, squeue"),
        ('method = "in-memory"', "file, in-memory, plugin"),
    ],
)
def test_a_name_that_no_package_has_is_refused_with_all_known_ones(
    kind: str, known: str, site: Path
) -> None:
    text = SETTINGS.format(folder=site)
    (site / "wrong.toml").write_text(text.replace(kind, f'{kind.split(" =")[0]} = "ours"'))
    assert known in sar_agent(site, "config", "check", "--config", "wrong.toml", fails=True)


def test_a_file_that_no_format_recognises_is_refused_with_all_known_ones(site: Path) -> None:
    (site / "passwd").write_text("root:x:0:0\n")
    printed = sar_agent(site, "topology", "generate", "--fabric", "passwd", fails=True)
    assert "known formats are cable-list, db_csv, ibnetdiscover, net, ports, subnet.lst" in printed


def test_commands_work_on_the_manager_of_a_package(site: Path) -> None:
    """It forgets its tables with its process, so they are those of another engine each time."""
    for _ in range(2):
        assert "in force" in sar_agent(site, "once", "--config", "settings.toml")
    assert "minhop" in sar_agent(site, "status", "--config", "settings.toml")
    printed = sar_agent(site, "rollback", "--to", "1", "--config", "settings.toml")
    assert "generation 1 are in force again" in printed


def test_a_broken_package_of_commands_stops_no_command(tmp_path: Path) -> None:
    metadata = tmp_path / "broken-1.dist-info"
    metadata.mkdir()
    (tmp_path / "broken_commands.py").write_text("import no_such_module\n")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    points = "[sar_agent.commands]\nbroken = broken_commands:register\n"
    (metadata / "entry_points.txt").write_text(points)
    run = subprocess.run(
        [sys.executable, "-c", "from sar_agent.cli import main; main()", "engines"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0 and "sar-plus" in run.stdout
    assert "'broken' of broken 1 cannot be loaded" in run.stderr and run.stderr.count("\n") == 1
