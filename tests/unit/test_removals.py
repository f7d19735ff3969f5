"""Parts that can be deleted, their files and their lines: all else works as before.

Each is deleted in a copy of the tree. `make test` looks part by part whether all that is left can
be imported and has no undefined name, and runs tests without all of them at once; `make test-long`
runs all tests that are near a part without it.

They are services, research with the engines that only papers need, routing keys,
five-phase updates, the archive, and one each of what there are several of: an engine, a job source,
a command, a metric.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.worlds.removable_parts import PARTS, Part

ROOT = Path(__file__).parents[2]
SERVICES = {
    "ages": "ages",
    "baseline": "baseline",
    "cables": "cable_watch",
    "job_days": "job_days",
    "page": "live_page",
}
"""Their folders in `sar_agent/services/`; to remove one is to remove its folder."""
OURS = ("sar_agent", "sar_lab")
KEPT = ("sar_agent", "sar_lab", "tests", "docs", "deploy", "ARCHITECTURE.md", "pyproject.toml")
RESEARCH_COMMANDS = ("simulate-trace", "make-trace", "packets", "count-congestion", '"lab"')


def copy_to(tree: Path, *, kernels: bool = True) -> None:
    """The repository at `tree`; what no test changes is the same. With `kernels`, those that are
    compiled already come along."""
    ignored = None if kernels else shutil.ignore_patterns("__pycache__")
    for other in ROOT.iterdir():
        if other.name not in (*KEPT, "out") and not other.name.startswith((".", "sar_agent.")):
            (tree / other.name).symlink_to(other)
    for name in KEPT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
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


def without_service(service: str, tree: Path) -> None:
    shutil.rmtree(tree / "sar_agent/services" / SERVICES[service])


def without_research(tree: Path) -> None:
    """The package as it is installed without the folder has no entry points that lead there."""
    remove_research(tree)
    install(tree, "sar_lab")


def remove_research(tree: Path) -> None:
    shutil.rmtree(tree / "sar_lab/research")
    remove_lines(tree / "sar_lab/pyproject.toml", "sar_lab.research")
    remove_lines(tree / "ARCHITECTURE.md", "| `sar_lab/research/` |")


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


EVERY_MODULE = """
import importlib, pkgutil, sar_agent, sar_lab
for package in (sar_agent, sar_lab):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""


def without(part: Part, tree: Path) -> None:
    remove(part, tree)
    install(tree, "sar_agent")
    run(tree, "-m", "docs.reference_tools")


def remove(part: Part, tree: Path) -> None:
    for file, line in part.lines:
        remove_lines(tree / file, line)
    for file, text, other in part.edits:
        replace_text(tree / file, text, other)
    for gone in part.gone:
        if (tree / gone).is_dir():
            shutil.rmtree(tree / gone)
        else:
            (tree / gone).unlink()


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


def touched(tree: Path) -> Callable[[], None]:
    """Undoes what happens to the copy at `tree` from now on, by the originals."""

    def undo() -> None:
        for name in KEPT:
            for path in [ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*.*"):
                copy = tree / path.relative_to(ROOT)
                if "__pycache__" in path.parts or path.is_dir():
                    continue
                if not copy.exists() or copy.stat().st_mtime_ns != path.stat().st_mtime_ns:
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, copy)

    return undo


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy for all that is only looked at; each test undoes what it did."""
    tree = tmp_path_factory.mktemp("sources")
    copy_to(tree, kernels=False)
    return tree


REMOVALS: dict[str, Callable[[Path], None]] = {
    **{f"service {name}": partial(without_service, name) for name in SERVICES},
    "research": remove_research,
    **{name: partial(remove, part) for name, part in PARTS.items()},
}


def leads_nowhere(tree: Path) -> Iterator[str]:
    """Imports of modules of ours that are gone. A function may import what is only there where it
    is configured, behind an `if`."""
    for path in [path for package in OURS for path in (tree / package).rglob("*.py")]:
        for name in imported(ast.parse(path.read_text())):
            file = tree / name.replace(".", "/")
            there = file.with_suffix(".py").exists() or (file / "__init__.py").exists()
            if name.partition(".")[0] in OURS and not there:
                yield f"{path.relative_to(tree)} imports {name}"


def imported(node: ast.AST, *, in_function: bool = False) -> Iterator[str]:
    """The modules that are imported below `node`."""
    if isinstance(node, ast.ImportFrom):
        yield node.module or ""
    elif isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif not (in_function and isinstance(node, ast.If)):
        in_function |= isinstance(node, ast.FunctionDef)
        for below in ast.iter_child_nodes(node):
            yield from imported(below, in_function=in_function)


@pytest.mark.parametrize("removal", REMOVALS)
def test_nothing_that_is_left_names_what_is_gone(removal: str, sources: Path) -> None:
    undo = touched(sources)
    try:
        REMOVALS[removal](sources)
        assert list(leads_nowhere(sources)) == []
        run(sources, "-m", "ruff", "check", "--isolated", "--select", "F821,F822,E9", "-n", *OURS)
    finally:
        undo()


@pytest.mark.timeout(600)
def test_all_else_works_without_all_of_them(tmp_path: Path) -> None:
    copy_to(tmp_path)
    for removal in REMOVALS.values():
        removal(tmp_path)
    install(tmp_path, "sar_agent")
    install(tmp_path, "sar_lab")
    assert_pass(tmp_path, ["tests/unit/test_rooms.py", "tests/unit/test_pass_order.py"])


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("service", SERVICES)
def test_all_else_works_without_a_service(service: str, tmp_path: Path) -> None:
    copy_to(tmp_path)
    without_service(service, tmp_path)
    install(tmp_path, "sar_agent")
    own = (f"services.{SERVICES[service]}", f'observers["{service}"]')
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
