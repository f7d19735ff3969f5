"""The two packages as they are installed: apart from each other and from the source tree."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from sar_agent import __version__

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path.relative_to(ROOT)
    for package in ("sar_agent", "sar_lab")
    for path in (ROOT / package).rglob("*.py")
    if "build" not in path.parts
)
LAB = tomllib.loads((ROOT / "sar_lab/pyproject.toml").read_text())


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


def test_every_subpackage_of_the_laboratory_is_in_its_wheel() -> None:
    folders = {".".join(source.parent.parts) for source in SOURCES if source.parts[0] == "sar_lab"}
    assert set(LAB["tool"]["setuptools"]["packages"]) == folders


def test_the_laboratory_needs_the_agent_of_its_own_version() -> None:
    assert LAB["project"]["version"] == __version__
    assert f"sar-agent=={__version__}" in LAB["project"]["dependencies"]


def test_no_test_file_imports_another() -> None:
    """What several share lies in tests/worlds."""
    for path in (ROOT / "tests").rglob("*.py"):
        assert not re.search(r"^ *from tests\.\S*\.test_", path.read_text(), re.MULTILINE), path
