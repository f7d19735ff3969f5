"""The two packages as they are installed: apart from each other and from the source tree."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_agent import __version__

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path.relative_to(ROOT)
    for package in ("sar_agent", "sar_lab")
    for path in (ROOT / package).rglob("*.py")
    if "build" not in path.parts
)
LAB = tomllib.loads((ROOT / "sar_lab/pyproject.toml").read_text())


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def paths_upward(tree: ast.AST) -> Iterator[int]:
    """Lines that lead out of the package: `__file__` with `parents` or twice `parent`, or "../"."""
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Subscript) else ""
        if "__file__" in text and ("parents" in text or ".parent.parent" in text):
            yield node.lineno  # type: ignore[attr-defined]
        if isinstance(node, ast.Constant) and str(node.value).startswith("../"):
            yield node.lineno


def test_no_module_refers_to_a_path_above_its_package() -> None:
    lines = [
        f"{source}:{line}"
        for source in SOURCES
        for line in paths_upward(ast.parse((ROOT / source).read_text()))
    ]
    assert lines == []


@pytest.mark.parametrize(
    "line", ["Path(__file__).parents[1]", "Path(sar_agent.__file__).parent.parent", "Path('../x')"]
)
def test_a_path_upward_is_noticed(line: str) -> None:
    assert list(paths_upward(ast.parse(line)))


@pytest.mark.parametrize(
    ("package", "others"), [("sar_agent", {"sar_lab", "tests"}), ("sar_lab", {"tests"})]
)
def test_imports_go_downward(package: str, others: set[str]) -> None:
    sources = [source for source in SOURCES if source.parts[0] == package]
    assert len(sources) > 50
    for source in sources:
        named = {name.split(".")[0] for name in imports(ast.parse((ROOT / source).read_text()))}
        assert not named & others, source


def test_every_subpackage_of_the_laboratory_is_in_its_wheel() -> None:
    folders = {".".join(source.parent.parts) for source in SOURCES if source.parts[0] == "sar_lab"}
    assert set(LAB["tool"]["setuptools"]["packages"]) == folders


def test_the_laboratory_needs_the_agent_of_its_own_version() -> None:
    assert LAB["project"]["version"] == __version__
    assert f"sar-agent=={__version__}" in LAB["project"]["dependencies"]
